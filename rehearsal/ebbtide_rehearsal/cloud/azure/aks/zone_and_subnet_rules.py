"""AKS rules for zones, subnets and the number of node pools."""

from typing import Final

from ebbtide.declaration.catalog import CloudKind
from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.aks.pool_request import PoolRequest, PoolRule
from ebbtide_rehearsal.cloud.azure.arm import CLOUD
from ebbtide_rehearsal.cloud.azure.errors import NOT_FOUND, invalid, refused
from ebbtide_rehearsal.cloud.azure.identities import IDENTITY
from ebbtide_rehearsal.cloud.azure.network import AGENT_POOL, network_of
from ebbtide_rehearsal.cloud.azure.roles import may_join
from ebbtide_rehearsal.cloud.azure.values import inner, items
from ebbtide_rehearsal.cloud.regions import locations

_FORBIDDEN: Final = 403
_MOST_POOLS: Final = 100


def _zones_of(pool: PoolRequest) -> tuple[str, ...]:
    return locations(pool.cloud.store, CloudKind.AKS).zones(str(pool.location).replace(" ", "").lower())


def _region_has_zones(pool: PoolRequest) -> str | None:
    if not pool.given.get("availabilityZones") or _zones_of(pool):
        return None
    return refused(
        "AvailabilityZoneNotSupported",
        "Availability zone is not supported in this region.",
        target="agentPoolProfile.availabilityZone",
    )


def _zones(pool: PoolRequest) -> str | None:
    wrong = [zone for zone in items(pool.given, "availabilityZones") if zone not in _zones_of(pool)]
    return invalid("agentPoolProfile.availabilityZones", f"there is no zone {wrong[0]}") if wrong else None


def _subnet(pool: PoolRequest) -> str:
    return str(pool.given.get("vnetSubnetID") or "")


def _subnet_exists(pool: PoolRequest) -> str | None:
    subnet = _subnet(pool)
    if not subnet or not pool.cloud.lacks(subnet):
        return None
    return refused(
        "VnetSubnetNotFound",
        f"The subnet '{subnet}' of node pool {pool.name} was not found.",
        status=NOT_FOUND,
    )


def _one_network(pool: PoolRequest) -> str | None:
    subnet = _subnet(pool)
    others = [
        str(other.state["vnetSubnetID"])
        for other in pool.cloud.below(pool.cluster, AGENT_POOL)
        if other.state.get("vnetSubnetID") and ids.last(other.id) != pool.name
    ]
    if not subnet or all(ids.same(network_of(other), network_of(subnet)) for other in others):
        return None
    return invalid("agentPoolProfile.vnetSubnetID", "All node pools must be in the same virtual network")


def _cluster_may_join(pool: PoolRequest) -> str | None:
    """Reject a subnet on which the cluster's identity has no role. An identity that Azure creates, or that is
    unknown to the fake cloud, is assumed to have the role."""
    subnet = _subnet(pool)
    known = {other.id.lower(): other for other in pool.cloud.store.resources(CLOUD, IDENTITY)}
    for name in inner(inner(pool.cluster_state, "identity"), "userAssignedIdentities"):
        identity = known.get(name.lower())
        principal = str(identity.state["principalId"]) if identity is not None else ""
        if identity is None or not subnet or may_join(pool.cloud, principal, subnet):
            continue
        return refused(
            "LinkedAuthorizationFailed",
            f"The client '{identity.state['clientId']}' with object id '{principal}' does not have "
            "permission to perform action 'Microsoft.Network/virtualNetworks/subnets/join/action' on the "
            f"linked scope(s) '{subnet}' or the linked scope(s) are invalid.",
            status=_FORBIDDEN,
        )
    return None


def _few_pools(pool: PoolRequest) -> str | None:
    if pool.old is not None or len(pool.cloud.below(pool.cluster, AGENT_POOL)) < _MOST_POOLS:
        return None
    message = f"The maximum number of {_MOST_POOLS} agent pools of the cluster has been reached."
    return refused("MaxAgentPoolCountReached", message)


RULES: Final = (
    PoolRule("a region with zones", "rancher/rancher#33019; catalog/data/locations.csv", _region_has_zones),
    PoolRule("zones that there are", "azure-aks-docs, availability-zones (2026)", _zones),
    PoolRule("the subnet is there", "azure-aks-docs, configure-azure-cni (2026)", _subnet_exists),
    PoolRule("one virtual network", "azure-aks-docs, create-node-pools (2026)", _one_network),
    PoolRule(
        "the cluster may join the subnet",
        "azure-aks-docs, concepts-network-cni-overview (2026); Azure/AKS#357; "
        "MicrosoftDocs/azure-aks-docs#110",
        _cluster_may_join,
    ),
    PoolRule("at most 100 pools", "azure-aks-docs, quotas-skus-regions (2026)", _few_pools),
)
