"""The AKS cluster and its kubeconfig."""

import base64
import json
from typing import Any

import pytest
import yaml

from components.aks.cluster import CredentialsError, kubeconfig_text, server_and_authority
from ebbtide.analysis.preview.build_report import preview_of
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.analysis.recording.values import Secret
from tests.declarations import AKS, changed, only
from tests.synth import synth

CLUSTER = "azure-native:containerservice:ManagedCluster"
GRANT = "azure-native:authorization:RoleAssignment"
ROLES = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/providers/Microsoft.Authorization/roleDefinitions"
)
SUBNET = (
    "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/r"
    "/providers/Microsoft.Network/virtualNetworks/v/subnets/n"
)
TAGS = {"ebbtide-cluster": "train", "ebbtide-owner": "vision-team"}


def cluster(recording: Recording) -> Any:
    """Inputs of the one cluster."""
    (resource,) = recording.of_type(CLUSTER)
    return resource.inputs


def cloud(**more: Any) -> dict[str, Any]:
    """The declaration with other fields of its cloud."""
    return changed(AKS, cloud=AKS["cloud"] | more)


def given(resource: Resource) -> Any:
    """Inputs of a resource."""
    return resource.inputs


def waited_for(recording: Recording, resource: Resource) -> set[str]:
    """Logical names of what a resource waits for."""
    return {recording[urn].name for urn in resource.dependencies}


def test_only_entra_lets_anyone_in() -> None:
    """There are no local accounts, and no command that is run around the API server's guard."""
    inputs = cluster(synth(AKS))
    assert inputs["disableLocalAccounts"] is True
    assert inputs["enableRBAC"] is True
    assert inputs["aadProfile"] == {"managed": True, "enableAzureRBAC": True, "adminGroupObjectIDs": []}
    assert inputs["apiServerAccessProfile"] == {"authorizedIPRanges": [], "disableRunCommand": True}


@pytest.mark.parametrize(("tier", "enabled"), [("free", False), ("standard", True)])
def test_costs_are_split_by_namespace_on_a_paid_tier(tier: str, enabled: bool) -> None:  # noqa: FBT001
    """Cost analysis is on, except on the tier that does not have it."""
    profile = cluster(synth(cloud(tier=tier)))["metricsProfile"]
    assert profile == {"costAnalysis": {"enabled": enabled}}


ZONE = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/dns/providers/Microsoft.Network"
    "/privateDnsZones/privatelink.eastus.azmk8s.io"
)


@pytest.mark.parametrize(("zone", "public"), [("system", False), ("none", True), (ZONE, False)])
def test_a_private_api_server_has_its_name_in_a_zone(zone: str, public: bool) -> None:  # noqa: FBT001
    """A private API server has a public name only without a private DNS zone, and the kubeconfig uses that
    name then."""
    recording = synth(cloud(access={"private": True, "privateDnsZone": zone}))
    assert cluster(recording)["apiServerAccessProfile"] == {
        "disableRunCommand": True,
        "enablePrivateCluster": True,
        "privateDNSZone": zone,
        "enablePrivateClusterPublicFQDN": public,
    }
    (call,) = [call for call in recording.invocations if "UserCredentials" in call.token]
    assert call.args.get("serverFqdn") == ("public" if public else None)


def test_the_identity_may_use_a_declared_private_dns_zone() -> None:
    """The identity gets the role that links the zone to the network, before the cluster is created."""
    recording = synth(cloud(access={"private": True, "privateDnsZone": ZONE}, network={"subnet": SUBNET}))
    grants = {grant.name: grant for grant in recording.of_type(GRANT)}
    zone = grants["train-identity-dns-zone"]
    assert zone.inputs["scope"] == ZONE
    assert str(zone.inputs["roleDefinitionId"]).endswith("b12aa53e-6015-4669-85d0-8515ebb3ae7f")
    assert grants["train-identity-network"].inputs["scope"] == SUBNET.partition("/subnets/")[0]
    (made,) = recording.of_type(CLUSTER)
    assert {"train-identity-dns-zone", "train-identity-network"} <= waited_for(recording, made)


