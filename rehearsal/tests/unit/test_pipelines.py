"""Pipelines of a rehearsal: Workflow, pods, driver and launcher as Kubeflow Pipelines 2.17.0 writes them (its
argocompiler/*.go, driver/*.go, component/launcher_v2.go, compiled workflows), and a scenario's programs."""

import argparse
import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from kfp import compiler, dsl
from kfp.dsl.base_component import BaseComponent

from ebbtide_rehearsal import RehearsalError
from ebbtide_rehearsal.pipelines import driver, launcher
from ebbtide_rehearsal.pipelines.driver import UnsupportedPipelineError, holds, pod_spec_patch
from ebbtide_rehearsal.pipelines.launcher import RUNS, NotPublishedError, Outputs, Run
from ebbtide_rehearsal.pipelines.workflow import Compiled, read
from ebbtide_rehearsal.scenarios.model import RunPipeline
from ebbtide_rehearsal.scenarios.runner import run_of
from tests.examples.workloads import EXAMPLES, profile_of
from tests.unit.work.clusters import DEV

kubernetes: Any = importlib.import_module("kfp.kubernetes")  # much of it has no types


def _compiled(pipeline: BaseComponent, folder: Path) -> Compiled:
    file = folder / "pipeline.yaml"
    compiler.Compiler().compile(pipeline, str(file))
    return read(file.read_text(encoding="utf-8"))


@dsl.container_component
def _everything() -> dsl.ContainerSpec:
    """A step with a command of its own."""
    return dsl.ContainerSpec(image="busybox:1", command=["train"], args=["--fast"])


@dsl.pipeline(name="everything")
def _with_everything(claim: str = "data") -> None:
    """A step with every field that is translated."""
    task = cast("Any", _everything())
    task.set_cpu_request("1").set_cpu_limit("2").set_memory_request("1G").set_memory_limit("4Gi")
    task.set_accelerator_limit(2).set_accelerator_type("nvidia.com/gpu")
    task.set_env_variable("MODE", "fast")
    kubernetes.mount_pvc(task, claim, "/data", sub_path="deep")
    kubernetes.use_secret_as_volume(task, "token", "/token", optional=True)
    kubernetes.use_config_map_as_volume(task, "settings", "/settings")
    kubernetes.use_secret_as_env(task, "token", {"key": "TOKEN"})
    kubernetes.use_config_map_as_env(task, "settings", {"level": "LEVEL"})
    kubernetes.use_field_path_as_env(task, "NODE", "spec.nodeName")
    kubernetes.empty_dir_mount(task, "scratch", "/scratch", size_limit="1Gi")
    kubernetes.set_image_pull_policy(task, "Always")
    kubernetes.set_image_pull_secrets(task, ["registry"])
    kubernetes.add_node_selector(task, "disk", "fast")
    kubernetes.add_toleration(task, "spot", "Equal", "true", "NoSchedule")
    kubernetes.add_toleration(task, "gone", "Exists", effect="NoExecute", toleration_seconds=30)
    expression = [{"key": "zone", "operator": "In", "values": ["a", "b"]}]
    kubernetes.add_node_affinity(task, match_expressions=expression)
    kubernetes.add_node_affinity(task, match_expressions=expression, weight=7)
    kubernetes.set_timeout(task, 60)


def _source(given: Mapping[str, Any]) -> str:
    """Return the value of a pipeline's input or constant."""
    if given.get("componentInputParameter") == "claim":
        return "data"
    return given["runtimeValue"]["constant"]


