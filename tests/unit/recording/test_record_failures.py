"""A failed program is explained to its author."""

import sys
from pathlib import Path

import pulumi
import pytest

from ebbtide.analysis.recording.program import ProgramError
from ebbtide.analysis.recording.record import record
from tests.unit.recording.programs import network, run


def _fails(program: object, **config: str) -> ProgramError:
    with pytest.raises(ProgramError) as caught:
        run(program, **config)
    return caught.value


def test_a_run_error_is_its_message() -> None:
    """The message is shown as the program's author wrote it."""

    def program() -> None:
        raise pulumi.RunError("The cluster has no pools.")

    error = _fails(program)
    assert str(error) == "The cluster has no pools."
    assert isinstance(error.__cause__, pulumi.RunError)


def test_faults_of_inputs_are_listed() -> None:
    """With their paths."""

    def program() -> None:
        raise pulumi.InputPropertiesError(
            "Invalid pool", [{"property_path": "nodes.max", "reason": "is below the minimum"}]
        )

    assert str(_fails(program)) == "Invalid pool\nnodes.max: is below the minimum"

    def of_one_property() -> None:
        raise pulumi.InputPropertyError("nodes.max", "is below the minimum")

    assert str(_fails(of_one_property)) == "nodes.max: is below the minimum"


def _missing(name: str) -> str:
    return dict[str, str]()[name]


def test_an_exception_in_apply_is_the_programs() -> None:
    """However late it comes."""

    def program() -> None:
        network("net").name.apply(_missing)

    assert str(_fails(program)) == "KeyError: 'net'"


def test_the_programs_own_failure_comes_first() -> None:
    """A resource that fails besides is not what the author has to know first."""

    def program() -> None:
        network("net")
        network("net")
        raise pulumi.RunError("no pools")

    assert str(_fails(program)) == "no pools"


def test_the_first_of_several_failed_resources_is_named() -> None:
    """Not the one that failed because of it."""

    def program() -> None:
        network("net")
        twin = network("net")
        network("after", pulumi.ResourceOptions(depends_on=[twin]))

    assert "Network::net. Pulumi would reject" in str(_fails(program))


def test_a_status_that_is_not_zero() -> None:
    """`sys.exit` ends the program, not the preview."""
    assert str(_fails(lambda: sys.exit(3))) == "The program exited with status 3."
    assert str(_fails(lambda: sys.exit("no"))) == "The program exited with status no."


def test_an_interrupt_is_not_swallowed() -> None:
    """Ctrl-C ends the run."""

    def program() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(program)


def test_secrets_stay_out_of_messages() -> None:
    """An exception that quotes a secret of the configuration does not show it."""

    def program() -> None:
        raise ValueError(f"bad password {pulumi.Config('shop').require('word')}")

    with pytest.raises(ProgramError, match=r"^ValueError: bad password \[secret\]$"):
        run(program, "shop:word", shop__word="hunter22")


def test_nothing_is_printed_on_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """The event loop would warn of every future that is never awaited."""

    def program() -> None:
        nets = [network("net") for _ in range(5)]
        pulumi.export("names", [net.name for net in nets])

    _fails(program)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("main", "message"),
    [
        ("import json\n\njson.loads('{')\n", "JSONDecodeError: Expecting property name"),
        (
            "import nosuchmodule\n",
            "ModuleNotFoundError: No module named 'nosuchmodule' (__main__.py, line 1)",
        ),
        ("def f(:\n", "invalid syntax ("),
        ("import part\npart.make()\n", "ValueError: too small (part.py, line 2)"),
    ],
)
def test_a_failure_has_its_place_in_the_program(tmp_path: Path, main: str, message: str) -> None:
    """File and line of the program's own, not of a library's."""
    (tmp_path / "__main__.py").write_text(main)
    (tmp_path / "part.py").write_text("def make():\n    raise ValueError('too small')\n")
    with pytest.raises(ProgramError) as caught:
        record(tmp_path, project="shop", stack="dev")
    assert str(caught.value).startswith(message)
    assert "line" in str(caught.value)


def test_two_resources_of_one_urn_have_their_places(tmp_path: Path) -> None:
    """The message has the file and line of both declarations, where the program has them."""
    main = "import pulumi, part\nfrom net import Net\nNet('net')\npart.make()\n"
    (tmp_path / "__main__.py").write_text(main)
    (tmp_path / "part.py").write_text("from net import Net\ndef make():\n    Net('net')\n")
    component = "import pulumi\nclass Net(pulumi.ComponentResource):\n    def __init__(self, name):\n"
    (tmp_path / "net.py").write_text(f"{component}        super().__init__('acme:Net', name)\n")
    with pytest.raises(ProgramError) as caught:
        record(tmp_path, project="shop", stack="dev")
    urn = "urn:pulumi:dev::shop::acme:Net::net"
    places = "one in __main__.py, line 3, the other in __main__.py, line 4"
    assert str(caught.value) == (
        f"Two resources have the URN {urn}: {places}. Pulumi would reject the second, since a URN consists "
        "of the parents' types, the type and the name. Rename one of them."
    )
    assert (caught.value.file, caught.value.line) == ("__main__.py", 4)


def test_two_resources_of_one_line_have_their_place(tmp_path: Path) -> None:
    """The message has the line of the program's that runs twice."""
    main = "import pulumi\nfor _ in range(2):\n    pulumi.ComponentResource('acme:Net', 'net')\n"
    (tmp_path / "__main__.py").write_text(main)
    with pytest.raises(ProgramError) as caught:
        record(tmp_path, project="shop", stack="dev")
    assert ": both in __main__.py, line 3, which runs twice. Pulumi would reject" in str(caught.value)
    assert (caught.value.file, caught.value.line) == ("__main__.py", 3)


def test_a_directory_without_a_program(tmp_path: Path) -> None:
    """The message says what was looked for, and where."""
    with pytest.raises(ProgramError, match=r"^There is no program at .*__main__\.py, which "):
        record(tmp_path, project="shop", stack="dev")


def test_a_method_that_only_a_provider_answers() -> None:
    """A resource method is named in the error."""

    def program() -> None:
        pulumi.runtime.call("kubernetes:index:Thing/describe", {}, network("net"))

    assert str(_fails(program)) == (
        "The program calls the resource method kubernetes:index:Thing/describe. Only its provider can "
        "respond, and the preview runs no providers."
    )
