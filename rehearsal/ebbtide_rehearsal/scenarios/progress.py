"""Progress of a rehearsal, for those who watch it."""

from collections.abc import Callable
from dataclasses import dataclass

from ebbtide_rehearsal.report.document import StepReport


@dataclass(frozen=True, slots=True)
class Started:
    """A step starts.

    Attributes:
        title: the step's action or expectation.
        number: its number, from 1.
        of: the number of steps.
    """

    title: str
    number: int
    of: int


@dataclass(frozen=True, slots=True)
class Worked:
    """The current state of a step.

    Attributes:
        line: an operation of the engine, or nodes and Jobs of the cluster.
    """

    line: str


@dataclass(frozen=True, slots=True)
class Finished:
    """A step ends.

    Attributes:
        report: the step's report.
    """

    report: StepReport


Update = Started | Worked | Finished
Watch = Callable[[Update], None]
