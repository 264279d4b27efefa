"""The fake of azure-native for every type: checks, refresh, refusals of groups, grants, networks, storage."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from ebbtide.analysis.recording.record import record
from ebbtide_rehearsal.cloud.azure.arm import DEPLOYER, Operations, lock
from ebbtide_rehearsal.cloud.azure.provider import KINDS, AzureProvider
from ebbtide_rehearsal.cloud.provider import Call, Created, Read, RefusedError
from rehearsal.tests.unit.azure_cloud import (
    CLUSTER,
    GROUP,
    MANAGED_CLUSTER,
    NETWORK_CONTRIBUTOR,
    POOL,
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


def _grant(azure: Azure, **changes: Any) -> Created:
    given = {"scope": GROUP, "roleDefinitionId": NETWORK_CONTRIBUTOR, "principalId": DEPLOYER, **changes}
    return azure.make("authorization:RoleAssignment", **given)


def _credential(azure: Azure, name: str, subject: str) -> Created:
    return azure.make(
        "managedidentity:FederatedIdentityCredential",
        resourceGroupName="train",
        resourceName="control-plane",
        federatedIdentityCredentialResourceName=name,
        issuer="https://issuer.example/",
        subject=subject,
        audiences=["api://AzureADTokenExchange"],
    )


def _account(azure: Azure, group: str) -> Created:
    return azure.make("storage:StorageAccount", **{**_ACCOUNT, "resourceGroupName": group})


def _registry(azure: Azure, name: str) -> Created:
    return azure.make(
        "containerregistry:Registry", **{**_REGISTRY, "registryName": name, "resourceGroupName": "other"}
    )


def test_what_no_two_resources_share(tmp_path: Path) -> None:
    """A grant, a credential's subject, the name of an account and of a registry, whatever the group."""
    azure = Azure(tmp_path).with_network()
    azure.make("resources:ResourceGroup", resourceGroupName="other")
    azure.make("containerregistry:Registry", **_REGISTRY)
    _grant(azure)
    _grant(azure, scope=SUBNET)
    _credential(azure, "first", "a")
    _credential(azure, "second", "b")
    _account(azure, "train")
    for again, code in (
        (lambda: _grant(azure), "RoleAssignmentExists"),
        (lambda: _credential(azure, "third", "a"), "Conflict"),
        (lambda: _account(azure, "other"), "StorageAccountAlreadyTaken"),
        (lambda: _registry(azure, "VisionImages"), "AlreadyInUse"),
    ):
        with pytest.raises(RefusedError, match=f'Code="{code}" .*already exists'):
            again()


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
