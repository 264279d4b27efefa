import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ebbtide.placement import Profile, ProfileError
from tests.unit.work.clusters import DEV, DEV_AKS

_PULUMI = """
assert sys.argv[1:4] == ["stack", "output", "placementProfile"], sys.argv
rest = sys.argv[4:]
assert "--json" in rest and "--non-interactive" in rest
if "--stack" in rest and rest[rest.index("--stack") + 1] != "acme/ml/dev":
    sys.exit("error: no stack named 'acme/ml/dve' found")
print(open(sys.path[0] + "/output").read())
"""
_KUBECTL = """
assert sys.argv[1:3] == ["get", "configmap"] and sys.argv[-2:] == ["--output", "json"], sys.argv
name, *options = sys.argv[3:-2]
given = dict(zip(options[::2], options[1::2]))
assert given.pop("--context", "acme") == "acme" and set(given) <= {"--namespace"}, sys.argv
namespace = given.get("--namespace", "vision")
if (namespace, name) == ("vision", "ebbtide-profile"):
    print(json.dumps({"kind": "ConfigMap", "data": {"profile.json": profile}}))
elif name == "kube-root-ca.crt":
    print(json.dumps({"kind": "ConfigMap", "data": {"ca.crt": "…"}}))
else:
    sys.exit(f'Error from server (NotFound): configmaps "{name}" not found')
"""


def _refused(source: Any) -> str:
    with pytest.raises(ProfileError) as raised:
        Profile.load(source)
    return str(raised.value)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with a `pulumi` and a `kubectl` that know the dev stack and its cluster, and refuse the rest."""
    (tmp_path / "output").write_text(json.dumps(DEV.output()))
    (tmp_path / "profile").write_text(DEV.json())
    for name, body in (("pulumi", _PULUMI), ("kubectl", _KUBECTL)):
        file = tmp_path / name
        read = f"import json, sys\nprofile = open({str(tmp_path / 'profile')!r}).read()\n"
        file.write_text(f"#!{sys.executable} -S\n{read}{body}")
        file.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("written", [DEV.json(), DEV.output(), DEV.output() + "\n"])
def test_a_file_text_and_data(tmp_path: Path, written: str) -> None:
    """The same from a file, by path or as text, from JSON, from a stack output, and from the data itself."""
    file = tmp_path / "profile.json"
    file.write_text(written)
    for source in (file, str(file), written, DEV.data()):
        assert Profile.load(source) == DEV


def test_a_stack_output_is_one_line_whose_start_changes() -> None:
    """Pulumi prints the first 150 characters of a text that it cannot decode as JSON or YAML."""
    pools = (replace(DEV.pools[0], max_nodes=DEV.pools[0].max_nodes + 1), *DEV.pools[1:])
    before, after = DEV.output(), replace(DEV, pools=pools).output()
    for text in (before, after):
        assert text.isprintable()
        with pytest.raises(ValueError, match="Expecting value"):
            json.loads(text)
    assert before[:20] != after[:20]
    assert len(before) < len(json.dumps(DEV.data())) / 2


@pytest.mark.parametrize("length", [20, 160, -1])
def test_a_stack_output_that_was_cut(length: int) -> None:
    """The start of one, as Pulumi prints it, is refused with the command that prints all of it."""
    assert "`pulumi stack output placementProfile`" in _refused(DEV.output()[:length])


def test_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default source is the variable: JSON text or a file."""
    monkeypatch.setenv("EBBTIDE_PROFILE", DEV_AKS.json())
    assert Profile.load() == DEV_AKS
    file = tmp_path / "profile.json"
    file.write_text(DEV.json())
    monkeypatch.setenv("EBBTIDE_PROFILE", str(file))
    assert Profile.load() == DEV


def test_a_stack(programs: Path) -> None:
    """The output of a stack by name, or of the selected one; one of an older Ebbtide is an object."""
    assert Profile.load("stack:acme/ml/dev") == DEV
    assert Profile.load("stack:") == DEV
    (programs / "output").write_text(DEV.json())
    assert Profile.load("stack:") == DEV
    assert "no stack named 'acme/ml/dve' found" in _refused("stack:acme/ml/dve")


