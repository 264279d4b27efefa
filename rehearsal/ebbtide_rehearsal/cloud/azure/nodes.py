"""A requested AKS node pool, and its nodes: size, labels, taints and resources, for the controllers of nodes.

Source of labels and taints: azure-aks-docs, use-labels and spot-node-pool (2026); `accelerator` and
`agentpool` are older and still added (azure-aks-docs, use-nvidia-gpu, 2026; Azure/AKS#1568).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from ebbtide.analysis.reading.aks import CAPACITY_RESERVATION, group_of, read_pool
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.autoscaler.nodes import NO_ZONE, NodePool
from ebbtide.declaration.catalog.accelerators import vendor
from ebbtide.declaration.catalog.amounts import Amount
from ebbtide.declaration.catalog.machines import ARCHITECTURE, Machine, architecture
from ebbtide.declaration.catalog.resources import NodeSettings
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide.placement import NodeTaint
from ebbtide_rehearsal.cloud.azure.arm import CLOUD, Arm, inner, items
from ebbtide_rehearsal.cloud.azure.kinds import AGENT_POOL
from ebbtide_rehearsal.cloud.fake_provider import Rule
from ebbtide_rehearsal.cloud.pools import node_pool as registered
from ebbtide_rehearsal.cloud.regions import machine_of
from ebbtide_rehearsal.cloud.store import Resource, Store

_NAME: Final = re.compile(r"Standard_[A-Z]+(\d+)[a-z]*(?:-\d+)?[a-z]*(?:_[A-Za-z0-9]+)*")
_GIB_PER_VCPU: Final = 4


def machine(store: Store, size: str) -> Machine | None:
    """Return the machine of a size. If it is neither in the catalog nor declared, vCPUs are parsed from the
    name and the memory is that of a general-purpose machine. None if no size of Azure has such a name."""
    known = machine_of(store, CloudKind.AKS, size)
    if known is not None:
        return known
    match = _NAME.fullmatch(size)
    if match is None:
        return None
    vcpus = int(match[1])
    return Machine(CloudKind.AKS, size, vcpus, vcpus * _GIB_PER_VCPU, "")


def default_disk_gib(known: Machine) -> int:
    """Return the default size of a node's disk in GiB (azure-aks-docs, concepts-storage, 2026-08)."""
    steps = ((64, 1024), (16, 512), (8, 256))
    return next((size for vcpus, size in steps if known.vcpus >= vcpus), 128)


FIXED: Final = tuple(sorted({*constraints_of(AGENT_POOL).fixed, "gpuInstanceProfile"}))
"""Properties that no update can change (AKS docs and API: see `fixed_rules`)."""

KEPT: Final = (*FIXED, "vmSize", "mode", "osSKU", "count")
"""Properties that an update keeps if it omits them."""


@dataclass(frozen=True, slots=True)
class PoolRequest:
    """A requested node pool.

    Attributes:
        cloud: Azure.
        cluster: id of its cluster.
        cluster_state: current or requested state of the cluster.
        given: properties in the request.
        old: current state; None if it is to be created.
    """

    cloud: Arm
    cluster: str
    cluster_state: Mapping[str, Any]
    name: str
    given: Mapping[str, Any]
    old: Resource | None

    @property
    def properties(self) -> dict[str, Any]:
        """Properties, with preserved values and AKS's defaults."""
        old: Mapping[str, Any] = self.old.state if self.old is not None else {}
        preserved = {name: old[name] for name in KEPT if name in old}
        return {
            **constraints_of(AGENT_POOL).fills,
            **preserved,
            **{key: value for key, value in self.given.items() if value is not None},
        }

    @property
    def is_system(self) -> bool:
        """True for a system pool."""
        return self.properties["mode"] == "System"

    @property
    def is_spot(self) -> bool:
        """True for spot capacity."""
        return self.properties.get("scaleSetPriority") == "Spot"

    @property
    def is_autoscaled(self) -> bool:
        """True if the autoscaler sizes it."""
        return bool(self.properties["enableAutoScaling"])

    @property
    def nodes(self) -> int:
        """Initial node count."""
        properties = self.properties
        least = int(properties.get("minCount") or 0) if self.is_autoscaled else 1
        count = properties.get("count")
        return least if count is None else int(count)

    @property
    def machine(self) -> Machine:
        """Machine of a node.

        Raises:
            LookupError: the size is unknown; the rules reject it.
        """
        known = machine(self.cloud.store, str(self.properties["vmSize"]))
        if known is None:
            raise LookupError(self.properties["vmSize"])
        return known

    @property
    def location(self) -> str:
        """Region, as in Azure's ids."""
        return str(self.cluster_state["location"]).replace(" ", "").lower()


PoolRule: TypeAlias = Rule[PoolRequest]


