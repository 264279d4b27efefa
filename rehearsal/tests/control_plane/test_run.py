"""`ebbtide run` on a real API server."""

import base64
import io
import signal
import tarfile
from pathlib import Path
from typing import Any

import pytest

from ebbtide.placement.derive import profile
from ebbtide.text import command_line
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from rehearsal.tests.control_plane.cluster import Object, namespace, wait
from rehearsal.tests.control_plane.commands import Ebbtide, dev, shell_status

pytestmark = pytest.mark.rehearsal


@pytest.fixture(scope="module", params=["gke", pytest.param("aks", marks=pytest.mark.long)])
def cloud(request: pytest.FixtureRequest) -> str:
    """The cloud of the profile."""
    return request.param


@pytest.fixture(scope="module")
def ebbtide(control_plane: ControlPlane, cloud: str) -> Ebbtide:
    """Return the command with the administrator's kubeconfig."""
    return Ebbtide(control_plane.plan.kubeconfig, profile(dev(cloud)[0]))


@pytest.fixture
def call(cloud: str, folder: Path) -> tuple[str, ...]:
    """The words of a run of a folder, without its name and its command."""
    return ("--code", str(folder), "--image", "python", "--pool", dev(cloud)[1], "--run-as-user", "1000")


def _only(control_plane: ControlPlane, place: str, kind: str) -> Object:
    path = f"/api/v1/namespaces/{place}/{kind}"
    return wait(
        lambda: [
            item for item in control_plane.api.items(path) if item["metadata"]["name"] != "kube-root-ca.crt"
        ],
        lambda items: len(items) == 1,
    )[0]


def test_a_run_in_a_restricted_namespace(
    control_plane: ControlPlane, ebbtide: Ebbtide, call: tuple[str, ...], cloud: str
) -> None:
    """A run in a restricted namespace is admitted, and its ConfigMap is deleted with the Job."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    api, place = control_plane.api, namespace(control_plane.api, f"restricted-{cloud}", **labels)
    assert "--run-as-user" in call[-2]
    assert ebbtide.refused("run", *call[:-2], "-n", place, "--", "python", "train.py").startswith(
        f"Namespace {place} would refuse the run's pods, and nothing was created: run them as a user that is "
        "not root, with --run-as-user 1000. ("
    )
    assert api.items(f"/apis/batch/v1/namespaces/{place}/jobs") == []
    started = ebbtide.start("run", *call, "-n", place, "--", "python", "train.py")
    pod = _only(control_plane, place, "pods")
    config_map = _only(control_plane, place, "configmaps")
    name = pod["metadata"]["labels"]["app.kubernetes.io/instance"]
    job = api.get(f"/apis/batch/v1/namespaces/{place}/jobs/{name}")
    assert name.startswith("my-model-")
    assert job["metadata"]["labels"]["ebbtide.dev/owner"]
    assert config_map["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    volumes = {item["name"]: item for item in pod["spec"]["volumes"]}
    assert volumes["ebbtide-archive"]["configMap"]["name"] == config_map["metadata"]["name"]
    archive = io.BytesIO(base64.b64decode(config_map["binaryData"]["code.tar.gz"]))
    with tarfile.open(fileobj=archive) as unpacked:
        assert unpacked.getnames() == ["train.py"]
    assert started.stdout is not None
    assert started.stdout.readline() == f"ebbtide: Job {name} is created in namespace {place}.\n"
    assert started.stdout.readline().startswith("ebbtide: Code: 1 file, 1 kB, of ")
    started.stdout.readline()
    started.send_signal(signal.SIGINT)
    _, errors = started.communicate(timeout=300)
    assert (shell_status(started.returncode), errors.splitlines()) == (
        130,
        [
            (
                f"ebbtide: {name} keeps running. Follow it again with: "
                f"{command_line('follow', name, '-n', place, '--logs')}"
            ),
            f"ebbtide: Cancel it with: {command_line('cancel', name, '-n', place)}",
        ],
    )
    api.delete(f"/apis/batch/v1/namespaces/{place}/jobs/{name}", propagationPolicy="Background")
    path = f"/api/v1/namespaces/{place}/configmaps/{config_map['metadata']['name']}"
    wait(lambda: api.find(path), lambda item: item is None)


def test_a_name_that_is_taken(
    control_plane: ControlPlane, ebbtide: Ebbtide, call: tuple[str, ...], cloud: str
) -> None:
    """The second run is refused and offers --replace, which deletes the first with its pods and its code."""
    api, place = control_plane.api, namespace(control_plane.api, f"taken-{cloud}")
    words = ("run", "train", *call, "-n", place, "--", "python", "train.py")
    first = ebbtide.start(*words)
    before = _only(control_plane, place, "pods")
    _interrupt(first)
    assert ebbtide.refused(*words) == (
        f"Job train already exists in namespace {place}: replace it with --replace, follow it with "
        f"`{command_line('follow', 'train', '-n', place)}`, or write another name."
    )
    dashes = words.index("--")
    second = ebbtide.start(*words[:dashes], "--replace", *words[dashes:])
    path = f"/apis/batch/v1/namespaces/{place}/jobs/train"
    uid = before["metadata"]["ownerReferences"][0]["uid"]
    job: Any = wait(lambda: api.find(path), lambda item: bool(item and item["metadata"]["uid"] != uid))
    config_map = wait(lambda: _only(control_plane, place, "configmaps"), bool)
    assert config_map["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"]
    _interrupt(second)


def _interrupt(started: Any) -> None:
    assert started.stdout is not None
    while not started.stdout.readline().startswith("ebbtide: Job "):
        assert started.poll() is None
    started.stdout.readline()
    started.send_signal(signal.SIGINT)
    rest = started.communicate(timeout=300)
    assert shell_status(started.returncode) == 130, rest


def test_a_run_that_the_cluster_refuses(
    control_plane: ControlPlane, ebbtide: Ebbtide, call: tuple[str, ...], cloud: str
) -> None:
    """Nothing is created, and with --replace the earlier Job stays; a quota does not prevent a
    replacement."""
    api, place = control_plane.api, namespace(control_plane.api, f"refused-{cloud}")
    words = ("run", "train", *call, "-n", place)
    first = ebbtide.start(*words, "--", "python", "train.py")
    _only(control_plane, place, "pods")
    _interrupt(first)
    again = ("--replace", "--volume", "shared", "--mount-path", "/ebbtide", "--", "python", "train.py")
    assert "must be unique" in ebbtide.refused(*words, *again)
    assert api.find(f"/apis/batch/v1/namespaces/{place}/jobs/train") is not None
    quota = {"metadata": {"name": "one"}, "spec": {"hard": {"count/jobs.batch": "1"}}}
    path = f"/api/v1/namespaces/{place}/resourcequotas"
    api.create(path, {"apiVersion": "v1", "kind": "ResourceQuota", **quota})
    wait(lambda: api.get(f"{path}/one").get("status", {}).get("used"), bool)
    assert "exceeded quota: one" in ebbtide.refused("run", *call, "-n", place, "--", "python", "train.py")
    _interrupt(ebbtide.start(*words, "--replace", "--", "python", "train.py"))
    unknown = ebbtide.refused("run", *call, "-n", "nowhere", "--", "python", "train.py")
    assert unknown == "There is no namespace nowhere on the cluster: name another with --namespace."
    sweep = ("sweep", "grid", "--set", "lr=0.1,0.2", *call[2:], "--replace", "--", "python", "train.py")
    assert ebbtide.refused(*sweep) == "--replace needs the folder of the code: --code DIR."
