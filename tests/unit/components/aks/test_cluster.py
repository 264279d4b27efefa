"""The AKS cluster and its kubeconfig."""

import base64
import json
from typing import Any

import pytest
import yaml

from components.aks.cluster import CredentialsError, kubeconfig_text, server_and_authority
from ebbtide.analysis.recording.recording import Recording, Resource
from tests.declarations import AKS, changed
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


@pytest.mark.parametrize(
    ("services", "address"), [("172.20.4.0/22", "172.20.4.10"), ("172.20.4.0/29", "172.20.4.6")]
)
def test_the_dns_service_lies_in_the_range_of_services(services: str, address: str) -> None:
    """The address of the DNS service is derived from the range of services."""
    profile = cluster(synth(cloud(network={"services": services})))["networkProfile"]
    assert (profile["serviceCidr"], profile["dnsServiceIP"]) == (services, address)


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


def test_pipelines_leave_the_system_pool_untainted() -> None:
    """A pipeline's driver pods tolerate nothing, and must run somewhere."""
    (pool,) = cluster(synth(changed(AKS, addons={"pipelines": {}})))["agentPoolProfiles"]
    assert "nodeTaints" not in pool


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
