"""Who makes a difference between the state and what exists."""

from typing import Any

import pytest

from ebbtide.analysis.drift.differences import ReadResource, differences_of
from ebbtide.declaration.providers import schema
from ebbtide.declaration.providers.constraints import makers_of

GKE_POOL = "gcp:container/nodePool:NodePool"
AKS_POOL = "azure-native:containerservice:AgentPool"
AKS_CLUSTER = "azure-native:containerservice:ManagedCluster"
QUEUE = "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue"


def _makers(
    token: str, old: dict[str, Any], new: dict[str, Any], inputs: dict[str, Any] | None = None
) -> dict[str, str]:
    """The maker of each difference, by path; the program sets all that is in the state, unless given."""
    resource = ReadResource("urn", token, "id", old if inputs is None else inputs, old, new, new)
    return {item.path: item.maker for item in differences_of(resource)}


@pytest.mark.parametrize(
    ("token", "old", "new", "makers"),
    [
        (GKE_POOL, {"nodeCount": 1, "autoscaling": {}}, {"nodeCount": 3, "autoscaling": {}}, "person"),
        (
            GKE_POOL,
            {"nodeCount": 1, "autoscaling": {"totalMaxNodeCount": 4}},
            {"nodeCount": 3, "autoscaling": {"totalMaxNodeCount": 4}},
            "autoscaler",
        ),
        (
            AKS_POOL,
            {"count": 1, "enableAutoScaling": True},
            {"count": 3, "enableAutoScaling": True},
            "autoscaler",
        ),
        (AKS_POOL, {"count": 1}, {"count": 3}, "person"),
        (AKS_POOL, {"mode": "User"}, {"mode": "User", "osSKU": "Ubuntu"}, "cloud"),
        (AKS_POOL, {"mode": "User"}, {"mode": "User", "osSKU": "AzureLinux"}, "person"),
        (AKS_POOL, {"mode": "User"}, {"mode": "User", "nodeImageVersion": "2"}, "cloud"),
        (GKE_POOL, {"version": "1.34"}, {"version": "1.35"}, "person"),
        ("command:local:Command", {"create": "a"}, {"create": "b"}, "person"),
    ],
)
def test_the_maker_of_a_difference(token: str, old: dict[str, Any], new: dict[str, Any], makers: str) -> None:
    """Node counts are the autoscaler's only while it is enabled, and defaults the cloud's only if they are
    those of its table; the rest of what a program can set is a person's."""
    assert set(_makers(token, old, new).values()) == {makers}


def test_an_upgrade_of_an_undeclared_version_is_the_clouds() -> None:
    """A version that the program omits follows the release channel."""
    assert _makers(GKE_POOL, {"version": "1.34"}, {"version": "1.35"}, {}) == {"version": "cloud"}


_OF_CLUSTER: dict[str, dict[str, Any]] = {
    "anonymousAuthenticationConfig": {"mode": "ENABLED"},
    "enterpriseConfig": {"desiredTier": "STANDARD"},
    "nodePoolDefaults": {"nodeConfigDefaults": {"loggingVariant": "DEFAULT"}},
    "podAutoscaling": {"hpaProfile": "PERFORMANCE"},
    "securityPostureConfig": {"mode": "BASIC"},
}
_BY_HAND: dict[str, dict[str, Any]] = {
    "anonymousAuthenticationConfig": {"mode": "LIMITED"},
    "enterpriseConfig": {"desiredTier": "ENTERPRISE"},
    "nodePoolDefaults": {"nodeConfigDefaults": {"loggingVariant": "MAX_THROUGHPUT"}},
    "podAutoscaling": {"hpaProfile": "NONE"},
    "securityPostureConfig": {"mode": "DISABLED"},
}


@pytest.mark.parametrize("name", _OF_CLUSTER)
def test_a_new_default_is_the_clouds_and_a_change_of_it_a_persons(name: str) -> None:
    """GKE sets new properties on existing clusters; a person has set one that then gets another value."""
    token, default = "gcp:container/cluster:Cluster", {name: _OF_CLUSTER[name]}
    assert set(_makers(token, {}, default, {}).values()) == {"cloud"}
    assert set(_makers(token, default, {name: _BY_HAND[name]}, {}).values()) == {"person"}


def test_an_attribute_that_is_only_exported_is_the_clouds() -> None:
    """The SDK has the effective tier among the inputs, which no program can set."""
    old, new = ({"enterpriseConfig": {"clusterTier": tier}} for tier in ("STANDARD", "ENTERPRISE"))
    assert set(_makers("gcp:container/cluster:Cluster", old, new, {}).values()) == {"cloud"}


