"""Each AKS component on Pulumi's mocks."""
# pyright: reportUntypedFunctionDecorator=false, reportUnknownMemberType=false

from typing import Any

import pulumi
from pulumi_azure_native import managedidentity

from components import aks
from ebbtide.model import Maintenance, MaintenanceWindow
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


@pulumi.runtime.test
def test_cluster() -> pulumi.Output[None]:
    """No local account exists, and the one pool inside the cluster is the system pool."""
    args = aks.ClusterArgs(
        declaration=AKS, cloud=AKS_CLOUD, resource_group="train", subnet="subnet", identity="identity"
    )
    cluster = aks.Cluster("cluster", args).resource

    def check(values: list[Any]) -> None:
        disabled, name, identities = values
        assert disabled
        assert name == "system"
        assert identities == ["identity"]

    pool, identity = cluster.agent_pool_profiles[0], cluster.identity
    return pulumi.Output.all(
        cluster.disable_local_accounts, pool.name, identity.user_assigned_identities
    ).apply(check)


@pulumi.runtime.test
def test_node_pool() -> pulumi.Output[None]:
    """A spot pool has the taint of spot nodes and scales to zero."""
    args = aks.NodePoolArgs(
        pool=next(pool for pool in AKS.pools if pool.name == "t4"),
        site=AKS.site,
        cluster="train",
        resource_group="train",
    )
    pool = aks.NodePool("t4", args).resource

    def check(values: list[Any]) -> None:
        taints, minimum = values
        assert "kubernetes.azure.com/scalesetpriority=spot:NoSchedule" in taints
        assert minimum == 0

    return pulumi.Output.all(pool.node_taints, pool.min_count).apply(check)


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
