"""The real Kueue, installed from its chart with our values, on the story of the queued GPUs."""

import os
import signal

import pytest
import yaml

from components.addons.kueue import NAMESPACE
from ebbtide.clients.kubernetes.objects import condition
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.placement.queue_objects import QUEUES_LABEL, layers
from ebbtide.placement.queueing import queueing
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.stages import RUNS_FOR
from rehearsal.tests.control_plane.cluster import Object, job, pod, wait
from rehearsal.tests.control_plane.commands import run
from tests.repository import ROOT

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

REQUESTS = "/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests"


@pytest.fixture(scope="module")
def declaration() -> Cluster:
    """The story's."""
    file = ROOT / "examples" / "queued-gpus" / "Pulumi.queued-gpus.yaml"
    return declare(yaml.safe_load(file.read_text())["config"]["ebbtide:cluster"])


@pytest.fixture(scope="module")
def kueue(kueue: ControlPlane) -> ControlPlane:
    """A control plane with Kueue on its system pool, and queues, one of them of the namespace `default`."""
    labels = {"metadata": {"labels": {QUEUES_LABEL: "true"}}}
    kueue.api.patch("/api/v1/namespaces/default", labels)
    return kueue


def _work(name: str) -> Object:
    gpu = {"resources": {"requests": {"nvidia.com/gpu": "1", "cpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}}
    labels = {"kueue.x-k8s.io/queue-name": "dws-local-queue"}
    return job(name, pod({RUNS_FOR: "1"}, container=gpu), labels=labels, suspend=True)


def _provision(control_plane: ControlPlane, request: Object) -> None:
    """Set the conditions that Dynamic Workload Scheduler sets once the nodes exist."""
    now = request["metadata"]["creationTimestamp"]
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": now}
        for kind in ("Accepted", "Provisioned")
    ]
    details = {"ResizeRequestName": "resize-1"}
    status = {"conditions": conditions, "provisioningClassDetails": details}
    control_plane.api.patch(f"{REQUESTS}/{request['metadata']['name']}/status", {"status": status})


def test_a_changed_flavor_keeps_what_it_admitted(kueue: ControlPlane, declaration: Cluster) -> None:
    """A flavor gets another label in place, and the Job that it admitted before is neither suspended nor
    started anew; a Job that comes after it selects by that label."""
    api, label = kueue.api, "cloud.google.com/gke-nodepool"
    jobs, workloads = "/apis/batch/v1/namespaces/default/jobs", "/apis/kueue.x-k8s.io/v1beta2/workloads"
    flavors = [item for item in layers(queueing(declaration))[0] if item["kind"] == "ResourceFlavor"]
    for item in flavors:
        path = f"/apis/kueue.x-k8s.io/v1beta2/resourceflavors/{item['metadata']['name']}"
        api.patch(path, {"spec": {"nodeLabels": {label: None}}})
    before = {item["metadata"]["name"] for item in api.items(REQUESTS)}
    work = _work("long")
    work["spec"]["template"]["metadata"]["annotations"][RUNS_FOR] = "20"
    api.create(jobs, work)
    requests = wait(
        lambda: [item for item in api.items(REQUESTS) if item["metadata"]["name"] not in before],
        lambda requests: len(requests) == 1,
    )
    _provision(kueue, requests[0])
    wait(lambda: api.get(f"{jobs}/long")["status"].get("active"), lambda active: active == 1)
    (admitted,) = api.items("/api/v1/namespaces/default/pods", labelSelector="job-name=long")
    for item in flavors:
        path = f"/apis/kueue.x-k8s.io/v1beta2/resourceflavors/{item['metadata']['name']}"
        api.patch(path, {"spec": {"nodeLabels": item["spec"]["nodeLabels"]}})
    selecting = _work("selecting")
    selecting["spec"]["template"]["spec"]["nodeSelector"] = {label: "dws-a100-nodepool"}
    api.create(jobs, selecting)
    assigned = wait(
        lambda: [
            item["status"]["admission"]["podSetAssignments"][0]["flavors"]
            for item in api.items(workloads)
            if "job-selecting" in item["metadata"]["name"] and item.get("status", {}).get("admission")
        ],
        lambda assignments: len(assignments) == 1,
    )
    assert set(assigned[0].values()) == {"dws-a100-nodepool"}
    assert api.get(f"{jobs}/long")["spec"]["suspend"] is False
    (still,) = api.items("/api/v1/namespaces/default/pods", labelSelector="job-name=long")
    assert still["metadata"]["uid"] == admitted["metadata"]["uid"]
    for name in ("long", "selecting"):
        api.delete(f"{jobs}/{name}", propagationPolicy="Background")


def test_a_crashed_process_is_restarted(kueue: ControlPlane) -> None:
    """A process that crashes makes its pod unready, and is restarted."""
    api = kueue.api
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    (pod,) = api.items(path, labelSelector="app.kubernetes.io/name=kueue")
    name = pod["metadata"]["name"]
    (process,) = [line for line in run("ps", "-A", "-ww", "-o", "pid=,args=").splitlines() if _is(line, pod)]
    os.kill(int(process.split()[0]), signal.SIGKILL)
    wait(lambda: api.get(f"{path}/{name}"), lambda item: not condition(item, "Ready"))
    again = wait(lambda: api.get(f"{path}/{name}"), lambda item: bool(condition(item, "Ready")))
    assert again["status"]["containerStatuses"][0]["restartCount"] == 1
    assert kueue.memory() < 1.5e9
    kueue.check()


def _is(line: str, pod: Object) -> bool:
    return f"/pods/{pod['metadata']['uid']}." in line
