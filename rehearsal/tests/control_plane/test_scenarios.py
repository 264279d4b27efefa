"""Every scenario that comes with Ebbtide, and every story's, played as a user plays it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from ebbtide_rehearsal.scenarios.model import built_in
from rehearsal.tests.control_plane.cluster import wait
from tests.repository import ROOT

pytestmark = [pytest.mark.rehearsal, pytest.mark.first]

STORIES = {
    f"{path.parent.name}{path.stem.removeprefix('rehearsal')}": path
    for path in sorted((ROOT / "examples").glob("*/rehearsal*.yaml"))
}
REHEARSE = [sys.executable, "-m", "ebbtide", "rehearse"]
PS = shutil.which("ps") or "ps"


SHORT = ("spot-storm",)
"""Scenarios that `make rehearse` plays besides its stack; `make rehearse-all` plays all of them."""


def _cases(files: Mapping[str, Path]) -> Iterator[ParameterSet]:
    for name, file in files.items():
        yield pytest.param(str(file), id=name, marks=() if name in SHORT else (pytest.mark.long,))


def _played(out: Path, *arguments: str) -> None:
    """Exit status 0, and a report in which no step has missed anything."""
    command = [*REHEARSE, *arguments, "--format", "json", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    report = json.loads(out.read_text())
    assert report["steps"]
    assert [step["misses"] for step in report["steps"] if step["misses"]] == []


@pytest.mark.parametrize("scenario", [*_cases(built_in()), *_cases(STORIES)])
def test_every_expectation_is_met(scenario: str, tmp_path: Path) -> None:
    """Ours and the stories'."""
    _played(tmp_path / "report.json", "--scenario", scenario)


@pytest.mark.long
def test_a_stack_without_a_scenario_is_tried_on_every_pool(tmp_path: Path) -> None:
    """On AKS; `make rehearse` itself does it for the dev stack on GKE."""
    _played(tmp_path / "report.json", "dev-aks")


@pytest.mark.long
def test_an_expectation_that_is_not_met_is_said_and_the_cluster_goes(tmp_path: Path) -> None:
    """Exit status 1, a message about the miss, and the cluster is destroyed."""
    scenario = tmp_path / "missed.yaml"
    scenario.write_text(
        built_in()["spot-storm"].read_text().partition("steps:")[0]
        + "steps: [{do: up}, {do: expect, that: {nodes: {cpu-spot: 4}}}, {do: up, unchanged: true}]\n"
    )
    command = [*REHEARSE, "--scenario", str(scenario), "--keep", str(tmp_path / "kept")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 1, done.stderr
    assert "0 nodes of cpu-spot, expected 4." in done.stdout
    assert "pulumi destroy, and nothing is left" in done.stdout
    assert "changes nothing" not in done.stdout


@pytest.mark.parametrize(
    ("tell", "end"),
    # Ctrl-C in a terminal tells everyone in the foreground.
    [
        pytest.param(os.killpg, signal.SIGINT, id="interrupted"),
        pytest.param(os.kill, signal.SIGINT, id="interrupted-alone", marks=pytest.mark.long),
        pytest.param(os.kill, signal.SIGKILL, id="killed", marks=pytest.mark.long),
    ],
)
def test_nothing_outlives_a_rehearsal_that_is_ended(
    tell: Callable[[int, int], None], end: signal.Signals, tmp_path: Path
) -> None:
    """During an up the rehearsal is ended from outside: no process of it stays, and no traceback is shown."""
    kept = tmp_path / "kept"
    log = tmp_path / "said.txt"
    command = [*REHEARSE, "--scenario", "spot-storm", "--keep", str(kept)]
    with (
        log.open("wb") as out,
        subprocess.Popen(
            command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
        ) as process,
    ):
        wait(lambda: _processes(kept / "clusters"), bool, seconds=1200)
        tell(process.pid, end)
        process.wait(600)
    wait(lambda: _processes(kept), lambda left: not left)
    assert "Traceback" not in log.read_text()


def _processes(directory: Path) -> list[str]:
    """The processes whose command has a directory in it."""
    listed = subprocess.run([PS, "-eww", "-o", "args="], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if str(directory) in line]