def test_every_field_reaches_the_pod(tmp_path: Path) -> None:
    """Field by field as initPodSpecPatch and extendPodSpecPatch write it."""
    compiled = _compiled(_with_everything, tmp_path)
    patch = pod_spec_patch(
        compiled.container("comp-everything"),
        compiled.platform("comp-everything"),
        {},
        ["--run_id", "1"],
        _source,
    )
    (main,) = patch.pop("containers")
    requirement = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
    assert patch == {
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "token", "secret": {"secretName": "token", "optional": True}},
            {"name": "settings", "configMap": {"name": "settings", "optional": False}},
            {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
        ],
        "nodeSelector": {"disk": "fast"},
        "tolerations": [
            {"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"},
            {"key": "gone", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
        ],
        "imagePullSecrets": [{"name": "registry"}],
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [requirement]},
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "preference": requirement}],
            }
        },
        "activeDeadlineSeconds": 60,
    }
    assert main == {
        "name": "main",
        "image": "busybox:1",
        "imagePullPolicy": "Always",
        "command": ["/kfp-launcher/launch", "--run_id", "1", "--"],
        "args": ["train", "--fast"],
        "env": [
            {"name": "MODE", "value": "fast"},
            {
                "name": "TOKEN",
                "valueFrom": {"secretKeyRef": {"name": "token", "key": "key", "optional": False}},
            },
            {
                "name": "LEVEL",
                "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "level", "optional": False}},
            },
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
        "resources": {
            "limits": {"memory": "4Gi", "cpu": "2", "nvidia.com/gpu": "2"},
            "requests": {"memory": "1G", "cpu": "1"},
        },
        "volumeMounts": [
            {"name": "data", "mountPath": "/data", "subPath": "deep"},
            {"name": "token", "mountPath": "/token"},
            {"name": "settings", "mountPath": "/settings"},
            {"name": "scratch", "mountPath": "/scratch"},
        ],
    }


@dsl.pipeline(name="unsupported")
def _unsupported() -> None:
    """A loop, an exit handler, a field that is not translated."""
    with dsl.ExitHandler(_everything().set_display_name("cleanup")), dsl.ParallelFor([1, 2]):
        _everything()
    task = _everything()
    kubernetes.set_security_context(task, run_as_user=1000)


def test_what_is_not_translated_is_refused(tmp_path: Path) -> None:
    """All of it is reported at once, by the names of the tasks: no part of a pipeline is ignored."""
    with pytest.raises(UnsupportedPipelineError) as refused:
        _compiled(_unsupported, tmp_path)
    lines = str(refused.value).splitlines()
    assert any("ALL_UPSTREAM_TASKS_COMPLETED" in line for line in lines)
    assert any("parameterIterator" in line for line in lines)
    assert any("securityContext" in line for line in lines)
    with pytest.raises(UnsupportedPipelineError, match="not a compiled pipeline"):
        read("kind: Job")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("inputs.parameter_values['pipelinechannel--a-Output'] == 'heads'", True),
        ("!(inputs.parameter_values['pipelinechannel--a-Output'] == 'heads')", False),
        ("inputs.parameter_values['pipelinechannel--a-Output'] != 'a && b'", True),
        ("int(inputs.parameter_values['n']) > 2 && int(inputs.parameter_values['n']) <= 3", True),
        ("double(inputs.parameter_values['n']) < -1 || inputs.parameter_values['on'] == true", True),
    ],
)
def test_conditions(condition: str, expected: bool) -> None:  # noqa: FBT001 - of a case
    """Tasks of If, Elif and Else as kfp's compiler writes them."""
    assert holds(condition, {"pipelinechannel--a-Output": "heads", "n": 3, "on": True}) is expected


@pytest.mark.parametrize("condition", ["size('a') == 1", "inputs.parameter_values['n'] +", "x == 1"])
def test_other_conditions_are_refused(condition: str) -> None:
    """No expression is guessed at, and none is run as Python."""
    with pytest.raises(UnsupportedPipelineError):
        holds(condition, {"n": 3})


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
        run.output("parameters", outer, "branches", "x")
    run.publish(inner, "b", Outputs({"Output": 7}, {"data": {"artifacts": [{"uri": "/d"}]}}))
    assert run.output("parameters", outer, "branches", "x") == 7
    assert run.output("artifacts", outer, "branches", "y") == {"artifacts": [{"uri": "/d"}]}


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
        ("open('a.yaml', 'w')", {"pipeline": "a"}, "cannot be rehearsed: This is not a compiled pipeline"),
    ],
)
def test_what_is_wrong_with_a_program_is_said(
    tmp_path: Path, program: str, step: dict[str, Any], says: str
) -> None:
    """The message is the program's, or lists the files that it writes."""
    (tmp_path / "pipeline.py").write_text(program)
    with pytest.raises(RehearsalError, match=says):
        run_of(_run("pipeline.py", **step), DEV, tmp_path, 1)
