"""The stories' pipelines as kfp compiles them, compared with their authors' own snippets."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from kfp import dsl, kubernetes
from kfp.dsl.base_component import BaseComponent

from ebbtide.placement import PoolProfile
from ebbtide.work.logs import log_link
from tests.examples.workloads import EXAMPLES, compiled, module, profile_of
from tests.unit.work.steps import led, tolerated

_VERSION = re.compile(r"kfp-[0-9.]+")
"""The version of the SDK that compiled a file."""
_AKS_SPOT = "kubernetes.azure.com/scalesetpriority"


@dsl.component(base_image="python:3.12")
def snippet(argument: str) -> str:
    """A task of a story, whose own code says nothing of where it runs."""
    return argument


def _tasks(document: dict[str, Any]) -> dict[str, Any]:
    """Every task of a pipeline, those in branches among them."""
    dags = [
        document["root"]["dag"],
        *(item["dag"] for item in document["components"].values() if "dag" in item),
    ]
    return {name: task for dag in dags for name, task in dag["tasks"].items()}


def _pool(story: str, name: str) -> PoolProfile:
    return profile_of(story).pool(name)


def _takes(settings: dict[str, Any], pool: PoolProfile) -> bool:
    return tolerated(pool, settings) and led(pool, settings["nodeAffinity"])


def test_the_coin_flip() -> None:
    """One branch needs a GPU of the preemptible pool, the other prefers preemptible nodes; all retry."""
    document, settings = compiled(module("preemptible-pipelines", "pipeline").coin_flip)
    tasks = _tasks(document)
    conditions = [task["triggerPolicy"]["condition"] for task in tasks.values() if "triggerPolicy" in task]
    assert len(conditions) == 2
    assert all("'pipelinechannel--flip-coin-Output'] == 'heads'" in text for text in conditions)
    retried = {
        name: task["retryPolicy"]["maxRetryCount"] for name, task in tasks.items() if "retryPolicy" in task
    }
    assert retried == {"flip-coin": 5, "list-gpus": 5, "say": 5}
    container = document["deploymentSpec"]["executors"]["exec-list-gpus"]["container"]
    assert container["resources"]["accelerator"]["resourceType"] == "nvidia.com/gpu"
    assert container["resources"]["accelerator"]["resourceCount"] == "1"
    weights = {name: [term.get("weight") for term in item["nodeAffinity"]] for name, item in settings.items()}
    assert weights == {"exec-flip-coin": [50.0], "exec-list-gpus": [None], "exec-say": [50.0]}


@pytest.mark.parametrize(("hard", "executor"), [(True, "exec-list-gpus"), (False, "exec-say")])
def test_a_step_of_the_coin_flip_is_as_its_author_had_it(hard: bool, executor: str) -> None:  # noqa: FBT001
    """Toleration and label of the story's own call are in ours, at the same paths, with the same weight."""

    @dsl.pipeline
    def story() -> None:
        task = (
            snippet(argument="").set_accelerator_type("nvidia.com/gpu").set_accelerator_limit(1).set_retry(5)
        )
        kubernetes.add_toleration(task, "preemptible", "Equal", "true", "NoSchedule")
        label = {"key": "cloud.google.com/gke-preemptible", "operator": "In", "values": ["true"]}
        kubernetes.add_node_affinity(task, [label], weight=None if hard else 50)

    _, settings = compiled(module("preemptible-pipelines", "pipeline").coin_flip)
    _, own = compiled(story)
    (term,), (theirs,) = settings[executor]["nodeAffinity"], own["exec-snippet"]["nodeAffinity"]
    assert term.get("weight") == theirs.get("weight")
    assert all(item in term["matchExpressions"] for item in theirs["matchExpressions"])
    assert all(item in settings[executor]["tolerations"] for item in own["exec-snippet"]["tolerations"])


def test_the_training_is_as_its_author_had_it() -> None:
    """Four GPUs, 48G and five retries on the preemptible pool, after a copy that is not retried with it."""

    @dsl.pipeline
    def story() -> None:
        task = snippet(argument="").set_accelerator_type("nvidia.com/gpu").set_accelerator_limit(4)
        task.set_memory_limit("48G").set_retry(5)

    document, settings = compiled(module("checkpointed-training", "pipeline").checkpointed_training)
    own, _ = compiled(story)
    executors = document["deploymentSpec"]["executors"]
    theirs = own["deploymentSpec"]["executors"]["exec-snippet"]["container"]["resources"]
    assert executors["exec-train"]["container"]["resources"] == theirs
    tasks = _tasks(document)
    assert tasks["train"]["dependentTasks"] == ["copydata"]
    assert tasks["train"]["retryPolicy"]["maxRetryCount"] == 5
    assert "retryPolicy" not in tasks["copydata"]
    keyed = {
        name: tasks[name]["inputs"]["parameters"]["run"]["runtimeValue"]["constant"]
        for name in ("copydata", "train")
    }
    assert set(keyed.values()) == {"{{$.pipeline_job_uuid}}"}, "in a longer text it is not filled in"
    assert _takes(settings["exec-train"], _pool("checkpointed-training", "preemptible-gpu-pool"))
    assert settings["exec-train"]["pvcMount"] == settings["exec-copydata"]["pvcMount"]
    assert "nodeAffinity" not in settings["exec-copydata"]


def test_the_logs_of_the_training_stay_a_link_away() -> None:
    """The pods of every attempt carry the label that the link to their logs asks for."""
    _, settings = compiled(module("checkpointed-training", "pipeline").checkpointed_training)
    ((key, value),) = settings["exec-train"]["podMetadata"]["labels"].items()
    link = log_link(profile_of("checkpointed-training"), namespace="kubeflow", label=f"{key}={value}")
    assert f'labels."k8s-pod/{key}"="{value}"' in unquote(link)


