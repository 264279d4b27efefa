"""The fake of azure-native for every type: checks, differences, previews, refresh."""

from pathlib import Path
from typing import Any

import pytest

from ebbtide.analysis.recording.values import UNKNOWN
from ebbtide_rehearsal.cloud.azure.arm import lock
from ebbtide_rehearsal.cloud.azure.provider import KINDS, AzureProvider
from ebbtide_rehearsal.cloud.provider import Call, Read, RefusedError
from rehearsal.tests.unit.azure_cloud import GROUP, MANAGED_CLUSTER, POOL, SPOT, SUBNET, Azure

_POOL = "azure-native:containerservice:AgentPool"
_CLUSTER = "azure-native:containerservice:ManagedCluster"


def _reasons(azure: Azure, kind: str, /, **inputs: Any) -> list[str]:
    _, failures = azure.provider.check(Call(f"azure-native:{kind}", "it", ""), {}, inputs)
    return [failure.reason for failure in failures]


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    """An omitted required property fails the check, with azure-native's message."""
    assert _reasons(Azure(tmp_path), "network:Subnet", resourceGroupName="train") == [
        "missing required property 'virtualNetworkName'"
    ]


def test_a_resource_without_a_place_for_it(tmp_path: Path) -> None:
    """Without a region on the provider and a group to take it from, a storage account cannot be planned."""
    provider = AzureProvider(Azure(tmp_path).store, Azure(tmp_path).planes)
    inputs: dict[str, Any] = {
        "resourceGroupName": "train",
        "accountName": "abc",
        "kind": "StorageV2",
        "sku": {"name": "x"},
    }
    _, failures = provider.check(Call("azure-native:storage:StorageAccount", "it", ""), {}, inputs)
    (failure,) = failures
    assert failure.reason == (
        "missing required property 'location'. Either set it explicitly or configure it with "
        "'pulumi config set azure-native:location <value>'."
    )


@pytest.mark.parametrize(
    ("kind", "inputs", "reason"),
    [
        (
            "containerservice:AgentPool",
            {**POOL, "agentPoolName": "GPU-pool"},
            "'agentPoolName' does not match expression '^[a-z][a-z0-9]{0,11}$'",
        ),
        (
            "containerservice:AgentPool",
            {**POOL, "agentPoolName": "thirteenchars"},
            "'agentPoolName' does not match expression '^[a-z][a-z0-9]{0,11}$'",
        ),
        (
            "containerservice:AgentPool",
            {**POOL, "osDiskSizeGB": 4096},
            "'osDiskSizeGB' is too high (4096.000000 > 2048.000000)",
        ),
        (
            "containerservice:ManagedCluster",
            {**MANAGED_CLUSTER, "agentPoolProfiles": [{"name": "system-1"}]},
            "'agentPoolProfiles[0].name' does not match expression '^[a-z][a-z0-9]{0,11}$'",
        ),
        (
            "storage:StorageAccount",
            {"resourceGroupName": "g", "accountName": "ab", "kind": "StorageV2", "sku": {"name": "x"}},
            "'accountName' is too short (2): at least 3 characters required",
        ),
        (
            "storage:StorageAccount",
            {"resourceGroupName": "g", "accountName": "Ab-c", "kind": "StorageV2", "sku": {"name": "x"}},
            "'accountName' does not match expression '^[a-z0-9]+$'",
        ),
        (
            "storage:FileShare",
            {"resourceGroupName": "g", "accountName": "abc", "shareName": "x" * 64},
            "'shareName' is too long (64): at most 63 characters allowed",
        ),
        (
            "storage:FileShare",
            {"resourceGroupName": "g", "accountName": "abc", "shareName": "abc", "shareQuota": 0},
            "'shareQuota' is too low (0.000000 < 1.000000)",
        ),
        (
            "containerservice:AgentPool",
            {**POOL, "maxCount": "many"},
            "'maxCount' should be of type 'integer'",
        ),
    ],
)
def test_the_schemas_limits_hold_before_anything_is_planned(
    tmp_path: Path, kind: str, inputs: dict[str, Any], reason: str
) -> None:
    """Names and numbers that the schema does not allow fail the check (azure-native, validateProperty)."""
    assert reason in _reasons(Azure(tmp_path), kind, **inputs)


def test_names_places_and_api_versions_are_filled_in(tmp_path: Path) -> None:
    """An omitted name is generated once, and kept."""
    azure = Azure(tmp_path)
    call = Call("azure-native:resources:ResourceGroup", "group", "")
    first, _ = azure.provider.check(call, {}, {})
    again, _ = azure.provider.check(call, first, {})
    assert first == again
    assert str(first["resourceGroupName"]).startswith("group")
    assert first["location"] == "eastus"
    assert first["azureApiVersion"] == "2024-03-01"


def test_properties_without_a_schema_are_dropped(tmp_path: Path) -> None:
    """azure-native omits an unknown property without failing; the timeline says it."""
    azure = Azure(tmp_path)
    made = azure.make("resources:ResourceGroup", resourceGroupName="train", colour="green")
    assert "colour" not in made.state
    (event,) = azure.store.events(kind="property-ignored")
    assert "colour" in event.text