_OURS = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/keys/providers"
VAULT = f"{_OURS}/Microsoft.KeyVault/vaults/ours"
SET = f"{_OURS}/Microsoft.Compute/diskEncryptionSets/ours"
KEY = "https://ours.vault.azure.net/keys/secrets/0123"


def test_declared_keys_encrypt_secrets_and_disks() -> None:
    """The cluster's identity may use them before the cluster is made."""
    recording = synth(cloud(keys={"secrets": KEY, "vault": VAULT, "disks": SET}))
    inputs = cluster(recording)
    assert inputs["securityProfile"] == {
        "workloadIdentity": {"enabled": True},
        "azureKeyVaultKms": {"enabled": True, "keyId": KEY, "keyVaultNetworkAccess": "Public"},
    }
    assert inputs["diskEncryptionSetID"] == SET
    (made,) = recording.of_type(CLUSTER)
    grants = {grant.inputs["scope"]: grant for grant in recording.of_type(GRANT)}
    roles = {str(grants[scope].inputs["roleDefinitionId"]).rpartition("/")[2] for scope in (VAULT, SET)}
    assert roles == {"12338af0-0e69-4776-bea7-57ae8d297424", "acdd72a7-3385-48ef-bd42-f606fba81ae7"}
    assert {grants[VAULT].urn, grants[SET].urn} <= set(made.dependencies)


@pytest.mark.parametrize(
    ("days", "schedule"),
    [
        ([], {"daily": {"intervalDays": 1}}),
        (["saturday"], {"weekly": {"dayOfWeek": "Saturday", "intervalWeeks": 1}}),
    ],
)
def test_maintenance_is_scheduled_for_versions_and_images(days: list[str], schedule: dict[str, Any]) -> None:
    """Both have the same window, and go with the cluster."""
    launch = {"name": "launch", "start": "2026-12-20", "end": "2027-01-04"}
    window = {"days": days, "start": "02:00", "duration": "4h"}
    recording = synth(cloud(maintenance={"window": window, "exclusions": [launch]}))
    made = recording.of_type("azure-native:containerservice:MaintenanceConfiguration")
    assert {str(configuration.inputs["configName"]) for configuration in made} == {
        "aksManagedAutoUpgradeSchedule",
        "aksManagedNodeOSUpgradeSchedule",
    }
    (of_cluster,) = recording.of_type(CLUSTER)
    for configuration in made:
        assert configuration.deleted_with == of_cluster.urn
        assert configuration.inputs["maintenanceWindow"] == {
            "startTime": "02:00",
            "utcOffset": "+00:00",
            "durationHours": 4,
            "schedule": schedule,
            "notAllowedDates": [{"start": "2026-12-20", "end": "2027-01-04"}],
        }


def test_pods_have_identities_of_their_own() -> None:
    """The cluster issues tokens that Entra can trust."""
    inputs = cluster(synth(AKS))
    assert inputs["oidcIssuerProfile"] == {"enabled": True}
    assert inputs["securityProfile"] == {"workloadIdentity": {"enabled": True}}


def test_the_network_is_an_overlay_with_cilium() -> None:
    """Pods take no address of the subnet, and nodes go out through a Standard load balancer."""
    assert cluster(synth(AKS))["networkProfile"] == {
        "networkPlugin": "azure",
        "networkPluginMode": "overlay",
        "networkDataplane": "cilium",
        "networkPolicy": "cilium",
        "podCidr": "10.244.0.0/16",
        "serviceCidr": "10.0.0.0/16",
        "dnsServiceIP": "10.0.0.10",
        "loadBalancerSku": "standard",
        "outboundType": "loadBalancer",
    }


@pytest.mark.parametrize(
    ("services", "address"), [("172.20.4.0/22", "172.20.4.10"), ("172.20.4.0/29", "172.20.4.6")]
)
def test_the_dns_service_lies_in_the_range_of_services(services: str, address: str) -> None:
    """The address of the DNS service is derived from the range of services."""
    profile = cluster(synth(cloud(network={"services": services})))["networkProfile"]
    assert (profile["serviceCidr"], profile["dnsServiceIP"]) == (services, address)


