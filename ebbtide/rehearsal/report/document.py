"""The report as a document."""

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

VERSION: Final = "ebbtide.dev/rehearsal/v1"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class StepReport(_Part):
    """A step of the scenario."""

    title: str
    """What was done or expected."""
    at: float
    """When it began, simulated seconds after the start."""
    seconds: float
    """How long it took, by the wall clock."""
    misses: tuple[str, ...]
    """What did not come as it must, a sentence each; empty when all did."""


class EventReport(_Part):
    """Something that happened."""

    at: float
    """When, simulated seconds after the start."""
    kind: str
    """What sort of thing, such as `node-added`."""
    text: str
    """A sentence."""
    facts: dict[str, Any]
    """The same for programs."""


class Report(_Part):
    """A rehearsal."""

    version: Literal["ebbtide.dev/rehearsal/v1"] = VERSION
    """Of this form."""
    title: str
    """What the scenario shows."""
    stack: str
    """Which stack was rehearsed."""
    speed: float
    """Simulated seconds in a second."""
    steps: tuple[StepReport, ...]
    """In order; after one that missed something, only the end."""
    events: tuple[EventReport, ...]
    """In order."""
    cost: dict[str, float]
    """US dollars that each pool's nodes would have cost in simulated time."""
    seconds: float
    """How long all of it took, by the wall clock."""
    memory_mib: int
    """Most memory that the stand-in cloud and its control planes took, MiB."""

    @property
    def met(self) -> bool:
        """Whether every expectation was met."""
        return not any(step.misses for step in self.steps)
