"""The fake of azure-native for every type: checks, refresh, refusals of groups, grants, networks, storage."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide.analysis.recording.record import record
from ebbtide_rehearsal.cloud.azure.arm import DEPLOYER, TENANT, Operations, lock
from ebbtide_rehearsal.cloud.azure.identities import know
from ebbtide_rehearsal.cloud.azure.provider import KINDS, AzureProvider
from ebbtide_rehearsal.cloud.provider import Call, Created, Properties, Read, RefusedError
from rehearsal.tests.unit.azure_cloud import (
    CLUSTER,
    GROUP,
    IDENTITY,
    MANAGED_CLUSTER,
    NETWORK_CONTRIBUTOR,
    POOL,
    ROLES,
    SPOT,
    SUBNET,
    Azure,
)
from tests.declarations import AKS
from tests.repository import ROOT
from tests.running import full

_WITHIN = {"resourceGroupName": "train"}
_NETWORK: dict[str, Any] = {**_WITHIN, "virtualNetworkName": "train"}
_ACCOUNT: dict[str, Any] = {
    **_WITHIN,
    "accountName": "bucket123",
    "kind": "StorageV2",
    "sku": {"name": "Standard_LRS"},
}
_FILES = {**_ACCOUNT, "accountName": "files123", "kind": "FileStorage", "sku": {"name": "Premium_LRS"}}
_BLOBS = {**_ACCOUNT, "kind": "BlockBlobStorage", "sku": {"name": "Premium_LRS"}}
_REGISTRY = {**_WITHIN, "registryName": "visionimages", "location": "eastus", "sku": {"name": "Basic"}}


@pytest.mark.parametrize("existing", [False, True])
def test_there_is_a_stand_in_for_all_that_the_program_asks_for(existing: bool) -> None:  # noqa: FBT001 - a case
    """With every add-on and everything that a team can have, in a cluster of its own and in another's."""
    declaration = full("aks", logs={}, metrics={})
    if existing:
        declaration["cloud"] = copy.deepcopy(AKS["cloud"]) | {"existing": {"name": "shared"}}
        for name in ("logs", "metrics"):
            declaration["addons"].pop(name)
        declaration["pools"] = [pool for pool in declaration["pools"] if pool.get("role") != "system"]
    config = {"ebbtide:cluster": json.dumps(declaration)}
    recording = record(ROOT, project="ebbtide", stack="dev", config=config)
    made = {resource.type for resource in recording if resource.type.startswith("azure-native:")}
    assert made <= set(KINDS)
    assert len(made) >= (5 if existing else 16)


_STORAGE: dict[str, Any] = {"resourceGroupName": "g", "kind": "StorageV2", "sku": {"name": "x"}}
_SHARE: dict[str, Any] = {"resourceGroupName": "g", "accountName": "abc", "shareName": "abc"}
_NAME = "against its limit: pattern ^[a-z][a-z0-9]{0,11}$"


@pytest.mark.parametrize(
    ("kind", "inputs", "reason"),
    [
        ("network:Subnet", _WITHIN, "it: virtualNetworkName is missing"),
        (
            "containerservice:AgentPool",
            {**POOL, "agentPoolName": "GPU-pool"},
            f"it: agentPoolName is GPU-pool, {_NAME}",
        ),
        (
            "containerservice:AgentPool",
            {**POOL, "osDiskSizeGB": 4096},
            "it: osDiskSizeGB is 4096, against its limit: maximum 2048",
        ),
        (
            "containerservice:ManagedCluster",
            {**MANAGED_CLUSTER, "agentPoolProfiles": [{"name": "system-1"}]},
            f"it: agentPoolProfiles[0].name is system-1, {_NAME}",
        ),
        (
            "storage:StorageAccount",
            {**_STORAGE, "accountName": "ab"},
            "it: accountName is ab, against its limit: shortest 3",
        ),
        (
            "storage:FileShare",
            {**_SHARE, "shareName": "x" * 64},
            f"it: shareName is {'x' * 64}, against its limit: longest 63",
        ),
        (
            "storage:FileShare",
            {**_SHARE, "shareQuota": 0},
            "it: shareQuota is 0, against its limit: minimum 1",
        ),
        (
            "containerservice:AgentPool",
            {**POOL, "maxCount": "many"},
            "it: maxCount is no int",
        ),
    ],
)
def test_the_schemas_limits_hold_before_anything_is_planned(
    tmp_path: Path, kind: str, inputs: dict[str, Any], reason: str
) -> None:
    """Names and numbers that the schema does not allow fail the check (azure-native, validateProperty)."""
    _, failures = Azure(tmp_path).provider.check(Call(f"azure-native:{kind}", "it", ""), {}, inputs)
    assert reason in [failure.reason for failure in failures]


