"""AKS node pools of every capacity kind, at named paths, in a cluster of ours and alone."""

from typing import Any

import pulumi
import pytest

from components.aks import NodePool, NodePoolArgs
from components.aks.node_pool import pool_inputs
from ebbtide.analysis.recording.program import ProgramError
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model import Accelerator, Nodes, Pool, Role, Site, Spot
from ebbtide.declaration.model.pool import MachineShape
from ebbtide.declaration.model.resolved_pool import resolve
from tests.declarations import AKS, only
from tests.synth import synth

POOL = "azure-native:containerservice:AgentPool"
SPOT_TAINT = "kubernetes.azure.com/scalesetpriority=spot:NoSchedule"
EASTUS = Site(CloudKind.AKS, "eastus")


def made(**work_pool: Any) -> Any:
    """Inputs of the node pool that a work pool becomes."""
    return synth(only(AKS, **work_pool)).named("train-work", POOL).inputs


def alone(pool: Pool, **args: Any) -> Recording:
    """Create a single node pool as another program does."""

    def program() -> None:
        NodePool(
            "theirs",
            NodePoolArgs(pool=pool, site=EASTUS, cluster="their-aks", resource_group="their-group", **args),
        )

    return record(program, project="theirs", stack="dev")


_GROUP = "/subscriptions/s/resourceGroups/r/providers/Microsoft.Compute/capacityReservationGroups/g"

CAPACITIES: list[tuple[Any, dict[str, Any]]] = [
    ("on-demand", {}),
    ("spot", {"scaleSetPriority": "Spot", "scaleSetEvictionPolicy": "Delete", "spotMaxPrice": -1}),
    (
        {"kind": "spot", "maxPrice": 0.98765, "evictionPolicy": "Deallocate"},
        {"scaleSetPriority": "Spot", "scaleSetEvictionPolicy": "Deallocate", "spotMaxPrice": 0.98765},
    ),
    ({"kind": "reservation", "name": _GROUP}, {"capacityReservationGroupID": _GROUP}),
]
_KEYS = {"scaleSetPriority", "scaleSetEvictionPolicy", "spotMaxPrice", "capacityReservationGroupID"}


@pytest.mark.parametrize(("capacity", "expected"), CAPACITIES, ids=[str(row[0]) for row in CAPACITIES])
def test_a_capacity_kind_sets_its_own_fields_and_no_other(capacity: Any, expected: dict[str, Any]) -> None:
    """Properties that a capacity kind does not have are not set."""
    inputs = made(machine="Standard_D8s_v5", capacity=capacity)
    assert {key: value for key, value in inputs.items() if key in _KEYS} == expected


def test_a_spot_pool_declares_what_aks_would_add() -> None:
    """Without them, every later preview would remove the label and the taint."""
    inputs = made(machine="Standard_D8s_v5", capacity="spot")
    assert inputs["nodeLabels"] == {
        "ebbtide.dev/pool": "work",
        "kubernetes.azure.com/scalesetpriority": "spot",
    }
    assert inputs["nodeTaints"] == [SPOT_TAINT]
    assert "upgradeSettings" not in inputs


def test_an_overridden_taint_leaves_aks_its_own() -> None:
    """AKS adds its spot taint to any declared ones; a taint without a value is written without one."""
    inputs = made(machine="Standard_D8s_v5", capacity="spot", taints=[{"key": "lab", "effect": "NoExecute"}])
    assert inputs["nodeTaints"] == ["lab:NoExecute", SPOT_TAINT]


@pytest.mark.parametrize(
    ("driver", "expected"), [(None, "Install"), ("default", "Install"), ("none", "None")]
)
def test_a_gpu_pool_says_who_installs_the_driver(driver: Any, expected: str) -> None:
    """AKS does, unless an add-on is to."""
    pool = Pool(
        name="t4",
        machine=MachineShape(type="Standard_NC4as_T4_v3"),
        accelerator=Accelerator(type="nvidia-t4", driver=driver),
        nodes=Nodes(max=2),
    )
    inputs = alone(pool).named("theirs", POOL).inputs
    assert inputs["gpuProfile"] == {"driver": expected}
    assert inputs["nodeTaints"] == ["ebbtide.dev/pool=t4:NoSchedule", "nvidia.com/gpu=present:NoSchedule"]


def test_the_gpus_of_a_machine_need_not_be_declared() -> None:
    """The catalog knows what the machine has, and AKS puts its driver there."""
    assert made(machine="Standard_NC4as_T4_v3")["gpuProfile"] == {"driver": "Install"}


