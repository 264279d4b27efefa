"""GKE node pools of every capacity kind, at named paths."""

from typing import Any

import pulumi
import pytest

from components.gke import NodePool, NodePoolArgs
from ebbtide.analysis.recording.program import ProgramError
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.model.capacity import Spot
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.pool import Accelerator, Nodes, Pool
from ebbtide.declaration.model.site import Site
from ebbtide.placement.derive import profile
from ebbtide.values.cloud_kind import CloudKind
from tests.declarations import GKE, only
from tests.synth import synth

POOL = "gcp:container/nodePool:NodePool"


def made(**work_pool: Any) -> Any:
    """Inputs of the node pool that a work pool becomes, in a zonal cluster."""
    return synth(only(GKE, **work_pool)).named("train-work", POOL).inputs


@pytest.mark.parametrize(
    ("location", "zones", "total", "initial"),
    [
        ("us-central1-a", [], 3, 3),
        ("us-central1", [], 3, 1),
        ("us-central1", [], 4, 2),
        ("us-central1", ["us-central1-a", "us-central1-c"], 3, 2),
    ],
)
def test_the_initial_count_is_per_zone(location: str, zones: list[str], total: int, initial: int) -> None:
    """A minimum of three over three zones begins with one node in each, and is never changed again."""
    declaration = only(GKE, machine="n2-standard-8", nodes={"min": total, "max": 9}, zones=zones)
    declaration["cloud"] = declaration["cloud"] | {"location": location}
    pool = synth(declaration).named("train-work", POOL)
    assert pool.inputs["initialNodeCount"] == initial
    assert pool.ignore_changes == ("name", "initialNodeCount")
    assert "nodeCount" not in pool.inputs


def test_the_initial_count_is_never_above_the_maximum() -> None:
    """One initial node cannot be in each of three zones."""
    declaration = only(GKE, machine="n2-standard-8", nodes={"min": 1, "max": 1})
    declaration["cloud"] = declaration["cloud"] | {"location": "us-central1"}
    assert synth(declaration).named("train-work", POOL).inputs["initialNodeCount"] == 0


@pytest.mark.parametrize(
    ("driver", "image", "on"),
    [("default", "cos", True), ("latest", "cos", True), ("none", "cos", False), ("default", "ubuntu", False)],
)
def test_secure_boot_with_signed_drivers(driver: str, image: str, *, on: bool) -> None:
    """GKE's own drivers on Container-Optimized OS are signed; others may be built on the node."""
    accelerator = {"type": "nvidia-tesla-t4", "driver": driver}
    declaration = only(GKE, machine="n1-standard-8", image=image, accelerator=accelerator)
    declaration["addons"] = {"drivers": "none" if driver == "none" else "managed"}
    config: Any = synth(declaration).named("train-work", POOL).inputs["nodeConfig"]
    assert config["shieldedInstanceConfig"] == {"enableSecureBoot": on, "enableIntegrityMonitoring": True}


def test_tpus_are_part_of_their_machine() -> None:
    """A TPU is not a guest accelerator, and needs no driver."""
    declaration = only(GKE, machine="ct5lp-hightpu-1t", capacity="spot")
    config: Any = synth(declaration).named("train-work", POOL).inputs["nodeConfig"]
    assert config["machineType"] == "ct5lp-hightpu-1t"
    assert "guestAccelerators" not in config


SITE = Site(CloudKind.GKE, "europe-west4-a")


def alone(**pool: Any) -> Recording:
    """A node pool in another program."""

    def program() -> None:
        args = NodePoolArgs(pool=Pool(**pool), site=SITE, cluster="theirs", project="their-project")
        NodePool("gpus", args)

    return record(program, project="theirs", stack="dev")


def test_a_node_pool_is_usable_alone() -> None:
    """Another program needs no declaration, no topology and no cluster of ours."""
    t4 = Accelerator(type="nvidia-tesla-t4")
    recording = alone(name="t4", machine="n1-standard-8", accelerator=t4, capacity=Spot(), nodes=Nodes(max=4))
    (resource,) = recording.of_type(POOL)
    inputs: Any = resource.inputs
    assert (inputs["cluster"], inputs["location"]) == ("theirs", "europe-west4-a")
    assert inputs["autoscaling"]["totalMinNodeCount"] == 0
    assert resource.deleted_with is None


