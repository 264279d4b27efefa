"""Policy rules, and the stack that they check."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Final

from ebbtide.analysis.charges import Charge
from ebbtide.analysis.policy.settings import Level, Limits
from ebbtide.analysis.reading.facts import ClusterFacts, Inputs, RecordedPool
from ebbtide.analysis.recording.recording import Recording, Resource, urn_name
from ebbtide.analysis.recording.values import Plain, at
from ebbtide.values.cloud_kind import CloudKind

STACK: Final = "stack"
"""Name of the whole stack in exceptions."""
_TEMPLATE: Final = "spec.template.spec"
_PATHS: Final = {
    "Pod": "spec",
    "CronJob": "spec.jobTemplate.spec.template.spec",
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"), _TEMPLATE
    ),
}


@dataclass(frozen=True, slots=True)
class Subject:
    """The object of a violation.

    Attributes:
        kind: `pool`, `cluster` or `stack`; empty for any other resource.
        name: name in the cloud or cluster, or else the logical name.
        urn: URN of the resource; empty for the stack.
    """

    kind: str
    name: str
    urn: str = ""

    def __str__(self) -> str:
        return self.name if self.kind in ("", STACK) else f"{self.kind} {self.name}"

    @property
    def names(self) -> frozenset[str]:
        """Names that an exception may use for it."""
        return frozenset(filter(None, (self.name, str(self), self.urn, urn_name(self.urn))))


WHOLE: Final = Subject(STACK, STACK)


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """A finding of a rule, before its level in a stack.

    Attributes:
        subject: the violating object.
        message: violation with a suggested fix.
        is_undecided: True if a fact is missing, which makes the violation advisory at any level.
    """

    subject: Subject
    message: str
    is_undecided: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """A stack under review.

    Attributes:
        recording: its resources.
        pools: its node pools.
        charges: its cost.
        limits: the limits of its policy.
        deleted: resources that the change under review deletes, with what they contain.
    """

    recording: Recording
    clusters: Sequence[ClusterFacts]
    pools: Sequence[RecordedPool]
    charges: Sequence[Charge]
    limits: Limits
    deleted: Sequence[Resource] = ()

    @property
    def clouds(self) -> frozenset[CloudKind]:
        """The clouds of its clusters and pools."""
        clouds = (cluster.cloud for cluster in self.clusters)
        return frozenset((*clouds, *(pool.site.cloud for pool in self.pools)))

    def subject(self, resource: Resource) -> Subject:
        """Return a resource as a subject, with a pool's or a cluster's name in the cloud."""
        pools = {pool.urn: of_pool(pool) for pool in self.pools if not pool.inline}
        clusters = {cluster.urn: of_cluster(cluster) for cluster in self.clusters}
        return {**pools, **clusters}.get(resource.urn) or Subject("", resource.name, resource.urn)

    def created(self, type_: str) -> Iterator[Resource]:
        """Yield the created resources of a type."""
        return (resource for resource in self.recording.of_type(type_) if not resource.read)


@dataclass(frozen=True, slots=True)
class Rule:
    """A policy rule, made of a check by `@partial(Rule, …)`.

    Attributes:
        check: yields the violations.
        id: id in configuration.
        title: requirement.
        level: default level.
        reason: purpose, and reason for the default level.
        source: documentation or benchmark, with version or date.
        is_of_change: True for a rule on a change, not on a stack: an exception in the same change excuses it.
    """

    check: Callable[[Reviewed], Iterable[RuleFinding]]
    _: KW_ONLY
    id: str
    title: str
    level: Level
    reason: str
    source: str
    is_of_change: bool = False


def of_pool(pool: RecordedPool) -> Subject:
    """Return a pool as a subject."""
    return Subject("pool", pool.name, pool.urn)


def of_cluster(cluster: ClusterFacts) -> Subject:
    """Return a cluster as a subject."""
    return Subject("cluster", cluster.name, cluster.urn)


def pod_spec(resource: Resource) -> Inputs | None:
    """Return the pod specification of a workload; None for other resources."""
    package, _, rest = resource.type.partition(":")
    path = _PATHS.get(rest.rpartition(":")[2]) if package == "kubernetes" else None
    spec: Plain = at(dict(resource.inputs), path) if path else None
    return Inputs(spec) if isinstance(spec, dict) else None
