"""`ebbtide jobs`, `ebbtide cancel` and `ebbtide rerun` on a real API server."""

import json
import subprocess
from typing import Any

import pytest

from ebbtide.placement.derive import profile
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.stages import RUNS_FOR
from rehearsal.tests.control_plane.cluster import Object, declared_node, gone, job, namespace, pod, wait
from rehearsal.tests.control_plane.commands import Ebbtide, dev

pytestmark = pytest.mark.rehearsal

_DEV, _POOL = dev()


@pytest.fixture(scope="module")
def ebbtide(control_plane: ControlPlane) -> Ebbtide:
    """The command line, as the cluster's administrator."""
    declared_node(control_plane.api, "node", _DEV, _POOL)
    return Ebbtide(control_plane.plan.kubeconfig, profile(_DEV))


def _output(started: subprocess.Popen[str]) -> str:
    out, errors = started.communicate(timeout=600)
    assert (started.returncode, errors) == (0, "")
    return out


def _create(
    control_plane: ControlPlane, ebbtide: Ebbtide, place: str, *arguments: str, **told: str
) -> Object:
    """Create what `ebbtide job` prints; annotations tell the fake kubelet how its pods end."""
    text = _output(ebbtide.start(*arguments, "-n", place, "--image", "busybox", "--format", "json"))
    created: list[Object] = json.loads(text)["items"]
    created[0]["spec"]["template"]["metadata"] = {"annotations": told}
    created[0]["metadata"]["annotations"] = {"ebbtide.dev/user": "ada@example.com"}
    jobs = f"/apis/batch/v1/namespaces/{place}/jobs"
    made = control_plane.api.create(jobs, created[0])
    for service in created[1:]:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": made["metadata"]["name"]}
        service["metadata"]["ownerReferences"] = [{**owner, "uid": made["metadata"]["uid"]}]
        control_plane.api.create(f"/api/v1/namespaces/{place}/services", service)
    return made


def _listed(ebbtide: Ebbtide, place: str, *options: str) -> dict[str, Any]:
    document = json.loads(_output(ebbtide.start("jobs", "-n", place, "--format", "json", *options)))
    assert document["version"] == "ebbtide.dev/jobs/v1"
    return {row["name"]: row for row in document["workloads"]}


def _until(ebbtide: Ebbtide, place: str, name: str, phase: str) -> dict[str, Any]:
    return wait(
        lambda: _listed(ebbtide, place, "--all").get(name, {}),
        lambda row: row.get("phase") == phase,
    )


def test_the_list(control_plane: ControlPlane, ebbtide: Ebbtide) -> None:
    """A summary, a running Job, a waiting one with its reason, and with --all an ended one, at 80 columns."""
    place = namespace(control_plane.api, "listed")
    on_pool = ("--pool", _POOL, "--cpu", "1")
    _create(control_plane, ebbtide, place, "job", "train", *on_pool, **{RUNS_FOR: "600"})
    _create(control_plane, ebbtide, place, "job", "quick", *on_pool, **{RUNS_FOR: "1"})
    _create(control_plane, ebbtide, place, "job", "large", "--pool", "t4-spot", "--gpus", "1")
    _until(ebbtide, place, "quick", "completed")
    row = _until(ebbtide, place, "train", "running")
    assert (row["kind"], row["pool"], row["queue"], row["user"]) == ("Job", _POOL, "", "ada@example.com")
    assert (row["attempts"], row["preemptions"], row["position"]) == (1, 0, None)
    assert row["seconds"] >= 0
    assert row["cost"]["complete"]
    price = next(pool.price.per_hour for pool in profile(_DEV).pools if pool.name == _POOL)
    assert price is not None
    assert 0 <= row["cost"]["amount"] < price
    assert row["cost"]["currency"] == "USD"
    assert set(_listed(ebbtide, place)) == {"train", "large"}
    text = _output(ebbtide.start("jobs", "-n", place, "--all"))
    lines = text.splitlines()
    summary, _, states = lines[0].partition(": ")
    assert summary == f"3 workloads in namespace {place}"
    assert sorted(states.removesuffix(".").split(", ")) == [
        "1 completed",
        "1 running",
        "1 waiting for a node",
    ]
    assert lines[1].split() == ["NAME", "STATE", "ON", "TRIES", "LOST", "RAN", "COST", "USER"]
    assert max(map(len, lines)) <= 80
    assert next(line for line in lines if "t4-spot" in line).split()[:3] == ["large", "waiting", "t4-spot"]
    assert "  large: waiting for a node for " in text
    assert "quick  completed" in text
    everywhere = _output(ebbtide.start("jobs", "--all-namespaces"))
    assert f"{place}/train" in everywhere


