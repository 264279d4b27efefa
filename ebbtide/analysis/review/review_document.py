"""The document of a review, for its renderings and other programs."""

from typing import Any, Final, Literal, Self, TypeAlias

from ebbtide.analysis.preview.preview_document import CostReport, FindingReport, Preview
from ebbtide.analysis.quotas import Quota
from ebbtide.declaration.project.diagnostics import FaultReport
from ebbtide.values.documents import DocumentPart

VERSION: Final = "ebbtide.dev/review/v1"


class FieldChangeReport(DocumentPart):
    """A changed input of a resource."""

    path: str
    """Property path, such as `nodeConfig.machineType`."""
    old: Any
    """Old value; null if the input was not set, `[secret]` for a secret."""
    new: Any
    """New value; null if the input is no longer set."""
    replaces: bool
    """True if this change forces the replacement."""


class ChangeReport(DocumentPart):
    """A resource that the update changes."""

    action: Literal["adopt", "create", "update", "replace", "delete"]
    """The engine's operation; `adopt` for the import of an existing resource, which may also update it."""
    type: str
    """Type token."""
    name: str
    """Logical name."""
    urn: str
    """New URN; the old one for a deleted resource."""
    pool: str
    """Name of the node pool; empty for other resources."""
    fields: tuple[FieldChangeReport, ...]
    """Changed inputs; empty for an adopted, created or deleted resource."""


class DifferenceReport(DocumentPart):
    """Changes from an earlier version of the stack."""

    against: str
    """Earlier version: a git ref, or a file."""
    changes: tuple[ChangeReport, ...]
    """Changed resources, without unchanged ones; a replacement is one change."""
    refusals: tuple[str, ...]
    """Reasons why the update would fail, as sentences; empty if there are none."""
    consequences: tuple[str, ...]
    """Effects on running work, as sentences: drained pools, lost capacity of queues, a new cluster."""
    cost_before: CostReport
    """Cost of the earlier version."""
    quotas_before: tuple[Quota, ...]
    """Cloud quotas of the earlier version."""


class ReplayColumn(DocumentPart):
    """A trace of jobs on one version of the stack; numbers are medians over the seeds."""

    name: str
    """Stack's name, or the earlier version."""
    usd: float
    """Cost, US dollars."""
    half_waited: float | None
    """Median of the waiting time, seconds; null if no job ran."""
    most_waited: float | None
    """95th percentile of the waiting time, seconds."""
    node_hours: float
    """Hours of nodes."""
    idle_hours: float
    """Of these, hours without a job's pod; a system pool has no others."""
    ended: float
    """Number of jobs that ended."""
    preemptions: float
    """Number of evictions of running jobs by Kueue."""
    interruptions: float
    """Number of running jobs that lost a node or failed."""
    deadlines: int
    """Number of jobs with a deadline."""
    missed: float
    """Number of missed deadlines."""


class ReplaySummary(DocumentPart):
    """A replay of a trace of jobs on the earlier and the new version."""

    trace: str
    """File of the trace."""
    jobs: int
    """Number of its jobs."""
    replayed: int
    """Number of the first of them that were replayed within the time limit."""
    seeds: int
    """Number of replays of each version."""
    verdict: str
    """The result in a sentence."""
    columns: tuple[ReplayColumn, ...]
    """The outcome of each version, the earlier one first."""
    notes: tuple[str, ...]
    """Parts of the trace that were not replayed, and jobs that never ended."""
    problem: str
    """Why nothing was replayed, as a sentence; empty if it was."""

    @classmethod
    def failed(cls, trace: str, problem: str) -> Self:
        """Return the summary of a trace that could not be replayed."""
        return cls(
            trace=trace, jobs=0, replayed=0, seeds=0, verdict="", columns=(), notes=(), problem=problem
        )


class Review(DocumentPart):
    """A preview of a stack, its difference from an earlier version, and policy findings."""

    version: Literal["ebbtide.dev/review/v1"] = VERSION
    """Version of the document format."""
    preview: Preview
    """Preview of the stack after the update."""
    difference: DifferenceReport | None
    """Difference from the earlier version; null if there is none."""
    replay: ReplaySummary | None = None
    """Replay of a trace of jobs; null without a trace."""
    findings: tuple[FindingReport, ...]
    """Broken policy rules, mandatory ones first."""
    verdict: Literal["pass", "warn", "fail"]
    """`fail`: the update would fail, breaks a mandatory rule, or makes another stack invalid. `warn`: running
    work ends, or an advisory rule is broken."""


class FailedReview(DocumentPart):
    """The review of a stack whose program cannot be recorded, such as one with an invalid declaration."""

    version: Literal["ebbtide.dev/review/v1"] = VERSION
    """Version of the document format."""
    stack: str
    """Stack's name."""
    verdict: Literal["fail"] = "fail"
    """Always `fail`."""
    errors: tuple[FaultReport, ...]
    """Errors in the order of the file."""


AnyReview: TypeAlias = Review | FailedReview
"""A review, in the document of `--format json`."""
