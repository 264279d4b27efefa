"""Building what a rehearsal needs into the cache, with a fake Go."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from threading import Event, main_thread

import pytest

from ebbtide.declaration.catalog.versions import PINS
from ebbtide_rehearsal.tools import download as cache_module
from ebbtide_rehearsal.tools.download import building, directory, key, location
from ebbtide_rehearsal.tools.find import ensure
from ebbtide_rehearsal.tools.items import SourcePatch, Started, Step, Tool, ToolError, Waiting, Worked
from ebbtide_rehearsal.tools.table import all_items
from rehearsal.tests.unit.machine import Machine, entries, machine_in, silent
from tests.repository import ROOT


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with nothing on its PATH."""
    return machine_in(tmp_path, monkeypatch)


def test_a_module_that_cannot_be_had_is_named(machine: Machine) -> None:
    """The message is Go's; the cache is unchanged."""
    machine.go()
    with pytest.raises(ToolError, match=r"^github.com/kubeflow/katib@v\S+ could not be fetched; .*404"):
        ensure(["katib-manifests"], on_step=silent)
    assert entries() == set()


def test_a_module_without_the_directory_is_refused(machine: Machine) -> None:
    """Nothing empty is kept for data."""
    machine.go()
    machine.module(f"github.com/kubeflow/katib@v{PINS['katib'].version}", "README.md")
    with pytest.raises(ToolError, match="has no directory manifests/v1beta1"):
        ensure(["katib-manifests"], on_step=silent)
    assert entries() == set()


_CONSTANTS = 'certDir = "/tmp/k8s-webhook-server/serving-certs"\nnamespace = "{}"\n'


@pytest.mark.parametrize(
    "texts",
    [{}, {"pkg/util/cert/cert.go": _CONSTANTS.format("other")}],
    ids=["no file", "other words"],
)
def test_constants_that_are_not_there_are_named(machine: Machine, texts: dict[str, str]) -> None:
    """Nothing is built that would look for its certificates in the wrong place."""
    machine.go()
    machine.module(f"sigs.k8s.io/jobset@v{PINS['jobset'].version}", "README.md", texts=texts)
    with pytest.raises(ToolError, match=r"does not have .* once in pkg/util/cert/cert\.go"):
        ensure(["jobset"], on_step=silent)
    assert entries() == set()


def test_programs_of_a_module_are_built_by_one_command(machine: Machine) -> None:
    """One is linked while the other is compiled, and each has its own linker variables and place."""
    machine.go()
    kwok = all_items()["kwok"]
    assert isinstance(kwok, Tool)
    steps: list[Step] = []
    tools = ensure(["kueue", "etcd", "kwok"], on_step=steps.append)
    started = {step.name: step.of for step in steps if isinstance(step, Started)}
    assert started == {"kueue, kwok": 2, "etcd": 2}
    processes = {line.split()[0]: line.split()[1] for line in machine.builds.read_text().splitlines()}
    assert processes[kwok.package] == processes["sigs.k8s.io/kueue/cmd/kueue"]
    assert len(set(processes.values())) == 2
    for name, variable in {"kwok": "consts.Version", "kueue": "version.GitVersion"}.items():
        linked = [line for line in tools.path(name).read_text().splitlines() if "ldflags" in line]
        assert len(linked) == 1
        assert f"-X sigs.k8s.io/{name}/pkg/{variable}=" in linked[0]