SPOT_LABEL: Final = ("kubernetes.azure.com/scalesetpriority", "spot")
SPOT_TAINT: Final = "kubernetes.azure.com/scalesetpriority=spot:NoSchedule"

_AZURE: Final = "kubernetes.azure.com"


def taint(text: str) -> NodeTaint:
    """Parse a taint in AKS's form, `key=value:effect`."""
    marked, _, effect = text.rpartition(":")
    key, _, value = marked.partition("=")
    return NodeTaint(key, value, effect)


def answered_labels(pool: PoolRequest) -> dict[str, str]:
    """Return the labels of a pool's state, with the spot label that AKS adds
    (terraform-provider-azurerm#25615)."""
    given: Mapping[str, str] = inner(pool.given, "nodeLabels")
    return {**given, **(dict([SPOT_LABEL]) if pool.is_spot else {})}


def answered_taints(pool: PoolRequest) -> list[str]:
    """Return the taints of a pool's state, with the spot taint that AKS adds
    (terraform-provider-azurerm#14616)."""
    given = [str(text) for text in items(pool.given, "nodeTaints")]
    return [*given, *([SPOT_TAINT] if pool.is_spot and SPOT_TAINT not in given else [])]


def labels(pool: PoolRequest, state: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels of a pool's nodes, without name and zone."""
    machine = pool.machine
    added = {
        "agentpool": pool.name,
        f"{_AZURE}/agentpool": pool.name,
        f"{_AZURE}/cluster": str(pool.cluster_state["nodeResourceGroup"]),
        f"{_AZURE}/mode": str(state["mode"]).lower(),
        f"{_AZURE}/nodepool-type": str(state["type"]),
        f"{_AZURE}/os-sku": str(state["osSKU"]),
        f"{_AZURE}/priority": "spot" if pool.is_spot else "regular",
        f"{_AZURE}/role": "agent",
        f"{_AZURE}/sku-cpu": str(machine.vcpus),
        f"{_AZURE}/sku-memory": f"{machine.memory_gib:g}",
        f"{_AZURE}/storageprofile": str(state["osDiskType"]).lower(),
        "failure-domain.beta.kubernetes.io/region": pool.location,
        "beta.kubernetes.io/instance-type": str(state["vmSize"]),
        ARCHITECTURE: architecture(CloudKind.AKS, machine.name),
        "kubernetes.io/os": str(state["osType"]).lower(),
        "node.kubernetes.io/instance-type": str(state["vmSize"]),
        "topology.kubernetes.io/region": pool.location,
    }
    if machine.accelerator:
        maker = vendor(machine.accelerator)
        added |= {"accelerator": maker, f"{_AZURE}/accelerator": maker}
    return {**added, **{key: str(value) for key, value in state["nodeLabels"].items()}}


def taints(state: Mapping[str, Any]) -> tuple[NodeTaint, ...]:
    """Return the taints of a pool's nodes."""
    return tuple(taint(text) for text in state["nodeTaints"])


_KEPT_OF_DISK: Final = 0.1


def node_pool(pool: PoolRequest, state: Mapping[str, Any]) -> NodePool:
    """Return the pool for the controllers of nodes."""
    find = partial(machine_of, pool.cloud.store, CloudKind.AKS)
    reservations = pool.cloud.store.resources(CLOUD, CAPACITY_RESERVATION)
    reserving = frozenset(group_of(Inputs(resource.inputs)) for resource in reservations)
    read = read_pool(
        Inputs(state), pool.location, find=find, reserving=reserving, name=pool.name, cluster=pool.cluster
    )
    price = Amount() if read.reserves_machines else read.priced_node.machine_amount(read.capacity.kind)
    return registered(
        read,
        cluster=pool.cluster,
        region=pool.location,
        zones=tuple(f"{pool.location}-{zone}" for zone in read.zones) or (NO_ZONE,),
        initial=pool.nodes,
        labels=labels(pool, state),
        taints=taints(state),
        allocatable=_allocatable(pool.machine, state),
        # AKS installs the driver, but never the device plugin that makes the GPUs allocatable
        # (azure-aks-docs, use-nvidia-gpu, 2026).
        driver_installed=False,
        # Without its disk, and without a machine that the stack's own reservation bills.
        hourly=None if price.unknown else price.known,
        deallocates=state.get("scaleSetEvictionPolicy") == "Deallocate",
    )


def _allocatable(machine: Machine, state: Mapping[str, Any]) -> dict[str, str]:
    """Return the allocatable resources of a node, including its disk less the kubelet's eviction
    threshold."""
    offer = machine.allocatable(NodeSettings(int(state["maxPods"])))
    disk = int(state["osDiskSizeGB"])
    return {
        "cpu": f"{int(offer.cpu_m)}m",
        "memory": f"{int(offer.memory_mib)}Mi",
        "pods": str(state["maxPods"]),
        "ephemeral-storage": f"{int(disk * (1 - _KEPT_OF_DISK))}Gi",
    }
