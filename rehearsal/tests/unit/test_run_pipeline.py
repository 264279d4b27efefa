"""A scenario's pipelines: compiled by their own program, chosen by name, refused with a message."""

import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide_rehearsal.failures import RehearsalError
from ebbtide_rehearsal.scenarios.execution import run_of
from ebbtide_rehearsal.scenarios.model import RunPipeline
from tests.examples.workloads import EXAMPLES, profile_of
from tests.unit.work.clusters import DEV

STORY = EXAMPLES / "preemptible-pipelines"


def _run(program: str, **more: Any) -> RunPipeline:
    return RunPipeline(do="run-pipeline", program=program, **more)


def test_the_storys_pipeline_is_compiled_as_its_author_does() -> None:
    """The pipeline's program runs with the stack's profile, its output becomes a Workflow whose pods run as
    processes, and a placeholder is the scenario's directory."""
    step = _run("pipeline.py", arguments={"seed": "{home}/x"})
    made = run_of(step, profile_of("preemptible-pipelines"), STORY, 1)
    assert made["metadata"]["generateName"] == "coin-flip-"
    assert made["metadata"]["labels"] == {"rehearsal.ebbtide.dev/submitted": "true"}
    assert made["spec"]["podMetadata"]["annotations"]["rehearsal.ebbtide.dev/runs"] == "process"
    assert str(STORY / "x") in str(made)


def test_steps_run_for_seconds_and_wait_at_the_speed_of_the_scenario() -> None:
    """A step's pods, and not its driver's, run for the given seconds at least; five minutes between retries
    take two and a half seconds at 120 times the speed, rounded up."""
    step = _run("pipelines.py", pipeline="merge-csv-spot-retries", arguments={"url": ""}, runs_for=6)
    made = run_of(step, profile_of("aks-spot"), EXAMPLES / "aks-spot", 120)
    annotations = [item.get("metadata", {}).get("annotations", {}) for item in made["spec"]["templates"]]
    lasting = {
        item["pipelines.kubeflow.org/runtime-role"]: item.get("rehearsal.ebbtide.dev/runs-for")
        for item in annotations
        if item
    }
    assert lasting == {"driver": None, "launcher": "6"}
    assert '{"name": "retry-backoff-duration", "value": "3"}' in json.dumps(made)


@pytest.mark.parametrize(
    ("program", "step", "says"),
    [
        ("raise SystemExit('no such pool')", {}, "no such pool"),
        ("", {}, "writes no file"),
        ("open('a.yaml', 'w'); open('b.yaml', 'w')", {}, "writes a.yaml, b.yaml: select one with"),
        ("open('a.yaml', 'w')", {"pipeline": "b"}, "writes a.yaml"),
        ("open('a.yaml', 'w')", {"pipeline": "a"}, "cannot be rehearsed: This is no compiled pipeline"),
    ],
)
def test_what_is_wrong_with_a_program_is_said(
    tmp_path: Path, program: str, step: dict[str, Any], says: str
) -> None:
    """The message is the program's, or lists the files that it writes."""
    (tmp_path / "pipeline.py").write_text(program)
    with pytest.raises(RehearsalError, match=says):
        run_of(_run("pipeline.py", **step), DEV, tmp_path, 1)
