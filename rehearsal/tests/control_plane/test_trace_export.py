"""`ebbtide trace export` on the real API server with the real Kueue and the cost recorder, and its replay."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.placement import Profile
from ebbtide.work.jobs import job
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from ebbtide_rehearsal.tools.progress import narrated
from kueue_replay.kueue import PROGRAM
from rehearsal.tests.control_plane.cluster import gone, run_for, wait
from rehearsal.tests.control_plane.commands import Ebbtide, Kubectl
from rehearsal.tests.control_plane.cost_recorder import Installed, install_recorder
from rehearsal.tests.control_plane.kueue import gpu_node
from tests.repository import ROOT

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

JOBS = "/apis/batch/v1/namespaces/vision/jobs"
WORKLOADS = "/apis/kueue.x-k8s.io/v1beta2/namespaces/vision/workloads"


@pytest.fixture(scope="module")
def declaration() -> Cluster:
    """The cluster of the stack dev, with the cost record."""
    stack = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8"))
    return declare(stack["config"]["ebbtide:cluster"] | {"addons": {"costs": {}}})


@pytest.fixture(scope="module")
def recorder(
    tools: ControlPlaneTools,
    kueue: ControlPlane,
    declaration: Cluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Installed:
    """The cost recorder, and a node of four T4."""
    gpu_node(kueue.api, declaration, "t4-spot", 4)
    directory = tmp_path_factory.mktemp("recorder")
    return install_recorder(declaration, Kubectl(tools, kueue), kueue, directory)


def _submit(api: Api, cluster: Profile, name: str, gpus: int, seconds: int) -> None:
    manifest = job(
        cluster, name=name, namespace="vision", image="busybox", queue="t4", gpus=gpus, cpu="1", memory="2Gi"
    )
    run_for(manifest, seconds).setdefault("labels", {})["ebbtide.dev/owner"] = "ada"
    api.create(JOBS, manifest)


def _ended(api: Api, name: str) -> None:
    wait(lambda: api.get(f"{JOBS}/{name}")["status"], lambda status: status.get("succeeded") == 1)


def _exported(ebbtide: Ebbtide, *arguments: str) -> tuple[list[dict[str, str]], str, str]:
    """Return the rows of an export, its text, and its remarks."""
    started = ebbtide.start("trace", "export", "-n", "vision", *arguments)
    out, errors = started.communicate(timeout=300)
    assert started.returncode == 0, errors
    return list(csv.DictReader(io.StringIO(out))), out, errors


def test_a_trace_of_a_cluster_is_replayed(
    kueue: ControlPlane, recorder: Installed, cluster_profile: Profile, tmp_path: Path
) -> None:
    """A trace has deleted jobs from the record, existing ones from Workloads, and a count of waiting ones."""
    api, ebbtide = kueue.api, Ebbtide(kueue.plan.kubeconfig, cluster_profile)
    _submit(api, cluster_profile, "first", 1, 4)
    created = api.get(f"{JOBS}/first")["metadata"]["creationTimestamp"]
    _ended(api, "first")
    assert recorder.run() == "1 lines written.\n"
    api.delete(f"{JOBS}/first", propagationPolicy="Background")
    gone(api, f"{JOBS}/first")
    _submit(api, cluster_profile, "second", 4, 5)
    _ended(api, "second")
    _submit(api, cluster_profile, "third", 4, 600)
    wait(lambda: api.get(f"{JOBS}/third")["status"], lambda status: status.get("ready") == 1)
    for number in range(4):
        _submit(api, cluster_profile, f"more-{number}", 4, 600)
    wait(lambda: api.items(WORKLOADS), lambda items: len(items) == 6)
    assert recorder.run() == "1 lines written.\n"
    rows, text, remarks = _exported(ebbtide)
    by_name = {row["name"]: row for row in rows}
    assert {"first", "second", "third"} <= by_name.keys()
    first = by_name["first"]
    assert first["submit"] == created
    facts = ("user", "pods", "cpu", "memory", "gpus", "queue")
    assert [first[key] for key in facts] == ["ada", "1", "1", "2Gi", "1", "vision/t4"]
    assert 3 <= int(first["duration"]) <= 20
    second = by_name["second"]
    assert [second[key] for key in ("user", "pods", "gpus", "queue")] == ["ada", "1", "4", "vision/t4"]
    assert 4 <= int(second["duration"]) <= 30
    assert "4 jobs wait without a run time yet: not in the trace." in remarks
    assert "still: the duration is the time until now." in remarks
    trace = tmp_path / "jobs.csv"
    trace.write_text(text, encoding="utf-8")
    narrated([PROGRAM])
    command = ("replay", str(trace), "dev", "--seeds", "1", "--format", "json")
    done = subprocess.run(
        [sys.executable, "-m", "ebbtide", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["jobs"] == len(rows)
    assert report["columns"][0]["ended"]["median"] == len(rows)
    hidden, anonymous, _ = _exported(ebbtide, "--anonymous")
    assert "first" not in anonymous
    assert "ada" not in anonymous
    kept = ("submit", "gpus", "queue")
    assert sorted([row[key] for key in kept] for row in hidden) == sorted(
        [row[key] for key in kept] for row in rows
    )
