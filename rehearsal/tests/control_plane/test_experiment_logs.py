"""`ebbtide logs` and `follow` of Katib experiments, on a real API server with Katib's CRDs."""

from pathlib import Path

import pytest

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.installed import install_definitions
from ebbtide_rehearsal.control_plane.stages import RUNS
from ebbtide_rehearsal.tools.progress import narrated
from rehearsal.tests.control_plane.cluster import Object, namespace, wait
from rehearsal.tests.control_plane.commands import Ebbtide
from rehearsal.tests.control_plane.node_pools import running, work, work_pool

pytestmark = pytest.mark.rehearsal

_PLACE = "experiments"
_PODS = f"/api/v1/namespaces/{_PLACE}/pods"
_EXPERIMENTS = f"/apis/kubeflow.org/v1beta1/namespaces/{_PLACE}/experiments"
_LABELS = {name: f"katib.kubeflow.org/{name}" for name in ("experiment", "trial")}


def _trial(name: str, code: str) -> Object:
    """Return the pod of a trial, with the labels of Katib's webhook."""
    command = {"command": ["python", "-c", code]}
    made = work("cpu", {RUNS: "process"}, cpu="100m", container=command)
    made["metadata"] |= {"name": name, "labels": {_LABELS["experiment"]: "tune", _LABELS["trial"]: name}}
    made["spec"] |= {"restartPolicy": "Never"}
    return {"apiVersion": "v1", "kind": "Pod", **made}


def _served(api: Api) -> bool:
    """Return whether the API server serves experiments, some seconds after the definition."""
    try:
        return api.find(_EXPERIMENTS) is not None
    except ApiError:  # storage is (re)initializing
        return False


def test_logs_of_trials(control_plane: ControlPlane, ebbtide: Ebbtide, tmp_path: Path) -> None:
    """Lines begin with the trial's name; pods of the suggestion service are not among them; following ends
    with the experiment."""
    manifests = narrated(["katib-manifests"]).path("katib-manifests")
    api = control_plane.api
    install_definitions(api, manifests / "components" / "crd", "experiment.yaml")
    namespace(api, _PLACE)
    wait(lambda: _served(api), bool)
    body: Object = {"apiVersion": "kubeflow.org/v1beta1", "kind": "Experiment", "metadata": {"name": "tune"}}
    api.create(_EXPERIMENTS, {**body, "spec": {"maxTrialCount": 2}})
    with running(control_plane, tmp_path, work_pool("cpu", minimum=1)):
        followed = ebbtide.start("logs", "tune", "-n", _PLACE, "--follow")
        for number in (1, 2):
            api.create(_PODS, _trial(f"tune-{number}", f"print('accuracy=0.{number}')"))
        suggestion = _trial("suggestion", "print('suggested')")
        del suggestion["metadata"]["labels"][_LABELS["trial"]]
        api.create(_PODS, suggestion)
        wait(
            lambda: [pod["status"]["phase"] for pod in api.items(_PODS)],
            lambda phases: phases == ["Succeeded"] * 3,
            seconds=600,
        )
        out = ebbtide.output("logs", "tune", "-n", _PLACE)
        assert sorted(out.splitlines()) == ["[tune-1] accuracy=0.1", "[tune-2] accuracy=0.2"]
        done = {"type": "Succeeded", "status": "True", "reason": "ExperimentGoalReached", "message": ""}
        times = dict.fromkeys(("lastTransitionTime", "lastUpdateTime"), "2026-11-24T04:00:00Z")
        status: Object = {"conditions": [{**done, **times}], "trialsSucceeded": 2}
        api.patch(f"{_EXPERIMENTS}/tune/status", {"status": status})
        out, errors = followed.communicate(timeout=300)
        assert sorted(out.splitlines()) == ["[tune-1] accuracy=0.1", "[tune-2] accuracy=0.2"], errors
        assert (followed.returncode, errors.splitlines()[-1]) == (0, "completed, done 2 of 2")
        out = ebbtide.output("follow", "tune", "-n", _PLACE)
        assert out.splitlines()[-2].startswith("Experiment tune completed")
