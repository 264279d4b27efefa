"""`--when` on the real API server with the real Kueue: jobs start within the estimated time."""

import json
import time
from typing import Any

import pytest

from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.operations.traces.when import present_cluster, read_present
from ebbtide.placement import Profile
from ebbtide.work.jobs import job
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.tools.progress import narrated
from kueue_replay import cluster as replayed
from kueue_replay.kueue import PROGRAM
from rehearsal.tests.control_plane.cluster import run_for, wait
from rehearsal.tests.control_plane.commands import Ebbtide
from rehearsal.tests.control_plane.kueue import gpu_node
from tests.declarations import GKE, changed
from tests.declarations import pool as pool_in

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

MEMBER = "ada@acme.example"
JOBS = "/apis/batch/v1/namespaces/vision/jobs"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/workloads"
_PLACE: dict[str, Any] = {"image": "busybox", "queue": "t4", "gpus": 4, "cpu": "1", "memory": "2Gi"}
_OPTIONS = [word for key, value in _PLACE.items() for word in (f"--{key}", str(value))]


@pytest.fixture(scope="module")
def declaration() -> Cluster:
    """A cluster with one node of four T4, a queue for it, and a team."""
    team = {"name": "vision", "members": [MEMBER]}
    declared = changed(GKE, queues=[{"name": "t4", "pools": ["t4"]}], teams=[team])
    pool_in(declared, "t4")["nodes"] = {"max": 1}
    return declare(declared)


@pytest.fixture(scope="module", autouse=True)
def _node(kueue: ControlPlane, declaration: Cluster) -> None:
    """The queue's node, and the replay's Kueue in the cache."""
    narrated([PROGRAM])
    gpu_node(kueue.api, declaration, "t4", 4)


def _submit(api: Api, cluster: Profile, name: str, seconds: int, limit: str | None) -> None:
    """Create a Job of all GPUs that runs for some seconds."""
    more: dict[str, Any] = {"max_run": limit} if limit else {}
    manifest = job(cluster, name=name, namespace="vision", **_PLACE, **more)
    run_for(manifest, seconds)
    api.create(JOBS, manifest)


def _runs(api: Api, name: str, seconds: float = 600) -> None:
    wait(
        lambda: api.get(f"{JOBS}/{name}")["status"], lambda status: bool(status.get("ready")), seconds=seconds
    )


def test_a_job_starts_within_its_estimate(
    kueue: ControlPlane, kueue_api: Api, cluster_profile: Profile
) -> None:
    """A queue of a running and a waiting Job with time limits: the next one starts within the spread, of
    which the most is the sum of the limits, each with the second after which Kueue retries; asking creates
    nothing."""
    api, ebbtide = kueue_api, Ebbtide(kueue.plan.kubeconfig, cluster_profile)
    _submit(api, cluster_profile, "first", 20, "60s")
    _runs(api, "first")
    _submit(api, cluster_profile, "second", 10, "40s")
    wait(lambda: api.items(WORKLOADS), lambda items: len(items) == 2)
    arguments = ("job", "third", *_OPTIONS, "--namespace", "vision", "--when")
    asked = time.monotonic()
    document = json.loads(ebbtide.output(*arguments, "--format", "json"))
    assert {item["metadata"]["name"] for item in api.items(JOBS)} == {"first", "second"}
    assert (document["position"], document["problem"], document["notes"]) == (2, "", [])
    seconds = document["seconds"]
    assert 40 < seconds["most"] <= 60 + 1 + 40 + 1
    _submit(api, cluster_profile, "third", 5, "60s")
    listed = ebbtide.output("jobs", "-n", "vision", "--when")
    assert "it starts in about" in " ".join(listed.split())
    _runs(api, "third", seconds["most"] + 30)
    assert seconds["least"] <= time.monotonic() - asked <= seconds["most"]


def test_a_member_has_an_estimate_of_its_namespace(kueue_api: Api, cluster_profile: Profile) -> None:
    """A member may not read ClusterQueues: the queues are the profile's, and the notes say so; an
    administrator's are those of the cluster, with Kueue's configuration."""
    api = kueue_api
    _submit(api, cluster_profile, "first", 600, "20m")
    _runs(api, "first")
    own = read_present(api.as_user(MEMBER), "vision", cluster_profile, time.time())
    whole = read_present(api, "vision", cluster_profile, time.time())
    assert [item.work.name for item in own.jobs] == [item.work.name for item in whole.jobs] == ["first"]
    assert (own.objects, own.nodes, len(own.notes)) == ((), None, 2)
    assert whole.nodes is not None
    assert whole.nodes["t4"] == 1
    assert whole.configuration is not None
    assert "fairSharing" in whole.configuration
    declared = [
        replayed.Declaration.of(replayed.Cluster.model_validate(present_cluster(cluster_profile, present)))
        for present in (own, whole)
    ]
    assert [item.queues["vision/t4"].pools for item in declared] == [("t4",), ("t4",)]
    assert own.jobs[0].work.flavor in declared[0].flavors