def test_names_places_and_api_versions_are_filled_in(tmp_path: Path) -> None:
    """An omitted name is generated once, and kept; `East US` is `eastus` (normalizedLocation)."""
    azure = Azure(tmp_path)
    call = Call("azure-native:resources:ResourceGroup", "group", "")
    first, _ = azure.provider.check(call, {}, {})
    again, _ = azure.provider.check(call, first, {})
    assert first == again
    assert str(first["resourceGroupName"]).startswith("group")
    assert (first["location"], first["azureApiVersion"]) == ("eastus", "2024-03-01")
    group = {"resourceGroupName": "g", "location": "East US"}
    assert not azure.plan("resources:ResourceGroup", group, {**group, "location": "eastus"}).changed


def test_properties_without_a_schema_are_dropped(tmp_path: Path) -> None:
    """azure-native omits an unknown property without failing; the timeline says it."""
    azure = Azure(tmp_path)
    made = azure.make("resources:ResourceGroup", **_WITHIN, colour="green")
    assert "colour" not in made.state
    (event,) = azure.store.events(kind="property-ignored")
    assert "colour" in event.text


def test_what_has_to_exist(tmp_path: Path) -> None:
    """A provider needs a subscription, and a resource its group and every other parent."""
    azure = Azure(tmp_path)
    with pytest.raises(RefusedError, match="no subscription ID"):
        AzureProvider(azure.store, azure.planes).create(
            Call("azure-native:resources:ResourceGroup", "g", ""), {"resourceGroupName": "g"}
        )
    with pytest.raises(RefusedError, match="Resource group 'train' could not be found"):
        azure.make("network:VirtualNetwork", **_NETWORK, addressSpace={"addressPrefixes": ["10.0.0.0/8"]})
    azure.make("resources:ResourceGroup", **_WITHIN)
    with pytest.raises(RefusedError, match="ParentResourceNotFound"):
        azure.make("containerservice:AgentPool", **POOL)


@pytest.mark.parametrize(
    ("changes", "replaces"),
    [
        ({"loadBalancerProfile": {"idleTimeoutInMinutes": 5}}, ()),
        ({"serviceCidr": "10.1.0.0/16"}, ("networkProfile",)),
    ],
)
def test_of_a_network_profile_only_some_makes_a_new_cluster(
    tmp_path: Path, changes: dict[str, Any], replaces: tuple[str, ...]
) -> None:
    """Since pulumi-azure-native#4771, load balancer settings change in place and address ranges do not."""
    profile = {**MANAGED_CLUSTER["networkProfile"], **changes}
    after = {**MANAGED_CLUSTER, "networkProfile": profile}
    plan = Azure(tmp_path).plan("containerservice:ManagedCluster", MANAGED_CLUSTER, after)
    assert tuple(plan.replaces) == replaces


def test_every_type_reads_back_as_it_was_asked_for(tmp_path: Path) -> None:
    """A refresh of unchanged resources changes neither inputs nor state, and a resource that is only read,
    as by `pulumi import`, gets its inputs from its id."""
    azure = Azure(tmp_path).with_cluster()
    azure.make("containerservice:AgentPool", **SPOT)
    for resource in azure.store.resources("azure-native"):
        inputs = {**resource.inputs, "azureApiVersion": KINDS[resource.type].api_version}
        bare = azure.provider.read(Call(resource.type, "it", ""), resource.id, {})
        assert bare is not None
        read = azure.provider.read(
            Call(resource.type, "it", resource.urn, inputs=inputs), resource.id, bare.state
        )
        assert read == Read(resource.id, inputs, bare.state)
        if resource.id == SUBNET:
            named = {"subnetName": "nodes", "virtualNetworkName": "train", "addressPrefix": "10.224.0.0/16"}
            assert named.items() <= bare.inputs.items()


def test_a_refresh_finds_what_was_changed_outside(tmp_path: Path) -> None:
    """A refresh adds changes made in Azure to the inputs, but not Azure's own additions."""
    azure = Azure(tmp_path).with_cluster()
    made = azure.make("containerservice:AgentPool", **SPOT)
    pool = azure.store.get("azure-native", made.id)
    assert pool is not None
    azure.store.put(pool.having(maxCount=25))
    call = Call("azure-native:containerservice:AgentPool", "it", "", inputs=SPOT)
    read = azure.provider.read(call, made.id, made.state)
    assert read is not None
    assert read.inputs == {**SPOT, "maxCount": 25}


