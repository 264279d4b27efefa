"""`ebbtide shell` on a real API server, with a pod that is a process of this machine."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ebbtide.placement import Profile
from ebbtide.placement.derive import profile
from ebbtide.work.runs.run import PARAMETERS
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from rehearsal.tests.control_plane.cluster import gone, wait
from rehearsal.tests.control_plane.commands import Ebbtide, dev
from rehearsal.tests.control_plane.node_pools import declared_pool, running
from rehearsal.tests.control_plane.process_pods import Terminal, process_namespace

pytestmark = pytest.mark.rehearsal

_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
Start = Callable[..., Terminal]


@pytest.fixture(scope="module", params=["gke", pytest.param("aks", marks=pytest.mark.long)])
def cloud(
    request: pytest.FixtureRequest, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str, Profile]]:
    """A cloud, the name of its pool, and the profile."""
    declared, name = dev(request.param)
    # A node that is removed as the next session begins would end it.
    nodes = replace(declared_pool(declared, name), minimum=1)
    with running(control_plane, tmp_path_factory.mktemp("cloud"), nodes):
        yield request.param, name, profile(declared)


@pytest.fixture
def start(
    cloud: tuple[str, str, Profile], control_plane: ControlPlane, tools: ControlPlaneTools, folder: Path
) -> Start:
    """Start a shell with the code of a folder in a namespace."""
    _, pool, made = cloud

    def started(place: str, *words: str, user: str = "1000") -> Terminal:
        as_user = ("--run-as-user", user) if user else ()
        options = ("-n", place, "--code", str(folder), "--image", "python", *as_user)
        on_pool = () if "--pool" in words else ("--pool", pool)
        command = ("shell", *words, *options, *on_pool)
        return Terminal(tools.path("kubectl"), control_plane.plan.kubeconfig, made, *command)

    return started


def _jobs(control_plane: ControlPlane, place: str) -> list[str]:
    items = control_plane.api.items(f"/apis/batch/v1/namespaces/{place}/jobs")
    return [item["metadata"]["name"] for item in items]


def test_a_terminal(control_plane: ControlPlane, cloud: tuple[str, str, Profile], start: Start) -> None:
    """The shell of a restricted namespace has the code, and its end deletes the Job with its pod; a pod that
    the namespace would refuse is an error, without a Job."""
    place = process_namespace(control_plane.api, f"shell-{cloud[0]}", **_RESTRICTED)
    refused = start(place, user="")
    refused.read("with --run-as-user 1000.")
    assert (refused.end(), _jobs(control_plane, place)) == (2, [])
    terminal = start(place)
    terminal.read("is created, in namespace")
    terminal.read("The cloud may reclaim a node of ")
    terminal.write("python train.py; basename $PWD; exit 3\n")
    output = terminal.read("has ended, and its Job is deleted.")
    assert terminal.end() == 0
    lines = [line.strip() for line in output.splitlines()]
    assert "trained" in lines
    assert "code" in lines
    wait(lambda: control_plane.api.items(f"/api/v1/namespaces/{place}/pods"), lambda pods: not pods)
    assert _jobs(control_plane, place) == []


def test_an_idle_terminal(control_plane: ControlPlane, cloud: tuple[str, str, Profile], start: Start) -> None:
    """A shell that only waits for input ends after the time of --idle, and with it the Job."""
    place = process_namespace(control_plane.api, f"idle-{cloud[0]}")
    terminal = start(place, "dev", "--idle", "40s")
    output = terminal.read("dev has ended. No process of its user had run for 40 s (--idle).")
    assert "disruption" not in output
    assert terminal.end() == 1
    gone(control_plane.api, f"/apis/batch/v1/namespaces/{place}/jobs/dev")


def test_a_lost_connection(
    control_plane: ControlPlane, cloud: tuple[str, str, Profile], start: Start
) -> None:
    """The Job stays, and its name opens another terminal on the same pod."""
    place = process_namespace(control_plane.api, f"lost-{cloud[0]}")
    first = start(place, "dev")
    first.read("is created, in namespace")
    first.write("echo kept > file; echo written-$((1 + 1))\n")
    first.read("written-2")
    (kubectl,) = Path(f"/proc/{first.process.pid}/task/{first.process.pid}/children").read_text().split()
    os.kill(int(kubectl), signal.SIGKILL)
    output = first.read("End it: ")
    assert first.end() == 1
    assert "The connection to dev was lost. It ends once no process of yours has run for 1 hour." in output
    assert _jobs(control_plane, place) == ["dev"]
    second = start(place, "dev")
    second.write("cat file; exit\n")
    second.read("kept")
    second.read("has ended, and its Job is deleted.")
    assert second.end() == 0
    assert _jobs(control_plane, place) == []


def test_a_second_terminal(
    control_plane: ControlPlane, cloud: tuple[str, str, Profile], start: Start
) -> None:
    """Neither its end nor its loss ends the work in the first one, whose end then deletes the Job; recorded
    options may be no JSON."""
    place = process_namespace(control_plane.api, f"second-{cloud[0]}")
    first = start(place, "dev")
    first.read("is created, in namespace")
    first.write("echo open-$((1 + 1))\n")
    first.read("open-2")
    job = f"/apis/batch/v1/namespaces/{place}/jobs/dev"
    control_plane.api.patch(job, {"metadata": {"annotations": {PARAMETERS: "no JSON"}}})
    for how, status in (("exit", 0), ("SIGHUP", 129), ("SIGTERM", 143), ("SIGKILL", 137)):
        second = start(place, "dev")
        second.read("dev is your session, and keeps its own pool, image and code")
        second.write("echo second-$((1 + 1))\n")
        second.read("second-2")
        if how == "exit":
            second.write("exit\n")
            second.read(
                "1 other terminal is open in it, and its Job stays. It ends once no process of yours has"
            )
        else:
            second.process.send_signal(signal.Signals[how])
        assert second.end() == status
        assert "deletionTimestamp" not in control_plane.api.get(job)["metadata"]
    first.write("echo alive-$((1 + 1)); exit\n")
    first.read("alive-2")
    first.read("dev has ended, and its Job is deleted.")
    assert first.end() == 0
    assert _jobs(control_plane, place) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_an_end_before_the_start(
    control_plane: ControlPlane, cloud: tuple[str, str, Profile], start: Start, number: signal.Signals
) -> None:
    """Ctrl-C and a closed terminal delete a Job that still waits for a node."""
    name = {"gke": "t4-spot", "aks": "t4spot"}[cloud[0]]
    place = process_namespace(control_plane.api, f"early-{cloud[0]}-{number}")
    terminal = start(place, "--pool", name, "--gpus", "1")
    terminal.read("is created, in namespace")
    time.sleep(2)
    terminal.process.send_signal(number)
    assert terminal.end() == 128 + number
    assert _jobs(control_plane, place) == []


def test_what_a_shell_needs(
    control_plane: ControlPlane, cloud: tuple[str, str, Profile], start: Start
) -> None:
    """A shell without a terminal, or with an idle time that is too short, is refused before a Job exists."""
    place = process_namespace(control_plane.api, f"refused-{cloud[0]}")
    ebbtide = Ebbtide(control_plane.plan.kubeconfig, cloud[2])
    error = ebbtide.refused("shell", "--pool", cloud[1], "-n", place)
    assert error.startswith(
        "Standard input is not a terminal, and the shell would end at once: run a command"
    )
    terminal = start(place, "--idle", "1s")
    terminal.read("idle is 1s, and the session would end before its first command: write 1h")
    assert terminal.end() == 2
    assert _jobs(control_plane, place) == []
