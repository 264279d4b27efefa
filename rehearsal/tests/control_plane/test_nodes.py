"""Node pools on the real API server, scheduler and controllers: nodes come, go, and are taken away."""

from pathlib import Path
from typing import Any

import pytest

from ebbtide.clients.kubernetes.objects import condition
from ebbtide_rehearsal.cloud.pools import forget, register
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.stages import RUNS_FOR
from rehearsal.tests.control_plane.cluster import job, namespace, wait
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


def test_a_deallocated_machine_is_started_again(control_plane: ControlPlane, tmp_path: Path) -> None:
    """On AKS a pod is evicted from a node that is taken; the machine stays, stopped, and starts again."""
    api, place = control_plane.api, namespace(control_plane.api, "stopped")
    pool = work_pool("cpu", cloud="aks", maximum=1, deallocates=True, zones=("eastus-1",))
    with running(control_plane, tmp_path, pool) as cloud:
        path = f"{JOBS.format(place)}/one"
        api.create(JOBS.format(place), job("one", work("cpu", {RUNS_FOR: "4"}), **ON_SPOT))
        wait(lambda: api.get(path)["status"].get("ready"), lambda ready: ready == 1)
        (name,) = cloud.nodes("cpu")
        cloud.reclaim("cpu", count=1, graceful=True)
        wait(lambda: api.get(path), lambda item: bool(condition(item, "Complete")))
        assert api.get(path)["status"].get("failed", 0) == 0
        assert cloud.nodes("cpu") == [name]
        assert "it stays, stopped" in cloud.messages("node-removed")[0]
        assert [event.facts["node"] for event in cloud.store.events(kind="node-added")] == [name, name]


def test_a_deleted_pool_is_drained(control_plane: ControlPlane, tmp_path: Path) -> None:
    """A deleted pool evicts its pods and removes its nodes, regardless of its minimum."""
    api, place = control_plane.api, namespace(control_plane.api, "drained")
    with running(control_plane, tmp_path, work_pool("gone", minimum=2)) as cloud:
        api.create(JOBS.format(place), job("long", work("gone", {RUNS_FOR: "300"})))
        path = f"{JOBS.format(place)}/long"
        wait(lambda: api.get(path)["status"].get("ready"), lambda ready: ready == 1)
        forget(cloud.store, CLUSTER, "gone")
        wait(lambda: cloud.nodes("gone"), lambda names: not names)
        messages = wait(lambda: cloud.messages("node-removed"), lambda messages: len(messages) == 2)
        assert all(text.endswith("its node pool was deleted.") for text in messages)
        wait(lambda: api.get(path)["status"].get("ready", 0), lambda ready: ready == 0)


def test_what_holds_a_node_is_said(control_plane: ControlPlane, tmp_path: Path) -> None:
    """A pod without a controller keeps its node after the idle time, and the timeline names it once."""
    api, place = control_plane.api, namespace(control_plane.api, "held")
    with running(control_plane, tmp_path, work_pool("cpu")) as cloud:
        bare = work("cpu", cpu="100m")
        bare["metadata"]["name"] = "bare"
        api.create(f"/api/v1/namespaces/{place}/pods", {"apiVersion": "v1", "kind": "Pod", **bare})
        (message,) = wait(lambda: cloud.messages("held-node"), lambda messages: len(messages) == 1)
        assert message.endswith("is kept: pod held/bare has no controller that would recreate it.")
        assert len(cloud.nodes("cpu")) == 1
        api.delete(f"/api/v1/namespaces/{place}/pods/bare")
        wait(lambda: cloud.nodes("cpu"), lambda names: not names)


def test_a_change_of_the_machine_type_evicts_work(control_plane: ControlPlane, tmp_path: Path) -> None:
    """GKE recreates the nodes of a changed pool by surge: first a new node, then the eviction of the
    old one's pods, which come to it."""
    api, place = control_plane.api, namespace(control_plane.api, "upgraded")
    with running(control_plane, tmp_path, work_pool("cpu", maximum=1)) as cloud:
        path = f"{JOBS.format(place)}/long"
        api.create(JOBS.format(place), job("long", work("cpu", {RUNS_FOR: "300"}), **ON_SPOT))
        wait(lambda: api.get(path)["status"].get("ready"), lambda ready: ready == 1)
        (old,) = cloud.nodes("cpu")
        larger = work_pool("cpu", maximum=1, machine="n2-standard-8", version=1, size=1)
        register(cloud.store, larger)
        wait(lambda: cloud.nodes("cpu"), lambda names: len(names) == 1 and old not in names)
        wait(lambda: api.get(path)["status"].get("ready"), lambda ready: ready == 1)
        (removed,) = cloud.messages("node-removed")
        assert removed.endswith("its node pool was changed, which recreates its nodes.")
        (new,) = cloud.nodes("cpu")
        labels = api.get(f"/api/v1/nodes/{new}")["metadata"]["labels"]
        assert labels["node.kubernetes.io/instance-type"] == "n2-standard-8"
        assert api.get(path)["status"].get("failed", 0) == 0
