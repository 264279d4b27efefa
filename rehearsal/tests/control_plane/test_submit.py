"""`ebbtide job --submit`, `ebbtide sweep --submit` and `ebbtide follow` on a real API server."""

import json
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ebbtide.placement.derive import profile
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.stages import EXIT_CODE, RUNS_FOR
from rehearsal.tests.control_plane.cluster import Object, declared_node, namespace, wait
from rehearsal.tests.control_plane.commands import Ebbtide, dev, shell_status

pytestmark = pytest.mark.rehearsal

_DEV, _POOL = dev()
_JOB = ("job", "train", "--image", "busybox", "--pool", _POOL, "--cpu", "1", "--fail-on", "42")


@contextmanager
def _node(control_plane: ControlPlane, name: str) -> Generator[None]:
    """A node of the pool, as the autoscaler would bring one."""
    declared_node(control_plane.api, name, _DEV, _POOL)
    try:
        yield
    finally:
        control_plane.api.delete(f"/api/v1/nodes/{name}")


def _pods(control_plane: ControlPlane, place: str, count: int) -> list[Object]:
    path = f"/api/v1/namespaces/{place}/pods"
    return wait(lambda: control_plane.api.items(path), lambda pods: len(pods) == count)


def _tell(control_plane: ControlPlane, pod: Object, **annotations: str) -> None:
    """Set how a pod ends, by annotations that the fake kubelet reads."""
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    control_plane.api.patch(path, {"metadata": {"annotations": annotations}})


def _ended(started: subprocess.Popen[str]) -> tuple[int, list[str], str]:
    out, errors = started.communicate(timeout=300)
    return shell_status(started.returncode), out.splitlines(), errors


