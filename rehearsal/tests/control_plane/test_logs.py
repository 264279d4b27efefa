"""`ebbtide logs` on a real API server."""

import subprocess

import pytest

from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from rehearsal.tests.control_plane.cluster import namespace, wait
from rehearsal.tests.control_plane.commands import Ebbtide

pytestmark = pytest.mark.rehearsal

_LINK = "https://console.cloud.google.com/logs/query;query="


def _end(started: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, errors = started.communicate(timeout=300)
    return started.returncode, out, errors


def test_a_workload_without_a_log(control_plane: ControlPlane, ebbtide: Ebbtide) -> None:
    """The reason is the state of a waiting sweep; an index that it does not have is an error; once it is
    deleted, the link to its logs is printed."""
    api, place = control_plane.api, namespace(control_plane.api, "logs")
    sweep = ("sweep", "grid", "--image", "busybox", "--pool", "cpu-spot", "--set", "lr=1,2")
    started = ebbtide.start(*sweep, "-n", place, "--submit")
    wait(lambda: api.items(f"/api/v1/namespaces/{place}/pods"), lambda pods: len(pods) == 2)
    started.kill()
    started.communicate()
    status, out, errors = _end(ebbtide.start("logs", "grid", "-n", place, "--index", "1"))
    assert (status, out) == (0, "")
    assert errors.startswith(("No pod of grid has a log now. Waiting", "No pod of grid has a log now. Start"))
    assert ebbtide.refused("logs", "grid", "-n", place, "--index", "2") == (
        "--index is 2, and grid has the indexes 0 to 1."
    )
    api.delete(f"/apis/batch/v1/namespaces/{place}/jobs/grid", propagationPolicy="Background")
    wait(lambda: api.items(f"/apis/batch/v1/namespaces/{place}/jobs"), lambda jobs: not jobs)
    status, out, errors = _end(ebbtide.start("logs", "grid", "-n", place))
    assert status == 1
    assert out.startswith(_LINK)
    assert errors.startswith(
        f"There is no Job, TrainJob, pipeline run or experiment grid in namespace {place}."
    )