@pytest.mark.parametrize(
    ("old", "new", "maker"),
    [
        ({}, {"loggingVariant": "MAX_THROUGHPUT"}, "cloud"),
        ({}, {"kubeletConfig": {"maxParallelImagePulls": 5}}, "cloud"),
        (
            {"kubeletConfig": {"maxParallelImagePulls": 2}},
            {"kubeletConfig": {"maxParallelImagePulls": 5}},
            "cloud",
        ),
        (
            {"nodeImageConfigs": [{"image": "gke-1"}]},
            {"nodeImageConfigs": [{"image": "gke-2"}]},
            "cloud",
        ),
        ({"kubeletConfig": {}}, {"kubeletConfig": {"cpuCfsQuota": False}}, ""),
        (
            {"kubeletConfig": {"cpuCfsQuota": True}},
            {"kubeletConfig": {"cpuCfsQuota": False}},
            "person",
        ),
    ],
)
def test_what_the_cloud_fills_into_a_pool(old: dict[str, Any], new: dict[str, Any], maker: str) -> None:
    """Image, variant of logging and image pulls of an undeclared pool are GKE's; CPU limits that are switched
    off are a person's, unless they are those of an absent setting."""
    before, after = ({"nodeConfig": config} for config in (old, new))
    assert set(_makers(GKE_POOL, before, after, {}).values()) == ({maker} if maker else set())


def test_the_order_of_a_list_is_no_difference() -> None:
    """Items are compared by their key, and those that were added or removed are found."""
    old = {"nodeConfig": {"taints": [{"key": "a", "value": "1"}, {"key": "b", "value": "1"}]}}
    new = {"nodeConfig": {"taints": [{"key": "b", "value": "2"}, {"key": "c", "value": "1"}]}}
    assert _makers(GKE_POOL, old, new) == dict.fromkeys(
        ("nodeConfig.taints[0]", "nodeConfig.taints[1].value", "nodeConfig.taints[2]"), "person"
    )
    turned = {"nodeConfig": {"taints": old["nodeConfig"]["taints"][::-1]}}
    assert _makers(GKE_POOL, old, turned) == {}


def test_other_resources_in_a_list_are_not_the_resources() -> None:
    """A cluster's list of pools has those of other resources too, of which only its own are compared."""
    own = {"name": "system", "count": 1, "enableAutoScaling": True, "maxPods": 30}
    old = {"agentPoolProfiles": [own]}
    new = {"agentPoolProfiles": [{"name": "cpu", "count": 4}, own | {"count": 2, "maxPods": 50}]}
    assert _makers(AKS_CLUSTER, old, new) == {
        "agentPoolProfiles[0].count": "autoscaler",
        "agentPoolProfiles[0].maxPods": "person",
    }


def _queue(weight: str, manager: str, fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    managers: list[dict[str, Any]] = [
        {"manager": "pulumi-kubernetes-1", "fieldsV1": {"f:spec": {"f:cohortName": {}}}},
        {"manager": manager, "fieldsV1": fields},
    ]
    metadata: dict[str, Any] = {"name": "research", "resourceVersion": weight, "managedFields": managers}
    spec = {"fairSharing": {"weight": weight}, "groups": [{"name": "cpu", "quota": weight}]}
    return {"metadata": metadata, "spec": spec, **more}


@pytest.mark.parametrize(
    ("manager", "maker"),
    [
        ("kueue", "controller"),
        ("manager", "controller"),
        ("clusterrole-aggregation-controller", "controller"),
        ("kubectl-edit", "person"),
    ],
)
@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("spec.fairSharing.weight", {"f:spec": {"f:fairSharing": {"f:weight": {}}}}),
        ("spec.groups[0].quota", {"f:spec": {"f:groups": {'k:{"name":"cpu"}': {"f:quota": {}}}}}),
        ("spec.groups[0].quota", {"f:spec": {"f:groups": {}}}),
    ],
)
def test_the_field_manager_makes_the_difference(
    manager: str, maker: str, path: str, fields: dict[str, Any]
) -> None:
    """A field of a Kubernetes object is a controller's if a known controller owns it."""
    old, new = _queue("1", manager, {}), _queue("2", manager, fields)
    assert _makers(QUEUE, old, new)[path] == maker


def test_status_and_bookkeeping_are_no_drift() -> None:
    """A status is the controllers', and versions of an object are not compared."""
    old = _queue("1", "kueue", {}, status={"pending": 1})
    new = {**old, "metadata": {**old["metadata"], "resourceVersion": "9"}, "status": {"pending": 2}}
    assert _makers(QUEUE, old, new) == {"status.pending": "controller"}


def test_a_removed_value_is_a_persons() -> None:
    """A removed label has no field manager any more."""
    old = {"metadata": {"labels": {"team": "research"}}}
    assert _makers("kubernetes:core/v1:Namespace", old, {"metadata": {"labels": {}}}) == {
        "metadata.labels.team": "person"
    }


@pytest.mark.parametrize("token", [GKE_POOL, AKS_POOL, AKS_CLUSTER, "gcp:container/cluster:Cluster", QUEUE])
def test_each_row_has_a_source_and_a_property_that_exists(token: str) -> None:
    """A row names a property of the SDK, and a condition that is known."""
    for row in makers_of(token):
        assert row.source
        assert row.known_maker or row.maker == "elsewhere"
        if row.known_maker:
            assert row.condition.partition(" ")[0] in ("", "undeclared", "new", "if", "manager")
        if not token.startswith("kubernetes:"):
            assert row.path.partition(".")[0] in schema.properties(token)
