"""What the pools of a cluster offer to work: one flavor a pool, and the quota that goes with it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ebbtide.catalog import resource_name
from ebbtide.model import Cluster, Pool, Queued
from ebbtide.model.nodes import most_nodes, offered
from ebbtide.placement.derive import toleration
from ebbtide.placement.marks import marks
from ebbtide.placement.profile import TaintProfile, Toleration

CPU = "cpu"
MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Flavor:
    """A pool as a queue sees it.

    Attributes:
        name: the pool's name.
        labels: labels of its nodes by which they are told from all others.
        taints: what its nodes carry.
        tolerations: what lets work past each of them.
        node: what one node offers: `cpu` in millicores, `memory` in MiB, accelerators by their resource.
        nodes: the most nodes.
        queued: whether its nodes come through queued provisioning.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[TaintProfile, ...]
    tolerations: tuple[Toleration, ...]
    node: Mapping[str, int]
    nodes: int
    queued: bool

    def offer(self, nodes: int) -> dict[str, int]:
        """What that many of its nodes offer."""
        return {resource: amount * nodes for resource, amount in self.node.items()}

    @property
    def accelerator(self) -> str:
        """The accelerators' resource; empty where there are none."""
        return next((resource for resource in self.node if resource not in (CPU, MEMORY)), "")


def flavor(pool: Pool, cluster: Cluster) -> Flavor:
    """The flavor of a complete pool. Its quota is what its nodes can give to work, and so what the autoscaler
    can ever bring: more would admit work that waits for nodes for ever (kueue#5129), less would leave nodes
    unused.
    """
    found = marks(pool, cluster.site.cloud)
    offer = offered(pool, cluster.site, cluster.addons)
    node = {CPU: int(offer.cpu_m) if offer else 0, MEMORY: int(offer.memory_mib) if offer else 0}
    if pool.accelerator is not None:
        node[resource_name(pool.accelerator.type)] = pool.accelerator.count
    return Flavor(
        name=pool.name,
        labels={key: found.all_labels[key] for key in found.telling},
        taints=tuple(TaintProfile(taint.key, taint.value, taint.effect.value) for taint in found.all_taints),
        tolerations=tuple(toleration(taint) for taint in found.all_taints),
        node=node,
        nodes=most_nodes(pool),
        queued=isinstance(pool.capacity, Queued),
    )


def covered(flavors: Iterable[Flavor]) -> tuple[str, ...]:
    """Every resource that any of the flavors has, CPU and memory first: Kueue wants all of them for each
    flavor of a group, in one order."""
    found: dict[str, None] = {CPU: None, MEMORY: None}
    for item in flavors:
        found |= dict.fromkeys(item.node)
    return tuple(found)


def _scaled(amount: int, base: int, units: tuple[str, ...]) -> str:
    """An amount in the largest unit that it is a whole number of."""
    unit = 0
    while amount and unit < len(units) - 1 and amount % base == 0:
        amount //= base
        unit += 1
    return f"{amount}{units[unit]}" if amount else "0"


def quantity(resource: str, amount: int) -> str:
    """An amount as Kubernetes writes it back, so that what was declared and what is there read the same."""
    match resource:
        case "cpu":
            return _scaled(amount, 1000, ("m", ""))
        case "memory":
            return _scaled(amount, 1024, ("Mi", "Gi", "Ti"))
        case _:
            return str(amount)


def largest_node(flavors: Iterable[Flavor]) -> dict[str, Any]:
    """The most CPU and memory that any one node of the flavors offers, as quantities: nothing larger ever
    runs."""
    known = tuple(flavors)
    return {
        resource: quantity(resource, max((item.node[resource] for item in known), default=0))
        for resource in (CPU, MEMORY)
    }