def test_a_cancelled_job(control_plane: ControlPlane, ebbtide: Ebbtide) -> None:
    """A cancelled Job is deleted with its pods; a similar name is suggested, and a distant one is not."""
    api, place = control_plane.api, namespace(control_plane.api, "cancelled")
    _create(control_plane, ebbtide, place, "job", "train", "--pool", _POOL, "--cpu", "1", **{RUNS_FOR: "600"})
    _until(ebbtide, place, "train", "running")
    error = ebbtide.refused("cancel", "trian", "-n", place)
    kinds = "Job, TrainJob, pipeline run or experiment"
    assert error.startswith(f"There is no {kinds} trian in namespace {place}; did you mean train?")
    text = _output(ebbtide.start("cancel", "train", "-n", place))
    assert text == f"Deleted the Job train in namespace {place}. It was running, with 1 pod.\n"
    gone(api, f"/apis/batch/v1/namespaces/{place}/jobs/train")
    wait(lambda: api.items(f"/api/v1/namespaces/{place}/pods"), lambda pods: not pods)
    assert f"No workload waits or runs in namespace {place}." in _output(ebbtide.start("jobs", "-n", place))


def test_a_job_that_runs_again(control_plane: ControlPlane, ebbtide: Ebbtide) -> None:
    """A new Job with other arguments, a ConfigMap and a Service of its own, and the next free name."""
    api, place = control_plane.api, namespace(control_plane.api, "again")
    arguments = ("job", "train", "--pool", _POOL, "--cpu", "1", "--nodes", "2")
    first = _create(control_plane, ebbtide, place, *arguments, **{RUNS_FOR: "600"})
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": first["metadata"]["uid"]}
    code = {"metadata": {"name": "train-code", "ownerReferences": [owner]}, "data": {"train.py": "pass"}}
    api.create(f"/api/v1/namespaces/{place}/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", **code})
    text = _output(ebbtide.start("rerun", "train", "-n", place, "--", "python", "train.py", "--lr", "0.2"))
    assert text.startswith("Job train-2 is created, from train. Follow it: ")
    again = api.get(f"/apis/batch/v1/namespaces/{place}/jobs/train-2")
    (container,) = again["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["python", "train.py", "--lr", "0.2"]
    assert again["spec"]["template"]["spec"]["subdomain"] == "train-2"
    variables = {item["name"]: item.get("value") for item in container["env"]}
    assert variables["MASTER_ADDR"] == "train-2-0.train-2"
    assert again["spec"]["selector"] != first["spec"]["selector"]
    service = api.get(f"/api/v1/namespaces/{place}/services/train-2")
    assert service["spec"]["selector"] == {"batch.kubernetes.io/job-name": "train-2"}
    copied = api.get(f"/api/v1/namespaces/{place}/configmaps/train-2-code")
    assert copied["data"] == {"train.py": "pass"}
    assert copied["metadata"]["ownerReferences"][0]["uid"] == again["metadata"]["uid"]
    assert "Job train-3 is created, from train-2." in _output(ebbtide.start("rerun", "train-2", "-n", place))
    error = ebbtide.refused("rerun", "train", "-n", place, "--name", "train-2")
    assert error.startswith(f"Job train-2 already exists in namespace {place}")


def test_jobs_of_other_workloads(control_plane: ControlPlane, ebbtide: Ebbtide) -> None:
    """A Job that a controller owns is not listed: its owner is."""
    api, place = control_plane.api, namespace(control_plane.api, "owned")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x", "controller": True}
    owned = job("child", pod({RUNS_FOR: "600"}))
    owned["metadata"]["ownerReferences"] = [owner]
    api.create(f"/apis/batch/v1/namespaces/{place}/jobs", owned, dryRun="All")
    api.create(f"/apis/batch/v1/namespaces/{place}/jobs", owned)
    assert _listed(ebbtide, place) == {}
    both = ebbtide.refused("jobs", "-n", place, "--all-namespaces")
    assert both == "--namespace and --all-namespaces exclude each other: write one of them."
