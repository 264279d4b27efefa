"""Each AKS component on Pulumi's mocks."""
# pyright: reportUntypedFunctionDecorator=false, reportUnknownMemberType=false

from typing import Any

import pulumi
from pulumi_azure_native import managedidentity

from components import aks
from components.aks.identity import KEY_VAULT_CRYPTO_SERVICE_ENCRYPTION_USER
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
from ebbtide.declaration.model.cluster import Cluster
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
    args = aks.IdentityArgs(
        name="train",
        resource_group="train",
        location="eastus",
        subscription=AKS_CLOUD.subscription,
        subnet="the-subnet",
        labels={},
    )
    mocks.run(lambda: aks.Identity("identity", args))
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
    mocks.run(lambda: _cluster(AKS))
    (cluster,) = mocks.of_type("azure-native:containerservice:ManagedCluster")
    assert cluster["disableLocalAccounts"]
    assert [pool["name"] for pool in cluster["agentPoolProfiles"]] == ["system"]
    assert cluster["identity"]["userAssignedIdentities"] == ["identity"]
    assert cluster["storageProfile"]["blobCSIDriver"] == {"enabled": True}
    assert mocks.protected == {"cluster"}


def _node_pool(mocks: Mocks, name: str, **changes: Any) -> dict[str, Any]:
    """Return the inputs of a declared pool with changes."""
    declared = next(pool for pool in AKS.pools if pool.name == name)
    args = aks.NodePoolArgs(
        pool=declared.model_copy(update=changes),
        site=AKS.site,
        cluster="train",
        resource_group="train",
    )
    mocks.run(lambda: aks.NodePool(name, args))
    (inputs,) = mocks.of_type("azure-native:containerservice:AgentPool")
    return inputs


def test_node_pool_has_its_taints_and_pods(mocks: Mocks) -> None:
    """Nodes have the declared taint with its value and effect, and the declared number of pods."""
    taint = Taint(key="dedicated", value="training", effect="NoExecute")
    inputs = _node_pool(mocks, "cpu", taints=(taint,), max_pods_per_node=32)
    assert "dedicated=training:NoExecute" in inputs["nodeTaints"]
    assert inputs["maxPods"] == 32


def test_capacity_reservation(mocks: Mocks) -> None:
    """Machines of the pool's type are reserved, up to its maximum."""
    declared = next(pool for pool in AKS.resolved_pools if pool.name == "cpu")
    args = aks.CapacityReservationArgs(
        pool=declared, cluster="train", resource_group="train", location="eastus", labels={}
    )
    mocks.run(lambda: aks.CapacityReservation("reservation", args))
    (reservation,) = mocks.of_type("azure-native:compute:CapacityReservation")
    assert reservation["sku"] == {"name": declared.machine_type, "capacity": declared.max_nodes}


def test_members(mocks: Mocks) -> None:
    """A member who is declared by object id can fetch the kubeconfig of this cluster alone."""
    member = "11111111-1111-1111-1111-111111111111"
    declaration = AKS.model_copy(update={"teams": (team(AKS).model_copy(update={"members": (member,)}),)})
    mocks.run(
        lambda: aks.Members(
            "members", aks.MembersArgs(declaration=declaration, cloud=AKS_CLOUD, cluster="cluster")
        )
    )
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
        group_name=None,
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


def test_registry(mocks: Mocks) -> None:
    """A registry has no admin account; members push, and nodes pull."""
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
    mocks.run(lambda: aks.Registry("images", args))
    (registry,) = mocks.of_type("azure-native:containerregistry:Registry")
    assert registry["adminUserEnabled"] is False
    grants = mocks.of_type("azure-native:authorization:RoleAssignment")
    assert {grant["principalId"][:8] for grant in grants} == {"11111111", "22222222"}


def test_vault_key(mocks: Mocks) -> None:
    """The identity of stored data may use the keys of the vault."""
    args = aks.VaultKeyArgs(
        name="train-vision-bucket-key",
        resource_group="train",
        location="eastus",
        subscription=AKS_CLOUD.subscription,
        key="https://ours.vault.azure.net/keys/data",
        vault="the-vault",
        keep=True,
        labels={},
    )
    mocks.run(lambda: aks.VaultKey("key", args))
    (grant,) = mocks.of_type("azure-native:authorization:RoleAssignment")
    assert grant["scope"] == "the-vault"
    assert grant["roleDefinitionId"].endswith(KEY_VAULT_CRYPTO_SERVICE_ENCRYPTION_USER)


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
    mocks.run(
        lambda: LogCollection(
            "collection", LogCollectionArgs(rule="the-rule", workspace="the-workspace", cluster="the-cluster")
        )
    )
    (association,) = mocks.of_type("azure-native:monitor:DataCollectionRuleAssociation")
    assert (association["dataCollectionRuleId"], association["resourceUri"]) == ("the-rule", "the-cluster")


def test_metric_store(mocks: Mocks) -> None:
    """The cluster is associated with the rule that sends its metrics to the workspace."""
    args = MetricStoreArgs(name="train", resource_group="train", location="eastus", cluster="the-cluster")
    mocks.run(lambda: MetricStore("metrics", args))
    (rule,) = mocks.of_type("azure-native:monitor:DataCollectionRule")
    (destination,) = rule["destinations"]["monitoringAccounts"]
    assert destination["accountResourceId"] == "metrics-workspace-id"
    (association,) = mocks.of_type("azure-native:monitor:DataCollectionRuleAssociation")
    assert association["dataCollectionRuleId"] == "metrics-rule-id"
    assert association["resourceUri"] == "the-cluster"
