"""Changed settings of the autoscaler take effect at once on a running cluster."""

import time
from pathlib import Path

import pytest

from ebbtide.clients.kubernetes.objects import condition
from ebbtide_rehearsal.cloud.pools import Autoscaling, Expander, put_settings
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.stages import RUNS_FOR
from rehearsal.tests.control_plane.cluster import Object, job, namespace, wait
from rehearsal.tests.control_plane.node_pools import CLUSTER, Running, running, work, work_pool

pytestmark = pytest.mark.rehearsal

JOBS = "/apis/batch/v1/namespaces/{}/jobs"
MAP = "cluster-autoscaler-priority-expander"
PRIORITIES: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": MAP},
    "data": {"priorities": "50: ['.*roomy.*']\n10: ['.*tight.*']"},
}


def _grown(cloud: Running, place: str, expander: Expander) -> str:
    """The pool that grows for one more Job."""
    put_settings(cloud.store, CLUSTER, Autoscaling(expander=expander))
    before = len(cloud.messages("node-added"))
    cloud.api.create(JOBS.format(place), job(expander, work("x", {RUNS_FOR: "60"})))
    wait(lambda: len(cloud.messages("node-added")), lambda number: number > before)
    return cloud.store.events(kind="node-added")[-1].facts["pool"]


def test_priorities_count_where_the_expander_is_told_so(control_plane: ControlPlane, tmp_path: Path) -> None:
    """The ConfigMap alone changes nothing: the pool that is left least empty grows, until the expander
    changes."""
    api, place = control_plane.api, namespace(control_plane.api, "expander")
    same = {"labels": {"pool": "x"}, "taints": work_pool("x").taints, "cloud": "aks"}
    tight = work_pool("tight", **same)
    roomy = work_pool("roomy", **same, allocatable={"cpu": "32", "memory": "128Gi"}, hourly=0.9)
    api.create("/api/v1/namespaces/kube-system/configmaps", PRIORITIES)
    with running(api, tmp_path, tight, roomy) as cloud:
        assert _grown(cloud, place, "least-waste") == "tight"
        assert _grown(cloud, place, "priority") == "roomy"
    api.delete(f"/api/v1/namespaces/kube-system/configmaps/{MAP}")


def test_a_node_stays_as_long_as_the_autoscaler_is_told(control_plane: ControlPlane, tmp_path: Path) -> None:
    """A node outlives the default idle time when the setting is an hour, and is removed soon after it is a
    minute."""
    api, place = control_plane.api, namespace(control_plane.api, "idle")
    with running(api, tmp_path, work_pool("cpu")) as cloud:
        put_settings(cloud.store, CLUSTER, Autoscaling(idle_seconds=3600, delay_after_add_seconds=0))
        api.create(JOBS.format(place), job("short", work("cpu", {RUNS_FOR: "1"})))
        path = f"{JOBS.format(place)}/short"
        wait(lambda: api.get(path), lambda item: bool(condition(item, "Complete")), seconds=60)
        ended = cloud.store.clock.now()
        time.sleep(5)
        assert cloud.store.clock.now() - ended > 900
        assert len(cloud.nodes("cpu")) == 1
        put_settings(cloud.store, CLUSTER, Autoscaling(idle_seconds=60, delay_after_add_seconds=0))
        (message,) = wait(
            lambda: cloud.messages("node-removed"), lambda messages: len(messages) == 1, seconds=60
        )
        assert message.endswith("it was not needed for 1 min.")
        assert cloud.nodes("cpu") == []
