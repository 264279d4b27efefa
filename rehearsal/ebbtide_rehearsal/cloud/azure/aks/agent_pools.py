"""The type of a node pool by itself."""

from collections.abc import Mapping
from typing import Any, Final

from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.aks import pools
from ebbtide_rehearsal.cloud.azure.aks.asked import PoolAsked
from ebbtide_rehearsal.cloud.azure.arm import Arm
from ebbtide_rehearsal.cloud.azure.kind import Kind, Limit, Refusal, Wish
from ebbtide_rehearsal.cloud.azure.network import AGENT_POOL
from ebbtide_rehearsal.cloud.provider import RefusedError
from ebbtide_rehearsal.cloud.store import Resource

CLUSTER: Final = "azure-native:containerservice:ManagedCluster"
CLUSTER_PATH: Final = f"{ids.GROUP}/providers/Microsoft.ContainerService/managedClusters/{{resourceName}}"
POOL_NAME: Final = Limit(r"^[a-z][a-z0-9]{0,11}$")
DISK: Final = Limit(least=0, most=2048)

_PATH: Final = f"{CLUSTER_PATH}/agentPools/{{agentPoolName}}"


def _asked(arm: Arm, wish: Wish) -> PoolAsked:
    cluster, name = wish.id.rpartition("/agentPools/")[::2]
    found = arm.find(cluster)
    if found is None:
        raise LookupError(cluster)  # its parent was looked for before
    given = {key: value for key, value in wish.inputs.items() if key not in ids.names(_PATH)}
    return PoolAsked(arm, found.id, found.state, name, given, wish.was)


def _refused(arm: Arm, wish: Wish) -> RefusedError | None:
    return pools.refusal(_asked(arm, wish))


def _outputs(arm: Arm, wish: Wish) -> Mapping[str, Any]:
    return pools.state_of(_asked(arm, wish))


def _happens(arm: Arm, wish: Wish, made: Resource) -> None:
    with arm.operations.on(wish.id, "Creating" if wish.was is None else "Updating"):
        pools.settle(_asked(arm, wish), wish.urn, made.inputs, made.state)


def _leaving(arm: Arm, pool: Resource) -> None:
    pools.refuse_last(arm, pool)
    with arm.operations.on(pool.id, "Deleting"):
        pools.end(arm, pool)


KINDS: Final = (
    Kind(
        token=AGENT_POOL,
        api_version="2025-09-01",
        path=_PATH,
        parent=CLUSTER,
        replaces=frozenset({"gpuInstanceProfile", "vmSize", "networkProfile.nodePublicIPTags"}),
        limits={"agentPoolName": POOL_NAME, "osDiskSizeGB": DISK},
        refusals=(Refusal("the rules of node pools", "aks/pools.py, RULES", _refused),),
        outputs=_outputs,
        happens=_happens,
        leaving=_leaving,
    ),
)
