"""Labels and taints that AKS adds to nodes, and those in a pool's state.

Source: azure-aks-docs, use-labels and spot-node-pool (2026); `accelerator` and `agentpool` are older and
still added (azure-aks-docs, use-nvidia-gpu, 2026; Azure/AKS#1568).
"""

from collections.abc import Mapping
from typing import Any, Final

from ebbtide.declaration.catalog import ARCHITECTURE, CloudKind, architecture, vendor
from ebbtide.placement import NodeTaint
from ebbtide_rehearsal.cloud.azure.aks.pool_request import PoolRequest
from ebbtide_rehearsal.cloud.azure.values import inner, items

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