def test_nothing_is_made_without_a_subscription(tmp_path: Path) -> None:
    """A provider without a configured subscription has no default."""
    azure = Azure(tmp_path)
    bare = AzureProvider(azure.store, azure.planes)
    with pytest.raises(RefusedError, match="no subscription ID"):
        bare.create(Call("azure-native:resources:ResourceGroup", "g", ""), {"resourceGroupName": "g"})


def test_a_group_has_to_be_there(tmp_path: Path) -> None:
    """A resource's group and every other parent must exist."""
    azure = Azure(tmp_path)
    network: dict[str, Any] = {"addressSpace": {"addressPrefixes": ["10.0.0.0/8"]}}
    with pytest.raises(RefusedError, match="Resource group 'train' could not be found"):
        azure.make("network:VirtualNetwork", resourceGroupName="train", virtualNetworkName="train", **network)
    azure.make("resources:ResourceGroup", resourceGroupName="train")
    with pytest.raises(RefusedError, match="ParentResourceNotFound"):
        azure.make("containerservice:AgentPool", **POOL)


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    """azure-native refuses it itself; letters' case tells no two ids apart."""
    azure = Azure(tmp_path)
    azure.make("resources:ResourceGroup", resourceGroupName="train")
    with pytest.raises(RefusedError, match="cannot create already existing resource"):
        azure.make("resources:ResourceGroup", resourceGroupName="Train")


@pytest.mark.parametrize(
    ("kind", "before", "changes", "replaces"),
    [
        ("containerservice:AgentPool", POOL, {"maxCount": 20}, ()),
        ("containerservice:AgentPool", POOL, {"nodeLabels": {"a": "b"}}, ()),
        ("containerservice:AgentPool", POOL, {"nodeTaints": ["a=b:NoSchedule"]}, ()),
        ("containerservice:AgentPool", POOL, {"osDiskSizeGB": 200}, ()),
        ("containerservice:AgentPool", POOL, {"vmSize": "Standard_D16s_v5"}, ("vmSize",)),
        ("containerservice:AgentPool", POOL, {"agentPoolName": "other"}, ("agentPoolName",)),
        ("containerservice:ManagedCluster", MANAGED_CLUSTER, {"dnsPrefix": "other"}, ("dnsPrefix",)),
        ("containerservice:ManagedCluster", MANAGED_CLUSTER, {"tags": {"a": "b"}}, ()),
        ("resources:ResourceGroup", {"resourceGroupName": "g"}, {"location": "westus2"}, ("location",)),
        ("resources:ResourceGroup", {"resourceGroupName": "g"}, {"tags": {"a": "b"}}, ()),
    ],
)
def test_what_is_replaced(
    tmp_path: Path, kind: str, before: dict[str, Any], changes: dict[str, Any], replaces: tuple[str, ...]
) -> None:
    """A change of an input in `forceNewMap` (pulumi-azure-native, replacement.go) deletes the old resource
    first."""
    change = Azure(tmp_path).plan(kind, before, {**before, **changes})
    assert tuple(change.changed) == tuple(changes)
    assert tuple(change.replaces) == replaces
    assert change.delete_first == bool(replaces)


def test_of_a_network_profile_only_some_makes_a_new_cluster(tmp_path: Path) -> None:
    """Since pulumi-azure-native#4771, load balancer settings change in place and address ranges do not."""
    azure, before = Azure(tmp_path), MANAGED_CLUSTER
    profile: dict[str, Any] = before["networkProfile"]
    gentle: dict[str, Any] = {**profile, "loadBalancerProfile": {"idleTimeoutInMinutes": 5}}
    hard = {**profile, "serviceCidr": "10.1.0.0/16"}
    cases: list[tuple[dict[str, Any], tuple[str, ...]]] = [(gentle, ()), (hard, ("networkProfile",))]
    for changed, replaced in cases:
        plan = azure.plan("containerservice:ManagedCluster", before, {**before, "networkProfile": changed})
        assert tuple(plan.replaces) == replaced


def test_a_place_may_be_written_in_two_ways(tmp_path: Path) -> None:
    """`East US` is `eastus` (pulumi-azure-native, normalizedLocation)."""
    group = {"resourceGroupName": "g", "location": "East US"}
    assert not Azure(tmp_path).plan("resources:ResourceGroup", group, {**group, "location": "eastus"}).changed


def test_a_made_up_name_lets_the_new_one_come_first(tmp_path: Path) -> None:
    """Two of them can be there at the same time."""
    azure = Azure(tmp_path)
    call = Call("azure-native:resources:ResourceGroup", "g", "")
    old, _ = azure.provider.check(call, {}, {})
    new, _ = azure.provider.check(call, old, {"location": "westus2"})
    change = azure.provider.diff(call, "id", Read("id", old, {}), new)
    assert change.replaces == ("location",)
    assert not change.delete_first


