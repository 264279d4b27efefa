"""Outputs of runs and sweeps on a real API server: processes write them, and `ebbtide cp` copies them."""

import os
from pathlib import Path

import pytest

from ebbtide.autoscaler.nodes import Autoscaling, NodePool
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.placement.derive import profile
from ebbtide_rehearsal.cloud.pools import put_settings
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from rehearsal.tests.control_plane.commands import Ebbtide, dev
from rehearsal.tests.control_plane.node_pools import CLUSTER, declared_pool, running
from rehearsal.tests.control_plane.process_pods import process_namespace, team_volume
from tests.buckets import emulator

pytestmark = pytest.mark.rehearsal

_PROGRAM = """
import os, pathlib, sys, time
folder = pathlib.Path(os.environ["EBBTIDE_OUTPUTS"])
(folder / "model.txt").write_text("of index " + os.environ.get("JOB_COMPLETION_INDEX", "none"))
print("written to", folder, flush=True)
time.sleep(float(sys.argv[1]))
"""


def _declared(cloud: str, place: str) -> tuple[Cluster, NodePool]:
    """Return a cluster whose team has a volume, and a pool of it without nodes."""
    team = {"name": "vision", "namespace": {"name": place}, "requireQueue": False, "volume": {}}
    cluster, name = dev(cloud, teams=[team])
    return cluster, declared_pool(cluster, name)


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_outputs(
    control_plane: ControlPlane,
    tools: ControlPlaneTools,
    cloud: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Outputs are copied from a running pod and after the Job is deleted, and a rerun has its own."""
    monkeypatch.setenv("PATH", f"{tools.path('kubectl').parent}:{os.environ['PATH']}")
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    place = process_namespace(control_plane.api, f"outputs-{cloud}", **labels)
    team_volume(control_plane.api, place)
    declared, pool = _declared(cloud, place)
    user = Ebbtide(control_plane.plan.kubeconfig, profile(declared))
    (folder / "train.py").write_text(_PROGRAM)
    at = ("-n", place)
    where = (*at, "--pool", pool.name, "--image", "python", "--run-as-user", "1000")
    how = (*where, "--code", str(folder), "--outputs", "/outputs")
    assert user.refused("cp", "other:model.txt", *at) == (
        f"No pod of other runs in namespace {place}, and a Job has to read its outputs: name a pool (--pool) "
        "or a queue (--queue) for it."
    )
    with running(control_plane, tmp_path, pool) as nodes:
        put_settings(nodes.store, CLUSTER, Autoscaling(idle_seconds=360_000))  # the logs go with the node
        run = user.start("run", "train", *how, "--", "python", "train.py", "600")
        assert run.stdout is not None
        while not run.stdout.readline().startswith("written to"):
            assert run.poll() is None
        copied = user.output("cp", "train:model.txt", str(tmp_path / "live"), *at)
        assert copied == f"1 file, 1 kB, copied to {tmp_path / 'live'}.\n"
        assert (tmp_path / "live/model.txt").read_text() == "of index none"
        assert user.refused("cp", "train:none", *at).endswith("they have: model.txt.")
        run.terminate()
        run.communicate()
        user.output("cancel", "train", *at)
        user.output("cp", "train:", str(tmp_path / "later"), *where)
        assert (tmp_path / "later/model.txt").read_text() == "of index none"
        bucket = profile(declared).teams[0].bucket
        if cloud == "gke":  # mounted by itself, and on AKS by the claim
            (disks,) = tmp_path.rglob("disks")
            data = disks.parent / "buckets" / bucket.removeprefix("gs://") / "outputs/train"
            data.mkdir(parents=True)
            (data / "model.txt").write_text("of the bucket")
        mount = ("--mount", f"{bucket}/outputs/train:/data")
        read = user.output("run", *where, "--code", str(folder), *mount, "--", "cat", "/data/model.txt")
        assert ("of the bucket" if cloud == "gke" else "of index none") in read
        axes = ("--set", "lr=0.1,0.01")
        user.output("sweep", "grid", *how, *axes, "--", "python", "train.py", "0")
        user.output("cp", "grid:", str(tmp_path / "grid"), *at)
        assert (tmp_path / "grid/1/model.txt").read_text() == "of index 1"
        assert user.output("rerun", "grid", *at).startswith("Job grid-2 is created")
        spec = control_plane.api.get(f"/apis/batch/v1/namespaces/{place}/jobs/grid-2")["spec"]
        (kept, *_) = spec["template"]["spec"]["containers"][0]["volumeMounts"]
        assert kept["subPathExpr"] == "outputs/grid-2/$(JOB_COMPLETION_INDEX)"
        readers = control_plane.api.items(f"/apis/batch/v1/namespaces/{place}/jobs")
        assert [item["metadata"]["name"] for item in readers if "-cp-" in item["metadata"]["name"]] == []


def test_code_in_the_bucket(control_plane: ControlPlane, folder: Path, tmp_path: Path) -> None:
    """Code in the bucket is uploaded once, and unpacked by the pods of a run and its rerun."""
    place = process_namespace(control_plane.api, "code-in-bucket")
    team_volume(control_plane.api, place)
    declared, pool = _declared("gke", place)
    made = profile(declared)
    bucket = made.teams[0].bucket
    (folder / "train.py").write_text("import sys; print('trained', sys.argv[1])")
    (folder / "data.bin").write_bytes(os.urandom(900_000))
    buckets = tmp_path / "volumes/buckets"
    buckets.parent.mkdir()
    with (
        emulator(bucket.removeprefix("gs://"), buckets) as environment,
        running(control_plane, tmp_path, pool) as nodes,
    ):
        put_settings(nodes.store, CLUSTER, Autoscaling(idle_seconds=360_000))  # the logs go with the node
        user = Ebbtide(control_plane.plan.kubeconfig, made, environment)
        where = ("-n", place, "--pool", pool.name, "--image", "python", "--code", str(folder))
        first = user.output("run", "first", *where, "--", "python", "train.py", "once")
        (archive,) = (line for line in first.splitlines() if line.startswith("ebbtide: Archive: "))
        assert archive.startswith(f"ebbtide: Archive: {bucket}/code/")
        assert "trained once" in first.splitlines()
        second = user.output("run", "second", *where, "--", "python", "train.py", "twice")
        assert f"{archive}, which has it already" in second.splitlines()
        assert "trained twice" in second.splitlines()
        user.output("rerun", "second", "-n", place, "--", "python", "train.py", "again")
        third = user.output("follow", "second-2", "-n", place, "--logs")
        assert "trained again" in third.splitlines()
