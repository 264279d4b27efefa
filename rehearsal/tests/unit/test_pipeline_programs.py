"""Driver and launcher of a rehearsal, compared with those of KFP 2.17.0."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ebbtide_rehearsal.pipelines import driver, launcher
from ebbtide_rehearsal.pipelines.launcher import RUNS, NotPublishedError, Outputs, Run


def test_placeholders_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant that is a placeholder is replaced; one within a longer text is not (resolve.go)."""
    monkeypatch.setenv(RUNS, str(tmp_path))
    run = Run.of("r")
    graph = run.open_graph(Outputs({"root": "/checkpoints"}))
    options = argparse.Namespace(
        dag_execution_id=graph,
        run_id="r",
        run_name="n",
        task_name="t",
        pipeline_job_create_time_utc="now",
    )
    constants = {"all": "{{$.pipeline_job_uuid}}", "part": "/x/{{$.pipeline_job_uuid}}"}
    inputs = {name: {"runtimeValue": {"constant": value}} for name, value in constants.items()}
    resolved = driver.resolve(run, options, {}, {"inputs": {"parameters": inputs}})
    assert resolved.parameters == {"all": "r", "part": "/x/{{$.pipeline_job_uuid}}"}


def test_a_condition_in_a_pod(tmp_path: Path) -> None:
    """The driver, run as a program, writes whether a task's condition holds."""
    graph = Run(tmp_path / "r").open_graph(Outputs())
    inputs = {"side": {"runtimeValue": {"constant": "heads"}}}
    for side, expected in (("heads", "true"), ("tails", "false")):
        condition = f"inputs.parameter_values['side'] == '{side}'"
        task = {"inputs": {"parameters": inputs}, "triggerPolicy": {"condition": condition}}
        options = {
            "type": "DAG",
            "run_id": "r",
            "dag_execution_id": graph,
            "task_name": "branch",
            "task": json.dumps(task),
            "component": json.dumps(
                {"inputDefinitions": {"parameters": {"side": {"parameterType": "STRING"}}}}
            ),
            "execution_id_path": str(tmp_path / "graph"),
            "condition_path": str(tmp_path / "condition"),
        }
        program = [sys.executable, driver.__file__]
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        done = subprocess.run(
            [*program, *words],
            env=os.environ | {RUNS: str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "condition").read_text() == expected


def test_outputs_of_a_graph(tmp_path: Path) -> None:
    """A graph gives what one of its tasks gave: of several branches, the one that ran."""
    run = Run(tmp_path)
    outer, inner = run.open_graph(Outputs()), run.open_graph(Outputs())
    choices = [{"producerSubtask": name, "outputParameterKey": "Output"} for name in ("a", "b")]
    selectors = {
        "parameters": {"x": {"valueFromOneof": {"parameterSelectors": choices}}},
        "artifacts": {"y": {"artifactSelectors": [{"producerSubtask": "b", "outputArtifactKey": "data"}]}},
    }
    run.publish_graph(outer, "branches", inner, selectors)
    with pytest.raises(NotPublishedError):
        run.parameter(outer, "branches", "x")
    run.publish(inner, "b", Outputs({"Output": 7}, {"data": {"artifacts": [{"uri": "/d"}]}}))
    assert run.parameter(outer, "branches", "x") == 7
    assert run.artifact(outer, "branches", "y") == {"artifacts": [{"uri": "/d"}]}


def test_outputs_of_a_step(tmp_path: Path) -> None:
    """Values come from the executor's file, or from a file for each in its own type; an artifact keeps its
    type, and takes the metadata that the step wrote."""
    (tmp_path / "text").write_text("7")
    (tmp_path / "number").write_text("7")
    (tmp_path / "out.json").write_text(
        json.dumps({"artifacts": {"data": {"artifacts": [{"name": "data", "metadata": {"rows": 2}}]}}})
    )
    declared = {"name": "data", "uri": "/d", "type": {"schemaTitle": "system.Dataset"}, "metadata": {}}
    executor_input = {
        "outputs": {
            "parameters": {name: {"outputFile": str(tmp_path / name)} for name in ("text", "number", "none")},
            "artifacts": {"data": {"artifacts": [declared]}},
            "outputFile": str(tmp_path / "out.json"),
        }
    }
    kinds = {"text": "STRING", "number": "NUMBER_INTEGER", "none": "STRING"}
    definitions = {name: {"parameterType": kind} for name, kind in kinds.items()}
    outputs = launcher.collected(executor_input, {"outputDefinitions": {"parameters": definitions}})
    assert outputs.parameters == {"text": "7", "number": 7}
    assert outputs.artifacts["data"]["artifacts"][0] == {**declared, "metadata": {"rows": 2}}
