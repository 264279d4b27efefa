"""AKS's refusals of node pools: a case for each rule, from the rule's source."""

from pathlib import Path
from typing import Any

import pytest

from ebbtide_rehearsal.cloud.azure.node_pools import RULES
from ebbtide_rehearsal.cloud.provider import RefusedError
from ebbtide_rehearsal.cloud.store import QUOTA, InjectedFault
from rehearsal.tests.unit.azure_cloud import CLUSTER, GROUP, POOL, SPOT, SUBNET, SYSTEM, Azure

# What is asked for over a good pool, and what AKS says; `None` takes a property away.
MAKING: dict[str, list[tuple[dict[str, Any], dict[str, Any], str]]] = {
    "available machine type": [
        (
            POOL,
            {"vmSize": "n1-standard-4"},
            "The VM size of n1-standard-4 is not allowed in your subscription in location 'eastus'.",
        ),
    ],
    "nodes not newer than control plane": [
        (POOL, {"orchestratorVersion": "1.99"}, 'Code="NodePoolMcVersionIncompatible"'),
    ],
    "count when the autoscaler is enabled": [
        (
            POOL,
            {"enableAutoScaling": False, "minCount": None, "maxCount": None},
            "Required parameter properties.count is missing (null).",
        ),
    ],
    "existing subnet": [
        (POOL, {"vnetSubnetID": f"{SUBNET}-2"}, 'Code="VnetSubnetNotFound"'),
    ],
    "one virtual network": [
        (
            POOL,
            {
                "vnetSubnetID": "/subscriptions/s/resourceGroups/r/providers/M.Network/virtualNetworks/v"
                "/subnets/n"
            },
            "All node pools must be in the same virtual network",
        ),
    ],
}

# The same for a pool that is there.
CHANGING: dict[str, list[tuple[dict[str, Any], dict[str, Any], str]]] = {
    "fixed properties": [
        (POOL, {"osDiskSizeGB": 200}, "Changing property 'properties.osDiskSizeGB' is not allowed."),
        (POOL, {"osDiskType": "Ephemeral"}, "Changing property 'properties.osDiskType' is not allowed."),
        (POOL, {"maxPods": 100}, "properties.maxPods"),
        (POOL, {"availabilityZones": ["1"]}, "properties.availabilityZones"),
        (POOL, {"scaleSetPriority": "Spot"}, "properties.scaleSetPriority"),
        (SPOT, {"spotMaxPrice": 0.5}, "properties.spotMaxPrice"),
        (SPOT, {"scaleSetEvictionPolicy": "Deallocate"}, "properties.scaleSetEvictionPolicy"),
    ],
    "fixed spot taint": [
        (
            SPOT,
            {"maxCount": 20, "nodeTaints": None},
            "Changing property 'properties.nodeTaints' is not allowed.",
        ),
    ],
    "count when the autoscaler is enabled": [
        (
            {**POOL, "enableAutoScaling": False, "minCount": None, "maxCount": None, "count": 1},
            {"enableAutoScaling": True, "minCount": 0, "maxCount": 1, "count": None, "type": None},
            "Required parameter properties.count is missing (null).",
        ),
    ],
}

ELSEWHERE = {
    "zones and spot need standard load balancer",
    "identity with access to subnet",
    "maximum pools in cluster",
    "fixed machine type",
    "remaining system pool",
    "sufficient vCPU quota",
}
"""Rules whose cases are tests of their own, below."""