def test_a_lock_keeps_what_is_in_its_scope(tmp_path: Path) -> None:
    """Neither what is locked goes, nor what is in it, nor what it is in."""
    azure = Azure(tmp_path).with_network()
    lock(azure.store, GROUP)
    for kind, identity in (("network:Subnet", SUBNET), ("resources:ResourceGroup", GROUP)):
        with pytest.raises(RefusedError, match="cannot perform delete operation because following scope"):
            azure.remove(kind, identity)
    assert SUBNET in azure.ids()


def test_a_group_takes_with_it_what_is_left_in_it(tmp_path: Path) -> None:
    """All of its resources are deleted with it, also those that another made or the program meant to keep."""
    azure = Azure(tmp_path).with_cluster()
    azure.make("storage:StorageAccount", **_ACCOUNT)
    azure.remove("resources:ResourceGroup", GROUP)
    assert azure.ids() == []
    assert azure.planes.running == {}
    (event,) = azure.store.events(kind="group-deleted")
    assert "bucket123" in event.text


_STRANGER = "99999999-0000-0000-0000-000000000001"
_IDENTITYS = "that of the identity"


def _grant(azure: Azure, **changes: Any) -> Properties:
    given = {"scope": GROUP, "roleDefinitionId": NETWORK_CONTRIBUTOR, "principalId": DEPLOYER, **changes}
    if given["principalId"] == _IDENTITYS:
        identity = azure.store.get("azure-native", IDENTITY)
        assert identity is not None
        given["principalId"] = identity.state["principalId"]
    return azure.make("authorization:RoleAssignment", **given).state


@pytest.mark.parametrize(
    ("refused", "says", "accepted"),
    [
        # The directory is out of date, unless the principal's type is given (azure-search-openai-demo#9).
        (
            {"principalId": _IDENTITYS},
            f"does not exist in the directory {TENANT}. .*replication delay",
            {"principalId": _IDENTITYS, "principalType": "ServicePrincipal"},
        ),
        # Azure determines the type of a known principal (modern-web-app-pattern-dotnet#129).
        (
            {"principalType": "User"},
            "has type 'ServicePrincipal' , which is different from specified",
            {"principalType": "ServicePrincipal"},
        ),
        (
            {"principalId": _STRANGER},
            "PrincipalNotFound",
            {"principalId": _STRANGER, "principalType": "Group"},
        ),
        ({"scope": f"{GROUP}/providers/Microsoft.Storage/storageAccounts/a"}, "ResourceNotFound", {}),
    ],
)
def test_grants(tmp_path: Path, refused: dict[str, Any], says: str, accepted: dict[str, Any]) -> None:
    """A grant needs a principal of a known or a given type, and a scope that exists."""
    azure = Azure(tmp_path).with_network()
    with pytest.raises(RefusedError, match=f"(?s){says}"):
        _grant(azure, **refused)
    made = _grant(azure, **accepted)
    assert made["principalType"] == accepted.get("principalType", "ServicePrincipal")


def test_each_grant_once(tmp_path: Path) -> None:
    """The name of the assignment makes no difference (Azure/bicep#11367), an existing grant does not become
    another, and a declared principal exists."""
    azure = Azure(tmp_path).with_network()
    know(azure.store, [_STRANGER])
    assert _grant(azure, principalId=_STRANGER)["principalId"] == _STRANGER
    given = {"scope": GROUP, "roleDefinitionId": NETWORK_CONTRIBUTOR, "principalId": DEPLOYER}
    made = azure.make("authorization:RoleAssignment", **given)
    with pytest.raises(
        RefusedError, match='Code="RoleAssignmentExists" Message="The role assignment already'
    ):
        _grant(azure)
    _grant(azure, scope=SUBNET)
    before = {**given, "roleAssignmentName": made.state["name"]}
    other = {**before, "roleDefinitionId": f"{ROLES}/b24988ac-6180-42a0-ab88-20f7382dd24c"}
    with pytest.raises(RefusedError, match="RoleAssignmentUpdateNotPermitted"):
        azure.change("authorization:RoleAssignment", made, before, **other)


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


