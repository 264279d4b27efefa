"""AKS node pools, and the changes of them that are refused."""

from typing import Any

import pulumi
import pytest
from pulumi_azure_native import containerservice

from components.aks import NodePool, NodePoolArgs
from components.aks.node_pool import POOLS, pool_inputs
from components.replacement import ImmutableInputError
from ebbtide.analysis.recording.program import ProgramError
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.model.capacity import Spot
from ebbtide.declaration.model.pool import MachineShape, Nodes, Pool
from ebbtide.declaration.model.resolved_pool import resolve
from ebbtide.declaration.model.site import Site
from ebbtide.values.cloud_kind import CloudKind
from tests.declarations import AKS, only
from tests.synth import synth

POOL = "azure-native:containerservice:AgentPool"
SPOT_TAINT = "kubernetes.azure.com/scalesetpriority=spot:NoSchedule"
EASTUS = Site(CloudKind.AKS, "eastus")


def alone(pool: Pool, **args: Any) -> Recording:
    """Create a single node pool as another program does."""

    def program() -> None:
        NodePool(
            "theirs",
            NodePoolArgs(pool=pool, site=EASTUS, cluster="their-aks", resource_group="their-group", **args),
        )

    return record(program, project="theirs", stack="dev")


def test_a_pool_is_usable_alone() -> None:
    """In another program it adds one pool to that program's cluster, and nothing shared."""
    pool = Pool(
        name="cpu", machine=MachineShape(type="Standard_D8s_v5"), capacity=Spot(), nodes=Nodes(max=10)
    )
    recording = alone(pool)
    component, leaf = recording
    assert (component.type, component.name) == ("ebbtide:aks:NodePool", "theirs")
    assert (leaf.type, leaf.name, leaf.parent) == (POOL, "theirs", component.urn)
    assert (leaf.inputs["resourceName"], leaf.inputs["resourceGroupName"]) == ("their-aks", "their-group")
    assert leaf.inputs["nodeTaints"] == [SPOT_TAINT]
    assert leaf.inputs["minCount"] == 0
    assert not {"vnetSubnetID", "orchestratorVersion"} & set(leaf.inputs)
    assert leaf.deleted_with is None
    assert dict(component.outputs) == {"pool_name": "cpu"}


def test_a_bad_pool_used_alone_is_refused_with_every_fault() -> None:
    """Each has its path, and no resource is made."""
    pool = Pool(
        name="Much_too_long_a_name",
        machine=MachineShape(type="Standard_D8s_v5"),
        capacity=Spot(max_price=0.1234567),
        nodes=Nodes(min=5, max=1),
    )
    with pytest.raises(ProgramError) as refused:
        alone(pool)
    cause = refused.value.__cause__
    assert isinstance(cause, pulumi.InputPropertiesError)
    paths = {error["property_path"] for error in cause.errors or ()}
    assert {"name", "capacity.maxPrice", "nodes.min"} <= paths


@pytest.mark.parametrize("kind", ["preemptible", "flex-start", "queued"])
def test_a_capacity_kind_of_the_other_cloud_is_never_passed_over(kind: str) -> None:
    """The rules refuse it before this; should one be missing, it does not become an on-demand pool."""
    pool = Pool.model_validate({"name": "cpu", "machine": "Standard_D8s_v5", "capacity": kind})
    with pytest.raises(ValueError, match=f"AKS has no {kind} capacity"):
        pool_inputs(resolve(pool, EASTUS), subnet=None, reservation=None, labels={})


SUBNET = "/subscriptions/S/resourceGroups/R/providers/Microsoft.Network/virtualNetworks/v/subnets/n"

OLD: dict[str, Any] = {
    "agentPoolName": "cpu",
    "mode": "User",
    "vmSize": "Standard_D8s_v5",
    "osDiskSizeGB": 100,
    "osDiskType": "Managed",
    "osType": "Linux",
    "type": "VirtualMachineScaleSets",
    "enableNodePublicIP": False,
    "vnetSubnetID": SUBNET,
}
SPOT = OLD | {"scaleSetPriority": "Spot", "scaleSetEvictionPolicy": "Delete", "spotMaxPrice": -1}

REFUSED: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (OLD, {"vmSize": "Standard_D16s_v5"}, "machine (vmSize) from Standard_D8s_v5 to Standard_D16s_v5"),
    (OLD, {"osDiskSizeGB": 200}, "disk.sizeGib (osDiskSizeGB) from 100 to 200"),
    (OLD, {"osDiskSizeGB": 200.0}, "disk.sizeGib (osDiskSizeGB) from 100 to 200"),
    (OLD, {"osDiskType": "Ephemeral"}, "disk.type (osDiskType) from Managed to Ephemeral"),
    (OLD, {"scaleSetPriority": "Spot"}, "capacity (scaleSetPriority) from Regular to Spot"),
    (SPOT, {"scaleSetPriority": "Regular"}, "capacity (scaleSetPriority) from Spot to Regular"),
    (
        SPOT,
        {"scaleSetEvictionPolicy": "Deallocate"},
        "capacity.evictionPolicy (scaleSetEvictionPolicy) from Delete to Deallocate",
    ),
    (SPOT, {"spotMaxPrice": 0.5}, "capacity.maxPrice (spotMaxPrice) from -1 to 0.5"),
    (
        OLD,
        {"capacityReservationGroupID": "/subscriptions/s/g"},
        "capacity.name (capacityReservationGroupID) from none to /subscriptions/s/g",
    ),
    (OLD, {"maxPods": 50}, "maxPodsPerNode (maxPods) from none to 50"),
    (OLD, {"availabilityZones": ["1", "2"]}, "zones (availabilityZones) from none to 1, 2"),
    (OLD, {"gpuProfile": {"driver": "None"}}, "accelerator.driver (gpuProfile) from Install to None"),
    (OLD, {"vnetSubnetID": "/subscriptions/s/other"}, f"subnet (vnetSubnetID) from {SUBNET} to "),
    (OLD, {"osType": "Windows"}, "osType from Linux to Windows"),
    (OLD, {"type": "VirtualMachines"}, "type from VirtualMachineScaleSets to VirtualMachines"),
    (OLD, {"enableNodePublicIP": True}, "enableNodePublicIP from false to true"),
]


