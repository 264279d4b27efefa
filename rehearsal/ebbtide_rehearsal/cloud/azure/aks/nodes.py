"""Conversion of a pool's state in AKS to the node pool of the controllers."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from ebbtide.analysis.reading.aks import read_pool
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.declaration.catalog import CloudKind, Machine, NodeSettings
from ebbtide_rehearsal.cloud.azure.aks import labels_and_taints
from ebbtide_rehearsal.cloud.azure.aks.pool_request import PoolRequest
from ebbtide_rehearsal.cloud.pools import NO_ZONE, NodePool
from ebbtide_rehearsal.cloud.pools import node_pool as registered
from ebbtide_rehearsal.cloud.regions import machine_of

_KEPT_OF_DISK: Final = 0.1


def node_pool(pool: PoolRequest, state: Mapping[str, Any]) -> NodePool:
    """Return the pool for the controllers of nodes.

    Args:
        pool: the requested pool.
        state: its state.
    """
    find = partial(machine_of, pool.cloud.store, CloudKind.AKS)
    read = read_pool(Inputs(state), pool.location, find=find, name=pool.name, cluster=pool.cluster)
    price = read.priced_node.machine_amount(read.capacity.kind)
    return registered(
        read,
        cluster=pool.cluster,
        region=pool.location,
        zones=tuple(f"{pool.location}-{zone}" for zone in read.zones) or (NO_ZONE,),
        initial=pool.nodes,
        labels=labels_and_taints.labels(pool, state),
        taints=labels_and_taints.taints(state),
        allocatable=_allocatable(pool.machine, state),
        # AKS installs the driver, but never the device plugin that makes the GPUs allocatable
        # (azure-aks-docs, use-nvidia-gpu, 2026).
        driver_installed=False,
        hourly=None if price.unknown else price.known,  # without its disk
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
