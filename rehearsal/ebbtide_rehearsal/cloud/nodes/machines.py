"""Machines of a cluster in the cloud's state: they exist, and are billed, before and after Kubernetes has a
node for them."""

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
        cluster: the cluster's id.
        pool: the pool's name.
        name: the name of its node.
        zone: its zone.
        cloud: its cloud.
        hourly: US dollars an hour.
        born: its creation, in simulated seconds.
        state: `waiting` for stock, unbilled, until `since` at the latest; `starting` until `since` has come;
            `draining`: its pods are evicted, since then; `ending`: it has notice of its reclaim,
            and is gone at `since` on the wall clock; `stopped`: evicted, and kept (AKS, `Deallocate`).
        since: see `state`; of a running machine, since when it is, in simulated seconds.
        request: its ProvisioningRequest, as `namespace/name`; empty for none.
        why: the reason of its removal; empty while it stays.
    """

    cluster: str
    pool: str
    name: str
    zone: str
    cloud: Literal["gke", "aks"]
    hourly: float
    born: float
    state: State
    since: float
    request: str = ""
    why: str = ""

    @property
    def id(self) -> str:
        """Unique in the cloud."""
        return f"{self.cluster}/nodes/{self.name}"

    @property
    def leaves(self) -> bool:
        """Return whether its removal has begun."""
        return self.state in ("draining", "ending")

    @property
    def pool_id(self) -> str:
        """The pool's id."""
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


def counted(machines: Iterable[Machine], pool: NodePool) -> int:
    """Return the number of machines that count against a pool's maximum: all but those that leave."""
    return sum(machine.pool == pool.name and not machine.leaves for machine in machines)
