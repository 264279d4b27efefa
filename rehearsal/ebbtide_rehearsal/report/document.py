"""The report as a document."""

from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict

VERSION: Final = "ebbtide.dev/rehearsal/v1"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class StepReport(_Part):
    """A step of the scenario."""

    title: str
    """The step's action or expectation."""
    at: float
    """Its start, simulated seconds after the start of the rehearsal."""
    seconds: float
    """Its duration by the wall clock."""
    misses: tuple[str, ...]
    """Unmet expectations, a sentence each; empty if all were met."""


class EventReport(_Part):
    """An event of the timeline."""

    at: float
    """Simulated seconds after the start."""
    kind: str
    """The kind of event, such as `node-added`."""
    text: str
    """A sentence."""
    facts: dict[str, Any]
    """The same as data."""


class Report(_Part):
    """A rehearsal's report."""

    version: Literal["ebbtide.dev/rehearsal/v1"] = VERSION
    """Version of this document's format."""
    title: str
    """The scenario's title."""
    stack: str
    """The rehearsed stack."""
    speed: float
    """Simulated seconds per second."""
    steps: tuple[StepReport, ...]
    """In order; after a failed step, only the final destroy."""
    events: tuple[EventReport, ...]
    """In order."""
    cost: dict[str, float]
    """Simulated cost of each pool's nodes, in US dollars."""
    seconds: float
    """Total duration by the wall clock."""
    memory_mib: int
    """Peak memory of the fake cloud and its control planes, MiB."""

    @property
    def met(self) -> bool:
        """True if every expectation was met."""
        return not any(step.misses for step in self.steps)