def test_a_cpu_pool_has_no_gpu_profile() -> None:
    """AKS refuses one on a machine without a GPU."""
    assert "gpuProfile" not in made(machine="Standard_D8s_v5")


def test_an_autoscaled_pool_has_limits_and_no_count() -> None:
    """An update is a PUT of the whole pool: a count in it would take away the nodes that are at work."""
    inputs = made(machine="Standard_D8s_v5", nodes={"max": 7})
    assert (inputs["enableAutoScaling"], inputs["minCount"], inputs["maxCount"]) == (True, 0, 7)
    assert "count" not in inputs


def test_a_pool_of_fixed_size_has_a_count_and_no_limits() -> None:
    """Either the autoscaler has the count, or the declaration."""
    inputs = made(machine="Standard_D8s_v5", nodes={"count": 3})
    assert (inputs["enableAutoScaling"], inputs["count"]) == (False, 3)
    assert not {"minCount", "maxCount"} & set(inputs)


def test_a_pool_takes_its_shape_from_the_declaration() -> None:
    """Machine, disk, image, zones, pods, and how it is upgraded."""
    inputs = made(
        machine="Standard_D8ds_v5",
        disk={"sizeGib": 200, "type": "ephemeral"},
        image="azure-linux",
        zones=["1", "3"],
        maxPodsPerNode=50,
        upgrade={"maxSurge": 2, "maxUnavailable": 0},
        labels={"tier": "gold"},
    )
    expected = {
        "agentPoolName": "work",
        "mode": "User",
        "type": "VirtualMachineScaleSets",
        "vmSize": "Standard_D8ds_v5",
        "osType": "Linux",
        "osSKU": "AzureLinux",
        "osDiskSizeGB": 200,
        "osDiskType": "Ephemeral",
        "availabilityZones": ["1", "3"],
        "maxPods": 50,
        "upgradeSettings": {"maxSurge": "2", "maxUnavailable": "0"},
        "scaleDownMode": "Delete",
        "enableNodePublicIP": False,
        "nodeLabels": {"ebbtide.dev/pool": "work", "tier": "gold"},
    }
    assert {key: inputs[key] for key in expected} == expected


def test_what_is_not_declared_is_left_to_aks() -> None:
    """An empty list of zones or an invented number of pods would be a choice that the declaration does not
    make."""
    inputs = made(machine="Standard_D8s_v5")
    assert not {"availabilityZones", "maxPods", "upgradeSettings", "orchestratorVersion"} & set(inputs)
    assert (inputs["osSKU"], inputs["osDiskSizeGB"], inputs["osDiskType"]) == ("Ubuntu", 100, "Managed")


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


def test_a_pool_used_alone_takes_subnet_and_labels() -> None:
    """Another program passes what the topology knows of its cluster."""
    pool = Pool(name="cpu", machine=MachineShape(type="Standard_D8s_v5"), nodes=Nodes(max=10))
    leaf = alone(pool, subnet="/subscriptions/s/x", labels={"cost": "ml"}).named("theirs", POOL)
    assert leaf.inputs["vnetSubnetID"] == "/subscriptions/s/x"
    assert leaf.inputs["tags"] == {"cost": "ml"}


def test_a_system_pool_can_be_added_to_someone_elses_cluster() -> None:
    """A system pool can be added to an existing cluster as an ordinary pool in system mode."""
    pool = Pool(
        name="admin", role=Role.SYSTEM, machine=MachineShape(type="Standard_D4s_v5"), nodes=Nodes(max=3)
    )
    leaf = alone(pool).named("theirs", POOL)
    assert (leaf.inputs["mode"], leaf.inputs["minCount"]) == ("System", 2)
    assert leaf.inputs["nodeTaints"] == ["CriticalAddonsOnly=true:NoSchedule"]


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
        pool_inputs(resolve(pool, EASTUS), subnet=None, labels={})


def test_pools_of_an_own_cluster_die_with_it() -> None:
    """Destroying the cluster deletes no pool one by one; each waits for the identity's grant."""
    recording = synth(AKS)
    (cluster,) = recording.of_type("azure-native:containerservice:ManagedCluster")
    pools = recording.of_type(POOL)
    assert {str(pool.inputs["agentPoolName"]) for pool in pools} == {"cpu", "t4", "steady"}
    for pool in pools:
        assert pool.deleted_with == cluster.urn
        assert recording.named("train-identity-subnet").urn in pool.dependencies
