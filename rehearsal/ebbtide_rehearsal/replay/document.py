"""The report of a replay as a document."""

from typing import Final, Literal

from ebbtide.values.documents import DocumentPart

VERSION: Final = "ebbtide.dev/replay/v1"


class Spread(DocumentPart):
    """A number over the seeds."""

    median: float
    """Their median."""
    least: float
    """The smallest."""
    most: float
    """The largest."""


class WaitReport(DocumentPart):
    """Waiting time of a group of jobs, from submission until all pods of a job ran first."""

    group: str
    """A team, a size, a user, or `all`."""
    jobs: int
    """Number of jobs that ran with the first seed."""
    mean: Spread | None
    """Mean, seconds; null if none ran."""
    half: Spread | None
    """Median, seconds."""
    most: Spread | None
    """95th percentile, seconds."""


class PoolReport(DocumentPart):
    """A node pool over the replay."""

    pool: str
    """Its name."""
    capacity: str
    """Its purchase option."""
    machine: str
    """Its machine type."""
    maximum: int
    """Its maximum node count."""
    usd: Spread
    """Cost of its nodes, US dollars."""
    node_hours: Spread
    """Hours of its nodes."""
    idle_hours: Spread
    """Of these, hours without a job's pod; a system pool has no others."""
    reclaims: Spread
    """Nodes that the cloud took."""
    refusals: Spread
    """Requests that a stock-out refused."""


class NeverReport(DocumentPart):
    """Jobs that never ran, or did not end, for one reason; with the first seed."""

    why: str
    """The reason."""
    jobs: int
    """Their number."""
    lines: tuple[int, ...]
    """Lines of the first of them in the trace."""


class SeriesReport(DocumentPart):
    """A number over time, with the first seed."""

    title: str
    """Its name."""
    kind: Literal["nodes", "jobs", "money"]
    """Nodes, waiting jobs, or US dollars so far."""
    points: tuple[tuple[float, float], ...]
    """Seconds since the first submission, and the value from then on."""
    reclaims: tuple[float, ...] = ()
    """Times of reclaims."""
    refusals: tuple[float, ...] = ()
    """Times of refusals."""


class ColumnReport(DocumentPart):
    """A declaration's outcome."""

    name: str
    """Its name."""
    usd: Spread
    """Total cost, US dollars."""
    pools: tuple[PoolReport, ...]
    """Its node pools."""
    others: dict[str, Spread]
    """Other charges by item, US dollars."""
    teams: dict[str, Spread]
    """Cost of the parts of nodes that each team's jobs used, US dollars."""
    options: dict[str, Spread]
    """Cost of nodes by purchase option, US dollars."""
    waits: tuple[WaitReport, ...]
    """Waiting times: of all jobs, then by team."""
    sizes: tuple[WaitReport, ...]
    """Waiting times by size."""
    users: tuple[WaitReport, ...]
    """Waiting times of the users with the most jobs; empty if the trace names none."""
    ended: Spread
    """Number of jobs that ended."""
    preemptions: Spread
    """Evictions of running jobs by Kueue."""
    interruptions: dict[str, Spread]
    """Running jobs that lost a node or failed, by cause: reclaim, scale-down, node expired, failure."""
    lost_hours: Spread
    """Work of jobs that was repeated, hours."""
    deadlines: int
    """Number of jobs with a deadline."""
    missed: Spread
    """Number of missed deadlines."""
    never: tuple[NeverReport, ...]
    """Jobs that never ran or ended."""
    series: tuple[SeriesReport, ...]
    """Nodes by pool, waiting jobs and cost over time."""


class AssumptionReport(DocumentPart):
    """The effect of an assumption, as ratios to the first seed's outcome; null where that is zero."""

    name: str
    """The assumption."""
    factor: float
    """Its multiple."""
    usd: float | None
    """Ratio of the total cost."""
    wait: float | None
    """Ratio of the mean waiting time."""


class MappingReport(DocumentPart):
    """Jobs of a trace with the same names."""

    queue: str
    """The trace's queue; empty for none."""
    gpu_type: str
    """The trace's type of accelerators; `any` if it has none, empty for jobs without accelerators."""
    local_queue: str
    """The LocalQueue."""
    jobs: int
    """Number of jobs."""


class ShapeReport(DocumentPart):
    """Jobs of a trace with the same requests."""

    requests: str
    """Their requests in the trace: of each pod, or totals without a number of pods."""
    pods: str
    """Their pods in the replay."""
    jobs: int
    """Number of jobs."""


class ReplayReport(DocumentPart):
    """A trace on one declaration, or on two."""

    version: Literal["ebbtide.dev/replay/v1"] = VERSION
    """Version of this document's format."""
    trace: str
    """File of the trace."""
    format: str
    """Its format."""
    jobs: int
    """Number of its jobs."""
    seconds: float
    """Time from its first to its last submission."""
    until: float
    """Time until which every declaration's nodes are billed, seconds since the first submission."""
    notes: tuple[str, ...]
    """What was read how."""
    mapping: tuple[MappingReport, ...]
    """What was mapped to the first declaration how."""
    shapes: tuple[ShapeReport, ...]
    """Requests on the first declaration, the most frequent ones first; the last are all others."""
    seeds: int
    """Number of replays of each declaration."""
    verdict: tuple[str, ...]
    """The result in sentences."""
    columns: tuple[ColumnReport, ...]
    """The outcome of each declaration: the earlier one first."""
    assumptions: tuple[AssumptionReport, ...]
    """The effect of each assumption of the cloud's model on the last declaration; empty for large traces."""
    without_price: tuple[str, ...]
    """Items without a known price; costs are then lower bounds."""
    estimated: tuple[str, ...]
    """Items with an estimated price."""
