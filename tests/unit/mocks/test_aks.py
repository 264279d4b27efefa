"""Each AKS component on Pulumi's mocks."""
# pyright: reportUntypedFunctionDecorator=false, reportUnknownMemberType=false

from typing import Any

import pulumi
import pytest
from pulumi_azure_native import managedidentity

from components import aks
from components.aks.monitoring import (
    LogCollection,
    LogCollectionArgs,
    LogStore,
    LogStoreArgs,
    MetricStore,
    MetricStoreArgs,
)
from ebbtide.declaration.model.addons import Logs
from ebbtide.declaration.model.cloud import Maintenance, MaintenanceWindow
from ebbtide.declaration.model.cluster import Cluster, Lifetime
from ebbtide.declaration.model.pool import Taint
from ebbtide.placement.derive import bucket_name
from tests.unit.mocks.mocked import AKS, AKS_CLOUD, Mocks, team


@pulumi.runtime.test
def test_network() -> pulumi.Output[None]:
    """Nodes stand in a subnet of the network."""
    args = aks.NetworkArgs(
        name="train", resource_group="train", location="eastus", network=AKS_CLOUD.network, labels={}
    )
    network = aks.Network("network", args)

    def check(subnet: str) -> None:
        assert subnet == "network-subnet-id"

    assert network.subnet is not None
    return network.subnet.apply(check)


def test_identity(mocks: Mocks) -> None:
    """The control plane is granted the nodes' subnet."""

    @pulumi.runtime.test
    def program() -> None:
        args = aks.IdentityArgs(
            name="train",
            resource_group="train",
            location="eastus",
            subscription=AKS_CLOUD.subscription,
            subnet="the-subnet",
            labels={},
        )
        aks.Identity("identity", args)

    program()
    (grant,) = mocks.of_type("azure-native:authorization:RoleAssignment")
    assert grant["scope"] == "the-subnet"


def _cluster(declaration: Cluster) -> None:
    args = aks.ClusterArgs(
        declaration=declaration,
        cloud=AKS_CLOUD,
        resource_group="train",
        subnet="subnet",
        identity="identity",
        labels={},
    )
    aks.Cluster("cluster", args)


def test_cluster(mocks: Mocks) -> None:
    """No local account exists, the one pool inside the cluster is the system pool, buckets can be mounted,
    and the engine refuses to delete a permanent cluster."""

    @pulumi.runtime.test
    def program() -> None:
        _cluster(AKS)

    program()
    (cluster,) = mocks.of_type("azure-native:containerservice:ManagedCluster")
    assert cluster["disableLocalAccounts"]
    assert [pool["name"] for pool in cluster["agentPoolProfiles"]] == ["system"]
    assert cluster["identity"]["userAssignedIdentities"] == ["identity"]
    assert cluster["storageProfile"]["blobCSIDriver"] == {"enabled": True}
    assert mocks.protected == {"cluster"}


def test_ephemeral_cluster(mocks: Mocks) -> None:
    """The engine may delete a cluster with a lifetime."""

    @pulumi.runtime.test
    def program() -> None:
        _cluster(AKS.model_copy(update={"lifetime": Lifetime(hours=8)}))

    program()
    assert mocks.protected == set()


def _node_pool(mocks: Mocks, name: str, **changes: Any) -> dict[str, Any]:
    """Return the inputs of a declared pool with changes."""

    @pulumi.runtime.test
    def program() -> None:
        declared = next(pool for pool in AKS.pools if pool.name == name)
        args = aks.NodePoolArgs(
            pool=declared.model_copy(update=changes),
            site=AKS.site,
            cluster="train",
            resource_group="train",
        )
        aks.NodePool(name, args)

    program()
    (inputs,) = mocks.of_type("azure-native:containerservice:AgentPool")
    return inputs


@pytest.mark.parametrize(
    ("name", "expected"), [("t4", ("Spot", "Delete", -1)), ("steady", (None, None, None))]
)
def test_node_pool_has_its_capacity(mocks: Mocks, name: str, expected: tuple[object, ...]) -> None:
    """A spot pool is spot at any price, with the taint of spot nodes; another pool is neither; both scale
    to zero."""
    inputs = _node_pool(mocks, name)
    keys = ("scaleSetPriority", "scaleSetEvictionPolicy", "spotMaxPrice")
    assert tuple(inputs.get(key) for key in keys) == expected
    is_spot = "kubernetes.azure.com/scalesetpriority=spot:NoSchedule" in inputs["nodeTaints"]
    assert is_spot == (name == "t4")
    assert inputs["minCount"] == 0


def test_node_pool_has_its_taints_and_pods(mocks: Mocks) -> None:
    """Nodes have the declared taint with its value and effect, and the declared number of pods."""
    taint = Taint(key="dedicated", value="training", effect="NoExecute")
    inputs = _node_pool(mocks, "cpu", taints=(taint,), max_pods_per_node=32)
    assert "dedicated=training:NoExecute" in inputs["nodeTaints"]
    assert inputs["maxPods"] == 32


def test_members(mocks: Mocks) -> None:
    """A member who is declared by object id can fetch the kubeconfig of this cluster alone."""
    member = "11111111-1111-1111-1111-111111111111"
    declaration = AKS.model_copy(update={"teams": (team(AKS).model_copy(update={"members": (member,)}),)})

    @pulumi.runtime.test
    def program() -> None:
        aks.Members("members", aks.MembersArgs(declaration=declaration, cloud=AKS_CLOUD, cluster="cluster"))

    program()
    (grant,) = mocks.of_type("azure-native:authorization:RoleAssignment")
    assert (grant["principalId"], grant["scope"]) == (member, "cluster")