def test_nodes_are_given_up_early() -> None:
    """A stray system pod keeps no node alive, and what runs on every node counts for nothing."""
    assert cluster(synth(AKS))["autoScalerProfile"] == {
        "expander": "least-waste",
        "scaleDownUnneededTime": "10m",
        "skipNodesWithSystemPods": "false",
        "ignoreDaemonsetsUtilization": True,
    }


def test_volumes_are_disks_and_files() -> None:
    """The blob driver would run on every node for volumes that nothing makes."""
    assert cluster(synth(AKS))["storageProfile"] == {
        "diskCSIDriver": {"enabled": True},
        "fileCSIDriver": {"enabled": True},
        "snapshotController": {"enabled": True},
        "blobCSIDriver": {"enabled": False},
    }


@pytest.mark.parametrize(
    ("tier", "expected", "plan"),
    [
        ("free", "Free", "KubernetesOfficial"),
        ("standard", "Standard", "KubernetesOfficial"),
        ("premium", "Premium", "AKSLongTermSupport"),
    ],
)
def test_the_tier_is_the_declared_one(tier: str, expected: str, plan: str) -> None:
    """The uptime agreement and long-term support cost money, so that they are never there unasked."""
    inputs = cluster(synth(cloud(tier=tier)))
    assert inputs["sku"] == {"name": "Base", "tier": expected}
    assert inputs["supportPlan"] == plan


@pytest.mark.parametrize(
    ("channel", "images"),
    [
        ("rapid", "NodeImage"),
        ("stable", "NodeImage"),
        ("patch", "NodeImage"),
        ("node-image", "NodeImage"),
        ("none", "None"),
    ],
)
def test_upgrades_follow_the_channel(channel: str, images: str) -> None:
    """Node images are renewed too, unless nothing is to be upgraded."""
    profile = cluster(synth(cloud(upgradeChannel=channel)))["autoUpgradeProfile"]
    assert profile == {"upgradeChannel": channel, "nodeOSUpgradeChannel": images}


def test_a_pinned_version_is_everyones() -> None:
    """Control plane, system pool and work pools are pinned together; unpinned, none is."""
    recording = synth(cloud(kubernetesVersion="1.34"))
    assert cluster(recording)["kubernetesVersion"] == "1.34"
    assert cluster(recording)["agentPoolProfiles"][0]["orchestratorVersion"] == "1.34"
    pools = recording.of_type("azure-native:containerservice:AgentPool")
    assert {str(pool.inputs["orchestratorVersion"]) for pool in pools} == {"1.34"}
    free = synth(AKS)
    assert "kubernetesVersion" not in cluster(free)
    assert all(
        "orchestratorVersion" not in pool.inputs
        for pool in free.of_type("azure-native:containerservice:AgentPool")
    )


def test_the_inline_list_holds_exactly_the_system_pool() -> None:
    """A pool that stood in it and by itself would be changed by two."""
    (pool,) = cluster(synth(AKS))["agentPoolProfiles"]
    assert pool["name"] == "system"
    assert pool["mode"] == "System"
    assert (pool["minCount"], pool["maxCount"], pool["enableAutoScaling"]) == (2, 4, True)
    assert "count" not in pool
    assert pool["nodeTaints"] == ["CriticalAddonsOnly=true:NoSchedule"]
    assert pool["nodeLabels"] == {"ebbtide.dev/pool": "system"}
    assert pool["vnetSubnetID"].endswith("/virtualNetworks/train/subnets/nodes")
    assert pool["tags"] == TAGS | {"ebbtide-pool": "system"}


def test_pipelines_leave_the_system_pool_untainted() -> None:
    """A pipeline's driver pods tolerate nothing, and must run somewhere."""
    (pool,) = cluster(synth(changed(AKS, addons={"pipelines": {}})))["agentPoolProfiles"]
    assert "nodeTaints" not in pool


def test_a_system_pool_of_fixed_size_has_a_count_and_no_limits() -> None:
    """Either the autoscaler has the count, or the declaration."""
    system = AKS["pools"][0] | {"nodes": {"count": 3}}
    (pool,) = cluster(synth(changed(AKS, pools=[system, *AKS["pools"][1:]])))["agentPoolProfiles"]
    assert (pool["count"], pool["enableAutoScaling"]) == (3, False)
    assert not {"minCount", "maxCount"} & set(pool)


