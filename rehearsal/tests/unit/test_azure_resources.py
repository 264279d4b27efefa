"""Networks, identities, roles and storage: requests that Azure rejects, and its responses."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ebbtide_rehearsal.cloud.azure.arm import DEPLOYER, TENANT, Operations
from ebbtide_rehearsal.cloud.azure.identities import know
from ebbtide_rehearsal.cloud.provider import Created, Properties, RefusedError
from rehearsal.tests.unit.azure_cloud import (
    CLUSTER,
    GROUP,
    IDENTITY,
    NETWORK_CONTRIBUTOR,
    ROLES,
    SUBNET,
    SUBSCRIPTION,
    Azure,
)

_STRANGER = "99999999-0000-0000-0000-000000000001"
_NETWORK: dict[str, Any] = {"resourceGroupName": "train", "virtualNetworkName": "train"}
_ACCOUNT: dict[str, Any] = {
    "resourceGroupName": "train",
    "accountName": "bucket123",
    "kind": "StorageV2",
    "sku": {"name": "Standard_LRS"},
}
_FILES: dict[str, Any] = {
    **_ACCOUNT,
    "accountName": "files123",
    "kind": "FileStorage",
    "sku": {"name": "Premium_LRS"},
}


def _grant(azure: Azure, **changes: Any) -> Properties:
    given = {"scope": GROUP, "roleDefinitionId": NETWORK_CONTRIBUTOR, "principalId": DEPLOYER, **changes}
    return azure.make("authorization:RoleAssignment", **given).state


def _principal(azure: Azure) -> str:
    identity = azure.store.get("azure-native", IDENTITY)
    assert identity is not None
    return str(identity.state["principalId"])


def test_a_grant_to_an_identity_that_is_just_made(tmp_path: Path) -> None:
    """The directory is out of date, unless the principal's type is given (azure-search-openai-demo#9)."""
    azure = Azure(tmp_path).with_network()
    principal = _principal(azure)
    with pytest.raises(RefusedError) as refused:
        _grant(azure, principalId=principal)
    assert f"Principal {principal.replace('-', '')} does not exist in the directory {TENANT}." in str(
        refused.value
    )
    assert "replication delay" in str(refused.value)
    assert _grant(azure, principalId=principal, principalType="ServicePrincipal")["principalId"] == principal


def test_a_grant_to_the_deployer_of_unknown_kind(tmp_path: Path) -> None:
    """Azure determines its type, and refuses a wrong one, such as the SDK's default
    (modern-web-app-pattern-dotnet#129)."""
    azure = Azure(tmp_path).with_network()
    with pytest.raises(RefusedError, match="has type 'ServicePrincipal' , which is different from specified"):
        _grant(azure, principalType="User")
    assert _grant(azure)["principalType"] == "ServicePrincipal"


def test_a_grant_to_a_group_wants_its_kind(tmp_path: Path) -> None:
    """An unknown principal is accepted only with it."""
    azure = Azure(tmp_path).with_network()
    with pytest.raises(RefusedError, match="PrincipalNotFound"):
        _grant(azure, principalId=_STRANGER)
    assert _grant(azure, principalId=_STRANGER, principalType="Group")["principalType"] == "Group"


def test_a_grant_to_someone_of_the_directory(tmp_path: Path) -> None:
    """A declared principal exists, and Azure determines its type."""
    azure = Azure(tmp_path).with_network()
    know(azure.store, [_STRANGER])
    assert _grant(azure, principalId=_STRANGER)["principalId"] == _STRANGER


def test_each_grant_once(tmp_path: Path) -> None:
    """The name of the assignment makes no difference (Azure/bicep#11367)."""
    azure = Azure(tmp_path).with_network()
    _grant(azure)
    with pytest.raises(
        RefusedError, match='Code="RoleAssignmentExists" Message="The role assignment already'
    ):
        _grant(azure)
    _grant(azure, scope=SUBNET)


def test_a_grant_on_nothing(tmp_path: Path) -> None:
    """The scope of a role assignment exists."""
    with pytest.raises(RefusedError, match="ResourceNotFound"):
        _grant(Azure(tmp_path).with_network(), scope=f"{GROUP}/providers/Microsoft.Storage/storageAccounts/a")


def test_a_grant_does_not_become_another(tmp_path: Path) -> None:
    """Only what is beside it can change."""
    azure = Azure(tmp_path).with_network()
    given = {"scope": GROUP, "roleDefinitionId": NETWORK_CONTRIBUTOR, "principalId": DEPLOYER}
    made = azure.make("authorization:RoleAssignment", **given)
    other = f"{ROLES}/b24988ac-6180-42a0-ab88-20f7382dd24c"
    before = {**given, "roleAssignmentName": made.state["name"]}
    with pytest.raises(RefusedError, match="RoleAssignmentUpdateNotPermitted"):
        azure.change("authorization:RoleAssignment", made, before, **{**before, "roleDefinitionId": other})