@pulumi.runtime.test
def test_tenant() -> pulumi.Output[None]:
    """A team's pods act as an identity that exists by federation alone."""
    args = aks.TenantArgs(
        team=team(AKS),
        cluster="train",
        subscription=AKS_CLOUD.subscription,
        bucket=bucket_name(AKS, team(AKS)),
        resource_group="train",
        location="eastus",
        issuer="https://issuer.example",
        keep=False,
    )
    tenant = aks.Tenant("vision", args)
    (credential,) = [
        grant
        for grant in tenant.resources.grants
        if isinstance(grant, managedidentity.FederatedIdentityCredential)
    ]

    def check(subject: str) -> None:
        assert subject == "system:serviceaccount:vision:worker"

    return credential.subject.apply(check)


@pulumi.runtime.test
def test_topology() -> pulumi.Output[None]:
    """Every declared work pool is an agent pool, and the kubeconfig names the API server."""
    topology = aks.Topology("train", AKS)

    def check(kubeconfig: str) -> None:
        assert list(topology.pools) == ["cpu", "t4", "steady"]
        assert '"command": "kubelogin"' in kubeconfig

    return topology.kubeconfig.apply(check)


def test_deploy(mocks: Mocks) -> None:
    """The whole declaration is deployed: pools, queues and teams."""

    @pulumi.runtime.test
    def program() -> None:
        aks.deploy(AKS, aks.provider("azure", AKS))

    program()
    pools = mocks.of_type("azure-native:containerservice:AgentPool")
    assert {pool["agentPoolName"] for pool in pools} == {"cpu", "t4", "steady"}
    queues = mocks.of_type("kubernetes:kueue.x-k8s.io/v1beta2:LocalQueue")
    assert {queue["metadata"]["namespace"] for queue in queues} == {"vision", "default", "audio", "kubeflow"}


def test_registry(mocks: Mocks) -> None:
    """A registry has no admin account; members push, and nodes pull."""

    @pulumi.runtime.test
    def program() -> None:
        args = aks.RegistryArgs(
            name="trainvision",
            group_name="train-vision-images",
            subscription=AKS_CLOUD.subscription,
            resource_group="train",
            location="eastus",
            keep=False,
            members=("11111111-1111-1111-1111-111111111111",),
            kubelet="22222222-2222-2222-2222-222222222222",
        )
        aks.Registry("images", args)

    program()
    (registry,) = mocks.of_type("azure-native:containerregistry:Registry")
    assert registry["adminUserEnabled"] is False
    grants = mocks.of_type("azure-native:authorization:RoleAssignment")
    assert {grant["principalId"][:8] for grant in grants} == {"11111111", "22222222"}


def test_maintenance_schedules(mocks: Mocks) -> None:
    """Kubernetes and node images are upgraded in one window."""

    @pulumi.runtime.test
    def program() -> None:
        window = MaintenanceWindow(days=["saturday"], start="02:00", duration="6h")
        args = aks.MaintenanceSchedulesArgs(
            maintenance=Maintenance(window=window),
            cluster="train",
            resource_group="train",
            deleted_with=pulumi.ComponentResource("test:index:Cluster", "cluster"),
        )
        aks.MaintenanceSchedules("maintenance", args)

    program()
    schedules = mocks.of_type("azure-native:containerservice:MaintenanceConfiguration")
    assert {schedule["configName"] for schedule in schedules} == {
        "aksManagedAutoUpgradeSchedule",
        "aksManagedNodeOSUpgradeSchedule",
    }
    for schedule in schedules:
        assert schedule["maintenanceWindow"]["durationHours"] == 6
        assert schedule["maintenanceWindow"]["schedule"]["weekly"]["dayOfWeek"] == "Saturday"


@pulumi.runtime.test
def test_log_store() -> pulumi.Output[None]:
    """The cluster gets the rule's workspace."""
    store = LogStore(
        "logs", LogStoreArgs(logs=Logs(), name="train", resource_group="train", location="eastus")
    )

    def check(rule: str) -> None:
        assert rule == "logs-rule-id"
        assert list(store.addon_profiles) == ["omsagent"]

    return store.rule.apply(check)


def test_log_collection(mocks: Mocks) -> None:
    """The cluster is associated with the rule."""

    @pulumi.runtime.test
    def program() -> None:
        LogCollection(
            "collection", LogCollectionArgs(rule="the-rule", workspace="the-workspace", cluster="the-cluster")
        )

    program()
    (association,) = mocks.of_type("azure-native:monitor:DataCollectionRuleAssociation")
    assert (association["dataCollectionRuleId"], association["resourceUri"]) == ("the-rule", "the-cluster")


def test_metric_store(mocks: Mocks) -> None:
    """The cluster is associated with the rule that sends its metrics to the workspace."""

    @pulumi.runtime.test
    def program() -> None:
        args = MetricStoreArgs(name="train", resource_group="train", location="eastus", cluster="the-cluster")
        MetricStore("metrics", args)

    program()
    (rule,) = mocks.of_type("azure-native:monitor:DataCollectionRule")
    (destination,) = rule["destinations"]["monitoringAccounts"]
    assert destination["accountResourceId"] == "metrics-workspace-id"
    (association,) = mocks.of_type("azure-native:monitor:DataCollectionRuleAssociation")
    assert association["dataCollectionRuleId"] == "metrics-rule-id"
    assert association["resourceUri"] == "the-cluster"
