"""kubectl logs, attach, exec and port-forward on pods whose command runs as a process."""

import os
import pty
import select
import subprocess
import time
import urllib.request
from collections.abc import Iterator

import pytest

from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from ebbtide_rehearsal.control_plane.stages import RUNS
from rehearsal.tests.control_plane.cluster import Object, gone, namespace, wait
from rehearsal.tests.control_plane.node_pools import Running, running, work, work_pool

pytestmark = pytest.mark.rehearsal

_PLACE = "sessions"
_PODS = f"/api/v1/namespaces/{_PLACE}/pods"
_COUNTS = "import time\nfor number in range(20): print('line', number); time.sleep(0.5)"


@pytest.fixture(scope="module")
def cloud(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A pool with a node."""
    namespace(control_plane.api, _PLACE)
    with running(control_plane.api, tmp_path_factory.mktemp("cloud"), work_pool("cpu", minimum=1)) as started:
        yield started


@pytest.fixture
def kubectl(control_plane: ControlPlane, tools: ControlPlaneTools) -> tuple[str, ...]:
    """The first words of a command of kubectl."""
    access = ("--kubeconfig", str(control_plane.plan.kubeconfig), "--namespace", _PLACE)
    return (str(tools.path("kubectl")), *access)


def _start(cloud: Running, name: str, *command: str, **container: object) -> Object:
    """Create a pod, and wait until it runs."""
    spec = work("cpu", {RUNS: "process"}, cpu="100m", container={"command": list(command), **container})
    spec["metadata"]["name"] = name
    spec["spec"] |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    cloud.api.create(_PODS, {"apiVersion": "v1", "kind": "Pod", **spec})
    return wait(
        lambda: cloud.api.get(f"{_PODS}/{name}"),
        lambda pod: pod["status"]["phase"] not in ("Pending", "Unknown"),
        seconds=90,
    )


def _run(*command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)


def test_logs_and_attach(cloud: Running, kubectl: tuple[str, ...]) -> None:
    """Both follow the output to the end of the container; the log of an ended container is complete."""
    _start(cloud, "counts", "python", "-c", _COUNTS)
    with subprocess.Popen([*kubectl, "attach", "counts"], stdout=subprocess.PIPE, text=True) as attached:
        followed = _run(*kubectl, "logs", "--follow", "counts")
        lines = [f"line {number}" for number in range(20)]
        assert (followed.returncode, followed.stdout.splitlines()) == (0, lines)
        output, _ = attached.communicate(timeout=30)
    assert lines[-1] in output.splitlines()
    assert set(output.splitlines()) <= {*lines, ""}
    assert _run(*kubectl, "logs", "--tail", "1", "counts").stdout == "line 19\n"


def test_exec(cloud: Running, kubectl: tuple[str, ...]) -> None:
    """A command has the container's directory, environment and input, and its exit status is kubectl's."""
    variables = [{"name": "COLOR", "value": "blue"}]
    _start(cloud, "sleeps", "sleep", "600", env=variables, workingDir="/code")
    words = [*kubectl, "exec", "-i", "sleeps", "--", "sh", "-c"]
    ended = _run(*words, 'cat; echo "$COLOR $(basename "$PWD")"; exit 3', stdin="given\n")
    assert (ended.returncode, ended.stdout) == (3, "given\nblue code\n")
    killed = _run(*words, "kill -KILL $$")
    assert killed.returncode == 137


def test_exec_with_a_terminal(cloud: Running, kubectl: tuple[str, ...]) -> None:
    """The shell has a terminal, where Ctrl-C interrupts its command and not the shell."""
    _start(cloud, "terminal", "sleep", "600")
    outer, inner = pty.openpty()
    command = [*kubectl, "exec", "-it", "terminal", "--", "sh", "-i"]
    with subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner) as shell:
        os.close(inner)
        os.write(outer, b"test -t 0 && PS1=prompt-$((1 + 1)); sleep 500\n")
        time.sleep(2)
        os.write(outer, b"\x03")
        _read_until(outer, "prompt-2")
        os.write(outer, b"exit 5\n")
        assert shell.wait(30) == 5
    os.close(outer)


def _read_until(terminal: int, words: str) -> None:
    output = ""
    while words not in output:
        assert select.select([terminal], [], [], 30)[0], output
        output += os.read(terminal, 4096).decode()


def test_commands_end_with_their_pod(cloud: Running, kubectl: tuple[str, ...]) -> None:
    """A deleted pod ends what exec has started in it, and a new pod of the same name has its own log."""
    _start(cloud, "ends", "python", "-c", "print('first'); import time; time.sleep(600)")
    words = [*kubectl, "exec", "ends", "--", "sh", "-c", "echo started; exec sleep 500"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as command:
        assert command.stdout is not None
        assert command.stdout.readline() == b"started\n"
        cloud.api.delete(f"{_PODS}/ends")
        gone(cloud.api, f"{_PODS}/ends")
        assert command.wait(30) == 137
    kinds = "/apis/kwok.x-k8s.io/v1alpha1"
    pod = _start(cloud, "ends", "python", "-c", "print('second'); import time; time.sleep(600)")
    wait(lambda: _run(*kubectl, "logs", "ends").stdout, lambda output: output == "second\n")
    cloud.api.delete(f"{_PODS}/ends")
    for kind in ("clusterlogs", "clusterattaches", "clusterexecs", "clusterportforwards"):
        gone(cloud.api, f"{kinds}/{kind}/{pod['metadata']['uid']}")


def test_port_forward(cloud: Running, kubectl: tuple[str, ...]) -> None:
    """Two pods serve on the same declared port, and each is reached by its name."""
    words = ("python", "-m", "http.server", "--bind", "127.0.0.1", "8000")
    for name in ("one", "two"):
        _start(cloud, name, *words, workingDir=f"/{name}", ports=[{"containerPort": 8000}])
        assert _run(*kubectl, "exec", name, "--", "sh", "-c", f"echo {name} > file").returncode == 0
    for name in ("one", "two"):
        assert _forwarded(kubectl, name) == f"{name}\n"


def _forwarded(kubectl: tuple[str, ...], name: str) -> str:
    """Return the pod's file, as it is served through a forwarded port."""
    with subprocess.Popen(
        [*kubectl, "port-forward", name, ":8000"], stdout=subprocess.PIPE, text=True
    ) as forward:
        assert forward.stdout is not None
        port = forward.stdout.readline().split()[2].rpartition(":")[2]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/file", timeout=30) as answer:
                return answer.read().decode()
        finally:
            forward.terminate()
