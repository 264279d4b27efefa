"""Whose faults they are: a pipeline has many steps."""

from collections.abc import Generator
from contextlib import contextmanager

from ebbtide.workloads.errors import Problems, WorkloadError
from ebbtide.workloads.pipelines.steps import Step


@contextmanager
def faults_of(step: Step) -> Generator[Problems]:
    """Collect the errors of a step. If the block ends with any, or raises more, all are raised, prefixed with
    the step's name.

    Raises:
        WorkloadError: with all that is wrong.
    """
    problems = Problems()
    with problems.collecting():
        yield problems
    if problems.all:
        raise WorkloadError(*(f"Step {step.name}: {text}" for text in dict.fromkeys(problems.all)))