def test_the_cluster_is_guarded_as_long_as_it_is_permanent() -> None:
    """A declared lifetime means that it goes away again, and that nothing is in its way."""
    assert [item.name for item in synth(AKS) if item.protect] == ["train-cluster"]
    assert not [item for item in synth(changed(AKS, lifetime={"hours": 8})) if item.protect]


def test_everything_that_takes_tags_has_them() -> None:
    """Also the nodes of the system pool, which are billed apart from the cluster."""
    recording = synth(changed(AKS, lifetime={"hours": 8}))
    tags = TAGS | {"ebbtide-expires": "8h-after-the-first-up"}
    tagged = [item for item in recording if "tags" in item.inputs]
    assert [
        item.name for item in tagged if not tags.items() <= Inputs(item.inputs).labels("tags").items()
    ] == []
    assert {item.type.split(":")[2] for item in tagged} == {
        "ResourceGroup",
        "VirtualNetwork",
        "UserAssignedIdentity",
        "ManagedCluster",
        "AgentPool",
    }
    assert cluster(recording)["agentPoolProfiles"][0]["tags"] == tags | {"ebbtide-pool": "system"}


def test_the_group_is_the_declared_one_or_the_clusters() -> None:
    """Everything is in one resource group, which is deleted with the cluster."""
    for declaration, name in ((AKS, "train"), (cloud(resourceGroup="ml"), "ml")):
        recording = synth(declaration)
        groups = {
            str(item.inputs["resourceGroupName"]) for item in recording if "resourceGroupName" in item.inputs
        }
        assert groups == {name}
        assert recording.named("train-group").inputs["location"] == "eastus"


def test_the_subnet_is_private_and_a_resource_of_its_own() -> None:
    """Declared inside the network, it would take away what others have put there."""
    recording = synth(cloud(network={"nodes": "10.225.0.0/16"}))
    network = recording.named("train-network-vnet").inputs
    assert network["addressSpace"] == {"addressPrefixes": ["10.225.0.0/16"]}
    assert "subnets" not in network
    subnet = recording.named("train-network-subnet").inputs
    assert (subnet["addressPrefix"], subnet["defaultOutboundAccess"]) == ("10.225.0.0/16", False)


def test_a_subnet_that_is_there_is_used_and_not_made() -> None:
    """The identity is granted that subnet, and every pool is in it."""
    recording = synth(cloud(network={"subnet": SUBNET}))
    assert not [item for item in recording if item.type.startswith("azure-native:network:")]
    assert recording.named("train-identity-subnet").inputs["scope"] == SUBNET
    assert cluster(recording)["agentPoolProfiles"][0]["vnetSubnetID"] == SUBNET
    pools = recording.of_type("azure-native:containerservice:AgentPool")
    assert {str(pool.inputs["vnetSubnetID"]) for pool in pools} == {SUBNET}


def test_no_subnet_of_a_network_that_aks_manages() -> None:
    """AKS creates the network, and grants its identity the role there."""
    recording = synth(cloud(network={"managed": True}))
    assert not [item for item in recording if item.type.startswith("azure-native:network:")]
    assert not [item for item in recording if item.name == "train-identity-subnet"]
    pools = [item.inputs for item in recording.of_type("azure-native:containerservice:AgentPool")]
    assert not [pool for pool in (*pools, *cluster(recording)["agentPoolProfiles"]) if "vnetSubnetID" in pool]


def test_the_cluster_waits_for_the_grant_of_its_identity() -> None:
    """Without the subnet's grant AKS refuses to make the cluster in it."""
    recording = synth(AKS)
    grant = recording.named("train-identity-subnet")
    assert grant.inputs["roleDefinitionId"] == f"{ROLES}/4d97b98b-1d4f-4787-a291-c67834d212e7"
    assert grant.inputs["principalType"] == "ServicePrincipal"
    assert "train-identity-subnet" in waited_for(recording, recording.of_type(CLUSTER)[0])
    identity = cluster(recording)["identity"]
    assert identity["type"] == "UserAssigned"
    (given,) = identity["userAssignedIdentities"]
    assert given.endswith("/userAssignedIdentities/train-control-plane")


