"""Rules of a declaration."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from ebbtide.catalog import CloudKind, Machine
from ebbtide.model.cluster import Cluster
from ebbtide.model.completion import machine_of
from ebbtide.model.faults import Fault
from ebbtide.model.pool import Pool
from ebbtide.model.site import Site


class Severity(StrEnum):
    """Consequence of a broken rule: an error, or a warning."""

    REFUSED = "refused"
    WARNED = "warned"


def _id(name: str) -> str:
    """Return a rule's name as an id: `a known machine type` is `known-machine-type`."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", re.sub(r"^(a|an|the) ", "", name)).replace("'", "")
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


@dataclass(frozen=True, slots=True)
class PoolIn:
    """A pool as it was declared, and where it stands.

    Attributes:
        pool: the pool, before anything is filled in.
        site: the cluster around it.
        path: its place in the declaration, as `pools[2]`; empty for a pool used alone.
    """

    pool: Pool
    site: Site
    path: str

    @property
    def machine(self) -> Machine | None:
        """Its machine, where the catalog or the declaration says what it offers."""
        return machine_of(self.pool, self.site)

    def at(self, field: str) -> str:
        """Path of one of its fields."""
        return f"{self.path}.{field}" if self.path else field


@dataclass(frozen=True, slots=True)
class PoolRule:
    """A rule that a single pool must keep.

    Attributes:
        name: what the rule says, in a few words.
        source: the documentation page, issue or version that it rests on, with its date where it has one.
        check: yields a fault for each way in which a pool breaks it.
        cloud: the cloud it holds for; None for both.
        severity: what breaking it does.
    """

    name: str
    source: str
    check: Callable[[PoolIn], Iterable[Fault]]
    cloud: CloudKind | None = None
    severity: Severity = Severity.REFUSED

    @property
    def id(self) -> str:
        """Its name as an id, which its faults carry."""
        return _id(self.name)


@dataclass(frozen=True, slots=True)
class ClusterRule:
    """A rule that the declaration as a whole must keep; its fields are those of `PoolRule`."""

    name: str
    source: str
    check: Callable[[Cluster], Iterable[Fault]]
    cloud: CloudKind | None = None
    severity: Severity = Severity.REFUSED

    @property
    def id(self) -> str:
        """Its name as an id, which its faults carry."""
        return _id(self.name)


def pools_of(cluster: Cluster) -> Iterator[PoolIn]:
    """Every pool of a declaration with its path."""
    for index, pool in enumerate(cluster.pools):
        yield PoolIn(pool, cluster.site, f"pools[{index}]")