def test_retries_of_the_training_outlast_it() -> None:
    """Retries as written would stop an hour after the first attempt began."""
    document, _ = compiled(module("checkpointed-training", "pipeline").checkpointed_training)
    policy = _tasks(document)["train"]["retryPolicy"]
    assert policy["backoffFactor"] == 1.0
    assert policy["backoffMaxDuration"] == f"{7 * 24 * 3600}s"


def test_component_files_are_in_step(tmp_path: Path) -> None:
    """The compiled files in the directory equal the output of `components.py`, with typed inputs."""
    module("checkpointed-training", "components").write(tmp_path)
    numbers = dict.fromkeys(("steps", "every"), "NUMBER_INTEGER")
    for name, typed in (
        ("copydata", {"source": "STRING", "directory": "STRING", "run": "STRING"}),
        ("train", {"data": "STRING", "directory": "STRING", "run": "STRING", **numbers}),
    ):
        shipped = (EXAMPLES / "checkpointed-training" / f"{name}.yaml").read_text(encoding="utf-8")
        written = (tmp_path / f"{name}.yaml").read_text(encoding="utf-8")
        assert _VERSION.sub("", shipped) == _VERSION.sub("", written)
        (component,) = yaml.safe_load(shipped)["components"].values()
        inputs = component["inputDefinitions"]["parameters"]
        assert {key: item["parameterType"] for key, item in inputs.items()} == typed


def test_three_pipelines_of_the_same_two_steps() -> None:
    """Spot is all that the second adds, and retries are all that the third does."""
    compiled_pipelines = [compiled(item) for item in module("aks-spot", "pipelines").PIPELINES]
    executors = [document["deploymentSpec"] for document, _ in compiled_pipelines]
    assert executors[0] == executors[1] == executors[2]
    (plain, nothing), (spot, placed), (retried, placed_too) = compiled_pipelines
    assert nothing == {}
    assert placed == placed_too
    assert set(placed) == {"exec-download", "exec-merge"}
    assert _tasks(plain) == _tasks(spot)
    policies = [task.pop("retryPolicy") for task in _tasks(retried).values()]
    assert _tasks(retried) == _tasks(spot)
    assert [(policy["maxRetryCount"], policy["backoffDuration"]) for policy in policies] == [(5, "300s")] * 2


def test_a_spot_task_is_as_its_author_had_it() -> None:
    """The toleration is theirs, the affinity holds theirs and the pool's own label in one term."""

    @dsl.pipeline
    def story() -> None:
        task = snippet(argument="").set_retry(5, "5m")
        kubernetes.add_toleration(task, _AKS_SPOT, "Equal", "spot", "NoSchedule")
        kubernetes.add_node_affinity(task, [{"key": _AKS_SPOT, "operator": "In", "values": ["spot"]}])

    document, settings = compiled(module("aks-spot", "pipelines").spot_with_retries)
    own, theirs = compiled(story)
    for name in ("exec-download", "exec-merge"):
        assert settings[name]["tolerations"] == theirs["exec-snippet"]["tolerations"]
        (term,), (wanted,) = settings[name]["nodeAffinity"], theirs["exec-snippet"]["nodeAffinity"]
        assert all(item in term["matchExpressions"] for item in wanted["matchExpressions"])
        assert _takes(settings[name], _pool("aks-spot", "spotnodepool"))
        assert not led(_pool("aks-spot", "nodepool1"), settings[name]["nodeAffinity"])
    policy, wanted = _tasks(document)["merge"]["retryPolicy"], _tasks(own)["snippet"]["retryPolicy"]
    same = ("maxRetryCount", "backoffDuration")
    assert [policy[key] for key in same] == [wanted[key] for key in same]
    # Five waits of kfp's own doubling, 155 minutes, do not end within kfp's own hour: the story had three.
    assert (wanted["backoffFactor"], wanted["backoffMaxDuration"]) == (2.0, "3600s")


_CACHED = {
    "coin-flip": {"flip-coin": False, "list-gpus": False, "say": False},
    "checkpointed-training": {"copydata": False, "train": False, "report": True},
    "merge-csv": {"download": False, "merge": True},
    "merge-csv-spot": {"download": False, "merge": True},
    "merge-csv-spot-retries": {"download": False, "merge": True},
}
"""Steps by pipeline: only those whose outputs follow from their inputs alone, and that do nothing else."""


def test_only_steps_that_always_give_the_same_are_cached() -> None:
    """A random result, a file on a volume or an answer from an address is not taken from an earlier run."""
    cached: dict[str, dict[str, bool]] = {}
    for pipeline in _pipelines():
        document, _ = compiled(pipeline)
        cached[pipeline.name] = {
            name: task.get("cachingOptions", {}).get("enableCache", False)
            for name, task in _tasks(document).items()
            if task["componentRef"]["name"] in document["components"]
            and "executorLabel" in document["components"][task["componentRef"]["name"]]
        }
    assert cached == _CACHED


def _pipelines() -> list[BaseComponent]:
    """Every pipeline of every story."""
    return [
        value
        for story, name in (
            ("preemptible-pipelines", "pipeline"),
            ("checkpointed-training", "pipeline"),
            ("aks-spot", "pipelines"),
        )
        for key, value in vars(module(story, name)).items()
        if isinstance(value, BaseComponent)
        and type(value).__name__ == "GraphComponent"
        and not key.startswith("_")
    ]


def test_every_pipeline_of_a_story_is_compiled_here() -> None:
    """No pipeline lies in an example without a test of it."""
    assert {pipeline.name for pipeline in _pipelines()} == set(_CACHED)