def test_the_deployer_administers_a_cluster_without_declared_admins() -> None:
    """Azure determines whether that is a person or a pipeline."""
    recording = synth(AKS)
    grant = recording.named("train-cluster-deployer")
    assert grant.inputs["roleDefinitionId"] == f"{ROLES}/b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"
    assert str(grant.inputs["scope"]).endswith("/managedClusters/train")
    assert "principalType" not in grant.inputs
    (call,) = [call for call in recording.invocations if "getClientConfig" in call.token]
    assert grant.inputs["principalId"] == call.answer["objectId"]
    (provider,) = recording.of_type("pulumi:providers:azure-native")
    assert call.provider == provider.urn


def test_declared_groups_alone_administer_the_cluster() -> None:
    """Each has the role, and Kubernetes' own binding, which is in force before the role is."""
    groups = ["11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"]
    recording = synth(cloud(access={"admins": groups}))
    assert cluster(recording)["aadProfile"]["adminGroupObjectIDs"] == groups
    grants = [item for item in recording.of_type(GRANT) if item.name.startswith("train-cluster-")]
    assert [(item.inputs["principalId"], item.inputs["principalType"]) for item in grants] == [
        (group, "Group") for group in groups
    ]
    assert not [call for call in recording.invocations if "getClientConfig" in call.token]


def test_declared_networks_alone_reach_the_api_server() -> None:
    """AKS adds the address that the cluster itself goes out by."""
    profile = cluster(synth(cloud(access={"networks": ["203.0.113.0/24"]})))["apiServerAccessProfile"]
    assert profile == {"authorizedIPRanges": ["203.0.113.0/24"], "disableRunCommand": True}


def test_a_long_name_fits_the_host_name() -> None:
    """The prefix has at most 54 characters, none of them an underscore, and is never merely cut off."""
    name = "a_cluster_with_a_name_that_is_longer_than_a_host_name_may_be"
    own = {"overrides": {"nodeResourceGroup": "nodes"}}  # AKS' own name for it would be too long
    inputs = cluster(synth(changed(AKS, name=name, cloud=AKS["cloud"] | own)))
    assert inputs["resourceName"] == name
    assert len(inputs["dnsPrefix"]) == 54
    assert "_" not in inputs["dnsPrefix"]
    assert inputs["dnsPrefix"] != name.replace("_", "-")[:54]


def test_reserved_capacity_is_granted_where_it_is() -> None:
    """The identity may use the reservations of a resource group, once for all pools on them."""
    group = "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/held"
    reservation = f"{group}/providers/Microsoft.Compute/capacityReservationGroups"
    pools = [
        {"name": name, "machine": "Standard_D8s_v5", "nodes": {"max": 2}, "capacity": capacity}
        for name, capacity in (
            ("one", {"kind": "reservation", "name": f"{reservation}/a"}),
            ("two", {"kind": "reservation", "name": f"{reservation}/b"}),
        )
    ]
    recording = synth(changed(AKS, pools=[AKS["pools"][0], *pools]))
    (grant,) = [item for item in recording.of_type(GRANT) if item.inputs["scope"] == group]
    assert grant.inputs["roleDefinitionId"] == f"{ROLES}/b24988ac-6180-42a0-ab88-20f7382dd24c"
    for name in ("one", "two"):
        pool = recording.named(f"train-{name}", "azure-native:containerservice:AgentPool")
        assert grant.name in waited_for(recording, pool)


GIVEN = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "train",
    "clusters": [
        {
            "name": "train",
            "cluster": {
                "server": "https://train-x.hcp.eastus.azmk8s.io:443",
                "certificate-authority-data": "QUJD",
            },
        }
    ],
    "contexts": [{"name": "train", "context": {"cluster": "train", "user": "u"}}],
    "users": [{"name": "u", "user": {"token": "do-not-copy", "client-key-data": "do-not-copy"}}],
}


def encoded(text: str) -> str:
    """Return a kubeconfig as in the response of the credentials call."""
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize("dump", [yaml.safe_dump, json.dumps])
def test_server_and_authority_are_all_that_is_read(dump: Any) -> None:
    """AKS writes YAML, which JSON is too; its user and credentials are dropped."""
    parsed = server_and_authority(encoded(dump(GIVEN)))
    assert parsed == ("https://train-x.hcp.eastus.azmk8s.io:443", "QUJD")


