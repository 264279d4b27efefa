"""Node pools on the real API server, scheduler and controllers: nodes come, go, and are taken away."""

from pathlib import Path
from typing import Any

import pytest

from ebbtide.clients.kubernetes.objects import condition
from ebbtide_rehearsal.cloud.pools import forget
from ebbtide_rehearsal.cloud.store import NO_STOCK, QUOTA, InjectedFault
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.stages import RUNS, RUNS_FOR
from rehearsal.tests.control_plane.cluster import Object, job, namespace, wait
from rehearsal.tests.control_plane.node_pools import CLUSTER, running, work, work_pool

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

JOBS = "/apis/batch/v1/namespaces/{}/jobs"
ON_SPOT: dict[str, Any] = {
    "podFailurePolicy": {
        "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    },
    "podReplacementPolicy": "Failed",
    "backoffLimit": 0,
}


def test_a_pending_pod_brings_a_node_that_goes_again(control_plane: ControlPlane, tmp_path: Path) -> None:
    """A pool at zero grows for a Job and is at zero again, with what it cost in the timeline."""
    api, place = control_plane.api, namespace(control_plane.api, "from-zero")
    with running(api, tmp_path, work_pool("cpu")) as cloud:
        api.create(JOBS.format(place), job("short", work("cpu", {RUNS_FOR: "1"})))
        wait(lambda: cloud.nodes("cpu"), lambda names: len(names) == 1)
        path = f"{JOBS.format(place)}/short"
        wait(lambda: api.get(path), lambda item: bool(condition(item, "Complete")), seconds=60)
        assert "pod triggered scale-up: [{cpu 0->1 (max: 4)}]" in cloud.event_messages(
            place, "TriggeredScaleUp"
        )
        wait(lambda: cloud.nodes("cpu"), lambda names: not names, seconds=60)
        wait(lambda: cloud.messages("node-removed"), lambda messages: len(messages) == 1)
        (came,), (went,) = cloud.store.events(kind="node-added"), cloud.store.events(kind="node-removed")
        assert came.facts["hourly"] == 0.05
        assert went.at - came.at > 600


def test_a_node_is_what_the_cloud_makes_it(control_plane: ControlPlane, tmp_path: Path) -> None:
    """Name, labels, taints and provider's id are GKE's, and the taints of its birth are gone."""
    with running(control_plane.api, tmp_path, work_pool("cpu", minimum=1)) as cloud:
        (name,) = wait(lambda: cloud.nodes("cpu"), lambda names: len(names) == 1)
        path = f"/api/v1/nodes/{name}"
        node = wait(lambda: control_plane.api.get(path), lambda item: len(item["spec"]["taints"]) == 1)
        assert name.startswith("gke-tried-cpu-")
        assert node["spec"]["providerID"] == f"gce://acme/us-central1-a/{name}"
        labels = node["metadata"]["labels"]
        assert labels["topology.kubernetes.io/region"] == "us-central1"
        assert labels["node.kubernetes.io/instance-type"] == "n2-standard-4"
        assert node["spec"]["taints"] == [{"key": "pool", "value": "cpu", "effect": "NoSchedule"}]


@pytest.mark.parametrize("graceful", [True, False])
def test_half_of_the_nodes_are_taken(control_plane: ControlPlane, tmp_path: Path, *, graceful: bool) -> None:
    """A Job that ignores disruptions loses half of its pods and finishes without a failure counted."""
    api, place = control_plane.api, namespace(control_plane.api, f"storm-{graceful}".lower())
    with running(api, tmp_path, work_pool("cpu")) as cloud:
        path = f"{JOBS.format(place)}/many"
        seconds = {RUNS_FOR: "5"}
        api.create(
            JOBS.format(place), job("many", work("cpu", seconds), parallelism=4, completions=4, **ON_SPOT)
        )
        wait(lambda: api.get(path)["status"].get("ready"), lambda ready: ready == 4, seconds=30)
        cloud.reclaim("c*", share=0.5, graceful=graceful)
        wait(lambda: cloud.messages("node-reclaimed"), lambda messages: len(messages) == 2)
        pods = f"/api/v1/namespaces/{place}/pods"
        reason = "TerminationByKubelet" if graceful else "DeletionByPodGC"
        reasons = wait(
            lambda: [condition(pod, "DisruptionTarget").get("reason") for pod in api.items(pods)],
            lambda reasons: reason in reasons,
            seconds=90,
        )
        assert set(reasons) <= {None, reason}
        ended = wait(lambda: api.get(path), lambda item: bool(condition(item, "Complete")), seconds=150)
        assert ended["status"]["succeeded"] == 4
        assert ended["status"].get("failed", 0) == 0
        assert len(cloud.messages("node-removed")) >= 2


def test_a_deallocated_machine_is_started_again(control_plane: ControlPlane, tmp_path: Path) -> None:
    """On AKS a pod is evicted from a node that is taken; the machine stays, stopped, and starts again."""
    api, place = control_plane.api, namespace(control_plane.api, "stopped")
    pool = work_pool("cpu", cloud="aks", maximum=1, deallocates=True, zones=("eastus-1",))
    with running(api, tmp_path, pool) as cloud:
        path = f"{JOBS.format(place)}/one"
        api.create(JOBS.format(place), job("one", work("cpu", {RUNS_FOR: "4"}), **ON_SPOT))
        wait(lambda: api.get(path)["status"].get("ready"), lambda ready: ready == 1)
        (name,) = cloud.nodes("cpu")
        cloud.reclaim("cpu", count=1, graceful=True)
        wait(lambda: api.get(path), lambda item: bool(condition(item, "Complete")), seconds=60)
        assert api.get(path)["status"].get("failed", 0) == 0
        assert cloud.nodes("cpu") == [name]
        assert "it stays, stopped" in cloud.messages("node-removed")[0]
        assert [event.facts["node"] for event in cloud.store.events(kind="node-added")] == [name, name]


def test_a_deleted_pool_is_drained(control_plane: ControlPlane, tmp_path: Path) -> None:
    """A deleted pool evicts its pods and removes its nodes, regardless of its minimum."""
    api, place = control_plane.api, namespace(control_plane.api, "drained")
    with running(api, tmp_path, work_pool("gone", minimum=2)) as cloud:
        api.create(JOBS.format(place), job("long", work("gone", {RUNS_FOR: "300"})))
        path = f"{JOBS.format(place)}/long"
        wait(lambda: api.get(path)["status"].get("ready"), lambda ready: ready == 1)
        forget(cloud.store, CLUSTER, "gone")
        wait(lambda: cloud.nodes("gone"), lambda names: not names, seconds=60)
        messages = wait(lambda: cloud.messages("node-removed"), lambda messages: len(messages) == 2)
        assert all(text.endswith("its node pool was deleted.") for text in messages)
        wait(lambda: api.get(path)["status"].get("ready", 0), lambda ready: ready == 0)


def test_what_holds_a_node_is_said(control_plane: ControlPlane, tmp_path: Path) -> None:
    """A pod without a controller keeps its node after the idle time, and the timeline names it once."""
    api, place = control_plane.api, namespace(control_plane.api, "held")
    with running(api, tmp_path, work_pool("cpu")) as cloud:
        bare = work("cpu", cpu="100m")
        bare["metadata"]["name"] = "bare"
        api.create(f"/api/v1/namespaces/{place}/pods", {"apiVersion": "v1", "kind": "Pod", **bare})
        (message,) = wait(lambda: cloud.messages("held-node"), lambda messages: len(messages) == 1)
        assert message.endswith("is kept: pod held/bare has no controller that would recreate it.")
        assert len(cloud.nodes("cpu")) == 1
        api.delete(f"/api/v1/namespaces/{place}/pods/bare")
        wait(lambda: cloud.nodes("cpu"), lambda names: not names, seconds=60)


@pytest.mark.parametrize(
    "fault", [InjectedFault(NO_STOCK, "cheap"), InjectedFault(QUOTA, "N2_CPUS", details={"limit": 4})]
)
def test_the_next_pool_takes_over(control_plane: ControlPlane, tmp_path: Path, fault: InjectedFault) -> None:
    """The next pool grows when the cheapest gets no node, and the timeline has both."""
    api, place = control_plane.api, namespace(control_plane.api, f"fall-{fault.kind}")
    same = {"labels": {"pool": "x"}, "taints": work_pool("x").taints}
    cheap = work_pool("cheap", machine="n2-standard-8", **same)
    dear = work_pool("dear", hourly=0.5, capacity="on-demand", **same)
    with running(api, tmp_path, cheap, dear) as cloud:
        cloud.store.inject(fault)
        api.create(JOBS.format(place), job("short", work("x", {RUNS_FOR: "1"})))
        path = f"{JOBS.format(place)}/short"
        wait(lambda: api.get(path), lambda item: bool(condition(item, "Complete")), seconds=60)
        (refused,) = cloud.messages("no-node")
        assert refused.startswith("Pool cheap gets none of 1 node in us-central1-a: GCE ")
        assert [event.facts["pool"] for event in cloud.store.events(kind="node-added")] == ["dear"]
        assert any("GCE" in text for text in cloud.event_messages(place, "FailedScaleUp"))


def test_a_pod_that_is_too_large(control_plane: ControlPlane, tmp_path: Path) -> None:
    """A pod that is too large stays pending, with each pool's reason in `kubectl describe`."""
    api, place = control_plane.api, namespace(control_plane.api, "too-big")
    with running(api, tmp_path, work_pool("cpu"), work_pool("other")) as cloud:
        api.create(JOBS.format(place), job("huge", work("cpu", cpu="64")))
        (message,) = wait(
            lambda: cloud.event_messages(place, "NotTriggerScaleUp"), lambda messages: len(messages) == 1
        )
        assert message == (
            "pod didn't trigger scale-up: 1 Insufficient cpu, "
            "1 node(s) didn't match Pod's node affinity/selector"
        )


def test_a_provisioning_request_is_served(control_plane: ControlPlane, tmp_path: Path) -> None:
    """Accepted, then in the queue, then all of its nodes at once, and revoked when they are gone."""
    api, place = control_plane.api, namespace(control_plane.api, "queued")
    pool = work_pool("queue", machine="h4d-standard-192", capacity="queued", max_run_seconds=1500)
    with running(api, tmp_path, pool) as cloud:
        template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "t"}}
        spec: Object = {"template": {"metadata": {}, "spec": work("queue")["spec"]}}
        api.create(f"/api/v1/namespaces/{place}/podtemplates", {**template, **spec})
        path = f"/apis/autoscaling.x-k8s.io/v1/namespaces/{place}/provisioningrequests"
        request = {
            "apiVersion": "autoscaling.x-k8s.io/v1",
            "kind": "ProvisioningRequest",
            "metadata": {"name": "two"},
            "spec": {
                "provisioningClassName": "queued-provisioning.gke.io",
                "podSets": [{"count": 2, "podTemplateRef": {"name": "t"}}],
            },
        }
        api.create(path, request)
        served = wait(
            lambda: api.get(f"{path}/two"), lambda item: bool(condition(item, "Provisioned")), seconds=60
        )
        assert condition(served, "Accepted")
        assert served["status"]["provisioningClassDetails"]["ResizeRequestName"]
        assert len(cloud.nodes("queue")) == 2
        came = cloud.store.events(kind="node-added")
        assert [event.facts["request"] for event in came] == [f"{place}/two"] * 2
        for kind in ("BookingExpired", "CapacityRevoked"):
            wait(lambda: api.get(f"{path}/two"), lambda item: bool(condition(item, kind)), seconds=60)  # noqa: B023 # at once
        assert cloud.nodes("queue") == []


