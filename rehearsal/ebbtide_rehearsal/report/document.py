"""The report as a document."""

from typing import Any, Final, Literal

from ebbtide.values.documents import DocumentPart

VERSION: Final = "ebbtide.dev/rehearsal/v1"


class StepReport(DocumentPart):
    """A step of the scenario."""

    title: str
    """The step's action or expectation."""
    at: float
    """Its start, simulated seconds; 0 if it started before the clock."""
    seconds: float
    """Its duration by the wall clock."""
    misses: tuple[str, ...]
    """Unmet expectations, a sentence each; empty if all were met."""


class EventReport(DocumentPart):
    """An event of the timeline."""

    at: float
    """Simulated seconds."""
    kind: str
    """The kind of event, such as `node-added`."""
    text: str
    """A sentence."""
    facts: dict[str, Any]
    """The same as data."""


class JobsReport(DocumentPart):
    """Counts of submitted Jobs and pipeline runs at a time."""

    at: float
    """Simulated seconds."""
    waiting: int
    """Suspended, or without a running pod."""
    running: int
    """With a running pod; of pipeline runs, those that have not ended."""
    ended: int
    """Succeeded or failed."""


class MoneyReport(DocumentPart):
    """The total cost at a time."""

    at: float
    """Simulated seconds."""
    usd: float
    """US dollars since the start."""
    hourly: float
    """US dollars per hour from then on."""


class Report(DocumentPart):
    """A rehearsal's report. Its clock starts with the first event, as the creation of the cluster. It runs at
    `speed` while the scenario waits (`expect`, `pause`), and with this machine's clock during other steps.
    """

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
    jobs: tuple[JobsReport, ...]
    """Submitted Jobs and pipeline runs while the scenario expects something, where their counts change."""
    minutes_to_zero: dict[str, float]
    """Simulated minutes from the end of the last Job until the autoscaler had removed the last node of each
    pool."""
    cost: dict[str, float]
    """Simulated cost of each pool's nodes, in US dollars."""
    other_costs: dict[str, float]
    """Simulated cost of the control plane, the network and disks of add-ons, in US dollars."""
    total_cost: float
    """Sum of all costs, in US dollars."""
    without_price: tuple[str, ...]
    """Items without a known price; the total is then a lower bound."""
    estimated: tuple[str, ...]
    """Items with an estimated price; the total is then an estimate."""
    money: tuple[MoneyReport, ...]
    """The total cost over time; it changes linearly between two entries."""
    seconds: float
    """Total duration by the wall clock."""
    memory_mib: int
    """Peak memory of the fake cloud and its control planes, MiB."""

    @property
    def met(self) -> bool:
        """True if every expectation was met."""
        return not any(step.misses for step in self.steps)
