"""AKS clusters: what is refused, what comes of one, and how it is reached."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide.placement import NodeTaint
from ebbtide_rehearsal.cloud.azure.clusters import RULES
from ebbtide_rehearsal.cloud.azure.seeding import seed_cluster, seed_subnet
from ebbtide_rehearsal.cloud.pools import pools
from ebbtide_rehearsal.cloud.provider import RefusedError
from ebbtide_rehearsal.cloud.store import QUOTA, InjectedFault
from rehearsal.tests.unit.azure_cloud import (
    CLUSTER,
    GROUP,
    MANAGED_CLUSTER,
    POOL,
    SPOT,
    SUBNET,
    SUBSCRIPTION,
    SYSTEM,
    Azure,
)

_NETWORK = MANAGED_CLUSTER["networkProfile"]
_IDENTITY = {
    "type": "UserAssigned",
    "userAssignedIdentities": [f"{GROUP}/providers/M.I/userAssignedIdentities/x"],
}
_WORKSPACE = f"{GROUP}/providers/Microsoft.OperationalInsights/workspaces/none"

CASES: dict[str, tuple[dict[str, Any], str]] = {
    "existing identity": ({"identity": _IDENTITY}, 'Code="ResourceNotFound"'),
    "disabled local accounts need Entra ID": (
        {"aadProfile": None},
        "Disabling local accounts is only allowed",
    ),
    "Azure RBAC needs Entra ID": ({"enableRBAC": False}, "aadProfile.enableAzureRBAC is invalid"),
    "cost analysis needs paid tier": (
        {"metricsProfile": {"costAnalysis": {"enabled": True}}},
        "it needs the tier Standard or Premium",
    ),
    "new node resource group": ({"nodeResourceGroup": "train"}, "the resource group train already exists"),
    "existing workspace": (
        {
            "addonProfiles": {
                "omsagent": {"enabled": True, "config": {"logAnalyticsWorkspaceResourceID": _WORKSPACE}}
            }
        },
        "was not found",
    ),
    "services outside of existing subnets": (
        {"networkProfile": {**_NETWORK, "serviceCidr": "10.224.0.0/20", "dnsServiceIP": "10.224.0.10"}},
        "The specified service CIDR 10.224.0.0/20 is conflicted with an existing subnet CIDR 10.224.0.0/16",
    ),
    "pods outside of other ranges": (
        {"networkProfile": {**_NETWORK, "podCidr": "10.0.0.0/14"}},
        "the pod CIDR 10.0.0.0/14 overlaps 10.0.0.0/16",
    ),
}
"""What is asked for over a good cluster, by the rule that it breaks, and what AKS says."""

ELSEWHERE = {
    "running cluster",
    "no new pool through the cluster",
    "fixed OIDC issuer",
    "fixed API server and disk encryption",
    "sufficient cluster quota",
}


def test_every_rule_has_a_case() -> None:
    """No rule of clusters goes without a case, and each says where it was read."""
    assert {rule.name for rule in RULES} == {*CASES, *ELSEWHERE}
    assert all(rule.source for rule in RULES)


@pytest.mark.parametrize(("inputs", "says"), [pytest.param(*case, id=name) for name, case in CASES.items()])
def test_a_cluster_that_breaks_a_rule_is_not_made(tmp_path: Path, inputs: dict[str, Any], says: str) -> None:
    """AKS's own sentence comes back, and no control plane is started."""
    azure = Azure(tmp_path).with_network()
    before = azure.ids()
    with pytest.raises(RefusedError) as refused:
        azure.make_cluster(**inputs)
    assert says in str(refused.value)
    assert azure.ids() == before
    assert azure.planes.running == {}


def test_a_subscription_with_clusters_enough(tmp_path: Path) -> None:
    """The quota for clusters is one of its own (azure-aks-docs, quotas-skus-regions)."""
    azure = Azure(tmp_path).with_cluster()
    azure.store.inject(InjectedFault(QUOTA, "managedClusters", details={"limit": 1}))
    with pytest.raises(RefusedError, match="Maximum allowed: 1, Current usage: 1, Additional requested: 1"):
        azure.make_cluster(resourceName="second", agentPoolProfiles=[{**SYSTEM, "vnetSubnetID": None}])


