"""Agreement of a replay's node hours and waiting with those of the same jobs on a rehearsal's nodes."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from random import Random

import pytest

from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.model.declare import declare
from ebbtide.operations.traces.clusters import recorded_cluster
from ebbtide.placement import Profile
from ebbtide.placement.derive import profile
from ebbtide.work.jobs import job
from ebbtide_rehearsal.cloud.store import Event
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from ebbtide_rehearsal.tools.progress import narrated
from kueue_replay.cloud_model import Cloud, CloudModel, Startup
from kueue_replay.cluster import Cluster, Declaration
from kueue_replay.kueue import PROGRAM
from kueue_replay.mapping import Mapper, Table
from kueue_replay.scheduler import schedulers
from kueue_replay.simulation import simulate, waits
from kueue_replay.trace import Trace, TraceJob
from rehearsal.tests.control_plane.cluster import run_for, wait
from rehearsal.tests.control_plane.commands import Kubectl
from rehearsal.tests.control_plane.kueue import create_queues, install, settings_of
from rehearsal.tests.control_plane.node_pools import CLUSTER, QUICK, Running, running
from tests.declarations import GKE, changed
from tests.declarations import Declaration as Declared
from tests.synth import synth

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

SPEED = 15
"""Simulated seconds per second: Kubernetes' own delays of some seconds are part of the node hours."""
MOST = 0.03
"""Largest difference of node hours."""
MOST_SECONDS = 90.0
"""Largest difference of a job's wait, simulated seconds: six seconds of the real controllers."""
JOBS = "/apis/batch/v1/namespaces/vision/jobs"


@pytest.fixture
def declared() -> Declared:
    """Two pools of on-demand nodes with their queues, and a team."""
    system, *_ = GKE["pools"]
    gpus = {"type": "nvidia-tesla-t4", "count": 4}
    on_demand = {"capacity": "on-demand", "nodes": {"max": 3}}
    return changed(
        GKE,
        pools=[
            system,
            {"name": "cpu", "machine": "n2-standard-8", **on_demand},
            {"name": "t4", "machine": "n1-standard-16", "accelerator": gpus, **on_demand},
        ],
        queues=[{"name": "cpu", "pools": ["cpu"]}, {"name": "t4", "pools": ["t4"]}],
        teams=[{"name": "vision", "members": ["ada@acme.example"]}],
    )


def _stream() -> Iterator[TraceJob]:
    """Yield jobs of 15 to 40 minutes.

    Those without GPUs take more than half of a node, so that scale-down does not interrupt them: which of two
    nodes it removes then is arbitrary, and node hours of so few jobs differ by several percent between runs.
    """
    random, at = Random(3), 0.0  # noqa: S311
    for number in range(16):
        at += random.expovariate(1 / 240)
        gpus = number % 2
        yield TraceJob(
            line=number + 2,
            name=f"job-{number}",
            submit=at,
            seconds=float(SPEED * random.randint(60, 160)),
            pods=1,
            cpu=2 if gpus else random.choice((4, 5, 6)),
            memory=4 * 2**30,
            gpus=random.choice((1, 2, 4)) if gpus else 0,
            queue=f"vision/{'t4' if gpus else 'cpu'}",
        )


def _burst() -> Iterator[TraceJob]:
    """Yield jobs of whole T4 nodes that leave theirs while others boot for later ones."""
    for number, (submit, seconds) in enumerate(
        ((0, 150), (15, 300), (450, 900), (540, 300), (750, 600), (1200, 150)), start=2
    ):
        yield TraceJob(
            line=number,
            name=f"job-{number}",
            submit=float(submit),
            seconds=float(seconds),
            pods=1,
            cpu=2,
            memory=4 * 2**30,
            gpus=4,
            queue="vision/t4",
        )


