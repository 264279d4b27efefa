"""GKE node pools, alone and in a cluster of ours or of another owner."""

from typing import Any

import pulumi
import pytest

from components.gke import NodePool, NodePoolArgs
from ebbtide.analysis.recording.program import ProgramError
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.recording.values import Secret
from ebbtide.declaration.model.capacity import Spot
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.pool import Accelerator, Nodes, Pool
from ebbtide.declaration.model.site import Site
from ebbtide.placement.derive import profile
from ebbtide.values.cloud_kind import CloudKind
from tests.contract.flips import GKE_EXISTING
from tests.declarations import GKE, only
from tests.synth import synth

POOL = "gcp:container/nodePool:NodePool"


def made(**work_pool: Any) -> Any:
    """Inputs of the node pool that a work pool becomes, in a zonal cluster."""
    return synth(only(GKE, **work_pool)).named("train-work", POOL).inputs


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


def test_the_kubeconfig_of_an_existing_cluster_is_asked_for() -> None:
    """The endpoint of an existing cluster is the cloud's response, assumed in a preview."""
    recording = synth(GKE_EXISTING)
    assert [call.token for call in recording.invocations] == ["gcp:container/getCluster:getCluster"]
    assert isinstance(recording.outputs["kubeconfig"], Secret)
