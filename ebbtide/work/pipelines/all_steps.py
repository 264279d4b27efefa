"""The same treatment for all steps of a pipeline, with exceptions."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec

from ebbtide.work.errors import Problems, WorkloadError
from ebbtide.work.pipelines.pools import use_pool
from ebbtide.work.pipelines.queues import use_queue
from ebbtide.work.pipelines.retries import retry_disruptions
from ebbtide.work.pipelines.steps import Step

if TYPE_CHECKING:
    from kfp.dsl import PipelineTask

_P = ParamSpec("_P")


def _is_placed(step: Step) -> bool:
    return step.is_placed


def _has_retries(step: Step) -> bool:
    return step.has_retries


def _never(_: Step) -> bool:
    return False


_EXEMPT: Final[Mapping[Callable[..., Any], Callable[[Step], bool]]] = {
    use_pool: _is_placed,
    use_queue: _is_placed,
    retry_disruptions: _has_retries,
}
"""Functions that check that a step was treated individually."""


@contextmanager
def every_step(
    treat: "Callable[Concatenate[PipelineTask, _P], object]", *args: _P.args, **kwargs: _P.kwargs
) -> Generator[None]:
    """Apply a function to every step of a pipeline, or of a part of it: placement, retries, or both.

    As a decorator below `dsl.pipeline`, it applies to the whole pipeline; as a `with` block, to the steps
    that are created in the block:

        @dsl.pipeline
        @every_step(use_pool, "spot", cpu="2")
        @every_step(retry_disruptions, 5, backoff="5m")
        def training(): ...

    A step with its own placement or retries is not changed: for an exception, call `use_pool`, `use_queue` or
    `retry_disruptions` on that step. Pipelines used as steps, and importers, have no pod and are skipped: a
    nested pipeline's steps are treated where they are created.

    Args:
        treat: `use_pool`, `use_queue` or `retry_disruptions`; any other function of a task is called for
            every step.
        *args: its arguments, after the task.
        **kwargs: its keyword arguments.

    Raises:
        WorkloadError: with the problems of all steps, or if no pipeline is being defined.
    """
    before = frozenset(_tasks())
    yield
    problems = Problems()
    is_exempt = _EXEMPT.get(treat, _never)
    for name, task in _tasks().items():
        step = Step(task)
        if name not in before and step.has_pod and not is_exempt(step):
            with problems.collecting():
                treat(task, *args, **kwargs)
    problems.end()


def _tasks() -> "Mapping[str, PipelineTask]":
    """Return the tasks of the pipeline that is being defined, by name.

    Raises:
        WorkloadError: no pipeline is being defined.
    """
    from kfp.dsl.pipeline_context import Pipeline  # noqa: PLC0415

    pipeline = Pipeline.get_default_pipeline()
    if pipeline is None:
        raise WorkloadError(
            "every_step treats the steps of a pipeline: use it inside of a function that dsl.pipeline "
            "decorates, or as a decorator below dsl.pipeline."
        )
    return pipeline.tasks
