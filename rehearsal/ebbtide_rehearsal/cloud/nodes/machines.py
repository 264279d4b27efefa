"""Machines of a cluster in the cloud's state. They exist, and are billed, before their node is registered and
after it is deleted."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, Self

from ebbtide_rehearsal.cloud.pools import NodePool
from ebbtide_rehearsal.cloud.store import Resource, Store

_CLOUD: Final = "nodes"
_TYPE: Final = "machine"

State = Literal["waiting", "starting", "running", "draining", "ending", "stopped"]


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of a node pool.

    Attributes:
        cluster: id of the cluster.
        pool: name of the pool.
        name: name of its node.
        zone: its zone.
        cloud: its cloud.
        hourly: price, USD per hour; None if it is unknown.
        created: creation time, in simulated seconds.
        state: `waiting` for stock, unbilled, until `since` at the latest; `starting` until `since`;
            `draining`: its pods are being evicted, since then; `ending`: it has an eviction notice, and is
            deleted at `since` on the wall clock; `stopped`: evicted, but not deleted (AKS, `Deallocate`).
        since: see `state`; for a running machine its start, in simulated seconds.
        request: its ProvisioningRequest, as `namespace/name`; empty for none.
        why: reason for its removal; empty if it is not being removed.
    """

    cluster: str
    pool: str
    name: str
    zone: str
    cloud: Literal["gke", "aks"]
    hourly: float | None
    created: float
    state: State
    since: float
    request: str = ""
    why: str = ""

    @property
    def id(self) -> str:
        """Id, unique in the cloud."""
        return f"{self.cluster}/nodes/{self.name}"

    @property
    def is_leaving(self) -> bool:
        """Return whether its removal has begun."""
        return self.state in ("draining", "ending")

    @property
    def pool_id(self) -> str:
        """Id of the pool."""
        return f"{self.cluster}/{self.pool}"

    def having(self, **changes: Any) -> Self:
        """Return the machine with some fields changed."""
        return replace(self, **changes)


def put(store: Store, machine: Machine) -> None:
    """Save a machine."""
    store.put(Resource(_CLOUD, machine.id, _TYPE, state=asdict(machine)))


def drop(store: Store, machine: Machine) -> None:
    """Delete a machine."""
    store.remove(_CLOUD, machine.id)


def machines(store: Store, cluster: str) -> list[Machine]:
    """Return the machines of a cluster, by name."""
    return [machine for machine in all_machines(store) if machine.cluster == cluster]


def all_machines(store: Store) -> list[Machine]:
    """Return the machines of all clusters, by id."""
    return [Machine(**resource.state) for resource in store.resources(_CLOUD, _TYPE)]


def billed_count(machines: Iterable[Machine], pool: NodePool) -> int:
    """Return the number of machines that count towards a pool's maximum: those that are not being removed."""
    return sum(machine.pool == pool.name and not machine.is_leaving for machine in machines)
