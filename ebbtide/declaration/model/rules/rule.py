"""Types of rules, and words of their messages."""

import re
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar

from ebbtide.declaration.catalog.machines import Machine
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.declaration.model.site import Site
from ebbtide.declaration.model.tenancy import Team, is_object_id
from ebbtide.text import and_list
from ebbtide.values.cloud_kind import CloudKind

KUEUE: Final = f"Kueue {PINS['kueue'].version}"
"""Source of what was read in Kueue's module."""
NO_CLUSTER: Final = "The cluster could not be created."
NO_GKE_POOL: Final = "GKE refuses to create the node pool."
NO_POOL: Final = "The node pool could not be created."


class Severity(StrEnum):
    """Severity of a broken rule: an error, or a warning."""

    REFUSED = "refused"
    WARNED = "warned"


@dataclass(frozen=True, slots=True)
class PoolIn:
    """A declared pool with its context.

    Attributes:
        pool: the pool as written.
        resolved: the same pool, resolved.
        path: path in the declaration, such as `pools[2]`; empty for a standalone pool.
    """

    pool: Pool
    resolved: ResolvedPool
    path: str

    @property
    def site(self) -> Site:
        """Site of its cluster."""
        return self.resolved.site

    @property
    def machine(self) -> Machine | None:
        """Machine, if its resources are in the catalog or the declaration."""
        return self.resolved.hardware

    def at(self, field: str) -> str:
        """Return the path of one of its fields."""
        return f"{self.path}.{field}" if self.path else field


_Subject = TypeVar("_Subject", PoolIn, Cluster)


@dataclass(frozen=True, slots=True)
class _Rule(Generic[_Subject]):
    """A rule.

    Attributes:
        name: short statement of the rule.
        source: documentation page, issue or version, with its date if it has one.
        check: yields a fault for each violation.
        cloud: cloud that it applies to; None for both.
        severity: error or warning.
    """

    name: str
    source: str
    check: Callable[[_Subject], Iterable[Fault]]
    cloud: CloudKind | None = None
    severity: Severity = Severity.REFUSED

    @property
    def id(self) -> str:
        """Id derived from the name, such as `known-machine-type`, attached to its faults."""
        words = re.sub(r"(?<=[a-z]{2})(?=[A-Z])", "-", re.sub(r"^(a|an|the) ", "", self.name)).replace(
            "'", ""
        )
        return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


class PoolRule(_Rule[PoolIn]):
    """A rule for a single pool."""


class ClusterRule(_Rule[Cluster]):
    """A rule for the whole declaration."""


def pool_rule(
    name: str, source: str, cloud: CloudKind | None = None, severity: Severity = Severity.REFUSED
) -> Callable[[Callable[[PoolIn], Iterable[Fault]]], PoolRule]:
    """Return a decorator that makes a check a `PoolRule`."""
    return lambda check: PoolRule(name, source, check, cloud, severity)


def cluster_rule(
    name: str, source: str, cloud: CloudKind | None = None, severity: Severity = Severity.REFUSED
) -> Callable[[Callable[[Cluster], Iterable[Fault]]], ClusterRule]:
    """Return a decorator that makes a check a `ClusterRule`."""
    return lambda check: ClusterRule(name, source, check, cloud, severity)


def pools_of(cluster: Cluster) -> Iterator[PoolIn]:
    """Yield every pool of a declaration with its path."""
    for index, (pool, resolved) in enumerate(zip(cluster.pools, cluster.resolved_pools, strict=True)):
        yield PoolIn(pool, resolved, f"pools[{index}]")


def user_names(members: Iterable[tuple[str, str | None]], consequence: str, fix: str) -> Iterator[Fault]:
    """Yield one fault for all members (paths and names) to whom Azure assigns no roles; none without any."""
    named = [(path, member) for path, member in members if member is not None and not is_object_id(member)]
    if named:
        names = list(dict.fromkeys(member for _, member in named))
        are, users = ("is a user name", "user") if len(names) == 1 else ("are user names", "users")
        yield Fault(
            named[0][0],
            f"Azure role assignments need an object id, and {and_list(names)} {are}.",
            f"The {users} {consequence}",
            f"Write the object id of a group of the {users}{fix}.",
        )


def confined_teams(cluster: Cluster, pools: AbstractSet[str]) -> Iterator[tuple[str, Team, list[str]]]:
    """Yield the path of each team with a queue for one of these pools, the team and the pools, if its
    namespace enforces a Pod Security Standard that forbids pods access to their node."""
    for number, team in enumerate(cluster.teams):
        used = [queue for queue in cluster.resolved_queues if team.queues_used(queue.name)]
        names = sorted({name for queue in used for name in queue.pools} & pools)
        if names and team.pod_security in ("baseline", "restricted"):
            yield f"teams[{number}]", team, names


def privileged(team: Team) -> str:
    """Return the fix for a team whose pods need access to their node."""
    return (
        f"namespace: {{name: {team.namespace_name}, podSecurity: privileged}} if the team may have root "
        "access to its nodes"
    )


def service_name(cloud: CloudKind) -> str:
    """Return the name of a cloud's Kubernetes service."""
    return cloud.value.upper()


def one_of(names: Iterable[str], otherwise: str) -> str:
    """Return the fix for an unknown name: one of the known ones, or something else if there are none."""
    known = list(names)
    return f"Write one of {', '.join(known)}." if known else otherwise


def dollars(amount: float) -> str:
    """Format an amount for messages: `$0.067`, `$12.50`."""
    return f"${amount:.3f}" if amount < 1 else f"${amount:.2f}"
