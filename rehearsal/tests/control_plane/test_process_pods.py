"""Pods whose command runs as a process: logs, attach, exec, port-forward, and the code of an image."""

import subprocess
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from ebbtide.autoscaler.scheduling import read_pod
from ebbtide.clients.kubernetes.objects import condition
from ebbtide.work.registry import code_image, push
from ebbtide.work.runs.folder import read_folder
from ebbtide_rehearsal.cloud.node_pools.actuator import Actuator
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from ebbtide_rehearsal.control_plane.pod_status import running as running_status
from ebbtide_rehearsal.control_plane.stages import RUNS
from rehearsal.tests.control_plane.cluster import Object, gone, namespace, wait
from rehearsal.tests.control_plane.commands import run
from rehearsal.tests.control_plane.node_pools import Running, running, work, work_pool
from rehearsal.tests.registry import anonymous, put_image

pytestmark = pytest.mark.rehearsal

_PLACE = "processes"
_PODS = f"/api/v1/namespaces/{_PLACE}/pods"
_COUNTS = "import time\nfor number in range(20): print('line', number); time.sleep(0.5)"


@pytest.fixture(scope="module")
def cloud(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A pool with a node."""
    namespace(control_plane.api, _PLACE)
    with running(control_plane, tmp_path_factory.mktemp("cloud"), work_pool("cpu", minimum=1)) as started:
        yield started


def _pod(cloud: Running, name: str, *command: str, **container: object) -> str:
    """Create a pod; return the path of its object."""
    spec = work("cpu", {RUNS: "process"}, cpu="100m", container={"command": list(command), **container})
    spec["metadata"]["name"] = name
    spec["spec"] |= {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    cloud.api.create(_PODS, {"apiVersion": "v1", "kind": "Pod", **spec})
    return f"{_PODS}/{name}"


def _phase(cloud: Running, path: str, phase: str) -> Object:
    return wait(lambda: cloud.api.get(path), lambda pod: pod["status"]["phase"] == phase)


def _code(cloud: Running, name: str, image: str) -> str:
    """Create a pod that runs the code of an image."""
    command = ("python", "train.py", "/code/lib/data.txt")
    return _pod(cloud, name, *command, image=image, workingDir="/code")


@pytest.fixture
def kubectl(control_plane: ControlPlane, tools: ControlPlaneTools) -> tuple[str, ...]:
    """The words of kubectl in the namespace of the pods."""
    access = ("--kubeconfig", str(control_plane.plan.kubeconfig), "--namespace", _PLACE)
    return str(tools.path("kubectl")), *access


def test_logs_and_attach(cloud: Running, kubectl: tuple[str, ...]) -> None:
    """Both follow the output to the end of the container; the log of an ended container is complete."""
    lines = [f"line {number}" for number in range(20)]
    _phase(cloud, _pod(cloud, "counts", "python", "-c", _COUNTS), "Running")
    with subprocess.Popen([*kubectl, "attach", "counts"], stdout=subprocess.PIPE, text=True) as attached:
        assert run(*kubectl, "logs", "--follow", "counts").splitlines() == lines
        output, _ = attached.communicate(timeout=600)
    assert lines[-1] in output.splitlines()
    assert set(output.splitlines()) <= {*lines, ""}
    assert run(*kubectl, "logs", "--tail", "1", "counts") == "line 19\n"


def test_exec(cloud: Running, kubectl: tuple[str, ...]) -> None:
    """Commands have the container's environment, the end of their input, both outputs, and their exit status
    or signal."""
    _phase(cloud, _pod(cloud, "sleeps", "sleep", "3600"), "Running")

    def executed(words: str, given: str = "") -> "subprocess.CompletedProcess[str]":
        command = [*kubectl, "exec", "-i", "sleeps", "--", "sh", "-c", words]
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False)

    ended = executed("read line; echo $line of $HOSTNAME; cat; echo error >&2; exit 7", "first\nrest")
    assert (ended.returncode, ended.stdout) == (7, "first of sleeps\nrest")
    assert ended.stderr.splitlines() == ["error", "command terminated with exit code 7"]
    assert executed("kill -KILL $$").returncode == 137


@contextmanager
def _forwarded(kubectl: tuple[str, ...], port: int) -> Generator[tuple[int, "subprocess.Popen[str]"]]:
    """Forward a port of the pod that serves; yield the local port, and kubectl."""
    command = [*kubectl, "port-forward", "pod/serves", f":{port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        local = process.stdout.readline().split()[2].rpartition(":")[2]
        yield int(local), process
        process.terminate()


def test_port_forward(cloud: Running, kubectl: tuple[str, ...]) -> None:
    """Declared ports are reached, and no others."""
    serves = ("python", "-m", "http.server", "--bind", "127.0.0.1", "8000")
    path = _pod(cloud, "serves", *serves, ports=[{"containerPort": 8000}])
    _phase(cloud, path, "Running")
    wait(lambda: run(*kubectl, "logs", "serves"), lambda text: "Serving HTTP" in text)
    with (
        _forwarded(kubectl, 8000) as (port, _),
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60) as answer,
    ):
        assert answer.status == 200
    with _forwarded(kubectl, 8001) as (port, process):
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60):
            pytest.fail("an undeclared port was reached")
        assert process.stderr
        assert "does not declare port 8001" in process.stderr.readline()


def test_the_code_of_an_image_runs(cloud: Running, address: str, tmp_path: Path) -> None:
    """The process has the folder in its working directory, reads it by its path in the container, and can
    write in it."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/data.txt").write_text("data of the folder")
    (tmp_path / "train.py").write_text(
        "import pathlib, sys\n"
        "pathlib.Path('out').write_text('written')\n"
        "print(pathlib.Path(sys.argv[1]).read_text(), pathlib.Path('out').read_text())\n"
    )
    put_image(f"{address}/bases/python:3", {"etc/base": "base"})
    layer = read_folder(tmp_path).archive("code")
    image = code_image(f"{address}/bases/python:3", f"{address}/team/model", layer, anonymous)
    push(image, anonymous, print)
    ended = _phase(cloud, _code(cloud, "runs", image.name), "Succeeded")
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    log = cloud.directory / "logs" / _PLACE / "runs.log"
    assert log.read_text() == "data of the folder written\n"


def test_an_image_that_cannot_be_pulled(cloud: Running, address: str) -> None:
    """The pod waits, and its status names the image."""
    image = f"{address}/team/none:1"
    path = _code(cloud, "waits", image)
    pod: Object = wait(lambda: cloud.api.get(path), lambda pod: f"pull image '{image}'" in str(pod))
    assert pod["status"]["phase"] == "Pending"


def test_an_eviction_after_the_snapshot(cloud: Running) -> None:
    """A status that is written from an older snapshot keeps the condition of an eviction."""
    path = _pod(cloud, "evicted", "sleep", "3600")
    cloud.api.patch(path, {"metadata": {"finalizers": ["ebbtide.dev/test"]}})
    pod = read_pod(_phase(cloud, path, "Running"))
    actuator = Actuator(cloud.api)
    assert actuator.evict(pod)
    actuator.write_status(pod, running_status(pod.raw, restarts=0, last=None))
    evicted = condition(cloud.api.get(path), "DisruptionTarget")
    assert evicted["reason"] == "EvictionByEvictionAPI"
    cloud.api.patch(path, {"metadata": {"finalizers": None}})
    gone(cloud.api, path)