@pytest.mark.parametrize(("old", "change", "message"), REFUSED, ids=[str(list(row[1])) for row in REFUSED])
def test_a_change_that_aks_cannot_make_is_found(
    old: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    """By itself, under the name that the declaration has for it."""
    (refused,) = POOLS.changes(old, old | change)
    assert str(refused).startswith(message)


ALLOWED: list[dict[str, Any]] = [
    {},
    {"mode": "System"},
    {"scaleSetPriority": "Regular"},
    {"scaleSetEvictionPolicy": "Delete", "spotMaxPrice": -1},
    {"gpuProfile": {"driver": "Install"}},
    {"vnetSubnetID": SUBNET.lower()},
    {"vnetSubnetID": object()},
    {"gpuProfile": {"driver": object()}},
    {"availabilityZones": [object()]},
    {"osSKU": "AzureLinux", "maxCount": 9, "nodeTaints": ["a=b:NoSchedule"], "orchestratorVersion": "1.35"},
    {"agentPoolName": "other", "vmSize": "Standard_D16s_v5"},
]


@pytest.mark.parametrize("change", ALLOWED, ids=[str(list(change)) for change in ALLOWED])
def test_a_change_that_aks_can_make_passes(change: dict[str, Any]) -> None:
    """A change that AKS supports, a default that is now declared, a value unknown in the preview, and another
    pool are accepted."""
    assert POOLS.changes(OLD, OLD | change) == ()


def test_zones_in_another_order_are_the_same_zones() -> None:
    """AKS gives them back in its own order."""
    old = OLD | {"availabilityZones": ["1", "3"]}
    assert POOLS.changes(old, OLD | {"availabilityZones": ["3", "1"]}) == ()


def test_leaving_spot_is_said_once() -> None:
    """Price and eviction policy go with the priority."""
    assert len(POOLS.changes(SPOT, OLD)) == 1


def test_the_table_names_inputs_that_there_are() -> None:
    """A field that the SDK does not have would never be compared."""
    annotations = containerservice.ManagedClusterAgentPoolProfileArgsDict.__annotations__
    assert {field.python for field in POOLS.rows} <= set(annotations)
    for field in POOLS.rows:
        assert field.wire.lower() == field.python.replace("_", "")


def test_only_what_is_fixed_is_kept() -> None:
    """Mutable fields are not inputs of the component."""
    kept = POOLS.of_pool(
        "cpu", "User", {"mode": "User", "vm_size": "D8", "max_pods": None, "max_count": 3, "tags": {}}
    )
    assert kept == {"agentPoolName": "cpu", "mode": "User", "vmSize": "D8"}


def hooked(old: dict[str, Any], new: dict[str, Any]) -> None:
    """The hook, called as the engine calls it."""
    POOLS.refuse(pulumi.ResourceHookArgs(urn="u", id="", name="n", type="t", new_inputs=new, old_inputs=old))


def test_a_work_pool_is_replaced_by_a_new_one_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what changes, what would become of the pool, and what to write instead."""
    monkeypatch.setattr(pulumi, "get_stack", lambda: "dev")  # of the process: any earlier program's
    with pytest.raises(ImmutableInputError) as refused:
        hooked(OLD, OLD | {"vmSize": "Standard_D16s_v5", "maxPods": 50})
    assert str(refused.value) == (
        "AKS cannot change these fields of the node pool cpu: machine (vmSize) from Standard_D8s_v5 to "
        "Standard_D16s_v5; maxPodsPerNode (maxPods) from none to 50. The pool would have to be deleted with "
        "its workloads. `ebbtide up dev` creates the new pool beside it, lets its work finish, and then "
        "deletes it."
    )


def test_the_system_pool_is_replaced_through_the_command_line() -> None:
    """AKS takes no second pool through the cluster's own list."""
    with pytest.raises(
        ImmutableInputError, match=r"az aks nodepool add --mode System --name NEW .* --name cpu \.\.\."
    ):
        hooked(OLD | {"mode": "System"}, OLD | {"mode": "System", "vmSize": "Standard_D16s_v5"})


def test_the_hook_lets_everything_else_pass() -> None:
    """Also where the engine has no inputs to show."""
    hooked(OLD, OLD | {"mode": "System"})
    POOLS.refuse(pulumi.ResourceHookArgs(urn="u", id="", name="n", type="t"))


def test_a_component_is_updated_only_by_what_is_fixed() -> None:
    """The hook is called for nothing else, in a cluster of any number of pools."""

    def inputs(**work_pool: Any) -> Any:
        recording = synth(only(AKS, machine="Standard_D8s_v5", **work_pool))
        return recording.named("train-work", "ebbtide:aks:NodePool").inputs

    before = inputs()
    assert inputs(nodes={"max": 9}, labels={"a": "b"}, image="azure-linux", upgrade={"maxSurge": 1}) == before
    assert inputs(zones=["1"]) != before