def test_what_comes_of_a_cluster(tmp_path: Path) -> None:
    """A control plane, the system pool, and the answers that a program goes on with."""
    azure = Azure(tmp_path).with_network()
    made = azure.make_cluster()
    state: dict[str, Any] = dict(made.state)
    assert list(azure.planes.running) == [made.id] == [CLUSTER]
    assert state["nodeResourceGroup"] == "MC_train_train_eastus"
    assert state["fqdn"].endswith(".hcp.eastus.azmk8s.io")
    assert state["oidcIssuerProfile"]["issuerURL"].startswith("https://eastus.oic.prod-aks.azure.com/")
    ((name, identity),) = state["identity"]["userAssignedIdentities"].items()
    known = azure.store.get("azure-native", name)
    assert known is not None
    assert identity == {key: known.state[key] for key in ("clientId", "principalId")}
    (pool,) = pools(azure.store, made.id)
    assert (pool.name, pool.minimum, pool.maximum, pool.initial) == ("system", 2, 4, 2)
    assert {event.kind for event in azure.store.events()} >= {"cluster-created", "node-pool-created"}


def test_the_system_pool_changes_through_the_cluster(tmp_path: Path) -> None:
    """An update of the cluster can change the system pool's maximum, but not its machine, and adds no
    pool."""
    azure = Azure(tmp_path).with_network()
    made = azure.make_cluster()

    def change(*profiles: dict[str, Any], **others: Any) -> None:
        inputs = {**MANAGED_CLUSTER, "agentPoolProfiles": list(profiles), **others}
        azure.change("containerservice:ManagedCluster", made, MANAGED_CLUSTER, **inputs)

    change({**SYSTEM, "maxCount": 9})
    assert [pool.maximum for pool in pools(azure.store, made.id)] == [9]
    with pytest.raises(RefusedError, match=r"Changing property 'agentPoolProfile\.vmSize' is not allowed"):
        change({**SYSTEM, "vmSize": "Standard_D8s_v5"})
    with pytest.raises(RefusedError, match="A new agent pool was introduced"):
        change(SYSTEM, {**SYSTEM, "name": "second"})
    off: dict[str, Any] = {"oidcIssuerProfile": {"enabled": False}, "securityProfile": {}}
    with pytest.raises(RefusedError, match="OIDC issuer feature cannot be disabled"):
        change(SYSTEM, **off)
    with pytest.raises(RefusedError, match=r"apiServerAccessProfile\.enablePrivateCluster' is not allowed"):
        change(SYSTEM, apiServerAccessProfile={"enablePrivateCluster": True})
    with pytest.raises(RefusedError, match=r"diskEncryptionSetID' is not allowed"):
        change(SYSTEM, diskEncryptionSetID=f"{GROUP}/providers/Microsoft.Compute/diskEncryptionSets/keys")


def test_a_stopped_cluster_can_be_deleted_alone(tmp_path: Path) -> None:
    """Changes of it and of its pools are refused, and the deletion of a pool."""
    azure = Azure(tmp_path).with_network()
    made = azure.make_cluster()
    pool = azure.make("containerservice:AgentPool", **POOL)
    cluster = azure.store.get("azure-native", made.id)
    assert cluster is not None
    azure.store.put(cluster.having(powerState={"code": "Stopped"}))
    stopped = r"Power State\(Stopped\), .* cannot be performed"
    with pytest.raises(RefusedError, match=stopped):
        azure.change("containerservice:ManagedCluster", made, MANAGED_CLUSTER, **MANAGED_CLUSTER)
    with pytest.raises(RefusedError, match=stopped):
        azure.make("containerservice:AgentPool", **POOL | {"agentPoolName": "second"})
    with pytest.raises(RefusedError, match=stopped):
        azure.remove("containerservice:AgentPool", pool.id)
    azure.remove("containerservice:ManagedCluster", made.id)
    assert azure.planes.running == {}


