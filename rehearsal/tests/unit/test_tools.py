"""Finding what a rehearsal needs: on PATH, in the cache, or not at all."""

import subprocess
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from ebbtide.declaration.catalog.versions import PINS
from ebbtide_rehearsal.tools import __main__ as command
from ebbtide_rehearsal.tools.find import Origin, ensure, plugin_file, sdk_version
from ebbtide_rehearsal.tools.items import Data, Finished, Started, Step, Tool, ToolError, Worked
from ebbtide_rehearsal.tools.table import all_items, needed
from rehearsal.tests.unit.machine import Machine, machine_in, patched_files, silent


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with nothing on its PATH."""
    return machine_in(tmp_path, monkeypatch)


_PINNED = {"kubernetes": "1.36.2", "etcd": "3.6.14", "helm": "3.20.2", "pulumi": "3.259.0", "kueue": "0.19.2"}
"""Whatever is pinned today."""


@pytest.mark.parametrize(
    ("name", "says", "good"),
    [
        ("kubectl", "Client Version: v1.36.2", True),
        ("kubectl", "Client Version: v1.36.0-dispatcher", True),
        ("kubectl", "Client Version: v1.35.9", False),
        ("kube-apiserver", "Kubernetes v1.37.0", False),
        ("etcd", "etcd Version: 3.6.14", True),
        ("etcd", "etcd Version: 3.6.8", True),
        ("etcd", "etcd Version: 3.7.0", True),
        ("etcd", "etcd Version: 3.5.21", False),
        ("helm", "v3.20.2+g8fb76d6", True),
        ("helm", "v4.0.0", False),
        ("pulumi", "v3.300.1", True),
        ("pulumi", "v3.258.9", False),
        ("pulumi", "no version here", False),
        ("kueue", "v0.19.2", False),
    ],
)
def test_only_a_version_that_will_do_is_taken_from_path(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, name: str, says: str, *, good: bool
) -> None:
    """Kubernetes in the pinned minor version, others no older within a major version; else it is missing."""
    for pin, version in _PINNED.items():
        monkeypatch.setitem(PINS, pin, replace(PINS[pin], version=version))
    path = machine.program(name, f"echo '{says}'")
    if good:
        tool = ensure([name], on_step=silent).by_name[name]
        assert (tool.path, tool.origin) == (path, Origin.PATH)
        assert tool.version in says
    else:
        with pytest.raises(ToolError, match=f"nor built yet: {name} "):
            ensure([name], on_step=silent)


def test_the_assets_of_kubebuilder_come_before_path(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A program of another version there is passed over for the one on PATH."""
    kubernetes = all_items()["kubectl"].version
    for name in ("kubectl", "kube-apiserver"):
        machine.program(name, f"echo v{kubernetes}")
    assets = tmp_path / "assets"
    assets.mkdir()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    for name, version in {"kubectl": kubernetes, "kube-apiserver": "1.20.0"}.items():
        (assets / name).write_text(f"#!/bin/sh\necho v{version}\n")
        (assets / name).chmod(0o755)
    tools = ensure(["kubectl", "kube-apiserver"], on_step=silent)
    assert tools.path("kubectl") == assets / "kubectl"
    assert tools.path("kube-apiserver") == machine.bin / "kube-apiserver"


def test_a_program_that_fails_to_say_its_version_is_not_taken(machine: Machine) -> None:
    """Such as the shim of a version manager that has no version chosen."""
    machine.program("etcd", f"echo 'etcd Version: {all_items()['etcd'].version}'; exit 126")
    with pytest.raises(ToolError, match="etcd"):
        ensure(["etcd"], on_step=silent)


def test_what_is_missing_is_built_once(machine: Machine) -> None:
    """The second time it comes from the cache, and needs no Go."""
    machine.go()
    first = ensure(["etcd", "kustomize", "etcd"], on_step=silent).by_name
    assert [tool.origin for tool in first.values()] == [Origin.BUILT, Origin.BUILT]
    assert subprocess.run([first["kustomize"].path], capture_output=True, check=True).stdout == b"built\n"
    (machine.bin / "go").unlink()
    second = ensure(["etcd", "kustomize"], on_step=silent)
    assert [tool.origin for tool in second.by_name.values()] == [Origin.CACHE, Origin.CACHE]
    assert second.path("kustomize") == first["kustomize"].path
    assert sorted(machine.built()) == ["go.etcd.io/etcd/server/v3", "sigs.k8s.io/kustomize/kustomize/v5"]


def test_waiting_is_reported(machine: Machine) -> None:
    """Progress reports each build with its number and Go's messages."""
    machine.go()
    steps: list[Step] = []
    ensure(["etcd", "kustomize"], on_step=steps.append)
    started = [step for step in steps if isinstance(step, Started)]
    assert sorted((step.number, step.of) for step in started) == [(1, 2), (2, 2)]
    assert Worked("kustomize", "sigs.k8s.io/kustomize/kustomize/v5") in steps
    finished = {step.name for step in steps if isinstance(step, Finished)}
    assert finished == {step.name for step in started} == {"etcd", "kustomize"}