def test_a_bad_pool_alone_is_refused_with_every_fault() -> None:
    """All of its faults come back together, with their paths."""
    with pytest.raises(ProgramError) as refused:
        alone(name="T4", machine="n1-highmen-8", nodes=Nodes(min=5, max=4))
    cause = refused.value.__cause__
    assert isinstance(cause, pulumi.InputPropertiesError)
    assert {fault["property_path"] for fault in cause.errors or []} == {"name", "machine", "nodes.min"}


def test_no_grace_is_a_grace() -> None:
    """Zero seconds is a value, and reaches the kubelet."""
    kubelet = made(machine="n2-standard-8", capacity="spot", shutdownGrace="0s")["nodeConfig"][
        "kubeletConfig"
    ]
    assert kubelet["shutdownGracePeriodSeconds"] == 0


@pytest.mark.parametrize(
    ("machine", "written", "count"), [("n2-standard-8", {"localSsdCount": 4}, 4), ("a3-highgpu-8g", {}, 16)]
)
@pytest.mark.parametrize("use", ["ephemeralStorageLocalSsdConfig", "localNvmeSsdBlockConfig"])
def test_local_ssds_are_those_of_the_machine(
    machine: str, written: dict[str, int], count: int, use: str
) -> None:
    """A machine type that always has a number of them needs none written."""
    config = made(machine=machine, **{use: written})["nodeConfig"]
    assert config[use] == {"localSsdCount": count}


def test_a_slice_of_several_nodes_has_its_topology() -> None:
    """The autoscaler brings all of them or none; a slice of one node has the topology by itself."""
    inputs = made(machine="ct5lp-hightpu-4t", tpuTopology="4x4", nodes={})
    assert inputs["placementPolicy"] == {"type": "COMPACT", "tpuTopology": "4x4"}
    assert inputs["autoscaling"]["totalMaxNodeCount"] == 4
    assert inputs["initialNodeCount"] == 0
    assert "placementPolicy" not in made(machine="ct5lp-hightpu-4t", tpuTopology="2x2")


def test_a_placement_policy_has_a_name() -> None:
    """An override names a compact or workload policy that exists; the type stays that of the field."""
    policy = {"placementPolicy": {"policyName": "nvl72"}}
    inputs = made(machine="c2-standard-8", compact=True, overrides=policy)
    assert inputs["placementPolicy"] == {"type": "COMPACT", "policyName": "nvl72"}


def test_gvnic_follows_the_machine() -> None:
    """The gVNIC is enabled on series without another interface, and existing pools keep their setting."""
    assert made(machine="c3-standard-8")["nodeConfig"]["gvnic"] == {"enabled": True}
    assert made(machine="n2-standard-8", gvnic=True)["nodeConfig"]["gvnic"] == {"enabled": True}
    assert "gvnic" not in made(machine="n2-standard-8")["nodeConfig"]
    for machine, ignored in (("c3-standard-8", True), ("n2-standard-8", False)):
        pool = synth(only(GKE, machine=machine, gvnic=True)).named("train-work", POOL)
        assert ("nodeConfig.gvnic" in pool.ignore_changes) is ignored


@pytest.mark.parametrize(
    "fields", [{"threadsPerCore": 1}, {"labels": {"cloud.google.com/gke-smt-disabled": "true"}}], ids=str
)
def test_one_thread_for_each_core_halves_a_node(fields: dict[str, Any]) -> None:
    """The placement of a pool without SMT counts half of the machine's CPUs; its GKE input is the field's."""
    declarations = (only(GKE, machine="n2-standard-8"), only(GKE, machine="n2-standard-8", **fields))
    whole, halved = (profile(declare(declaration)).pools[-1] for declaration in declarations)
    # 8 and 4 cores less GKE's reservation, and less the same DaemonSets.
    assert whole.cpu_m - halved.cpu_m == 7910 - 3920
    features = made(machine="n2-standard-8", **fields)["nodeConfig"].get("advancedMachineFeatures")
    assert features == ({"threadsPerCore": 1} if "threadsPerCore" in fields else None)
