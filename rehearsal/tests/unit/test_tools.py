"""Finding what a rehearsal needs: on PATH, in the cache, or not at all; the table of tools, and progress."""

import re
from collections import defaultdict
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from ebbtide.declaration.catalog.versions import PINS
from ebbtide_rehearsal.tools import __main__ as command
from ebbtide_rehearsal.tools.download import MODULES, Release, pins, releases
from ebbtide_rehearsal.tools.find import Origin, ensure, plugin_file, sdk_version
from ebbtide_rehearsal.tools.items import (
    Data,
    Finished,
    Part,
    Started,
    Step,
    Tool,
    ToolError,
    Waiting,
    Worked,
)
from ebbtide_rehearsal.tools.progress import narration
from ebbtide_rehearsal.tools.table import all_items
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


_STEPS: list[Step] = [
    Waiting("kwok", 9, 4),
    Worked("kwok", "go: downloading something"),
    Started("kwok, kueue", 1, 3, 2),
    Worked("kwok, kueue", "sigs.k8s.io/kwok/cmd/kwok"),
    Finished("kwok, kueue", 125.4),
    Started("kueue-crds", 2, 3, 0),
    Finished("kueue-crds", 1.6),
    Started("kube-scheduler", 3, 3, 0.1),
    Finished("kube-scheduler", 7),
]


def _shown(*, terminal: bool) -> str:
    file = StringIO()
    with narration(Console(file=file, force_terminal=terminal, width=60)) as say:
        for step in _STEPS:
            say(step)
    return file.getvalue()


def test_a_log_gets_a_line_for_each_start_and_end() -> None:
    """Never broken, and none for every package."""
    assert _shown(terminal=False).splitlines() == [
        "Another process has prepared kwok for 9 s; waiting for it (4 minutes from scratch on 2 cores).",
        "[1/3] kwok, kueue: building, 2 minutes from scratch on 2 cores",
        "kwok, kueue: ready after 2 min 5 s",
        "[2/3] kueue-crds: fetching",
        "kueue-crds: ready after 2 s",
        "[3/3] kube-scheduler: building, less than a minute from scratch on 2 cores",
        "kube-scheduler: ready after 7 s",
    ]


def test_a_log_shows_that_a_long_build_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log has a line a minute of a build, with what Go compiles."""
    times = iter([0.0, 30.0, 61.0, 90.0, 125.0])
    monkeypatch.setattr("ebbtide_rehearsal.tools.progress.time.monotonic", lambda: next(times))
    file = StringIO()
    with narration(Console(file=file, width=60)) as say:
        for step in (Started("kueue", 1, 1, 2), *(Worked("kueue", f"package-{n}") for n in range(4))):
            say(step)
    assert file.getvalue().splitlines()[1:] == [
        "kueue: building for 1 min 1 s, now package-1",
        "kueue: building for 2 min 5 s, now package-3",
    ]


@pytest.mark.parametrize("line", ["kwok, kueue: ready after 2 min 5 s", "kube-scheduler: ready after 7 s"])
def test_a_terminal_keeps_what_is_done(line: str) -> None:
    """Above the line that moves."""
    assert line in _shown(terminal=True)


_REQUIRED = re.compile(r"^(?:require )?\t?([\w./-]+\.[\w./-]+) (v\S+)$", flags=re.MULTILINE)
_REPLACED = re.compile(r"^\t(\S+) => (\S+) (v\S+)$", flags=re.MULTILINE)
_OF_THEIR_OWN = {"cluster-autoscaler": "v0.33.1"}
"""Releases of the staging modules of groups that do not use the control plane's."""
_GROUPS = sorted(path.name for path in MODULES.iterdir())
_TOOLS = [item for item in all_items().values() if isinstance(item, Tool)]
_DATA = [item for item in all_items().values() if isinstance(item, Data)]
_MODULES = sorted(
    {(tool.group, tool.module, f"v{tool.version}") for tool in _TOOLS}
    | {(data.group, part.module, part.version) for data in _DATA for part in data.parts}
)


