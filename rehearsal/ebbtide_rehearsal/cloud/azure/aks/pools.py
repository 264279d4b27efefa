"""Node pools, standalone or inside their cluster."""

from collections.abc import Mapping
from typing import Any, Final

from ebbtide.declaration.catalog import PINS
from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.aks import labels_and_taints
from ebbtide_rehearsal.cloud.azure.aks.machines import default_disk_gib
from ebbtide_rehearsal.cloud.azure.aks.nodes import node_pool
from ebbtide_rehearsal.cloud.azure.aks.pool_request import PoolRequest
from ebbtide_rehearsal.cloud.azure.arm import CLOUD, Arm
from ebbtide_rehearsal.cloud.azure.errors import CONFLICT, refused
from ebbtide_rehearsal.cloud.azure.network import AGENT_POOL
from ebbtide_rehearsal.cloud.pools import forget, register
from ebbtide_rehearsal.cloud.store import Resource

_IMAGE: Final = "AKSUbuntu-2404gen2containerd-2026.11.01"


def pool_id(cluster: str, name: str) -> str:
    """Return the id of a node pool."""
    return f"{cluster}/agentPools/{name}"


def pools_of(arm: Arm, cluster: str) -> list[Resource]:
    """Return the node pools of a cluster, those of its inline list first."""
    return sorted(arm.below(cluster, AGENT_POOL), key=lambda pool: bool(pool.urn))


def state_of(pool: PoolRequest) -> dict[str, Any]:
    """Return the state of a pool."""
    properties = pool.properties
    version = str(properties.get("orchestratorVersion") or pool.cluster_state["currentKubernetesVersion"])
    disk = properties.get("osDiskSizeGB") or default_disk_gib(pool.machine)
    state = {
        **properties,
        "name": pool.name,
        "count": pool.nodes if pool.old is None or properties.get("count") is None else properties["count"],
        "osDiskSizeGB": disk,
        "nodeLabels": labels_and_taints.answered_labels(pool),
        "nodeTaints": labels_and_taints.answered_taints(pool),
        "orchestratorVersion": version,
        "currentOrchestratorVersion": version if version.count(".") > 1 else PINS["kubernetes"].version,
        "nodeImageVersion": _IMAGE,
        "provisioningState": "Succeeded",
    }
    if pool.is_spot:
        state = {"scaleSetEvictionPolicy": "Delete", "spotMaxPrice": -1, **state}
    if pool.machine.accelerator:
        state = {"gpuProfile": {"driver": "Install"}, **state}
    return state


def settle(pool: PoolRequest, urn: str, inputs: Mapping[str, Any], state: Mapping[str, Any]) -> Resource:
    """Save a pool, register it with the controllers of nodes, and log it."""
    resource = Resource(CLOUD, pool_id(pool.cluster, pool.name), AGENT_POOL, urn, inputs, state)
    pool.cloud.store.put(resource)
    register(pool.cloud.store, node_pool(pool, state))
    action = "created" if pool.old is None else "changed"
    pool.cloud.store.log_event(
        f"node-pool-{action}", f"The node pool {pool.name} was {action}.", id=resource.id
    )
    return resource


def end(arm: Arm, pool: Resource) -> None:
    """Remove a pool's nodes."""
    cluster, name = pool.id.rpartition("/agentPools/")[::2]
    forget(arm.store, cluster, name)
    arm.store.log_event("node-pool-deleted", f"The node pool {name} was deleted.", id=pool.id)


def last_pool(arm: Arm, pool: Resource) -> str | None:
    """Return the refusal to delete the last pool of a cluster, or its last system pool; None for others.

    Sources: pulumi/pulumi-azure-native#1575, Azure/AKS#2560; azure-aks-docs, create-node-pools (2026).
    """
    cluster = pool.id.rpartition("/agentPools/")[0]
    others = [other for other in pools_of(arm, cluster) if not ids.same(other.id, pool.id)]
    if not others:
        return refused("OperationNotAllowed", "There has to be at least one agent pool.", status=CONFLICT)
    if pool.state["mode"] == "System" and all(other.state["mode"] != "System" for other in others):
        return refused("MustDefineAtLeastOneSystemPool", "Must define at least one system pool.")
    return None