def _submit(api: Api, cluster: Profile, trace: Sequence[TraceJob]) -> float:
    """Create each job at its time, and return the time of the first."""
    begun = time.time()
    for row in trace:
        namespace, _, queue = row.queue.partition("/")
        manifest = job(
            cluster,
            name=row.name,
            namespace=namespace,
            image="busybox",
            queue=queue,
            gpus=row.gpus,
            cpu=str(row.cpu),
            memory=str(row.memory),
        )
        run_for(manifest, row.seconds / SPEED)
        time.sleep(max(0.0, begun + row.submit / SPEED - time.time()))
        api.create(JOBS, manifest)
    return begun


def _waits(api: Api, begun: float, trace: Sequence[TraceJob]) -> list[float]:
    """Return the simulated seconds from each submission to the start: to the end, without the run time."""
    found = {item["metadata"]["name"]: item["status"]["completionTime"] for item in api.items(JOBS)}
    ends = [datetime.fromisoformat(found[row.name]).timestamp() for row in trace]
    return [SPEED * (end - begun) - row.seconds - row.submit for row, end in zip(trace, ends, strict=True)]


def _is_over(cloud: Running, trace: Sequence[TraceJob]) -> bool:
    ended = sum(item["status"].get("succeeded", 0) for item in cloud.api.items(JOBS))
    return ended == len(trace) and not cloud.nodes("cpu") and not cloud.nodes("t4")


def _hours(events: Sequence[Event], pool: str) -> float:
    """Return the node hours of a pool without nodes at the end."""
    signs = {"node-added": -1, "node-removed": 1}
    own = [event for event in events if event.kind in signs and event.facts["pool"] == pool]
    return sum(signs[event.kind] * event.at for event in own) / 3600


@pytest.mark.parametrize(("jobs", "startup"), [(_stream, 90), (_burst, 600)])
def test_nodes_and_waiting_agree_with_a_rehearsal(
    jobs: Callable[[], Iterator[TraceJob]],
    startup: int,
    tools: ControlPlaneTools,
    chart_tools: ControlPlaneTools,
    declared: Declared,
    tmp_path: Path,
) -> None:
    """A trace has the node hours and the waiting of the same Jobs on the real control plane, whose scheduler
    binds pods to the rehearsal's nodes: within 3 % in each pool, and 90 simulated seconds for each job."""
    program = narrated([PROGRAM]).path(PROGRAM)
    recorded = Declaration.of(Cluster.model_validate(recorded_cluster("dev", synth(declared))))
    trace = list(jobs())
    pools = [pool.having(cluster=CLUSTER) for pool in recorded.pools]
    cluster = declare(declared)
    settings = replace(QUICK, startup_seconds=startup)
    with (
        ControlPlane.start(tmp_path / "control-plane", tools, settings_of(cluster)) as plane,
        running(plane, tmp_path, *pools, settings=settings, speed=SPEED) as cloud,
    ):
        kubectl = Kubectl(tools, plane)
        install(plane, kubectl, chart_tools, cluster, tmp_path)
        create_queues(kubectl, cluster)
        begun = _submit(plane.api, profile(cluster), trace)
        wait(lambda: _is_over(cloud, trace), bool, seconds=900)
        events, rehearsed_waits = cloud.store.events(), _waits(plane.api, begun, trace)
    work = Mapper(recorded, Table(), own=True).mapped(Trace("", "csv", trace, 0.0)).work
    model = CloudModel(startup=Startup(seconds=startup, spread=0), reclaims={})
    with schedulers(program)(recorded) as scheduler:
        replayed = simulate(recorded, work, scheduler, Cloud(model, {}, 1, 0.0))
    hours = {name: (_hours(events, name), _hours(replayed.events, name)) for name in recorded.work_pools}
    own_waits = waits(replayed.jobs)
    print(hours, *zip(rehearsed_waits, own_waits, strict=True))  # noqa: T201
    for rehearsed, own in hours.values():
        assert own == pytest.approx(rehearsed, rel=MOST), hours
    assert own_waits == pytest.approx(rehearsed_waits, abs=MOST_SECONDS)