def test_a_list_of_networks_that_is_left_out_leaves_the_old_one(tmp_path: Path) -> None:
    """An empty one opens the server again; none at all changes nothing."""
    azure = Azure(tmp_path).with_network()
    office: dict[str, Any] = {
        **MANAGED_CLUSTER,
        "apiServerAccessProfile": {"authorizedIPRanges": ["203.0.113.0/24"]},
    }
    made = azure.make("containerservice:ManagedCluster", **office)
    after = azure.change("containerservice:ManagedCluster", made, office, **MANAGED_CLUSTER)
    assert after["apiServerAccessProfile"] == {"authorizedIPRanges": ["203.0.113.0/24"]}


def test_the_nodes_of_a_spot_pool(tmp_path: Path) -> None:
    """AKS's own labels and taint, the machine as the catalog has it, and the price of spot."""
    azure = Azure(tmp_path).with_cluster()
    bare = {**SPOT, "nodeLabels": {"mine": "yes"}, "nodeTaints": ["nvidia.com/gpu=present:NoSchedule"]}
    made = azure.make(
        "containerservice:AgentPool",
        **bare | {"vmSize": "Standard_NC4as_T4_v3", "scaleSetEvictionPolicy": "Deallocate"},
    )
    assert made.state["nodeLabels"] == {"mine": "yes", "kubernetes.azure.com/scalesetpriority": "spot"}
    (pool,) = (node_pool for node_pool in pools(azure.store, CLUSTER) if node_pool.name == "work")
    expected = {
        "mine": "yes",
        "accelerator": "nvidia",
        "agentpool": "work",
        "kubernetes.azure.com/agentpool": "work",
        "kubernetes.azure.com/cluster": "MC_train_train_eastus",
        "kubernetes.azure.com/mode": "user",
        "kubernetes.azure.com/scalesetpriority": "spot",
        "node.kubernetes.io/instance-type": "Standard_NC4as_T4_v3",
        "topology.kubernetes.io/region": "eastus",
    }
    assert expected.items() <= pool.labels.items()
    assert pool.taints == (
        NodeTaint("nvidia.com/gpu", "present", "NoSchedule"),
        NodeTaint("kubernetes.azure.com/scalesetpriority", "spot", "NoSchedule"),
    )
    assert pool.accelerator == ("nvidia-t4", 1)
    assert pool.accelerator_resource == "nvidia.com/gpu"
    assert pool.allocatable["cpu"] == "3860m"
    assert (pool.capacity, pool.deallocates, pool.driver_installed) == ("spot", True, False)
    assert 0 < (pool.hourly or 0) < 0.3
    assert (pool.minimum, pool.maximum, pool.initial) == (0, 10, 0)


def test_the_nodes_of_amd_gpus(tmp_path: Path) -> None:
    """AKS names the vendor in its label, and installs neither driver nor plugin (azure-aks-docs
    use-amd-gpus.md, 2025-06)."""
    azure = Azure(tmp_path).with_cluster()
    machine = {"vmSize": "Standard_ND96isr_MI300X_v5", "gpuProfile": {"driver": "None"}}
    azure.make("containerservice:AgentPool", **POOL | machine)
    (pool,) = (node_pool for node_pool in pools(azure.store, CLUSTER) if node_pool.name == "work")
    assert (pool.labels["accelerator"], pool.accelerators) == ("amd", {"amd.com/gpu": "8"})
    assert not pool.driver_installed


def test_the_nodes_of_an_arm_pool(tmp_path: Path) -> None:
    """AKS labels Arm nodes as Kubernetes does, and taints none (azure-aks-docs use-arm64-vms.md, 2025-02)."""
    azure = Azure(tmp_path).with_cluster()
    azure.make("containerservice:AgentPool", **POOL | {"vmSize": "Standard_D8ps_v6", "nodeTaints": []})
    (pool,) = (node_pool for node_pool in pools(azure.store, CLUSTER) if node_pool.name == "work")
    assert (pool.labels["kubernetes.io/arch"], pool.taints) == ("arm64", ())


def test_zones_of_nodes(tmp_path: Path) -> None:
    """Zones are distinguished by region and number; without zones there is only `0`."""
    azure = Azure(tmp_path).with_cluster()
    azure.make("containerservice:AgentPool", **POOL, availabilityZones=["1", "3"])
    zones = {pool.name: pool.zones for pool in pools(azure.store, CLUSTER)}
    assert zones == {"system": ("0",), "work": ("eastus-1", "eastus-3")}


