"""A run leaves the process as it was, and can be had again."""

import asyncio
import gc
import os
import sys
import threading
from pathlib import Path

import pulumi
import pytest
from pulumi.runtime import settings

from ebbtide.analysis.preview.stack_files import read_stack
from ebbtide.analysis.recording.program import ProgramError
from ebbtide.analysis.recording.record import record
from tests.synth import ROOT
from tests.unit.recording.programs import network, run


def _project(directory: Path, main: str, **modules: str) -> Path:
    directory.mkdir(exist_ok=True)
    (directory / "__main__.py").write_text(main)
    for name, text in modules.items():
        (directory / f"{name}.py").write_text(text)
    return directory


def test_project_stack_and_organization_are_what_was_said() -> None:
    """The program reads the values that the engine would give it."""

    def program() -> None:
        values = [pulumi.get_project(), pulumi.get_stack(), pulumi.get_organization()]
        pulumi.export("seen", [*values, pulumi.runtime.is_dry_run()])

    recording = record(program, project="shop", stack="dev", organization="acme")
    assert recording.outputs["seen"] == ["shop", "dev", "acme", True]


def test_nothing_of_a_run_stays_in_the_process() -> None:
    """Settings, configuration, collector, standard output and the event loop are as before, in every
    thread.
    """

    def state() -> list[object]:
        return [
            pulumi.get_project(),
            pulumi.get_stack(),
            pulumi.runtime.get_config("shop:key"),
            settings.get_monitor(),
            settings.get_engine(),
            pulumi.runtime.get_root_resource(),
            sys.stdout,
            gc.get_threshold(),
            Path.cwd(),
            list(sys.path),
        ]

    def elsewhere() -> list[object]:
        values: list[object] = []
        thread = threading.Thread(target=lambda: values.extend(state()))
        thread.start()
        thread.join()
        return values

    before, before_elsewhere = state(), elsewhere()
    run(lambda: network("net"), shop__key="value")
    assert state() == before
    assert elsewhere() == before_elsewhere
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


def test_a_failed_run_leaves_nothing_either() -> None:
    """The next run is as good as the first."""

    def bad() -> None:
        network("net")
        network("net")

    with pytest.raises(ProgramError):
        run(bad)
    assert len(run(lambda: network("net"))) == 1
    assert settings.get_monitor() is None


