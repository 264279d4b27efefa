"""AKS's node pools: a case for each refusal, from its rule's source, and the nodes that come of a pool."""

from pathlib import Path
from typing import Any

import pytest

from ebbtide_rehearsal.cloud.azure.node_pools import RULES
from ebbtide_rehearsal.cloud.pools import pools
from ebbtide_rehearsal.cloud.provider import Created, RefusedError
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
    "count when the autoscaler is enabled": [
        (
            POOL,
            {"enableAutoScaling": False, "minCount": None, "maxCount": None},
            "Required parameter properties.count is missing (null).",
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


def _alone(azure: Azure, group: str, **inputs: Any) -> Created:
    """Make a cluster in a group of its own."""
    azure.make("resources:ResourceGroup", resourceGroupName=group)
    names = {"resourceGroupName": group, "resourceName": group, "dnsPrefix": group}
    return azure.make(
        "containerservice:ManagedCluster", **names, identity={"type": "SystemAssigned"}, **inputs
    )


def test_a_subnet_of_another_group_is_taken_to_be_there(tmp_path: Path) -> None:
    """A subnet of a network that the fake cloud does not have is assumed to exist."""
    elsewhere = SUBNET.replace(GROUP, "/subscriptions/other/resourceGroups/shared")
    profiles = [_given(SYSTEM, {"vnetSubnetID": elsewhere})]
    assert _alone(Azure(tmp_path), "train", agentPoolProfiles=profiles).id == CLUSTER


def test_a_size_that_the_region_lacks(tmp_path: Path) -> None:
    """AKS names the size."""
    profiles = [{"name": "system", "mode": "System", "vmSize": "Standard_ND96asr_v4", "count": 1}]
    with pytest.raises(RefusedError, match="The VM size of Standard_ND96asr_v4 is not allowed in your sub"):
        _alone(Azure(tmp_path), "north", location="norwaywest", agentPoolProfiles=profiles)


def test_the_last_system_pool_stays_one(tmp_path: Path) -> None:
    """A cluster keeps a system pool: it is neither deleted nor turned into another (Azure/AKS#1568)."""
    azure, first = Azure(tmp_path).with_cluster(), f"{CLUSTER}/agentPools/system"
    with pytest.raises(RefusedError, match="There has to be at least one agent pool"):
        azure.remove("containerservice:AgentPool", first)
    azure.make("containerservice:AgentPool", **POOL)
    with pytest.raises(RefusedError, match="Must define at least one system pool"):
        azure.remove("containerservice:AgentPool", first)
    second = _given(POOL, {"agentPoolName": "sys2", "mode": "System", "minCount": 1})
    made = azure.make("containerservice:AgentPool", **second)
    azure.remove("containerservice:AgentPool", first)
    with pytest.raises(RefusedError, match="Must define at least one system pool"):
        azure.change("containerservice:AgentPool", made, second, **_given(second, {"mode": "User"}))


@pytest.mark.parametrize(
    ("quota", "limit", "refused", "accepted", "says"),
    [
        # 1ChristianAlex/motordesk#14. The system pool has two machines of four vCPUs already.
        (
            "standardDSv5Family",
            20,
            _given(POOL, {"count": 2}),
            _given(POOL, {"count": 1}),
            "quota requested 16, remaining 12 for family standardDSv5Family",
        ),
        (
            "cores",
            8,
            _given(POOL, {"count": 1}),
            _given(SPOT, {"count": 1}),
            "left for location eastus",
        ),
        ("lowPriorityCores", 0, _given(SPOT, {"count": 1}), SPOT, "for family lowPriorityCores"),
    ],
)
def test_quotas(
    tmp_path: Path, quota: str, limit: int, refused: dict[str, Any], accepted: dict[str, Any], says: str
) -> None:
    """Initial nodes count against the family's and the region's quota, those on spot against
    `lowPriorityCores` alone, and a pool that starts empty against none."""
    azure = Azure(tmp_path).with_cluster()
    azure.store.inject(InjectedFault(QUOTA, quota, details={"limit": limit}))
    with pytest.raises(RefusedError, match=says):
        azure.make("containerservice:AgentPool", **refused)
    azure.make("containerservice:AgentPool", **accepted)
    assert [event.kind for event in azure.store.events()].count("quota-exceeded") == 1


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"availabilityZones": ["1", "3"]}, {"zones": ("eastus-1", "eastus-3")}),
        ({}, {"zones": ("0",), "minimum": 0, "maximum": 10, "initial": 0}),
        # azure-aks-docs use-amd-gpus.md, 2025-06: neither driver nor plugin
        (
            {"vmSize": "Standard_ND96isr_MI300X_v5", "gpuProfile": {"driver": "None"}},
            {"accelerators": {"amd.com/gpu": "8"}, "driver_installed": False},
        ),
        # azure-aks-docs use-arm64-vms.md, 2025-02: labelled as Kubernetes does, and not tainted
        ({"vmSize": "Standard_D8ps_v6", "nodeTaints": []}, {"taints": ()}),
        (
            {"minCount": None, "maxCount": None, "enableAutoScaling": False, "count": 3},
            {"autoscaled": False, "minimum": 3, "maximum": 3, "initial": 3},
        ),
    ],
)
def test_nodes_of_a_pool(tmp_path: Path, changes: dict[str, Any], expected: dict[str, Any]) -> None:
    """Zones, counts, accelerators and taints of a pool's nodes follow from its inputs."""
    azure = Azure(tmp_path).with_cluster()
    azure.make("containerservice:AgentPool", **_given(POOL, changes))
    (pool,) = (node_pool for node_pool in pools(azure.store, CLUSTER) if node_pool.name == "work")
    assert {name: getattr(pool, name) for name in expected} == expected
