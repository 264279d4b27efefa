"""Whose faults they are: a pipeline has many steps."""

from collections.abc import Generator
from contextlib import contextmanager

from ebbtide.workloads.errors import Problems, WorkloadError
from ebbtide.workloads.pipelines.steps import Step


@contextmanager
def faults_of(step: Step) -> Generator[Problems]:
    """A list for what is wrong with a step. Where the block ends with any, or raises more of it, all of it is
    raised, with the step's name before each.

    Raises:
        WorkloadError: with all that is wrong.
    """
    problems = Problems()
    with problems.collecting():
        yield problems
    if problems.found:
        raise WorkloadError(*(f"Step {step.name}: {text}" for text in dict.fromkeys(problems.found)))