@pytest.mark.parametrize(
    "given",
    [
        "%%%",
        encoded("clusters: ["),
        encoded(""),
        encoded("clusters: []"),
        encoded("clusters: [{cluster: {server: https://x}}]"),
        encoded("- a list"),
        encoded("secret-token"),
    ],
)
def test_what_is_no_kubeconfig_is_refused_and_not_shown(given: str) -> None:
    """The message says what to look at, and holds nothing of what was given."""
    with pytest.raises(CredentialsError, match=r"az aks get-credentials") as refused:
        server_and_authority(given)
    assert "secret-token" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("login", ["azurecli", "workloadidentity"])
def test_kubelogin_is_asked_for_a_token_when_one_is_needed(login: str) -> None:
    """The kubeconfig uses kubelogin with a non-interactive login, unlike the one that AKS returns."""
    config = json.loads(kubeconfig_text("train", "https://x:443", "QUJD", login))
    assert config["clusters"] == [
        {"name": "train", "cluster": {"server": "https://x:443", "certificate-authority-data": "QUJD"}}
    ]
    assert config["contexts"] == [{"name": "train", "context": {"cluster": "train", "user": "train"}}]
    assert config["current-context"] == "train"
    (user,) = config["users"]
    assert list(user["user"]) == ["exec"]
    command = user["user"]["exec"]
    assert command["apiVersion"] == "client.authentication.k8s.io/v1beta1"
    assert [command["command"], *command["args"]] == [
        "kubelogin",
        "get-token",
        "--login",
        login,
        "--server-id",
        "6dae42f8-4368-4678-94ff-3960e28e3630",
        "--environment",
        "AzurePublicCloud",
    ]
    assert command["interactiveMode"] == "Never"


def test_the_declared_login_reaches_the_kubeconfig() -> None:
    """The declared login is in the stack's secret output and in the Kubernetes provider's input."""
    declaration = changed(AKS, cloud=AKS["cloud"] | {"access": {"login": "workloadidentity"}})
    recording = synth(declaration)
    output = recording.outputs["kubeconfig"]
    assert isinstance(output, Secret)
    args = json.loads(str(output.value))["users"][0]["user"]["exec"]["args"]
    assert args[args.index("--login") + 1] == "workloadidentity"
    (provider,) = recording.of_type("pulumi:providers:kubernetes")
    given = provider.inputs["kubeconfig"]
    assert isinstance(given, Secret)
    assert given.value == output.value


def test_the_server_is_the_one_that_aks_names() -> None:
    """The server's host name is the one that AKS returns."""
    recording = synth(AKS)
    (call,) = [item for item in recording.invocations if "Credentials" in item.token]
    listed: Any = call.answer["kubeconfigs"]
    output = recording.outputs["kubeconfig"]
    assert isinstance(output, Secret)
    (entry,) = json.loads(str(output.value))["clusters"]
    cluster = entry["cluster"]
    actual = (cluster["server"], cluster["certificate-authority-data"])
    assert actual == server_and_authority(str(listed[0]["value"]))