def test_a_preview_knows_what_is_asked_for(tmp_path: Path) -> None:
    """And that Azure alone knows the rest: nothing is made."""
    azure = Azure(tmp_path)
    made = azure.provider.create(Call(_CLUSTER, "train", "", preview=True), MANAGED_CLUSTER)
    assert made.id == ""
    assert made.state["dnsPrefix"] == "train"
    assert "resourceGroupName" not in made.state
    assert made.state["oidcIssuerProfile"] == {"enabled": True, "issuerURL": UNKNOWN}
    assert made.state["identity"] == {"type": "UserAssigned", "userAssignedIdentities": UNKNOWN}
    assert azure.ids() == []


def test_a_preview_of_a_change_keeps_the_name(tmp_path: Path) -> None:
    """The name is known in the preview of a change, for the resources that depend on it."""
    azure = Azure(tmp_path)
    made = azure.make("resources:ResourceGroup", resourceGroupName="train")
    call = Call("azure-native:resources:ResourceGroup", "g", "", preview=True)
    old = Read(made.id, {}, made.state)
    state = azure.provider.update(call, made.id, old, {"resourceGroupName": "train", "tags": {"a": "b"}})
    assert state == {"tags": {"a": "b"}, "name": "train", "location": "eastus"}


def test_every_type_reads_back_as_it_was_asked_for(tmp_path: Path) -> None:
    """A refresh of unchanged resources changes neither inputs nor state."""
    azure = Azure(tmp_path).with_cluster()
    azure.make("containerservice:AgentPool", **SPOT)
    resources = azure.store.resources("azure-native")
    assert {resource.type for resource in resources} <= set(KINDS)
    for resource in resources:
        inputs = {**resource.inputs, "azureApiVersion": KINDS[resource.type].api_version}
        state = _state(azure, resource.type, resource.id)
        read = azure.provider.read(Call(resource.type, "it", resource.urn, inputs=inputs), resource.id, state)
        assert read == Read(resource.id, inputs, state)


def _state(azure: Azure, kind: str, identity: str) -> dict[str, Any]:
    result = azure.provider.read(Call(kind, "it", ""), identity, {})
    assert result is not None
    return dict(result.state)


def test_a_refresh_finds_what_was_changed_outside(tmp_path: Path) -> None:
    """A refresh adds changes made in Azure to the inputs, but not Azure's own additions."""
    azure = Azure(tmp_path).with_cluster()
    made = azure.make("containerservice:AgentPool", **SPOT)
    pool = azure.store.get("azure-native", made.id)
    assert pool is not None
    azure.store.put(pool.having(maxCount=25))
    read = azure.provider.read(Call(_POOL, "it", "", inputs=SPOT), made.id, made.state)
    assert read is not None
    assert read.inputs == {**SPOT, "maxCount": 25}


def test_a_cluster_shows_the_pools_that_were_added_to_it(tmp_path: Path) -> None:
    """A refresh of a cluster records its added pools as inputs, and the next up sends the cluster without
    changing them (pulumi-azure-native#579, #1686)."""
    azure = Azure(tmp_path).with_network()
    made = azure.make_cluster()
    azure.make("containerservice:AgentPool", **POOL)
    read = azure.provider.read(Call(_CLUSTER, "it", "", inputs=MANAGED_CLUSTER), made.id, made.state)
    assert read is not None
    profiles: Any = read.inputs["agentPoolProfiles"]
    assert [profile["name"] for profile in profiles] == ["system", "work"]
    state = azure.change("containerservice:ManagedCluster", made, read.inputs, **MANAGED_CLUSTER)
    after: Any = state["agentPoolProfiles"]
    assert [profile["name"] for profile in after] == ["system", "work"]


def test_subnets_are_no_business_of_a_network_that_declares_none(tmp_path: Path) -> None:
    """azure-native leaves alone what the program has as resources of their own."""
    azure = Azure(tmp_path).with_network()
    identity = SUBNET.rpartition("/subnets/")[0]
    inputs = {"resourceGroupName": "train", "virtualNetworkName": "train", "location": "eastus"}
    state = _state(azure, "azure-native:network:VirtualNetwork", identity)
    before: dict[str, Any] = {**state, "subnets": []}
    read = azure.provider.read(
        Call("azure-native:network:VirtualNetwork", "it", "", inputs=inputs), identity, before
    )
    assert read is not None
    assert "subnets" not in read.inputs
    assert read.state["subnets"] != []


def test_what_is_only_read_gets_its_inputs_from_its_id(tmp_path: Path) -> None:
    """A resource read by `pulumi import` or `.get` gets its inputs from its id."""
    azure = Azure(tmp_path).with_network()
    read = azure.provider.read(Call("azure-native:network:Subnet", "it", ""), SUBNET, {})
    assert read is not None
    assert read.inputs["subnetName"] == "nodes"
    assert read.inputs["virtualNetworkName"] == "train"
    assert read.inputs["addressPrefix"] == "10.224.0.0/16"


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
    azure.make(
        "storage:StorageAccount",
        resourceGroupName="train",
        accountName="kept123",
        kind="StorageV2",
        sku={"name": "Standard_LRS"},
    )
    azure.remove("resources:ResourceGroup", GROUP)
    assert azure.ids() == []
    assert azure.planes.running == {}
    (event,) = azure.store.events(kind="group-deleted")
    assert "kept123" in event.text
