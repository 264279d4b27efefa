"""Steps of pipelines for tests, and what became of them."""

import inspect
import warnings
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any

from kfp import components, dsl
from kfp.dsl.pipeline_context import Pipeline

from ebbtide.placement import PoolProfile
from ebbtide.work.pipelines import PlacementWarning

_FILE = """
name: From a file
inputs: [{name: rate, type: Float}]
implementation:
  container: {image: "busybox:1.37", command: [echo, {inputValue: rate}]}
"""


@dsl.component(base_image="python:3.12")
def python_step(rate: float) -> float:
    """A step from a function."""
    return rate


@dsl.container_component
def container_step(rate: float) -> dsl.ContainerSpec:
    """A step from a container."""
    return dsl.ContainerSpec(image="busybox:1.37", command=["echo", "a"], args=[rate])


file_step = components.load_component_from_text(_FILE)

KINDS = {"function": python_step, "container": container_step, "file": file_step}


@contextmanager
def defining() -> Generator[dict[str, dsl.PipelineTask]]:
    """Inside of a pipeline's definition; its tasks by name."""
    with Pipeline("test") as pipeline:
        yield pipeline.tasks


def step(kind: str = "container") -> dsl.PipelineTask:
    """A step of a pipeline of its own."""
    with defining():
        return KINDS[kind](rate=0.1)


def warnings_of(call: Callable[[], object]) -> list[str]:
    """Return the warnings of a call; check that each has the call's line and our category."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert {item.category for item in caught} <= {PlacementWarning}
    assert {item.filename for item in caught} <= {inspect.getfile(call)}
    return [str(item.message) for item in caught]


def settings(task: dsl.PipelineTask) -> dict[str, Any]:
    """Return the settings that the driver puts on the step's pod."""
    return task.platform_config.get("kubernetes", {})


def resources_of(task: dsl.PipelineTask) -> Any:
    """Return the resources of a step's container."""
    assert task.container_spec is not None
    return task.container_spec.resources


def retries(task: dsl.PipelineTask) -> dict[str, Any]:
    """The step's retry policy; empty where it has none."""
    policy = task._task_spec.retry_policy  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return dict(vars(policy)) if policy else {}


def tolerated(pool: PoolProfile, pod: dict[str, Any]) -> bool:
    """Return whether a pod tolerates the taints of the pool's nodes, by the rules of Kubernetes'
    scheduler."""
    return all(
        any(
            toleration["key"] == taint.key
            and toleration["effect"] == taint.effect
            and (toleration["operator"] == "Exists" or toleration.get("value", "") == taint.value)
            for toleration in pod.get("tolerations", ())
        )
        for taint in pool.taints
    )


def led(pool: PoolProfile, terms: Iterable[dict[str, Any]]) -> bool:
    """Return whether all expressions of one of the terms match the pool's nodes."""
    return any(
        all(pool.labels.get(item["key"]) in item["values"] for item in term["matchExpressions"])
        for term in terms
    )