@pytest.mark.parametrize("keep", [True, False])
def test_declared_keys_encrypt_buckets_and_registries(keep: bool) -> None:  # noqa: FBT001
    """An identity beside each may use the key before, and is kept where the data is kept."""
    vault = (
        "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/r"
        "/providers/Microsoft.KeyVault/vaults/ours"
    )
    keys = {
        "buckets": "https://ours.vault.azure.net/keys/data",
        "registries": "https://ours.vault.azure.net/keys/images/0123",
        "vault": vault,
    }
    team = {"name": "vision", "bucket": {"keep": keep}, "registry": {"keep": keep}}
    recording = synth(cloud(keys=keys) | {"teams": [team]})
    (account,) = recording.of_type("azure-native:storage:StorageAccount")
    (registry,) = recording.of_type("azure-native:containerregistry:Registry")
    encryption = given(account)["encryption"]
    assert encryption["keyVaultProperties"] == {
        "keyName": "data",
        "keyVaultUri": "https://ours.vault.azure.net",
    }
    assert given(registry)["sku"] == {"name": "Premium"}
    used = given(registry)["encryption"]["keyVaultProperties"]
    assert used["keyIdentifier"] == keys["registries"]
    identities = {item.id: item for item in recording if item.type.endswith(":UserAssignedIdentity")}
    acting = identities[encryption["encryptionIdentity"]["encryptionUserAssignedIdentity"]]
    (puller,) = (identities[name] for name in given(registry)["identity"]["userAssignedIdentities"])
    assert used["identity"] == puller.outputs["clientId"]
    for stored, identity in ((account, acting), (registry, puller)):
        assert given(identity)["resourceGroupName"] == given(stored)["resourceGroupName"]
        (grant,) = (
            item
            for item in recording.of_type(GRANT)
            if given(item)["scope"] == vault and given(item)["principalId"] == identity.outputs["principalId"]
        )
        assert str(given(grant)["roleDefinitionId"]).endswith("e147488a-f6f5-4113-8e2d-b22465e65bf6")
        assert grant.urn in stored.dependencies
        assert (grant.retain_on_delete, identity.retain_on_delete) == (keep, keep)


def test_storage_accounts_have_the_overrides_of_their_kind() -> None:
    """Buckets and file shares differ, a lifecycle exists for each bucket, and the preview lists all of it."""
    lifecycle: dict[str, Any] = {
        "rules": [{"name": "old", "type": "Lifecycle", "definition": {"actions": {}}}]
    }
    resources: dict[str, Any] = {
        "storageAccount": {"sku": {"name": "Standard_ZRS"}},
        "fileStorageAccount": {"sku": {"name": "Premium_ZRS"}},
        "blobService": {"deleteRetentionPolicy": {"enabled": True, "days": 7}},
        "managementPolicy": {"policy": lifecycle},
    }
    teams: list[Any] = [
        {"name": "vision", "bucket": {}},
        {"name": "audio", "volume": {"kind": "azure-files"}},
    ]
    recording = synth(cloud(resources=resources) | {"teams": teams})
    accounts = recording.of_type("azure-native:storage:StorageAccount")
    skus = {given(account)["kind"]: given(account)["sku"]["name"] for account in accounts}
    assert skus == {"StorageV2": "Standard_ZRS", "FileStorage": "Premium_ZRS"}
    (policy,) = recording.of_type("azure-native:storage:ManagementPolicy")
    assert given(policy)["policy"] == lifecycle
    (blobs,) = recording.of_type("azure-native:storage:BlobServiceProperties")
    assert given(blobs)["deleteRetentionPolicy"] == {"enabled": True, "days": 7}
    (bucket,) = (given(account) for account in accounts if given(account)["kind"] == "StorageV2")
    assert given(policy)["accountName"] == given(blobs)["accountName"] == bucket["accountName"]
    overrides = preview_of(recording).resource_overrides
    assert overrides["resources.fileStorageAccount.sku.name"] == "Premium_ZRS"
    assert overrides["resources.managementPolicy.policy.rules[0].name"] == "old"


def test_pools_have_their_own_subnets() -> None:
    """The control plane's identity may join each of them, before any node does."""
    declaration = only(AKS, machine="Standard_D8s_v5", subnet=SUBNET.replace("subnets/n", "subnets/gpus"))
    declaration["cloud"] = declaration["cloud"] | {"network": {"subnet": SUBNET}}
    recording = synth(declaration)
    (inline,) = cluster(recording)["agentPoolProfiles"]
    (leaf,) = recording.of_type("azure-native:containerservice:AgentPool")
    assert inline["vnetSubnetID"] == SUBNET
    assert leaf.inputs["vnetSubnetID"] == SUBNET.replace("subnets/n", "subnets/gpus")
    scopes = {item.inputs["scope"]: item.urn for item in recording.of_type(GRANT)}
    joined = {scopes[SUBNET], scopes[str(leaf.inputs["vnetSubnetID"])]}
    (made,) = recording.of_type(CLUSTER)
    assert joined <= set(made.dependencies) | set(leaf.dependencies)
    assert joined <= set(leaf.dependencies)
