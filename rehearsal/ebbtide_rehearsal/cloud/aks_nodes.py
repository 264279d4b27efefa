"""Nodes of an AKS node pool: size, labels, taints and resources, for the controllers of nodes.

Source of labels and taints: azure-aks-docs, use-labels and spot-node-pool (2026); `accelerator` and
`agentpool` are older and still added (azure-aks-docs, use-nvidia-gpu, 2026; Azure/AKS#1568).
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from ebbtide.analysis.reading.aks import CAPACITY_RESERVATION, group_of, read_pool
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.autoscaler.nodes import NO_ZONE, NodePool
from ebbtide.declaration.catalog.accelerators import vendor
from ebbtide.declaration.catalog.amounts import Amount
from ebbtide.declaration.catalog.machines import ARCHITECTURE, Machine, architecture
from ebbtide.declaration.catalog.resources import NodeSettings
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.placement import NodeTaint
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.ids import AZURE
from ebbtide_rehearsal.cloud.pools import machine_of
from ebbtide_rehearsal.cloud.pools import node_pool as registered
from ebbtide_rehearsal.cloud.store import Resource, Store

_NAME: Final = re.compile(r"Standard_[A-Z]+(\d+)[a-z]*(?:-\d+)?[a-z]*(?:_[A-Za-z0-9]+)*")
_GIB_PER_VCPU: Final = 4
SPOT_LABEL: Final = ("kubernetes.azure.com/scalesetpriority", "spot")
SPOT_TAINT: Final = "kubernetes.azure.com/scalesetpriority=spot:NoSchedule"
_AZURE: Final = "kubernetes.azure.com"
_IMAGE: Final = "AKSUbuntu-2404gen2containerd-2026.11.01"
_KEPT_OF_DISK: Final = 0.1


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


def location_of(cluster: Resource) -> str:
    """Return the region of a cluster, as in Azure's ids."""
    return str(cluster.state["location"]).replace(" ", "").lower()


def taint(text: str) -> NodeTaint:
    """Parse a taint in AKS's form, `key=value:effect`."""
    marked, _, effect = text.rpartition(":")
    key, _, value = marked.partition("=")
    return NodeTaint(key, value, effect)


def answered(store: Store, state: Mapping[str, Any], old: Mapping[str, Any], version: str) -> dict[str, Any]:
    """Return a pool's state with what AKS adds: counts, a disk, a version, an image, and the label and
    taint of spot nodes (terraform-provider-azurerm#14616, #25615).

    Args:
        old: state of the existing pool; empty for a new one.
        version: Kubernetes version of its cluster.

    Raises:
        LookupError: its size is unknown.
    """
    known = size_of(store, state)
    least = int(state.get("minCount") or 0) if state.get("enableAutoScaling") else 1
    count = next((item for item in (state.get("count"), old.get("count")) if item is not None), least)
    own = str(state.get("orchestratorVersion") or version)
    is_spot = state.get("scaleSetPriority") == "Spot"
    taints: list[str] = [*(state.get("nodeTaints") or ())]
    return {
        **({"scaleSetEvictionPolicy": "Delete", "spotMaxPrice": -1} if is_spot else {}),
        **({"gpuProfile": {"driver": "Install"}} if known.accelerator else {}),
        "osDiskSizeGB": default_disk_gib(known),
        **state,
        "count": int(count),
        "nodeLabels": {**(state.get("nodeLabels") or {}), **(dict([SPOT_LABEL]) if is_spot else {})},
        "nodeTaints": [*taints, *([SPOT_TAINT] if is_spot and SPOT_TAINT not in taints else [])],
        "orchestratorVersion": own,
        "currentOrchestratorVersion": own if own.count(".") > 1 else PINS["kubernetes"].version,
        "nodeImageVersion": _IMAGE,
        "provisioningState": "Succeeded",
    }


def size_of(store: Store, state: Mapping[str, Any]) -> Machine:
    """Return the machine of a pool's nodes.

    Raises:
        LookupError: the size is unknown.
    """
    known = machine(store, str(state["vmSize"]))
    if known is None:
        raise LookupError(state["vmSize"])
    return known


def labels(known: Machine, cluster: Resource, name: str, state: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels of a pool's nodes, without name and zone."""
    location = location_of(cluster)
    added = {
        "agentpool": name,
        f"{_AZURE}/agentpool": name,
        f"{_AZURE}/cluster": str(cluster.state["nodeResourceGroup"]),
        f"{_AZURE}/mode": str(state["mode"]).lower(),
        f"{_AZURE}/nodepool-type": str(state["type"]),
        f"{_AZURE}/os-sku": str(state["osSKU"]),
        f"{_AZURE}/priority": "spot" if state.get("scaleSetPriority") == "Spot" else "regular",
        f"{_AZURE}/role": "agent",
        f"{_AZURE}/sku-cpu": str(known.vcpus),
        f"{_AZURE}/sku-memory": f"{known.memory_gib:g}",
        f"{_AZURE}/storageprofile": str(state["osDiskType"]).lower(),
        "failure-domain.beta.kubernetes.io/region": location,
        "beta.kubernetes.io/instance-type": str(state["vmSize"]),
        ARCHITECTURE: architecture(CloudKind.AKS, known.name),
        "kubernetes.io/os": str(state["osType"]).lower(),
        "node.kubernetes.io/instance-type": str(state["vmSize"]),
        "topology.kubernetes.io/region": location,
    }
    if known.accelerator:
        maker = vendor(known.accelerator)
        added |= {"accelerator": maker, f"{_AZURE}/accelerator": maker}
    return {**added, **{key: str(value) for key, value in state["nodeLabels"].items()}}


def taints(state: Mapping[str, Any]) -> tuple[NodeTaint, ...]:
    """Return the taints of a pool's nodes."""
    return tuple(taint(text) for text in state["nodeTaints"])


def node_pool(store: Store, cluster: Resource, name: str, state: Mapping[str, Any]) -> NodePool:
    """Return the pool for the controllers of nodes.

    Raises:
        LookupError: its size is unknown.
    """
    known, location = size_of(store, state), location_of(cluster)
    reservations = store.resources(AZURE, CAPACITY_RESERVATION)
    reserving = frozenset(group_of(Inputs(resource.inputs)) for resource in reservations)
    find = partial(machine_of, store, CloudKind.AKS)
    read = read_pool(Inputs(state), location, find=find, reserving=reserving, name=name, cluster=cluster.id)
    price = Amount() if read.reserves_machines else read.priced_node.machine_amount(read.capacity.kind)
    return registered(
        read,
        cluster=cluster.id,
        region=location,
        zones=tuple(f"{location}-{zone}" for zone in read.zones) or (NO_ZONE,),
        initial=state["count"],
        labels=labels(known, cluster, name, state),
        taints=taints(state),
        allocatable=_allocatable(known, state),
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
