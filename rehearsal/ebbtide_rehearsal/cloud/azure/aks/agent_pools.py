"""Resource type of a standalone node pool."""

from typing import Final

from ebbtide.analysis.recording.assumed_azure import RESOURCES
from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.aks import pool_rules, pools
from ebbtide_rehearsal.cloud.azure.aks.pool_request import PoolRequest
from ebbtide_rehearsal.cloud.azure.aks.power import SOURCE, refusal_if_stopped
from ebbtide_rehearsal.cloud.azure.arm import Arm
from ebbtide_rehearsal.cloud.azure.network import AGENT_POOL
from ebbtide_rehearsal.cloud.azure.resource_kind import Request, ResourceKind, Rule
from ebbtide_rehearsal.cloud.core.resource_kind import first_refusal
from ebbtide_rehearsal.cloud.store import Resource

CLUSTER: Final = "azure-native:containerservice:ManagedCluster"


def _request(request: Request) -> PoolRequest:
    cluster_id, name = request.id.rpartition("/agentPools/")[::2]
    cluster = request.cloud.find(cluster_id)
    if cluster is None:
        raise LookupError(cluster_id)  # a missing parent was rejected before
    in_id = ids.names(RESOURCES[AGENT_POOL].id)
    given = {key: value for key, value in request.inputs.items() if key not in in_id}
    return PoolRequest(request.cloud, cluster.id, cluster.state, name, given, request.old)


def _apply(request: Request, pool: Resource) -> None:
    with request.cloud.operations.on(request.id, "Creating" if request.old is None else "Updating"):
        pools.settle(_request(request), request.urn, pool.inputs, pool.state)


def _of_stopped(request: Request) -> str | None:
    return refusal_if_stopped(_request(request).cluster_state, "creating or updating agent pools")


def _before_delete(arm: Arm, pool: Resource) -> str | None:
    cluster = arm.find(pool.id.rpartition("/agentPools/")[0])
    stopped = refusal_if_stopped(cluster.state, "deleting agent pools") if cluster else None
    message = stopped or pools.last_pool(arm, pool)
    if message is None:
        with arm.operations.on(pool.id, "Deleting"):
            pools.end(arm, pool)
    return message


KINDS: Final = (
    ResourceKind(
        type=AGENT_POOL,
        api_version="2025-09-01",
        parent=CLUSTER,
        rules=(
            Rule("running cluster", SOURCE, _of_stopped),
            Rule(
                "rules of node pools",
                "aks/pool_rules.py",
                lambda request: first_refusal(pool_rules.RULES, _request(request)),
            ),
        ),
        outputs=lambda request: pools.state_of(_request(request)),
        apply=_apply,
        before_delete=_before_delete,
    ),
)
