"""The commands of docs/daily-work.md on a real API server, with pods that are processes."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ebbtide.declaration.model.declare import declare
from ebbtide.placement.derive import profile
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from ebbtide_rehearsal.tools import download
from rehearsal.tests.control_plane.cluster import Object
from rehearsal.tests.control_plane.node_pools import Running, declared_pool, running
from rehearsal.tests.control_plane.process_pods import process_namespace, team_volume
from tests.pages import BLOCKS, Block
from tests.repository import ROOT, declaration

pytestmark = pytest.mark.rehearsal

_DECLARED: Object = declaration(ROOT / "Pulumi.dev.yaml")
_TEAM: Object = {**_DECLARED["teams"][0], "volume": {}}
_DEV = declare({**_DECLARED, "teams": [_TEAM]})
_POOL, _PLACE = "cpu-spot", "vision"


def _blocks(kind: str) -> list[Block]:
    return [block for block in BLOCKS if block.page == "docs/daily-work.md" and block.kind == kind]


@pytest.fixture(scope="module")
def cloud(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A namespace whose pods run as processes, and the pool of the page."""
    api = control_plane.api
    process_namespace(api, _PLACE)
    team_volume(api, _PLACE)
    pool = declared_pool(_DEV, _POOL, minimum=1, initial=1)
    with running(control_plane, tmp_path_factory.mktemp("cloud"), pool) as started:
        yield started


@pytest.fixture
def folder(control_plane: ControlPlane, tools: ControlPlaneTools, tmp_path: Path) -> Path:
    """The page's programs in a folder, with `ebbtide` and kubectl where the page has them."""
    folder = tmp_path / "model"
    (folder / ".venv/bin").mkdir(parents=True)
    (folder / ".gitignore").write_text(".venv\n")
    for name, block in zip(("train.py", "grid.py"), _blocks("python"), strict=True):
        (folder / name).write_text(block.text)
    command = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m ebbtide "$@"\n'
    (folder / ".venv/bin/ebbtide").write_text(command)
    (folder / ".venv/bin/ebbtide").chmod(0o755)
    (folder / ".venv/bin/kubectl").symlink_to(tools.path("kubectl"))
    (tmp_path / "kubeconfig").write_text(control_plane.plan.kubeconfig.read_text())
    return folder


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": f"{folder}/.venv/bin:{os.environ['PATH']}",
        "HOME": str(folder.parent),
        "PYTHONPATH": str(ROOT),
        "KUBECONFIG": str(folder.parent / "kubeconfig"),
        "EBBTIDE_PROFILE": profile(_DEV).json(),
        "EBBTIDE_CACHE": str(download.directory().parent),
        "COLUMNS": "80",
    }


@pytest.mark.usefixtures("cloud")
def test_every_command(folder: Path) -> None:
    """Each succeeds as it is printed, and the first run has the output of the page."""
    outputs: dict[str, str] = {}
    for line in (line for block in _blocks("sh") for line in block.text.splitlines()):
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=folder,
            env=_environment(folder),
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        outputs[line.removeprefix(".venv/bin/ebbtide ")] = done.stdout + done.stderr
    first = outputs["run first -- python train.py 3"].splitlines()
    for line in _blocks("text")[0].text.splitlines():
        # A Job of three seconds may end between two reads of its state.
        if not line.startswith(("ebbtide: Code: ", "ebbtide: waiting for a node", "ebbtide: running")):
            pattern = re.sub(r"(\d+\\ min\\ )?\d+\\ s", r"(\\d+ min )?\\d+ s", re.escape(line))
            assert any(re.fullmatch(pattern, output) for output in first), f"{line}\n{first}"
    assert "first  completed" in outputs["jobs --all"]
    assert outputs["logs first"].splitlines()[:3] == ["step 0", "step 1", "step 2"]
    assert " would start " in outputs["run --when -- python train.py 20"]
    assert "first " in outputs[f"kubectl get jobs --namespace {_PLACE}"]
    assert outputs["rerun first -- python train.py 20"].startswith("Job first-2 is created, from first.")
    assert "step 19" in outputs["logs first-2 --follow"]
    assert outputs["cancel first-2"].startswith("Deleted the Job first-2")
    assert outputs["logs grid --index 1"] == "lr 0.01\n"
    assert "1 file, 1 kB, copied to results." in outputs["cp kept:model.txt results"]
    assert (folder / "results/model.txt").read_text() == "5 steps\n"
    assert "1 file, 1 kB, copied to everything." in outputs["cp kept: everything"]
    assert (folder / "everything/model.txt").read_text() == "5 steps\n"


def test_a_preempted_run(cloud: Running, folder: Path) -> None:
    """The run and its live log continue with the next attempt, and the cost is that of both."""

    def start(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [folder / ".venv/bin/ebbtide", *words],
            cwd=folder,
            env=_environment(folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    options = ("--namespace", _PLACE, "--pool", _POOL, "--image", "python:3.13-slim")
    # Only the second attempt ends, however slow this machine is.
    loop = f"python train.py 3; until test -e {folder}/reclaimed; do sleep 0.2; done"
    run = start("run", "survives", *options, "--", "sh", "-c", loop)
    assert run.stdout is not None
    while run.stdout.readline() != "step 2\n":
        assert run.poll() is None
    log = start("logs", "survives", "--namespace", _PLACE, "--follow")
    assert log.stdout is not None
    assert log.stderr is not None
    assert log.stdout.readline() == "step 0\n"
    cloud.reclaim(_POOL)
    while run.stdout.readline() != "step 2\n":
        assert run.poll() is None
    (folder / "reclaimed").touch()
    lines = run.communicate(timeout=600)[0].splitlines()
    assert run.returncode == 0
    assert lines[-2].endswith("; 1 disruption survived.")
    assert " in 2 attempts on cpu-spot: less than $0.01" in lines[-1]
    with log:
        assert log.stdout.read().splitlines().count("step 0") == 1
        assert log.stderr.read().endswith("completed; 1 disruption survived\n")
    assert log.returncode == 0
