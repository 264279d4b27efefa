"""`ebbtide run` with a registry: the code is in the Job's image, on a real API server."""

import signal
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from ebbtide.placement.derive import profile
from ebbtide.placement.profile import TeamProfile
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from rehearsal.tests.control_plane.cluster import Object, namespace
from rehearsal.tests.control_plane.commands import Ebbtide, dev
from rehearsal.tests.registry import put_image, read_image

pytestmark = pytest.mark.rehearsal

_TEAM = "vision-images"


@pytest.fixture(scope="module")
def ebbtide(control_plane: ControlPlane, address: str) -> Ebbtide:
    """Return the command with the administrator's kubeconfig, and the team's registry in the profile."""
    team = TeamProfile("vision", _TEAM, registry=f"{address}/acme-ml/dev-vision")
    namespace(control_plane.api, _TEAM)
    return Ebbtide(control_plane.plan.kubeconfig, replace(profile(dev()[0]), teams=(team,)))


@pytest.fixture
def folder(folder: Path) -> Path:
    """A folder of code and data."""
    (folder / "lib").mkdir()
    (folder / "lib/data.txt").write_text("data")
    return folder


def _run(ebbtide: Ebbtide, name: str, *options: str | Path) -> list[str]:
    """Run a folder until its Job exists; return the lines before that of the Job's name and the code."""
    started = ebbtide.start(
        "run", name, "--pool", "cpu-spot", "-n", _TEAM, *map(str, options), "--", "python", "train.py"
    )
    assert started.stdout is not None
    lines: list[str] = []
    while not lines or not lines[-1].startswith("Image: "):
        line = started.stdout.readline().removeprefix("ebbtide: ")
        assert line, started.communicate()[1]
        lines.append(line.rstrip())
    started.kill()
    started.communicate()
    return lines


def _pod(control_plane: ControlPlane, name: str) -> Object:
    path = f"/apis/batch/v1/namespaces/{_TEAM}/jobs/{name}"
    return control_plane.api.get(path)["spec"]["template"]["spec"]


def test_the_code_in_an_image(
    control_plane: ControlPlane, ebbtide: Ebbtide, address: str, folder: Path
) -> None:
    """The Job's image is the base with the folder in /code, named by digest; its layers are copied once,
    and unchanged code is not pushed again."""
    base = f"{address}/bases/python:3"
    put_image(base, {"etc/base": "base"})
    words = ("--code", folder, "--image", base)
    first = _run(ebbtide, "first", *words)
    pod = _pod(control_plane, "first")
    (container,) = pod["containers"]
    assert container["image"].startswith(f"{address}/acme-ml/dev-vision/my-model:")
    assert first[-1] == f"Image: {container['image']}"
    assert first[0].startswith(
        f"{address}/acme-ml/dev-vision/my-model does not have the layers of {base} yet"
    )
    assert (container["workingDir"], container["command"]) == ("/code", ["python", "train.py"])
    assert "volumes" not in pod
    layers = read_image(container["image"])[2]
    assert layers[0] == {"etc/base": "base"}
    assert layers[1]["code/lib/data.txt"] == "data"
    second = _run(ebbtide, "second", *words, "--setup", "pip list")
    assert (len(second), second[-1]) == (3, first[-1])
    setup = _pod(control_plane, "second")["containers"][0]
    assert setup["command"][:2] == ["sh", "-ec"]
    assert "tar" not in setup["command"][2]
    (folder / "train.py").write_text("print('changed')")
    assert _run(ebbtide, "third", *words)[-1] != first[-1]
    maps = control_plane.api.items(f"/api/v1/namespaces/{_TEAM}/configmaps")
    assert {item["metadata"]["name"] for item in maps} == {"kube-root-ca.crt"}


def test_a_push_that_fails(control_plane: ControlPlane, ebbtide: Ebbtide, address: str, folder: Path) -> None:
    """Nothing is created, and with --replace the earlier Job stays; a name that is taken is refused
    before any request to the registry."""
    base = f"{address}/bases/replaced:1"
    put_image(base, {"etc/base": "replaced"})
    words = ("run", "kept", "--pool", "cpu-spot", "-n", _TEAM, "--code", str(folder), "--image")
    command = ("--", "python", "train.py")
    missing = f"{address}/bases/none:1"
    refusal = f"Image {missing} does not exist: {address}/bases/none has no tag 1. "
    assert ebbtide.refused(*words, missing, *command).startswith(refusal)
    path = f"/apis/batch/v1/namespaces/{_TEAM}/jobs/kept"
    assert control_plane.api.find(path) is None
    _run(ebbtide, "kept", "--code", folder, "--image", base)
    assert "already exists in namespace" in ebbtide.refused(*words, missing, *command)
    before = control_plane.api.get(path)["metadata"]["uid"]
    assert ebbtide.refused(*words, missing, "--replace", *command).startswith(refusal)
    assert control_plane.api.get(path)["metadata"]["uid"] == before


def test_an_interrupted_push(control_plane: ControlPlane, ebbtide: Ebbtide, folder: Path) -> None:
    """Ctrl-C during the push creates no Job, and the message says so."""
    with socket.create_server(("localhost", 0)) as silent:
        base = f"localhost:{silent.getsockname()[1]}/base:1"
        words = ("--pool", "cpu-spot", "-n", _TEAM, "--code", str(folder), "--image", base)
        started = ebbtide.start("run", "interrupted", *words, "--", "python", "train.py")
        connection, _ = silent.accept()
        with connection:
            started.send_signal(signal.SIGINT)
            out, error = started.communicate(timeout=300)
    assert (started.returncode, out) == (130, "")
    assert error.startswith("Interrupted before a Job was created. ")
    assert control_plane.api.find(f"/apis/batch/v1/namespaces/{_TEAM}/jobs/interrupted") is None
