"""The Workflow and the pods of compiled pipelines, held against what Kubeflow Pipelines 2.17.0 writes: its
argocompiler/*.go, driver/*.go and component/launcher_v2.go, and the compiled workflows of its tests."""

import importlib
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from kfp import compiler, dsl
from kfp.dsl.base_component import BaseComponent

from ebbtide_rehearsal.pipelines import driver
from ebbtide_rehearsal.pipelines.compiled import Compiled, UnsupportedPipelineError, read
from ebbtide_rehearsal.pipelines.driver import holds
from ebbtide_rehearsal.pipelines.launcher import RUNS, Run
from ebbtide_rehearsal.pipelines.pod_spec import pod_spec_patch
from ebbtide_rehearsal.pipelines.workflow import workflow
from tests.examples.workloads import module

Object = dict[str, Any]

kubernetes: Any = importlib.import_module("kfp.kubernetes")  # much of it has no types


def _compiled(pipeline: BaseComponent, folder: Path) -> Compiled:
    file = folder / "pipeline.yaml"
    compiler.Compiler().compile(pipeline, str(file))
    return read(file.read_text(encoding="utf-8"))


def _templates(made: Object) -> dict[str, Object]:
    return {template["name"]: template for template in made["spec"]["templates"]}


def _tasks(template: Object) -> dict[str, Object]:
    return {task["name"]: task for task in template["dag"]["tasks"]}


def _given(task: Object) -> dict[str, str]:
    return {parameter["name"]: parameter["value"] for parameter in task["arguments"]["parameters"]}


@pytest.fixture
def coin_flip(tmp_path: Path) -> Object:
    """The Workflow of the story's coin flip."""
    return workflow(
        _compiled(module("preemptible-pipelines", "pipeline").coin_flip, tmp_path), {"seed": 1}, {"a": "b"}
    )


def test_a_step_is_a_driver_and_an_executor(coin_flip: Object) -> None:
    """An executor depends on its driver and uses its patch, and the driver depends on upstream tasks, as in
    KFP's flip_coin.yaml."""
    root = _tasks(_templates(coin_flip)["root"])
    assert sorted(root) == [
        "condition-branches-1",
        "condition-branches-1-driver",
        "flip-coin",
        "flip-coin-driver",
    ]
    assert "depends" not in root["flip-coin-driver"]
    assert root["flip-coin"]["depends"] == "flip-coin-driver.Succeeded"
    assert root["condition-branches-1-driver"]["depends"] == "flip-coin.Succeeded"
    given = _given(root["flip-coin"])
    assert given["pod-spec-patch"] == "{{tasks.flip-coin-driver.outputs.parameters.pod-spec-patch}}"
    assert "when" not in root["flip-coin"]
    arguments = _given(root["flip-coin-driver"])
    assert arguments["container"] == "{{workflow.parameters.implementations-comp-flip-coin}}"
    assert arguments["kubernetes-config"] == "{{workflow.parameters.kubernetes-comp-flip-coin}}"


def test_a_branch_runs_when_its_driver_says_so(coin_flip: Object) -> None:
    """A conditional graph has a `when` on its driver's output, as in KFP's if_elif_else_complex.yaml."""
    branches = _tasks(_templates(coin_flip)["comp-condition-branches-1"])
    when = "{{tasks.condition-2-driver.outputs.parameters.condition}} != false"
    assert branches["condition-2"]["when"] == when
    assert branches["condition-2"]["template"] == "comp-condition-2"
    assert "when" not in _tasks(_templates(coin_flip)["root"])["condition-branches-1"]


def test_retries_are_parameters(coin_flip: Object) -> None:
    """Retries have seconds without a unit, a limit and a backoff, and no policy, as in KFP's
    pipeline_with_retry.yaml."""
    given = _given(_tasks(_templates(coin_flip)["root"])["flip-coin"])
    assert {name: value for name, value in given.items() if name.startswith("retry-")} == {
        "retry-max-count": "5",
        "retry-backoff-duration": "60",
        "retry-backoff-factor": "1",
        "retry-backoff-max-duration": "604800",
    }
    step = _templates(coin_flip)["retry-system-container-impl"]
    assert step["retryStrategy"] == {
        "limit": "{{inputs.parameters.retry-max-count}}",
        "backoff": {
            "duration": "{{inputs.parameters.retry-backoff-duration}}",
            "factor": "{{inputs.parameters.retry-backoff-factor}}",
            "maxDuration": "{{inputs.parameters.retry-backoff-max-duration}}",
        },
    }
    assert step["podSpecPatch"] == "{{inputs.parameters.pod-spec-patch}}"
    assert step["container"]["env"][-1] == {"name": "KFP_RETRY_INDEX", "value": "{{retries}}"}