@pytest.mark.usefixtures("programs")
def test_the_kubeconfig(monkeypatch: pytest.MonkeyPatch) -> None:
    """The default without the variable is the ConfigMap of the context's namespace, or of a given one."""
    for value in ("", " "):
        monkeypatch.setenv("EBBTIDE_PROFILE", value)
        assert Profile.load() == DEV
    assert Profile.load("", namespace="vision", context="acme") == DEV
    with pytest.raises(ProfileError) as raised:
        Profile.load(namespace="speech")
    message = str(raised.value)
    assert "namespace speech has none" in message
    assert 'configmaps "ebbtide-profile" not found' in message
    assert "export EBBTIDE_PROFILE=profile.json" in message


def test_no_kubeconfig(programs: Path) -> None:
    """A connection that kubectl's default address refuses is not what is wrong, but one of pulumi is."""
    refused = (
        "The connection to the server localhost:8080 was refused - did you specify the right host or port?"
    )
    for name in ("kubectl", "pulumi"):
        (programs / name).write_text(f"#!{sys.executable} -S\nimport sys\nsys.exit({refused!r})\n")
    message = _refused(None)
    assert ": there is no kubeconfig for a cluster. Choose another namespace, or write" in message
    assert "8080" not in message
    assert refused in _refused("stack:dev")


@pytest.mark.usefixtures("programs")
def test_a_config_map() -> None:
    """The ConfigMap in a team's namespace, under its own name or another."""
    assert Profile.load("configmap:vision") == DEV
    assert Profile.load("configmap:vision/ebbtide-profile") == DEV
    assert 'configmaps "other" not found' in _refused("configmap:vision/other")
    assert "it contains no profile" in _refused("configmap:vision/kube-root-ca.crt")
    assert "configmap:NAMESPACE" in _refused("configmap:")


@pytest.mark.parametrize("source", ["stack:dev", "configmap:vision"])
def test_a_program_that_is_not_there(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing program is named in the error."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "which is not installed: install it, or name a file." in _refused(source)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("ebbtide.dev/profile/v3", "newer than this package: its version is ebbtide.dev/profile/v3"),
        ("ebbtide.dev/profile/v0", "its version is 'ebbtide.dev/profile/v0', this package reads"),
        (None, "its version is None, this package reads"),
    ],
)
def test_another_version(version: str | None, message: str) -> None:
    """A newer one asks for a newer package; anything else is not a profile."""
    assert message in _refused({**DEV.data(), "version": version})


_DAMAGED: list[dict[str, Any]] = [
    {"pools": [{}]},
    {"pools": 3},
    {"pools": ["a"]},
    {"logs": None},
    {"cloud": "eks"},
    {"queues": [{"name": "a"}]},
]


@pytest.mark.parametrize("change", _DAMAGED)
def test_a_damaged_profile(change: dict[str, Any]) -> None:
    """A profile of this version with missing parts is reported as damaged, without a traceback."""
    assert "The profile is damaged" in _refused({**DEV.data(), **change})


@pytest.mark.parametrize(("text", "message"), [("{", "is not JSON"), ("[]", "cannot be read")])
def test_what_is_no_profile(text: str, message: str) -> None:
    """Text that is no JSON object, and a file that is not there."""
    assert message in _refused(text)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    """A list, binary data, a directory: each in a sentence."""
    (tmp_path / "list").write_text("[]")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert "is not a JSON object" in _refused(tmp_path / "list")
    assert "is not UTF-8 text" in _refused(tmp_path / "binary")
    assert "It is a directory." in _refused(tmp_path)


def test_a_later_profile_of_this_version_is_read() -> None:
    """Fields that this package does not know are ignored."""
    data = json.loads(json.dumps(DEV.data()))
    data["carbon"] = {}
    for pool in data["pools"]:
        pool["shade"] = 1
    assert Profile.load(data) == DEV
