"""Errors with the name of their step, since a pipeline has many."""

from collections.abc import Generator
from contextlib import contextmanager

from ebbtide.work.errors import Problems, WorkloadError
from ebbtide.work.pipelines.steps import Step


@contextmanager
def faults_of(step: Step) -> Generator[Problems]:
    """Collect the errors of a step, and raise them at the end of the block, prefixed with the step's name.

    Raises:
        WorkloadError: with all problems, including those that the block raises.
    """
    problems = Problems()
    with problems.collecting():
        yield problems
    if problems.all:
        raise WorkloadError(*(f"Step {step.name}: {text}" for text in dict.fromkeys(problems.all)))
