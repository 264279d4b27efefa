"""A pipeline whose steps are all treated alike, but for those that differ."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec

from ebbtide.workloads.errors import Problems, WorkloadError
from ebbtide.workloads.pipelines.pools import use_pool
from ebbtide.workloads.pipelines.queues import use_queue
from ebbtide.workloads.pipelines.retries import retry_disruptions
from ebbtide.workloads.pipelines.steps import Step

if TYPE_CHECKING:
    from kfp.dsl import PipelineTask

_P = ParamSpec("_P")


def _is_placed(step: Step) -> bool:
    return step.is_placed


def _has_retries(step: Step) -> bool:
    return step.has_retries


def _never(_: Step) -> bool:
    return False


_SETTLED: Final[Mapping[Callable[..., Any], Callable[[Step], bool]]] = {
    use_pool: _is_placed,
    use_queue: _is_placed,
    retry_disruptions: _has_retries,
}
"""By what it shows that a step was treated by itself."""


@contextmanager
def every_step(
    treat: "Callable[Concatenate[PipelineTask, _P], object]", *args: _P.args, **kwargs: _P.kwargs
) -> Generator[None]:
    """Treat every step of a pipeline, or of a part of it, in one way: place it, retry it, or both.

    As a decorator below `dsl.pipeline` it is for the whole pipeline, as a `with` block for the steps that are
    made in the block:

        @dsl.pipeline
        @every_step(use_pool, "spot", cpu="2")
        @every_step(retry_disruptions, 5, backoff="5m")
        def training(): ...

    A step that was placed or retried by itself is left as it is, and so one step differs: it calls
    `use_pool`, `use_queue` or `retry_disruptions` itself. Pipelines used as steps, and importers, have no pod
    and are left alone: their steps are treated where they are made.

    Args:
        treat: `use_pool`, `use_queue` or `retry_disruptions`; any other function of a task is called for
            each.
        *args: its arguments, after the task.
        **kwargs: likewise.

    Raises:
        WorkloadError: with what is wrong for any of the steps, or where no pipeline is being defined.
    """
    before = frozenset(_tasks())
    yield
    problems = Problems()
    settled = _SETTLED.get(treat, _never)
    for name, task in _tasks().items():
        step = Step(task)
        if name not in before and step.has_pod and not settled(step):
            with problems.collecting():
                treat(task, *args, **kwargs)
    problems.end()


def _tasks() -> "Mapping[str, PipelineTask]":
    """Return the tasks of the pipeline that is being defined, by name.

    Raises:
        WorkloadError: none is.
    """
    from kfp.dsl.pipeline_context import Pipeline  # noqa: PLC0415

    pipeline = Pipeline.get_default_pipeline()
    if pipeline is None:
        raise WorkloadError(
            "every_step treats the steps of a pipeline: use it inside of a function that dsl.pipeline "
            "decorates, or as a decorator below dsl.pipeline."
        )
    return pipeline.tasks