def test_a_failed_build_says_why(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler's last lines, and where all of them are; what was built before stays."""
    machine.go()
    ensure(["etcd"], on_step=silent)
    monkeypatch.setenv("FAKE_GO_MODE", "fail")
    with pytest.raises(ToolError) as raised:
        ensure(["etcd", "kustomize"], on_step=silent)
    version = all_items()["kustomize"].version
    log = directory() / "logs" / f"kustomize-{version}.log"
    assert str(raised.value) == (
        f"kustomize {version} could not be built; Go's last output: # sigs.k8s.io/kustomize/kustomize/v5 / "
        f"main.go:7:2: undefined: nothing / too many errors (full log: {log})."
    )
    assert "first\n" in log.read_text()
    assert {name.split("-")[0] for name in entries()} == {"etcd"}


def test_an_interrupted_build_leaves_nothing(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither half a program nor a compiler that goes on."""
    machine.go()
    monkeypatch.setenv("FAKE_GO_MODE", "hang")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # pytest-xdist ignores it

    def interrupted(step: Step) -> None:
        if isinstance(step, Worked):
            signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)

    try:
        with pytest.raises(KeyboardInterrupt):
            ensure(["etcd"], on_step=interrupted)
    finally:
        signal.signal(signal.SIGINT, before)
    assert entries() == set()
    _assert_ended(machine)


def test_a_failed_build_ends_the_others(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user hears of it at once, and no compiler goes on."""
    machine.go()
    monkeypatch.setenv("FAKE_GO_MODE", "hang")
    building = Event()

    def say(step: Step) -> None:
        if isinstance(step, Worked):
            building.set()
        if isinstance(step, Started) and step.name == "katib-manifests":
            assert building.wait(600)

    with pytest.raises(ToolError, match="could not be fetched"):
        ensure(["etcd", "katib-manifests"], on_step=say)
    assert entries() == set()
    _assert_ended(machine)


def _assert_ended(machine: Machine) -> None:
    """The one build's process is gone."""
    process = int(machine.builds.read_text().split()[1])
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_what_a_killed_build_left_is_removed(machine: Machine) -> None:
    """The next build of that tool removes it, and any build those from days ago; others may be under way."""
    machine.go()
    names = (location(directory(), all_items()["etcd"]).name, "old", "other")
    leftovers = {name: directory() / f".building-{name}-x" for name in names}
    for leftover in leftovers.values():
        (leftover / "content").mkdir(parents=True)
    os.utime(leftovers["old"], (0, 0))
    ensure(["etcd"], on_step=silent)
    assert {name.split("-")[0] for name in entries()} == {"etcd", ".building"}
    assert [name for name, leftover in leftovers.items() if leftover.exists()] == ["other"]


def test_a_build_of_another_tool_is_not_waited_for(machine: Machine) -> None:
    """A tool whose lock another process holds is waited for after the others are built, with its name."""
    machine.go()
    held, steps = ExitStack(), list[Step]()
    (etcd,) = held.enter_context(building(directory(), [all_items()["etcd"]], {}, silent))

    def say(step: Step) -> None:
        steps.append(step)
        if isinstance(step, Waiting):
            assert machine.built() == ["sigs.k8s.io/kustomize/kustomize/v5"]
            held.close()

    ensure(["etcd", "kustomize"], on_step=say)
    (waiting,) = (step for step in steps if isinstance(step, Waiting))
    assert (waiting.name, waiting.minutes) == ("etcd", etcd.minutes)
    assert sorted(machine.built()) == ["go.etcd.io/etcd/server/v3", "sigs.k8s.io/kustomize/kustomize/v5"]


_BUILD_ETCD = """
from ebbtide_rehearsal.tools.find import ensure
steps = []
tool = ensure(["etcd"], on_step=steps.append).by_name["etcd"]
print(tool.origin, *[type(step).__name__ for step in steps])
"""


def test_two_at_once_build_once(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second reports that it waits, and uses the first one's build."""
    machine.go()
    monkeypatch.setenv("FAKE_GO_MODE", "slow")
    both = [
        subprocess.Popen([sys.executable, "-c", _BUILD_ETCD], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = sorted(process.communicate(timeout=600)[0].strip() for process in both)
    # The second starts too late to wait if the machine is busy.
    assert outputs[0] == "built now Started Worked Finished"
    assert outputs[1] in ("cache", f"cache {Waiting.__name__}")
    assert machine.built() == ["go.etcd.io/etcd/server/v3"]


@pytest.mark.parametrize(
    ("tool", "name"),
    [("etcd", "go.mod"), ("etcd", "go.sum"), ("kueue-replay", "added/pkg/scheduler/exported.go")],
)
def test_another_input_is_another_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: str, name: str
) -> None:
    """Any change of go.mod, of go.sum or of a file that is added to a module changes the cache key."""
    modules = tmp_path / "modules"
    shutil.copytree(cache_module.MODULES, modules)
    monkeypatch.setattr(cache_module, "MODULES", modules)
    before = key(all_items()[tool])
    assert key(all_items()[tool]) == before
    with (modules / tool / name).open("a", encoding="utf-8") as file:
        file.write("// more\n")
    assert key(all_items()[tool]) != before


def test_other_flags_are_another_program() -> None:
    """Package, tags, linker variables and changes count; its duration does not."""
    tool = all_items()["pulumi"]
    assert isinstance(tool, Tool)
    others = [
        replace(tool, package=f"{tool.package}/other"),
        replace(tool, tags=("other",)),
        replace(tool, stamps=(*tool.stamps, ("a.b", "c"))),
        replace(tool, changes=(SourcePatch("main.go", "a", "b"),)),
    ]
    assert len({key(item) for item in (tool, *others)}) == len(others) + 1
    assert key(replace(tool, minutes=9)) == key(tool)
