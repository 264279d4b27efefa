"""A reservation for a period with the real Kueue: a queued Job before, in and after it."""

from pathlib import Path
from typing import Any

import pytest

from components.addons.kueue import configuration
from ebbtide.autoscaler.nodes import NodePool
from ebbtide.clients.kubernetes.objects import condition
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.operations.traces.clusters import recorded_cluster
from ebbtide.placement.derive import profile
from ebbtide.work.jobs import job
from ebbtide_rehearsal.cloud.pools import register
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from kueue_replay import cluster as replayed
from rehearsal.tests.control_plane.cluster import Object, run_for, wait
from rehearsal.tests.control_plane.commands import Kubectl
from rehearsal.tests.control_plane.kueue import create_queues, install, settings_of
from rehearsal.tests.control_plane.node_pools import CLUSTER, SPEED, running
from tests.declarations import GKE, changed
from tests.declarations import Declaration as Declared
from tests.synth import synth

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

JOB = "/apis/batch/v1/namespaces/vision/jobs/train"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/vision/workloads"
_LATER = (1e9, 2e9)


@pytest.fixture
def declared() -> Declared:
    """A pool with a reservation for a period, its queue, and a team."""
    period = {"from": "2026-12-05T08:00Z", "until": "2026-12-12T08:00Z"}
    h100 = {
        "name": "h100",
        "machine": "a3-megagpu-8g",
        "zones": ["us-central1-a"],
        "nodes": {"max": 1},
        "capacity": {"kind": "reservation", **period},
    }
    return changed(
        GKE,
        pools=[GKE["pools"][0], h100],
        queues=[{"name": "h100", "pools": ["h100"]}],
        teams=[{"name": "vision", "members": ["ada@acme.example"]}],
    )


def _pools(declared: Declared) -> list[NodePool]:
    """Return the declared pools as their cloud has them, without a begin of the reservation for now."""
    recorded = replayed.Cluster.model_validate(recorded_cluster("dev", synth(declared)))
    pools = replayed.Declaration.of(recorded).pools
    return [pool.having(cluster=CLUSTER, reserved=_LATER if pool.reserved else None) for pool in pools]


def _impatient(declaration: Cluster) -> Object:
    """Return Kueue's configuration with seconds in place of its minutes: it runs by the wall clock."""
    config: Any = configuration(declaration)
    strategy = config["waitForPodsReady"]["requeuingStrategy"] | {
        "backoffBaseSeconds": 1,
        "backoffMaxSeconds": 2,
    }
    waiting = {"timeout": "8s", "recoveryTimeout": "4s", "requeuingStrategy": strategy}
    return config | {"waitForPodsReady": config["waitForPodsReady"] | waiting}


def test_a_queued_job_before_in_and_after_a_reservation(
    tools: ControlPlaneTools, chart_tools: ControlPlaneTools, declared: Declared, tmp_path: Path
) -> None:
    """Kueue queues a Job again while its pool has no nodes, the Job runs once the reservation has begun, and
    at its end it loses its pod and node and is queued again."""
    declaration, pools = declare(declared), _pools(declared)
    manifest = job(
        profile(declaration),
        name="train",
        namespace="vision",
        image="busybox",
        queue="h100",
        gpus=8,
        cpu="8",
        memory="64Gi",
    )
    run_for(manifest, 300)
    with (
        ControlPlane.start(tmp_path / "control-plane", tools, settings_of(declaration)) as plane,
        running(plane, tmp_path, *pools) as cloud,
    ):
        api, kubectl = plane.api, Kubectl(tools, plane)
        install(plane, kubectl, chart_tools, declaration, tmp_path, _impatient(declaration))
        create_queues(kubectl, declaration)
        begin, end = (cloud.store.clock.now() + seconds * SPEED for seconds in (25, 70))
        register(cloud.store, pools[-1].having(reserved=(begin, end)))

        def evictions() -> int:
            (workload,) = api.items(WORKLOADS)
            return int(workload["status"].get("requeueState", {}).get("count", 0))

        api.create(JOB.rpartition("/")[0], manifest)
        (refused, *_) = wait(lambda: cloud.messages("no-node"), bool)
        assert "GCE out of resources" in refused
        wait(evictions, lambda count: count >= 1)
        assert cloud.nodes("h100") == []
        wait(lambda: api.get(JOB)["status"].get("ready"), lambda ready: ready == 1)
        (taken,) = wait(lambda: cloud.store.events(kind="node-reclaimed"), bool)
        assert taken.at >= end
        assert taken.text.endswith("its reservation has ended.")
        assert [name.startswith("vision/train-") for name in taken.facts["pods"]] == [True]
        (workload,) = wait(lambda: api.items(WORKLOADS), lambda items: bool(condition(items[0], "Evicted")))
        assert condition(workload, "Evicted")["reason"] == "PodsReadyTimeout"
        assert cloud.nodes("h100") == []
        own = [event for event in cloud.store.events(kind="node-added") if event.facts["pool"] == "h100"]
        assert all(begin <= event.at < end for event in own)
        assert not condition(api.get(JOB), "Complete")