def test_runs_in_other_threads() -> None:
    """Two runs at once do not mix: their settings are context variables."""
    counts: dict[int, int] = {}

    def work(count: int) -> None:
        recording = run(lambda: [network(f"net-{i}") for i in range(count)] and None)
        counts[count] = len(recording)

    threads = [threading.Thread(target=work, args=(count,)) for count in (3, 5, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == {3: 3, 5: 5, 7: 7}


def test_an_async_program() -> None:
    """A program may be a coroutine, or pass one to `pulumi.run`."""

    async def program() -> None:
        await asyncio.sleep(0)
        network("net")

    async def main() -> dict[str, pulumi.Input[object]]:
        await asyncio.sleep(0)
        return {"name": network("other").name}

    assert len(run(program)) == 1
    assert run(lambda: pulumi.run(main)).outputs == {"name": "other"}


def test_resources_made_inside_apply_are_waited_for() -> None:
    """However late they come."""

    def program() -> None:
        first = network("first")
        first.id.apply(lambda _: network("second").id.apply(lambda _: network("third")))

    assert [resource.name for resource in run(program)] == ["first", "second", "third"]


def test_threads_of_the_program_are_real() -> None:
    """Only the SDK's calls to the monitor run at once; what a program hands to a thread runs in one."""

    async def program() -> None:
        name = await asyncio.to_thread(lambda: threading.current_thread().name)
        pulumi.export("thread", name)

    assert run(program).outputs["thread"] != threading.current_thread().name


def test_a_directory_is_run_in_place(tmp_path: Path) -> None:
    """`__main__.py` imports modules of its directory, and reads files from there."""
    main = """
import pulumi, helper
pulumi.export("text", helper.text())
pulumi.export("name", __name__)
pulumi.export("root", pulumi.get_root_directory())
"""
    _project(tmp_path, main, helper="import pathlib\ndef text(): return pathlib.Path('note.txt').read_text()")
    (tmp_path / "note.txt").write_text("here")
    here = Path.cwd()
    assert record(tmp_path, project="shop", stack="dev").outputs == {
        "text": "here",
        "name": "__main__",
        "root": str(tmp_path),
    }
    assert Path.cwd() == here
    assert str(tmp_path) not in sys.path
    assert "helper" not in sys.modules


def test_the_projects_directory_may_be_another(tmp_path: Path) -> None:
    """The program can be in the directory that `main` of `Pulumi.yaml` names."""
    home = _project(tmp_path / "src", "import pulumi; pulumi.export('root', pulumi.get_root_directory())")
    assert record(home, project="shop", stack="dev", root=tmp_path).outputs == {"root": str(tmp_path)}


def test_nothing_is_contacted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run opens no connection, asks for no name and listens on no port."""

    def refuse(*args: object) -> None:
        pytest.fail(f"the network was used: {args}")

    for name in ("connect", "connect_ex", "listen", "sendto"):
        monkeypatch.setattr(f"socket.socket.{name}", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    for stack in ("dev", "dev-aks"):
        files = read_stack(ROOT, stack)
        recording = record(files.program, project="ebbtide", stack=stack, config=files.config)
        assert len(recording) > 10


def test_a_file_is_a_program_too(tmp_path: Path) -> None:
    """`main` of `Pulumi.yaml` may name one."""
    (tmp_path / "infra.py").write_text("import pulumi; pulumi.export('a', 1)")
    assert record(tmp_path / "infra.py", project="shop", stack="dev").outputs == {"a": 1}


def test_modules_of_a_program_run_again_each_time(tmp_path: Path) -> None:
    """A module that makes resources when it is imported makes them in the second run too."""
    _project(
        tmp_path,
        "import infra",
        infra="import pulumi_gcp as gcp; gcp.compute.Network('net', name='net')",
    )
    for _ in range(2):
        assert len(record(tmp_path, project="shop", stack="dev")) == 1


def test_programs_with_modules_of_one_name(tmp_path: Path) -> None:
    """Each imports its own, and a module of that name from elsewhere is restored afterwards."""
    first = _project(
        tmp_path / "one", "import pulumi, programs; pulumi.export('a', programs.A)", programs="A = 1"
    )
    two = _project(
        tmp_path / "two", "import pulumi, programs; pulumi.export('a', programs.A)", programs="A = 2"
    )
    sys.modules["programs"] = sys
    try:
        assert record(first, project="shop", stack="dev").outputs == {"a": 1}
        assert record(two, project="shop", stack="dev").outputs == {"a": 2}
        assert sys.modules["programs"] is sys
    finally:
        del sys.modules["programs"]


def test_a_module_that_was_there_stays_the_same(tmp_path: Path) -> None:
    """A module that the caller has imported from the program's directory is the same during and after the
    run."""
    _project(tmp_path, "import shared_part; shared_part.SEEN.append(1)", shared_part="SEEN = []")
    sys.path.insert(0, str(tmp_path))
    try:
        import shared_part  # pyright: ignore[reportMissingImports] # noqa: PLC0415 - made above

        record(tmp_path, project="shop", stack="dev")
        assert sys.modules["shared_part"] is shared_part
        assert vars(shared_part)["SEEN"] == [1]  # pyright: ignore[reportUnknownArgumentType]
    finally:
        sys.path.remove(str(tmp_path))
        del sys.modules["shared_part"]


def test_a_directory_named_like_a_library_hides_nothing(tmp_path: Path) -> None:
    """A data directory `logging` beside the program is not the standard library's module."""
    import logging  # noqa: PLC0415 - to compare

    (tmp_path / "logging").mkdir()
    _project(tmp_path, "import logging; logging.getLogger('x')")
    record(tmp_path, project="shop", stack="dev")
    assert sys.modules["logging"] is logging


def test_a_program_may_end_itself() -> None:
    """Ending with status 0 is the end of it, and no error."""

    def program() -> None:
        network("net")
        sys.exit(0)

    assert len(run(program)) == 1


def test_the_environment_of_a_program_is_the_callers() -> None:
    """Nothing is taken away from it and nothing added."""
    before = dict(os.environ)
    recording = run(lambda: pulumi.export("same", dict(os.environ) == before))
    assert recording.outputs["same"] is True