def test_without_go_one_sentence_says_what_is_missing(machine: Machine) -> None:
    """And what to install."""
    machine.program("kubectl", f"echo v{all_items()['kubectl'].version}")
    with pytest.raises(ToolError) as raised:
        ensure(["kubectl", "etcd", "kueue-chart"], on_step=silent)
    assert str(raised.value) == (
        f"Neither on PATH in an accepted version nor built yet: etcd {all_items()['etcd'].version}, "
        f"kueue-chart {all_items()['kueue-chart'].version}; building needs Go 1.26 or later, which is not on "
        "PATH either: install it (https://go.dev/doc/install) and run this again."
    )


@pytest.mark.parametrize("version", ["go1.25.11", "go1.9", "", "devel"])
def test_a_go_that_is_too_old_is_refused(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    """Before anything is built: Go itself would fail in the middle, or fetch another Go."""
    machine.go()
    monkeypatch.setenv("FAKE_GO_VERSION", version)
    with pytest.raises(ToolError, match=r"needs Go 1\.26 or later"):
        ensure(["etcd"], on_step=silent)
    assert machine.built() == []


def test_the_command_shows_what_was_found(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    """A row each; what was being built goes to standard error."""
    machine.go()
    modules: dict[str, dict[str, str]] = defaultdict(dict)
    for item in all_items().values():
        match item:
            case Tool():
                modules[f"{item.module}@v{item.version}"] |= patched_files(item)
            case Data():
                for part in item.parts:
                    modules[f"{part.module}@{part.version}"][f"{part.source}/some.yaml"] = ""
    for address, texts in modules.items():
        machine.module(address, texts=texts)
    assert command.main() == 0
    output = capsys.readouterr()
    rows = output.out.splitlines()
    assert rows[0].split() == ["name", "version", "from", "path"]
    assert [row.split()[0] for row in rows[1:]] == list(all_items())
    started = sum(line.startswith("[") for line in output.err.splitlines())
    assert f"[{started}/{started}]" in output.err
    kubernetes = "kube-apiserver, kube-controller-manager, kube-scheduler, kubectl"
    assert f"{kubernetes}: building, 4 minutes from scratch on 2 cores" in output.err


def test_the_command_ends_with_2_when_something_cannot_be_had(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one sentence."""
    assert list(machine.bin.iterdir()) == []
    assert command.main() == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert "Traceback" not in output.err


def test_the_command_finds_named_tools_alone(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown name is reported with the known ones."""
    machine.go()
    etcd = all_items()["etcd"]
    assert isinstance(etcd, Tool)
    machine.module(f"{etcd.module}@v{etcd.version}")
    assert command.main(["etcd"]) == 0
    assert [row.split()[0] for row in capsys.readouterr().out.splitlines()[1:]] == ["etcd"]
    assert command.main(["etcd", "ectd"]) == 2
    assert capsys.readouterr().err.startswith("No such tool: ectd. There are ")


def test_a_cache_that_cannot_be_written_is_named(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one sentence, too."""
    machine.go()
    monkeypatch.setenv("EBBTIDE_CACHE", str(machine.bin / "go"))
    assert command.main() == 2
    assert str(machine.bin / "go") in capsys.readouterr().err


_BY_ADDON = {
    "trainer": {"trainer-controller-manager", "jobset", "trainer-chart", "trainer-manifests"},
    "katib": {"katib-controller", "katib-manifests"},
}


@pytest.mark.parametrize("addons", [(), ("trainer",), ("katib",), ("trainer", "katib", "kueue", "pipelines")])
def test_only_what_is_declared_is_needed(addons: tuple[str, ...]) -> None:
    """In the order of the table; what tests ask for by name never is."""
    items = needed(addons)
    by_name = {
        "workflow-controller",
        "argo-crds",
        "argo-manifests",
        "pipelines-manifests",
        "kueue-crds",
        "kueue-replay",
        "kustomize",
        "helm",
        "registry",
        "pulumi-language-nodejs",
        "pulumi-language-python",
        "pulumi-language-python-exec",
        "pulumi-language-yaml",
        "cluster-autoscaler",
    }
    never = by_name.union(*(names for addon, names in _BY_ADDON.items() if addon not in addons))
    assert list(items) == [name for name in all_items() if name not in never]
    assert {"etcd", "pulumi", "pulumi-resource-kubernetes", "kubectl", "kueue", "kueue-chart"} <= set(items)


def test_an_installed_plugin_of_the_sdk_is_preferred(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One of another version is what no program here requests."""
    machine.go()
    name = "pulumi-resource-kubernetes"
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    installed = plugin_file(tmp_path / "home", "kubernetes")
    other = installed.parent.with_name("resource-kubernetes-v4.0.0") / installed.name
    for path in (installed, other):
        path.parent.mkdir(parents=True)
    other.touch()
    with pytest.raises(ToolError):
        ensure([name], on_step=silent)
    installed.touch()
    tool = ensure([name], on_step=silent).by_name[name]
    assert (tool.path, tool.version, tool.origin) == (installed, sdk_version("kubernetes"), Origin.PLUGINS)