def _texts(group: str) -> tuple[str, str]:
    go_mod, go_sum = pins(group)
    return go_mod.read_text(encoding="utf-8"), go_sum.read_text(encoding="utf-8")


@pytest.mark.parametrize(("group", "module", "version"), _MODULES)
def test_modules_are_pinned_where_the_table_says(group: str, module: str, version: str) -> None:
    """In go.mod at the table's version, and in go.sum with the hashes of its files and of its go.mod."""
    go_mod, go_sum = _texts(group)
    assert dict(_REQUIRED.findall(go_mod))[module] == version
    assert f"{module} {version} h1:" in go_sum
    assert f"{module} {version}/go.mod h1:" in go_sum


@pytest.mark.parametrize("group", _GROUPS)
def test_go_mod_asks_for_nothing_else(group: str) -> None:
    """go.mod requires exactly the modules of the table, at its versions."""
    required = dict(_REQUIRED.findall(_texts(group)[0]))
    known = {module: version for of, module, version in _MODULES if of == group}
    assert required == known


@pytest.mark.parametrize("group", _GROUPS)
def test_what_is_replaced_is_of_the_same_release(group: str) -> None:
    """Kubernetes' staging modules, each by its own version of one release, and no directory of a machine."""
    go_mod, _ = _texts(group)
    replaced = _REPLACED.findall(go_mod)
    assert go_mod.count("=>") == len(replaced)
    versions = {_OF_THEIR_OWN.get(group, f"v{PINS['kubernetes-staging'].version}")}
    versions |= {f"v{PINS['provisioning-request'].version}"}
    assert [(name, by, of) for name, by, of in replaced if name != by or of not in versions] == []


def test_staging_is_of_the_pinned_release() -> None:
    """0.36.2 is 1.36.2."""
    assert f"1.{PINS['kubernetes-staging'].version.removeprefix('0.')}" == PINS["kubernetes"].version


def test_every_group_is_used() -> None:
    """Every group of pins has a program that is built from it."""
    assert sorted({item.group for item in all_items().values()}) == _GROUPS


def test_parts_stay_inside() -> None:
    """No part of data is copied beside its directory."""
    parts: list[Part] = [part for data in _DATA for part in data.parts]
    assert [part for part in parts for path in (part.source, part.into) if ".." in Path(path).parts] == []
    assert all(not Path(part.into).is_absolute() for part in parts)


_OTHER_VERSIONS = {"pulumi-language-python": "3.259.0", "pulumi-resource-kubernetes": "4.25.0"}
"""Releases of programs that Go modules have only without a tag, or only in an older version."""


@pytest.mark.parametrize("release", releases(), ids=lambda release: f"{release.program}-{release.platform}")
def test_a_release_is_pinned_by_its_hash(release: Release) -> None:
    """A release has the version that would be built, an https address, a whole hash and its source."""
    tool = all_items()[release.program]
    assert isinstance(tool, Tool)
    assert release.version == _OTHER_VERSIONS.get(release.program, tool.version)
    assert release.version in release.url
    assert release.url.startswith("https://")
    assert re.fullmatch(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}", release.digest)
    assert release.source
    assert release.platform.partition("-")[0] in {"linux", "darwin"}


def test_one_address_has_one_hash() -> None:
    """Programs of one archive share it, and no program has two releases for a platform."""
    assert len({release.url for release in releases()}) == len({release.digest for release in releases()})
    assert len({(release.program, release.platform) for release in releases()}) == len(releases())


def test_a_program_that_behaves_otherwise_is_built() -> None:
    """Only the Kubernetes provider is patched and downloaded: its patches name files."""
    patched = {tool.name for tool in _TOOLS if tool.changes}
    assert patched & {release.program for release in releases()} == {"pulumi-resource-kubernetes"}
