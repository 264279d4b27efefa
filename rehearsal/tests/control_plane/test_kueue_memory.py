"""Memory of the real Kueue with many pending Jobs, and the amounts that its Deployment requests."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.model.cluster import Cluster, kueue_mib
from ebbtide.declaration.model.declare import declare
from ebbtide.operations import sleep
from ebbtide.placement.queue_objects import QUEUES_LABEL
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from rehearsal.tests.control_plane.cluster import Object, job, pod, wait
from rehearsal.tests.control_plane.kueue import create_queues, started
from tests.repository import ROOT

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

JOBS = "/apis/batch/v1/namespaces/default/jobs"
QUEUE = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/localqueues/dws-local-queue"
STEPS = {"one container": (1000, 5000), "several containers": (1000, 3000)}
"""Numbers of pending Jobs, by the kind of their pods."""


@pytest.fixture
def held(
    tools: ControlPlaneTools, chart_tools: ControlPlaneTools, tmp_path: Path
) -> Iterator[tuple[ControlPlane, Cluster]]:
    """Return a control plane with Kueue, whose queues are held, and its declaration."""
    file = ROOT / "examples" / "queued-gpus" / "Pulumi.queued-gpus.yaml"
    declaration = declare(yaml.safe_load(file.read_text())["config"]["ebbtide:cluster"])
    directory = tmp_path / "queued"
    directory.mkdir()
    with started(directory, tools, chart_tools, declaration) as (cluster, kubectl):
        cluster.api.patch("/api/v1/namespaces/default", {"metadata": {"labels": {QUEUES_LABEL: "true"}}})
        create_queues(kubectl, declaration)
        items = cluster.api.items("/apis/kueue.x-k8s.io/v1beta2/clusterqueues")
        sleep.hold(cluster.api, frozenset(item["metadata"]["name"] for item in items), drain=False)
        yield cluster, declaration


def _work(name: str, kind: str) -> Object:
    resources = {"requests": {"nvidia.com/gpu": "1", "cpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    template: Any = pod({}, container={"resources": resources})
    if kind == "several containers":
        (first,) = template["spec"]["containers"]
        env = [{"name": f"VARIABLE_{number}", "value": "value-" * 8} for number in range(50)]
        template["spec"]["containers"] = [
            {**first, "name": f"part-{number}", "env": env, **({} if number == 0 else {"resources": {}})}
            for number in range(4)
        ]
    labels = {"kueue.x-k8s.io/queue-name": "dws-local-queue"}
    return job(name, template, labels=labels, suspend=True)


def _pending(api: Api) -> int:
    return int(api.get(QUEUE).get("status", {}).get("pendingWorkloads") or 0)


def _resident_mib(directory: Path) -> float:
    """Return the highest memory so far of the Kueue whose configuration is in a directory."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode()
            status = (process / "status").read_text()
        except OSError:
            continue
        if f"--config={directory}" in command and "/kueue" in command.split("\0")[0]:
            return int(status.split("VmHWM:")[1].split()[0]) / 1024
    raise LookupError(directory)


@pytest.mark.parametrize("kind", STEPS)
def test_memory_of_pending_jobs(
    held: tuple[ControlPlane, Cluster], kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The request holds pending Jobs of one container, and the limit those of several; the report has the
    figures beside `kueue_memory`."""
    cluster, _ = held

    def create(item: Object) -> None:
        cluster.api.create(JOBS, item)

    measured: dict[int, float] = {0: _resident_mib(tmp_path)}
    size = len(json.dumps(_work("work", kind)))
    for number in STEPS[kind]:
        work = [_work(f"work-{index}", kind) for index in range(max(measured), number)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(create, work))
        wait(lambda: _pending(cluster.api), lambda count, most=number: count >= most, seconds=900)
        time.sleep(5)
        measured[number] = _resident_mib(tmp_path)
    figures = ", ".join(f"{mib:.0f} MiB with {jobs}" for jobs, mib in measured.items())
    request.node.user_properties.append((f"Jobs of {kind}, {size / 1000:.1f} kB each", figures))
    holds = {jobs: kueue_mib(jobs)["several containers" in kind] for jobs in measured}
    assert all(measured[jobs] < mib for jobs, mib in holds.items())
