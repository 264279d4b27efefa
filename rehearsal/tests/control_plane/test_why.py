"""`ebbtide why` on the real API server with the real Kueue: each cause as its controllers write it."""

import json
from typing import Any

import pytest

from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.placement import Profile
from ebbtide.placement.profile import QUEUE_LABEL
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.stages import RUNS_FOR
from rehearsal.tests.control_plane.cluster import Object, job, pod, wait, why
from rehearsal.tests.control_plane.commands import Ebbtide
from tests.declarations import GKE, changed
from tests.declarations import pool as pool_in

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

MEMBER = "ada@acme.example"
GPU = "nvidia.com/gpu"
JOBS = "/apis/batch/v1/namespaces/{}/jobs"
KUEUE = "/apis/kueue.x-k8s.io/v1beta2"


@pytest.fixture(scope="module")
def declaration() -> Cluster:
    """A cluster with one CPU node and one node of 4 GPUs at most, queues for them, and two teams."""
    declared = changed(
        GKE,
        queues=[{"name": name, "pools": [pool]} for name, pool in (("cpus", "cpu"), ("gpus", "t4"))]
        + [{"name": "big", "pools": ["a100"]}],
        cohort={"preemption": {"reclaimWithinCohort": "Any"}},
        teams=[{"name": "vision", "members": [MEMBER]}, {"name": "speech", "members": ["bob@acme.example"]}],
    )
    for name in ("cpu", "t4"):
        pool_in(declared, name)["nodes"] = {"max": 1}
    return declare(declared)


def submit(api: Api, name: str, queue: str, *, team: str = "vision", **more: Any) -> Object:
    """Create a Job of one pod in a queue."""
    requests = {"cpu": "1", "memory": "1Gi", **more.pop("requests", {})}
    limits = {key: value for key, value in requests.items() if key == GPU}
    spec = more.pop("spec", {})
    template = pod(
        {RUNS_FOR: "600"}, container={"resources": {"requests": requests, "limits": limits}}, **spec
    )
    labels = {QUEUE_LABEL: queue, **more.pop("labels", {})} if queue else {}
    return api.create(
        JOBS.format(team), job(name, template, labels=labels, **{"suspend": bool(queue)} | more)
    )


def admitted(api: Api, name: str, team: str = "vision") -> None:
    """Wait until a Job is resumed."""
    wait(lambda: api.get(f"{JOBS.format(team)}/{name}"), lambda item: not item["spec"]["suspend"])


def test_quota(kueue_api: Api, cluster_profile: Profile) -> None:
    """The holders are named to an administrator, and to a member those of its own namespace; a member's
    request of its fair share preempts, and the preempted workload says by whom."""
    api = kueue_api
    submit(api, "bert", "gpus", team="speech", requests={GPU: "3"})
    admitted(api, "bert", "speech")
    submit(api, "resnet", "gpus", requests={GPU: "1"})
    admitted(api, "resnet")
    submit(api, "vit", "gpus", requests={GPU: "4"})
    cause = why(api, "vision", "vit", "WaitingForQuota", cluster_profile)
    held = "held by speech/bert (3 nvidia.com/gpu) and resnet (1 nvidia.com/gpu)"
    assert cause.message == f"queue gpus lacks 4 nvidia.com/gpu of free quota in flavor t4, {held}"
    member = why(api.as_user(MEMBER), "vision", "vit", "WaitingForQuota", cluster_profile)
    assert "held by resnet (1 nvidia.com/gpu)" in member.message
    assert "namespaces that you may not read" in member.remedy
    submit(api, "small", "gpus", requests={GPU: "1"})
    again = why(api, "speech", "bert", "WaitingForQuota", cluster_profile)
    assert again.message.startswith(
        "it was preempted by vision/small (Fair Sharing within the cohort), and queue"
    )


def test_the_command(kueue: ControlPlane, kueue_api: Api, cluster_profile: Profile) -> None:
    """One sentence, a document, and an error for an unknown name; `jobs` has the short form."""
    api, ebbtide = kueue_api, Ebbtide(kueue.plan.kubeconfig, cluster_profile)
    submit(api, "many", "gpus", requests={GPU: "4"}, parallelism=2, completions=2)
    cause = why(api, "vision", "many", "DoesNotFit", cluster_profile)
    assert ebbtide.output("why", "many", "-n", "vision") == f"Job many waits: {cause}\n"
    assert json.loads(ebbtide.output("why", "many", "-n", "vision", "--format", "json")) == {
        "version": "ebbtide.dev/why/v1",
        "kind": "Job",
        "namespace": "vision",
        "name": "many",
        "cause": cause.document(),
    }
    (row,) = json.loads(ebbtide.output("jobs", "-n", "vision", "--format", "json"))["workloads"]
    assert (row["cause"], row["reason"]) == ("DoesNotFit", cause.message)
    error = ebbtide.refused("why", "mnay", "-n", "vision")
    assert error.startswith("There is no Job, TrainJob, pipeline run, experiment, pod or Workload mnay in")
    assert "did you mean many?" in error