def test_a_fixed_count(tmp_path: Path) -> None:
    """A pool without the autoscaler has exactly its declared count of nodes."""
    azure = Azure(tmp_path).with_cluster()
    fixed = {key: value for key, value in POOL.items() if key not in ("minCount", "maxCount")}
    azure.make("containerservice:AgentPool", **fixed | {"enableAutoScaling": False, "count": 3})
    (pool,) = (node_pool for node_pool in pools(azure.store, CLUSTER) if node_pool.name == "work")
    assert (pool.autoscaled, pool.minimum, pool.maximum, pool.initial) == (False, 3, 3, 3)


def test_a_deleted_pool_is_forgotten_and_a_cluster_takes_all(tmp_path: Path) -> None:
    """Nodes of a deleted pool are forgotten, and a deleted cluster removes all of its resources."""
    azure = Azure(tmp_path).with_cluster()
    made = azure.make("containerservice:AgentPool", **POOL)
    azure.remove("containerservice:AgentPool", made.id)
    assert [pool.name for pool in pools(azure.store, CLUSTER)] == ["system"]
    azure.make("containerservice:AgentPool", **POOL)
    with pytest.raises(RefusedError, match="is in use by"):
        azure.remove("network:Subnet", SUBNET)
    azure.remove("containerservice:ManagedCluster", CLUSTER)
    assert pools(azure.store, CLUSTER) == []
    assert not [identity for identity in azure.ids() if "managedClusters" in identity]
    azure.remove("network:Subnet", SUBNET)


_ARGUMENTS: dict[str, Any] = {"resourceGroupName": "train", "resourceName": "train"}
_CREDENTIALS = "azure-native:containerservice:listManagedCluster{}Credentials"


def test_a_user_gets_where_the_server_is(tmp_path: Path) -> None:
    """The kubeconfig leads to the control plane, and asks kubelogin for a token."""
    azure = Azure(tmp_path).with_cluster()
    answer: Any = azure.provider.invoke(_CREDENTIALS.format("User"), _ARGUMENTS)
    kubeconfig = json.loads(base64.b64decode(answer["kubeconfigs"][0]["value"]))
    assert kubeconfig["clusters"][0]["cluster"] == {
        "server": "https://aks-0.test:443",
        "certificate-authority-data": "Q0E=",
    }
    assert kubeconfig["users"][0]["user"]["exec"]["command"] == "kubelogin"


def test_no_administrator_gets_into_a_cluster_without_local_accounts(tmp_path: Path) -> None:
    """Administrator credentials are refused with AKS's error if local accounts are disabled
    (Azure/bicep#11601)."""
    azure = Azure(tmp_path).with_cluster()
    with pytest.raises(RefusedError, match="Getting static credential is not allowed"):
        azure.provider.invoke(_CREDENTIALS.format("Admin"), _ARGUMENTS)


def test_credentials_of_no_cluster(tmp_path: Path) -> None:
    """Azure does not know it."""
    with pytest.raises(RefusedError, match=r"Microsoft.ContainerService/managedClusters/train"):
        Azure(tmp_path).provider.invoke(_CREDENTIALS.format("User"), _ARGUMENTS)


def test_a_cluster_that_was_there_before(tmp_path: Path) -> None:
    """An existing cluster can be looked up and accepts pools, and is not a resource of the stack."""
    azure = Azure(tmp_path)
    seed_subnet(azure.store, azure.planes, SUBNET, location="eastus", prefix="10.224.0.0/16")
    identity = seed_cluster(
        azure.store,
        azure.planes,
        subscription=SUBSCRIPTION,
        resource_group="train",
        name="train",
        location="eastus",
    )
    answer: Any = azure.provider.invoke("azure-native:containerservice:getManagedCluster", _ARGUMENTS)
    assert identity == answer["id"] == CLUSTER
    assert answer["oidcIssuerProfile"]["issuerURL"]
    azure.make("containerservice:AgentPool", **POOL)
    assert [pool.name for pool in pools(azure.store, CLUSTER)] == ["system", "work"]
    assert all(
        not resource.urn for resource in azure.store.resources("azure-native") if "work" not in resource.id
    )