def test_a_sweep_says_which_index_failed(control_plane: ControlPlane, ebbtide: Ebbtide) -> None:
    """With its parameters; the others complete."""
    place = namespace(control_plane.api, "sweeps")
    call = ("sweep", "grid", "--image", "busybox", "--pool", _POOL, "--set", "lr=0.1,0.2", "--retries", "0")
    started = ebbtide.start(*call, "-n", place, "--submit")
    for waiting in _pods(control_plane, place, 2):
        index = waiting["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        code = {EXIT_CODE: "7"} if index == "1" else {}
        _tell(control_plane, waiting, **{RUNS_FOR: "2"}, **code)
    with _node(control_plane, "sweeps"):
        status, lines, errors = _ended(started)
    assert (status, errors) == (1, "")
    assert '  index 1 {"lr": 0.2}: exit code 7' in lines


def test_a_disruption_is_survived(control_plane: ControlPlane, ebbtide: Ebbtide) -> None:
    """An evicted pod is replaced and counted, and the Job completes; the cost includes the deleted pod."""
    place = namespace(control_plane.api, "disrupted")
    started = ebbtide.start(*_JOB, "-n", place, "--submit")
    (first,) = _pods(control_plane, place, 1)
    _tell(control_plane, first, **{RUNS_FOR: "600"})
    path = f"/api/v1/namespaces/{place}/pods/{first['metadata']['name']}"
    with _node(control_plane, "disrupted"):
        wait(lambda: control_plane.api.get(path)["status"]["phase"], lambda phase: phase == "Running")
        gone = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
        status: dict[str, Any] = {
            "phase": "Failed",
            "reason": "Terminated",
            "message": "Pod was terminated in response to imminent node shutdown.",
            "conditions": [gone],
        }
        control_plane.api.patch(f"{path}/status", {"status": status})
        assert started.stdout is not None
        while "1 disruption survived" not in started.stdout.readline():
            assert started.poll() is None
        control_plane.api.delete(path, gracePeriodSeconds=0)
        ended, lines, errors = _ended(started)
    assert (ended, errors) == (0, "")
    assert lines[-2].endswith("; 1 disruption survived.")
    assert re.fullmatch(r"Its pods ran \d+ s in 2 attempts on cpu-spot: less than .*", lines[-1])


def test_a_job_over_several_nodes(control_plane: ControlPlane, ebbtide: Ebbtide) -> None:
    """Pods have the host names, subdomain and ranks by which they reach the first; a preempted pod comes back
    with the same ones; the Service is deleted with the Job; without DNS, the names are not resolved."""
    api, place = control_plane.api, namespace(control_plane.api, "over-nodes")
    started = ebbtide.start(*_JOB, "--nodes", "3", "-n", place, "--submit")
    pods = _pods(control_plane, place, 3)
    service = api.get(f"/api/v1/namespaces/{place}/services/train")
    created = api.get(f"/apis/batch/v1/namespaces/{place}/jobs/train")
    assert service["spec"]["clusterIP"] == "None"
    assert service["metadata"]["ownerReferences"][0]["uid"] == created["metadata"]["uid"]
    assert {item["spec"]["hostname"] for item in pods} == {"train-0", "train-1", "train-2"}
    for item in pods:
        assert item["spec"]["subdomain"] == service["metadata"]["name"]
        assert service["spec"]["selector"].items() <= item["metadata"]["labels"].items()
        (container,) = item["spec"]["containers"]
        variables = {variable["name"]: variable for variable in container["env"]}
        first = next(pod for pod in pods if pod["spec"]["hostname"] == "train-0")
        assert variables["MASTER_ADDR"]["value"] == f"{first['spec']['hostname']}.{item['spec']['subdomain']}"
        path = variables["RANK"]["valueFrom"]["fieldRef"]["fieldPath"]
        key = path.removeprefix("metadata.annotations['").removesuffix("']")
        assert item["spec"]["hostname"] == f"train-{item['metadata']['annotations'][key]}"
        _tell(control_plane, item, **{RUNS_FOR: "600" if item is pods[0] else "6"})
    lost = pods[0]
    path = f"/api/v1/namespaces/{place}/pods/{lost['metadata']['name']}"
    with _node(control_plane, "over-nodes"):
        wait(lambda: api.get(path)["status"]["phase"], lambda phase: phase == "Running")
        gone = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
        status: dict[str, Any] = {"phase": "Failed", "reason": "Terminated", "conditions": [gone]}
        api.patch(f"{path}/status", {"status": status})
        path = f"/api/v1/namespaces/{place}/pods"
        again = wait(
            lambda: [
                item
                for item in api.items(path)
                if item["spec"]["hostname"] == lost["spec"]["hostname"]
                and item["metadata"]["uid"] != lost["metadata"]["uid"]
            ],
            bool,
        )
        assert again[0]["spec"]["subdomain"] == "train"
        ended, lines, errors = _ended(started)
    assert (ended, errors) == (0, "")
    assert lines[-2].endswith("; 1 disruption survived.")
    api.delete(f"/apis/batch/v1/namespaces/{place}/jobs/train", propagationPolicy="Background")
    wait(lambda: api.find(f"/api/v1/namespaces/{place}/services/train"), lambda item: item is None)


def test_users_without_rights(control_plane: ControlPlane, tmp_path: Path) -> None:
    """A user without rights, and a user that the cluster does not know."""
    access = json.loads(control_plane.plan.kubeconfig.read_text())
    account = "/api/v1/namespaces/default/serviceaccounts/default/token"
    body: Object = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = control_plane.api.create(account, body)["status"]["token"]
    for given, expected in (
        (token, "You may not create Jobs in namespace default: name another with --namespace, or ask"),
        ("nobody", "The API server rejects your credentials: log in to the cloud again"),
    ):
        access["users"][0]["user"] = {"token": given}
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps(access))
        assert Ebbtide(file, profile(_DEV)).refused(*_JOB, "--submit").startswith(expected)
    assert (
        Ebbtide(file, profile(_DEV))
        .refused("follow", "train", "--context", "nowhere")
        .startswith("No kubeconfig has a usable context nowhere")
    )