def _credential(azure: Azure, name: str, subject: str) -> None:
    azure.make(
        "managedidentity:FederatedIdentityCredential",
        resourceGroupName="train",
        resourceName="control-plane",
        federatedIdentityCredentialResourceName=name,
        issuer="https://issuer.example/",
        subject=subject,
        audiences=["api://AzureADTokenExchange"],
    )


def test_credentials_of_one_identity_at_the_same_time(tmp_path: Path) -> None:
    """One is written, the other refused (Azure/bicep-registry-modules#1447)."""
    azure = Azure(tmp_path).with_network()

    def write(number: int) -> str:
        try:
            _credential(azure, f"team{number}", f"subject{number}")
        except RefusedError as refused:
            return str(refused)
        return ""

    with ThreadPoolExecutor(2) as threads:
        outcomes = sorted(threads.map(write, range(2)))
    assert outcomes[0] == ""
    assert "ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity" in outcomes[1]
    assert sum("federatedIdentityCredentials" in identity for identity in azure.ids()) == 1


def test_an_identity_has_twenty_credentials_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next is refused (azure-workload-identity#1172); so is one for the same subject
    (bicep-types-az#2054)."""
    monkeypatch.setattr("ebbtide_rehearsal.cloud.azure.identities._WRITE_SECONDS", 0)
    azure = Azure(tmp_path).with_network()
    _credential(azure, "first", "subject0")
    with pytest.raises(RefusedError, match="Issuer and subject combination already exists"):
        _credential(azure, "second", "subject0")
    for number in range(1, 20):
        _credential(azure, f"team{number}", f"subject{number}")
    with pytest.raises(RefusedError, match="cannot exceed 20"):
        _credential(azure, "one-more", "another")


@pytest.mark.parametrize(
    ("prefix", "says"),
    [
        ("10.0.0.0/24", "its IP address range is outside the IP address range of virtual network 'train'"),
        ("10.224.1.0/24", "overlaps with that of an existing subnet in virtual network 'train'"),
    ],
)
def test_subnets_that_do_not_fit(tmp_path: Path, prefix: str, says: str) -> None:
    """Outside their network, over another, or no range at all (MicrosoftDocs/azure-docs#123869)."""
    azure = Azure(tmp_path).with_network()
    with pytest.raises(RefusedError, match=says):
        azure.make("network:Subnet", **_NETWORK, subnetName="more", addressPrefix=prefix)


def test_a_subnet_in_use_keeps_its_range(tmp_path: Path) -> None:
    """Nodes have addresses of it (terraform-provider-azurerm#7687), and its network has to hold it."""
    azure = Azure(tmp_path).with_cluster()
    subnet = azure.store.get("azure-native", SUBNET)
    assert subnet is not None
    before = dict(subnet.inputs)
    with pytest.raises(RefusedError, match="InUseSubnetCannotBeUpdated"):
        azure.change(
            "network:Subnet",
            Created(SUBNET, subnet.state),
            before,
            **{**before, "addressPrefix": "10.224.0.0/20"},
        )
    network = azure.store.get("azure-native", SUBNET.rpartition("/subnets/")[0])
    assert network is not None
    with pytest.raises(RefusedError, match="InUsePrefixCannotBeDeleted"):
        azure.change(
            "network:VirtualNetwork",
            Created(network.id, network.state),
            dict(network.inputs),
            **{**network.inputs, "addressSpace": {"addressPrefixes": ["10.230.0.0/16"]}},
        )


def test_a_storage_accounts_name_is_the_worlds(tmp_path: Path) -> None:
    """In another group, or another subscription, it is taken all the same (hashicorp/terraform#11485)."""
    azure = Azure(tmp_path).with_network()
    made = azure.make("storage:StorageAccount", **_ACCOUNT)
    endpoints: Any = made.state["primaryEndpoints"]
    assert endpoints["dfs"] == "https://bucket123.dfs.core.windows.net/"
    azure.make("resources:ResourceGroup", resourceGroupName="other")
    with pytest.raises(RefusedError, match="The storage account named bucket123 is already taken"):
        azure.make("storage:StorageAccount", **{**_ACCOUNT, "resourceGroupName": "other"})


def test_accounts_for_files_alone(tmp_path: Path) -> None:
    """Accounts for file shares have no blobs."""
    azure = Azure(tmp_path).with_network()
    azure.make("storage:StorageAccount", **_FILES)
    within = {"resourceGroupName": "train", "accountName": "files123"}
    with pytest.raises(RefusedError, match="Blob is not supported for the account"):
        azure.make("storage:BlobContainer", **within, containerName="shared")
    made = azure.make("storage:FileShare", **within, shareName="shared", shareQuota=100)
    assert made.id.endswith("/storageAccounts/files123/fileServices/default/shares/shared")


def test_blobs_alone_hold_no_shares(tmp_path: Path) -> None:
    """A block blob account has no file service."""
    azure = Azure(tmp_path).with_network()
    premium = {**_ACCOUNT, "kind": "BlockBlobStorage", "sku": {"name": "Premium_LRS"}}
    azure.make("storage:StorageAccount", **premium)
    with pytest.raises(RefusedError, match="File is not supported for the account"):
        azure.make(
            "storage:FileShare", resourceGroupName="train", accountName="bucket123", shareName="shared"
        )


def test_keys_stay_the_same(tmp_path: Path) -> None:
    """The keys of an account do not change, and are listed even if shared-key access is disabled."""
    azure = Azure(tmp_path).with_network()
    azure.make("storage:StorageAccount", **_ACCOUNT, allowSharedKeyAccess=False)
    arguments = {"resourceGroupName": "train", "accountName": "bucket123"}
    first: Any = azure.provider.invoke("azure-native:storage:listStorageAccountKeys", arguments)
    assert [key["keyName"] for key in first["keys"]] == ["key1", "key2"]
    assert first == azure.provider.invoke("azure-native:storage:listStorageAccountKeys", arguments)
    arguments["accountName"] = "none"
    with pytest.raises(RefusedError, match=r"Microsoft\.Storage/storageAccounts/none"):
        azure.provider.invoke("azure-native:storage:listStorageAccountKeys", arguments)


def test_a_share_for_a_subnet_needs_its_endpoint(tmp_path: Path) -> None:
    """Azure refuses a rule for a subnet that has no service endpoint for storage."""
    azure = Azure(tmp_path).with_cluster()
    azure.make(
        "network:VirtualNetwork",
        resourceGroupName="train",
        virtualNetworkName="files",
        addressSpace={"addressPrefixes": ["10.9.0.0/16"]},
    )
    subnet = {
        "resourceGroupName": "train",
        "virtualNetworkName": "files",
        "addressPrefix": "10.9.0.0/24",
    }
    bare = azure.make("network:Subnet", subnetName="bare", **subnet).id
    endpoint = {"serviceEndpoints": [{"service": "Microsoft.Storage"}], "addressPrefix": "10.9.1.0/24"}
    ready = azure.make("network:Subnet", subnetName="ready", **{**subnet, **endpoint}).id

    def account(name: str) -> dict[str, Any]:
        rules = {"defaultAction": "Deny", "virtualNetworkRules": [{"virtualNetworkResourceId": name}]}
        return {**_FILES, "networkRuleSet": rules}

    with pytest.raises(RefusedError, match="SubnetsHaveNoServiceEndpointsConfigured"):
        azure.make("storage:StorageAccount", **account(bare))
    assert azure.make("storage:StorageAccount", **account(ready))


def test_who_runs_the_program(tmp_path: Path) -> None:
    """The service principal that deploys, and the provider's own subscription."""
    answer = Azure(tmp_path).provider.invoke("azure-native:authorization:getClientConfig", {})
    assert answer["subscriptionId"] == SUBSCRIPTION
    assert answer["objectId"] == DEPLOYER


@pytest.mark.parametrize(
    ("underway", "wanted", "says"),
    [
        (CLUSTER, CLUSTER, r"Another operation \(Updating\) is in progress"),
        (CLUSTER, f"{CLUSTER}/agentPools/a", r"Another operation \(Updating\) is in progress"),
        (f"{CLUSTER}/agentPools/a", CLUSTER, r"Another agentpool operation \(a - Updating\) is in progress"),
        (f"{CLUSTER}/agentPools/a", f"{CLUSTER}/agentpools/A", r"\(a - Updating\)"),
    ],
)
def test_what_aks_does_one_after_another(underway: str, wanted: str, says: str) -> None:
    """A cluster and its pools exclude each other (cilium/cilium#25944)."""
    operations = Operations()
    with (
        operations.on(underway, "Updating"),
        pytest.raises(RefusedError, match=says),
        operations.on(wanted, "Creating"),
    ):
        pass
    with operations.on(wanted, "Creating"):
        pass


def test_pools_of_one_cluster_at_the_same_time() -> None:
    """Different ones do not wait for each other (Azure/AKS#1913)."""
    operations = Operations()
    with (
        operations.on(f"{CLUSTER}/agentPools/a", "Creating"),
        operations.on(f"{CLUSTER}/agentPools/ab", "Creating"),
    ):
        pass