WORK = """
import pathlib, signal, sys, time
place = pathlib.Path(sys.argv[1])
place.mkdir(exist_ok=True)
file = place / "step"
step = int(file.read_text()) if file.exists() else 0
print("starts at", step)
def stop(*_):
    file.write_text(str(step))
    print("told to stop at", step)
    sys.exit(1)
signal.signal(signal.SIGTERM, stop)
while step < 30:
    time.sleep(0.2)
    step += 1
print("done")
"""


def test_a_process_is_told_to_stop_and_resumes(control_plane: ControlPlane, tmp_path: Path) -> None:
    """A pod that runs as a process gets the signal when its node is taken, writes down where it is on its
    volume, and its successor goes on from there."""
    api, place = control_plane.api, namespace(control_plane.api, "resumed")
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "state"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    api.create(f"/api/v1/namespaces/{place}/persistentvolumeclaims", claim)
    container = {
        "command": ["python", "-c", WORK, "/state"],
        "volumeMounts": [{"name": "state", "mountPath": "/state"}],
    }
    volumes = [{"name": "state", "persistentVolumeClaim": {"claimName": "state"}}]
    template = work("cpu", {RUNS: "process"}, container=container, volumes=volumes)
    with running(api, tmp_path, work_pool("cpu")) as cloud:
        api.create(JOBS.format(place), job("resumes", template, **ON_SPOT))
        wait(lambda: cloud.messages("pod-log"), lambda messages: messages == ["starts at 0"], seconds=60)
        cloud.reclaim("cpu", share=1, graceful=True)
        path = f"{JOBS.format(place)}/resumes"
        wait(lambda: api.get(path), lambda item: bool(condition(item, "Complete")), seconds=120)
        lines = "\n".join(cloud.messages("pod-log")).splitlines()
        assert lines[0] == "starts at 0"
        assert lines[1].startswith("told to stop at ")
        assert lines[2] == f"starts at {lines[1].split()[-1]}"
        assert lines[3] == "done"
