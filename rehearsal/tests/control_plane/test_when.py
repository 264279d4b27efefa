"""`--when` on the real API server with the real Kueue: jobs start within the estimated time."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.operations.traces.when import present_cluster, read_present
from ebbtide.placement import Profile
from ebbtide.placement.derive import profile
from ebbtide.work.jobs import job
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from ebbtide_rehearsal.tools.find import ensure
from kueue_replay import cluster as replayed
from kueue_replay.kueue import PROGRAM
from rehearsal.tests.control_plane.cluster import run_for, wait
from rehearsal.tests.control_plane.commands import Ebbtide
from rehearsal.tests.control_plane.kueue import create_queues, create_teams, gpu_node, started
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


@pytest.fixture(scope="module")
def cluster_profile(declaration: Cluster) -> Profile:
    """The cluster's profile."""
    return profile(declaration)


@pytest.fixture(scope="module")
def cluster(
    tools: ControlPlaneTools,
    chart_tools: ControlPlaneTools,
    declaration: Cluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControlPlane]:
    """A control plane with Kueue, the queue and its node, and the replay's Kueue in the cache."""
    ensure([PROGRAM], on_step=lambda _: None)
    directory = tmp_path_factory.mktemp("when")
    with started(directory, tools, chart_tools, declaration) as (control_plane, kubectl):
        create_teams(kubectl, declaration)
        create_queues(kubectl, declaration)
        gpu_node(control_plane.api, declaration, "t4", 4)
        yield control_plane


@pytest.fixture
def api(cluster: ControlPlane) -> Iterator[Api]:
    """The API of a cluster without Jobs and Workloads."""
    yield cluster.api
    for item in cluster.api.items(JOBS):
        name = item["metadata"]["name"]
        cluster.api.delete(f"{JOBS}/{name}", propagationPolicy="Background", gracePeriodSeconds=0)
    wait(lambda: cluster.api.items(WORKLOADS), lambda items: not items)


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


def _said(ebbtide: Ebbtide, *arguments: str) -> str:
    started = ebbtide.start(*arguments)
    out, errors = started.communicate(timeout=600)
    assert started.returncode == 0, errors
    return out


def test_a_job_starts_within_its_estimate(cluster: ControlPlane, api: Api, cluster_profile: Profile) -> None:
    """A queue of a running and a waiting Job with time limits: the next one starts within the spread, of
    which the most is the sum of the limits, each with the second after which Kueue retries; asking creates
    nothing."""
    ebbtide = Ebbtide(cluster.plan.kubeconfig, cluster_profile)
    _submit(api, cluster_profile, "first", 20, "60s")
    _runs(api, "first")
    _submit(api, cluster_profile, "second", 10, "40s")
    wait(lambda: api.items(WORKLOADS), lambda items: len(items) == 2)
    arguments = ("job", "third", *_OPTIONS, "--namespace", "vision", "--when")
    asked = time.monotonic()
    document = json.loads(_said(ebbtide, *arguments, "--format", "json"))
    assert {item["metadata"]["name"] for item in api.items(JOBS)} == {"first", "second"}
    assert (document["position"], document["problem"], document["notes"]) == (2, "", [])
    seconds = document["seconds"]
    assert 40 < seconds["most"] <= 60 + 1 + 40 + 1
    _submit(api, cluster_profile, "third", 5, "60s")
    listed = _said(ebbtide, "jobs", "-n", "vision", "--when")
    assert "it starts in about" in " ".join(listed.split())
    _runs(api, "third", seconds["most"] + 30)
    assert seconds["least"] <= time.monotonic() - asked <= seconds["most"]


def test_a_start_that_cannot_be_known(cluster: ControlPlane, api: Api, cluster_profile: Profile) -> None:
    """A running Job without a time limit and without earlier runs is named; once a Job of its name has
    ended, its run time is the estimate."""
    ebbtide = Ebbtide(cluster.plan.kubeconfig, cluster_profile)
    _submit(api, cluster_profile, "endless", 600, None)
    _runs(api, "endless")
    arguments = ("job", "next", *_OPTIONS, "--namespace", "vision", "--when")
    assert "It cannot be known: vision/endless has no time limit" in _said(ebbtide, *arguments)
    api.delete(f"{JOBS}/endless", propagationPolicy="Background", gracePeriodSeconds=0)
    _submit(api, cluster_profile, "train", 12, None)
    wait(lambda: api.get(f"{JOBS}/train")["status"], lambda status: status.get("succeeded") == 1)
    _submit(api, cluster_profile, "train-2", 600, None)
    _runs(api, "train-2")
    text = " ".join(_said(ebbtide, *arguments).split())
    assert text.startswith("Job next would start in about ")
    assert "Run times are from earlier runs of 1 job." in text


def test_a_member_has_an_estimate_of_its_namespace(api: Api, cluster_profile: Profile) -> None:
    """A member may not read ClusterQueues: the queues are the profile's, and the notes say so; an
    administrator's are those of the cluster, with Kueue's configuration."""
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