def _given(*layers: dict[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for layer in layers:
        merged |= layer
    return {key: value for key, value in merged.items() if value is not None}


def _cases(table: dict[str, list[tuple[dict[str, Any], dict[str, Any], str]]]) -> list[Any]:
    return [pytest.param(*case, id=name) for name, cases in table.items() for case in cases]


def test_every_rule_has_a_case() -> None:
    """No rule of node pools goes without a case, and each says where it was read."""
    assert {rule.name for rule in RULES} == {*MAKING, *CHANGING, *ELSEWHERE}
    assert all(rule.source for rule in RULES)


@pytest.mark.parametrize(("base", "overrides", "says"), _cases(MAKING))
def test_a_pool_that_breaks_a_rule_is_not_made(
    tmp_path: Path, base: dict[str, Any], overrides: dict[str, Any], says: str
) -> None:
    """AKS's own sentence comes back, and nothing is left behind."""
    azure = Azure(tmp_path).with_cluster()
    before = azure.ids()
    with pytest.raises(RefusedError) as refused:
        azure.make("containerservice:AgentPool", **_given(base, overrides))
    assert says in str(refused.value)
    assert azure.ids() == before


@pytest.mark.parametrize(("base", "overrides", "says"), _cases(CHANGING))
def test_a_pool_is_not_changed_into_what_breaks_a_rule(
    tmp_path: Path, base: dict[str, Any], overrides: dict[str, Any], says: str
) -> None:
    """AKS refuses changes of immutable properties, and leaves the pool unchanged."""
    azure = Azure(tmp_path).with_cluster()
    made = azure.make("containerservice:AgentPool", **_given(base))
    with pytest.raises(RefusedError) as refused:
        azure.change("containerservice:AgentPool", made, _given(base), **_given(base, overrides))
    assert says in str(refused.value)
    kept = azure.store.get("azure-native", made.id)
    assert kept is not None
    assert {**kept.state, "azureApiVersion": "2025-09-01"} == made.state


def test_zones_want_a_standard_load_balancer(tmp_path: Path) -> None:
    """A basic one serves neither zones nor spot (Azure/AKS#1133)."""
    azure = Azure(tmp_path)
    azure.make("resources:ResourceGroup", resourceGroupName="old")
    with pytest.raises(RefusedError, match="Standard Load Balancer is required for availability zone"):
        azure.make(
            "containerservice:ManagedCluster",
            resourceGroupName="old",
            resourceName="old",
            dnsPrefix="old",
            identity={"type": "SystemAssigned"},
            networkProfile={"loadBalancerSku": "basic"},
            agentPoolProfiles=[_given(SYSTEM, {"vnetSubnetID": None, "availabilityZones": ["1"]})],
        )


def test_an_identity_without_its_grant_brings_no_node_into_the_subnet(tmp_path: Path) -> None:
    """The cluster is refused until its identity may join the subnet (Azure/AKS#357)."""
    azure = Azure(tmp_path).with_network()
    (grant,) = (identity for identity in azure.ids() if "roleAssignments" in identity)
    azure.remove("authorization:RoleAssignment", grant)
    with pytest.raises(RefusedError, match="subnets/join/action"):
        azure.make_cluster()


def test_no_more_than_a_hundred_pools(tmp_path: Path) -> None:
    """The hundred and first is refused (azure-aks-docs, quotas-skus-regions)."""
    azure = Azure(tmp_path).with_cluster()
    for number in range(99):
        azure.make("containerservice:AgentPool", **_given(POOL, {"agentPoolName": f"p{number}"}))
    with pytest.raises(RefusedError, match="maximum number of 100 agent pools"):
        azure.make("containerservice:AgentPool", **POOL)


def test_the_last_system_pool_stays_one(tmp_path: Path) -> None:
    """A cluster keeps a system pool: it is neither deleted nor turned into another (Azure/AKS#1568)."""
    azure = Azure(tmp_path).with_cluster()
    with pytest.raises(RefusedError, match="There has to be at least one agent pool"):
        azure.remove("containerservice:AgentPool", f"{CLUSTER}/agentPools/system")
    azure.make("containerservice:AgentPool", **POOL)
    with pytest.raises(RefusedError, match="Must define at least one system pool"):
        azure.remove("containerservice:AgentPool", f"{CLUSTER}/agentPools/system")
    second = _given(POOL, {"agentPoolName": "sys2", "mode": "System", "minCount": 1})
    made = azure.make("containerservice:AgentPool", **second)
    azure.remove("containerservice:AgentPool", f"{CLUSTER}/agentPools/system")
    with pytest.raises(RefusedError, match="Must define at least one system pool"):
        azure.change("containerservice:AgentPool", made, second, **_given(second, {"mode": "User"}))


def test_a_family_without_quota(tmp_path: Path) -> None:
    """Initial nodes count against the family's quota (1ChristianAlex/motordesk#14)."""
    azure = Azure(tmp_path).with_cluster()
    azure.store.inject(InjectedFault(QUOTA, "standardDSv5Family", details={"limit": 20}))
    with pytest.raises(RefusedError) as refused:
        azure.make("containerservice:AgentPool", **_given(POOL, {"count": 2}))
    # The system pool has two machines of four vCPUs already.
    assert "Insufficient vcpu quota requested 16, remaining 12 for family standardDSv5Family" in str(
        refused.value
    )
    azure.make("containerservice:AgentPool", **_given(POOL, {"count": 1}))


def test_a_region_without_quota(tmp_path: Path) -> None:
    """The region's own quota holds for what is not spot."""
    azure = Azure(tmp_path).with_cluster()
    azure.store.inject(InjectedFault(QUOTA, "cores", details={"limit": 8}))
    with pytest.raises(RefusedError, match="Insufficient regional vcpu quota left for location eastus"):
        azure.make("containerservice:AgentPool", **_given(POOL, {"count": 1}))
    azure.make("containerservice:AgentPool", **_given(SPOT, {"count": 1}))


def test_spot_has_a_quota_of_its_own(tmp_path: Path) -> None:
    """Spot counts against `lowPriorityCores`, whatever its family; a pool that starts empty against none."""
    azure = Azure(tmp_path).with_cluster()
    azure.store.inject(InjectedFault(QUOTA, "lowPriorityCores", details={"limit": 0}))
    with pytest.raises(RefusedError, match="for family lowPriorityCores"):
        azure.make("containerservice:AgentPool", **_given(SPOT, {"count": 1}))
    azure.make("containerservice:AgentPool", **SPOT)
    assert [event.kind for event in azure.store.events()].count("quota-exceeded") == 1


def test_a_subnet_of_another_group_is_taken_to_be_there(tmp_path: Path) -> None:
    """A subnet of a network that the fake cloud does not have is assumed to exist."""
    azure = Azure(tmp_path)
    azure.make("resources:ResourceGroup", resourceGroupName="train")
    elsewhere = SUBNET.replace(GROUP, "/subscriptions/other/resourceGroups/shared")
    made = azure.make(
        "containerservice:ManagedCluster",
        resourceGroupName="train",
        resourceName="train",
        dnsPrefix="train",
        identity={"type": "SystemAssigned"},
        agentPoolProfiles=[_given(SYSTEM, {"vnetSubnetID": elsewhere})],
    )
    assert made.id == CLUSTER