def test_the_drivers_are_ordinary_pods(coin_flip: Object) -> None:
    """Half a processor at most, and neither tolerations nor a selector: they need an untainted node."""
    templates, spec = _templates(coin_flip), coin_flip["spec"]
    for name in ("system-dag-driver", "system-container-driver"):
        assert templates[name]["container"]["resources"] == {
            "limits": {"memory": "0.5Gi", "cpu": "0.5"},
            "requests": {"memory": "64Mi", "cpu": "0.1"},
        }
        assert not {"tolerations", "affinity", "nodeSelector"} & templates[name].keys()
    assert spec["serviceAccountName"] == "pipeline-runner"
    assert spec["podMetadata"]["labels"] == {"pipelines.kubeflow.org/v2_component": "true"}
    assert spec["podMetadata"]["annotations"]["a"] == "b"


def test_metadata_of_pods_is_numbered(tmp_path: Path) -> None:
    """Pod metadata are parameters of a numbered template, as in KFP's create_pod_metadata_complex.yaml."""
    made = workflow(
        _compiled(module("checkpointed-training", "pipeline").checkpointed_training, tmp_path),
        {"initial": "/models"},
    )
    task = _tasks(_templates(made)["root"])["train"]
    assert task["template"] == "metadata-1-1-retry-system-container-executor"
    given = _given(task)
    assert (given["pod-metadata-label-key"], given["pod-metadata-label-val"]) == ("step", "train")
    labels = _templates(made)["metadata-1-1-retry-system-container-impl"]["metadata"]["labels"]
    assert labels == {
        "{{inputs.parameters.pod-metadata-label-key}}": "{{inputs.parameters.pod-metadata-label-val}}"
    }
    root = _tasks(_templates(made)["root"])
    assert root["train-driver"]["depends"] == "copydata.Succeeded"
    assert root["report-driver"]["depends"] == "train.Succeeded"
    runtime = json.loads(_given(_tasks(_templates(made)["entrypoint"])["root-driver"])["runtime-config"])
    assert runtime["parameterValues"]["initial"] == "/models"
    assert runtime["parameterValues"]["steps"] == 100_000


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
    with pytest.raises(UnsupportedPipelineError, match="no compiled pipeline"):
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


def _driver(folder: Path, kind: str, component: str, compiled: Compiled, **options: str) -> dict[str, str]:
    """Run a driver as its pod does, and return what it has written."""
    outputs = ("execution_id", "condition", "pod_spec_patch")
    words = [f"--type={kind}", "--run_id=r", "--run_name=coin-flip-x"]
    words += [f"--component={json.dumps(compiled.component(component))}"]
    words += [f"--{key}={value}" for key, value in options.items()]
    for output in outputs:
        (folder / output).unlink(missing_ok=True)
        words.append(f"--{output}_path={folder / output}")
    driver.main(words)
    return {output: (folder / output).read_text() for output in outputs if (folder / output).exists()}


def test_a_run_without_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The drivers and the launcher one after the other: the coin's side decides which branch is taken."""
    monkeypatch.setenv(RUNS, str(tmp_path / "runs"))
    compiled = _compiled(module("preemptible-pipelines", "pipeline").coin_flip, tmp_path)
    runtime = json.dumps({"parameterValues": {"seed": 5.0}})
    root = _driver(tmp_path, "ROOT_DAG", "root", compiled, runtime_config=runtime)["execution_id"]
    tasks: Object = dict(compiled.component("root")["dag"]["tasks"])
    step = _driver(
        tmp_path,
        "CONTAINER",
        "comp-flip-coin",
        compiled,
        dag_execution_id=root,
        task=json.dumps(tasks["flip-coin"]),
        task_name="flip-coin",
        container=json.dumps(compiled.container("comp-flip-coin")),
        kubernetes_config=json.dumps(compiled.platform("comp-flip-coin")),
    )
    (main,) = json.loads(step["pod_spec_patch"])["containers"]
    given = json.loads(main["command"][main["command"].index("--executor_input") + 1])
    assert given["inputs"]["parameterValues"] == {"seed": 5}
    done = subprocess.run(
        [sys.executable, "-m", "ebbtide_rehearsal.pipelines.launcher", *main["command"][1:], *main["args"]],
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "EBBTIDE_REHEARSAL_ROOT": str(tmp_path)}
        | {RUNS: str(tmp_path / "runs"), "TMPDIR": str(tmp_path), "HOME": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0
    run = Run.of("r")
    assert run.parameter(root, "flip-coin", "Output") == "tails"
    branches = _driver(
        tmp_path,
        "DAG",
        "comp-condition-branches-1",
        compiled,
        dag_execution_id=root,
        task=json.dumps(tasks["condition-branches-1"]),
        task_name="condition-branches-1",
    )
    inner: Object = dict(compiled.component("comp-condition-branches-1")["dag"]["tasks"])
    taken = {
        name: _driver(
            tmp_path,
            "DAG",
            f"comp-{name}",
            compiled,
            dag_execution_id=branches["execution_id"],
            task=json.dumps(inner[name]),
            task_name=name,
        )["condition"]
        for name in ("condition-2", "condition-3")
    }
    assert taken == {"condition-2": "false", "condition-3": "true"}