def test_credentials_of_one_identity_at_the_same_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is written during the write of another is refused (Azure/bicep-registry-modules#1447)."""
    azure = Azure(tmp_path).with_network()

    def write_another(_: float) -> None:
        monkeypatch.undo()
        with pytest.raises(
            RefusedError, match="ConcurrentFederatedIdentityCredentialsWritesForSingleManagedIdentity"
        ):
            _credential(azure, "other", "subject1")

    monkeypatch.setattr("ebbtide_rehearsal.cloud.azure.identities.time.sleep", write_another)
    _credential(azure, "one", "subject0")
    assert [identity.rpartition("/")[2] for identity in azure.ids() if "federated" in identity] == ["one"]


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


_OTHER_GROUP = ("resources:ResourceGroup", {"resourceGroupName": "other"})


@pytest.mark.parametrize(
    ("existing", "kind", "inputs", "says"),
    [
        # MicrosoftDocs/azure-docs#123869
        (
            [],
            "network:Subnet",
            {**_NETWORK, "subnetName": "more", "addressPrefix": "10.0.0.0/24"},
            "its IP address range is outside the IP address range of virtual network 'train'",
        ),
        (
            [],
            "network:Subnet",
            {**_NETWORK, "subnetName": "more", "addressPrefix": "10.224.1.0/24"},
            "overlaps with that of an existing subnet in virtual network 'train'",
        ),
        # In another group, or another subscription, it is taken all the same (hashicorp/terraform#11485).
        (
            [("storage:StorageAccount", _ACCOUNT), _OTHER_GROUP],
            "storage:StorageAccount",
            {**_ACCOUNT, "resourceGroupName": "other"},
            "The storage account named bucket123 is already taken",
        ),
        (
            [("containerregistry:Registry", _REGISTRY), _OTHER_GROUP],
            "containerregistry:Registry",
            {**_REGISTRY, "resourceGroupName": "other", "registryName": "VisionImages"},
            "AlreadyInUse",
        ),
        (
            [("storage:StorageAccount", _FILES)],
            "storage:BlobContainer",
            {**_WITHIN, "accountName": "files123", "containerName": "shared"},
            "Blob is not supported for the account",
        ),
        (
            [("storage:StorageAccount", _BLOBS)],
            "storage:FileShare",
            {**_WITHIN, "accountName": "bucket123", "shareName": "shared"},
            "File is not supported for the account",
        ),
        (
            [],
            "storage:StorageAccount",
            {**_FILES, "networkRuleSet": {"virtualNetworkRules": [{"virtualNetworkResourceId": SUBNET}]}},
            "SubnetsHaveNoServiceEndpointsConfigured",
        ),
    ],
)
def test_a_resource_that_is_refused(
    tmp_path: Path, existing: list[tuple[str, dict[str, Any]]], kind: str, inputs: dict[str, Any], says: str
) -> None:
    """Azure refuses what its networks, its names and its storage accounts do not allow."""
    azure = Azure(tmp_path).with_network()
    for earlier, given in existing:
        azure.make(earlier, **given)
    with pytest.raises(RefusedError, match=says):
        azure.make(kind, **inputs)


def test_a_subnet_in_use_keeps_its_range(tmp_path: Path) -> None:
    """Nodes have addresses of it (terraform-provider-azurerm#7687), and its network has to hold it."""
    azure = Azure(tmp_path).with_cluster()
    for kind, identity, changes, says in (
        ("network:Subnet", SUBNET, {"addressPrefix": "10.224.0.0/20"}, "InUseSubnetCannotBeUpdated"),
        (
            "network:VirtualNetwork",
            SUBNET.rpartition("/subnets/")[0],
            {"addressSpace": {"addressPrefixes": ["10.230.0.0/16"]}},
            "InUsePrefixCannotBeDeleted",
        ),
    ):
        resource = azure.store.get("azure-native", identity)
        assert resource is not None
        before = dict(resource.inputs)
        with pytest.raises(RefusedError, match=says):
            azure.change(kind, Created(identity, resource.state), before, **{**before, **changes})


def test_keys_stay_the_same(tmp_path: Path) -> None:
    """The keys of an account do not change, and are listed even if shared-key access is disabled."""
    azure = Azure(tmp_path).with_network()
    azure.make("storage:StorageAccount", **_ACCOUNT, allowSharedKeyAccess=False)
    arguments = {**_WITHIN, "accountName": "bucket123"}
    first: Any = azure.provider.invoke("azure-native:storage:listStorageAccountKeys", arguments)
    assert [key["keyName"] for key in first["keys"]] == ["key1", "key2"]
    assert first == azure.provider.invoke("azure-native:storage:listStorageAccountKeys", arguments)


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
    """A cluster and its pools exclude each other (cilium/cilium#25944), different pools do not
    (Azure/AKS#1913)."""
    operations = Operations()
    with (
        operations.on(underway, "Updating"),
        pytest.raises(RefusedError, match=says),
        operations.on(wanted, "Creating"),
    ):
        pass
    with operations.on(wanted, "Creating"):
        pass
    with (
        operations.on(f"{CLUSTER}/agentPools/a", "Creating"),
        operations.on(f"{CLUSTER}/agentPools/ab", "Creating"),
    ):
        pass
