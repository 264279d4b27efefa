"""Outputs of Jobs: their copy from a pod, through a kubectl that runs the command on this machine."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from ebbtide.runs.outputs import address_of, options_of, parse, reader, receive
from ebbtide.workloads.cluster import ClusterError
from ebbtide.workloads.errors import WorkloadError
from tests.declarations import GKE, changed
from tests.unit.workloads.clusters import derived

_POD = {"metadata": {"name": "train-x"}}


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    """A folder of outputs, with a link that leads out of it."""
    folder = tmp_path / "outputs"
    (folder / "steps").mkdir(parents=True)
    (folder / "model.txt").write_text("model")
    (folder / "steps/1.txt").write_text("one")
    (folder / "latest").symlink_to("model.txt")
    (folder / "elsewhere").symlink_to("/etc/hostname")
    return folder


def _kubectl(tmp_path: Path, folder: Path, *, path: str = "", after: str = "") -> list[str]:
    """Return a kubectl whose `exec` runs on this machine, with a pod's environment."""
    script = tmp_path / "kubectl"
    script.write_text(
        f"#!/bin/sh\nshift 5\nexport EBBTIDE_OUTPUTS='{folder}' PATH='{path or os.environ['PATH']}'\n"
        f'"$@"{after}\n'
    )
    script.chmod(0o755)
    return [str(script)]


@pytest.mark.parametrize("tools", [("tar", "dirname", "basename"), ("python3", "dirname", "basename")])
def test_copies(tmp_path: Path, outputs: Path, tools: tuple[str, ...]) -> None:
    """A file, the files of a folder, and all, with tar or with Python; a link out of the folder is not
    copied."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for tool in (*tools, "sh", "ls"):
        found = sys.executable if tool == "python3" else shutil.which(tool)
        (programs / tool).symlink_to(Path(found or "").resolve())
    kubectl = _kubectl(tmp_path, outputs, path=str(programs))
    file = receive(kubectl, _POD, "model.txt", tmp_path / "file")
    assert (file.files, file.size, file.skipped, file.warning) == (1, 5, (), "")
    assert (tmp_path / "file/model.txt").read_text() == "model"
    receive(kubectl, _POD, "steps", tmp_path / "folder")
    assert (tmp_path / "folder/1.txt").read_text() == "one"
    receive(kubectl, _POD, "steps/1.txt", tmp_path / "deep")
    assert (tmp_path / "deep/1.txt").read_text() == "one"
    every = receive(kubectl, _POD, "", tmp_path / "all")
    assert (every.files, [Path(name).name for name in every.skipped]) == (3, ["elsewhere"])
    assert (tmp_path / "all/latest").read_text() == "model"
    assert not (tmp_path / "all/elsewhere").is_symlink()


def test_copies_that_fail(tmp_path: Path, outputs: Path) -> None:
    """A missing file has those that exist, and a lost connection is no complete copy."""
    ended = "\nstatus=$?; echo 'command terminated with exit code' $status >&2; exit $status"
    kubectl = _kubectl(tmp_path, outputs, after=ended)
    with pytest.raises(WorkloadError) as raised:
        receive(kubectl, _POD, "none", tmp_path / "x")
    expected = "There is no none in the outputs; they have: elsewhere, latest, model.txt, steps."
    assert raised.value.problems == (expected,)
    with pytest.raises(WorkloadError, match="The Job has written no outputs"):
        receive(_kubectl(tmp_path, tmp_path / "none", after=ended), _POD, "", tmp_path / "x")
    lost = _kubectl(tmp_path, outputs, after=" | head -c 700\necho 'error: lost connection' >&2; exit 1")
    with pytest.raises(ClusterError, match=r"from pod train-x is incomplete: error: lost connection Run it"):
        receive(lost, _POD, "", tmp_path / "x")
    changing = "\necho 'tar: log: file changed as we read it' >&2; status=1"
    changed_file = _kubectl(tmp_path, outputs, after=f"{changing}{ended.replace('status=$?; ', '')}")
    assert "file changed" in receive(changed_file, _POD, "model.txt", tmp_path / "x").warning


@pytest.mark.parametrize("source", ["train", ":model", "train:/outputs/model", "train:../other/model"])
def test_sources_that_are_refused(source: str) -> None:
    """Without a name or a colon, or outside of the Job's folder."""
    with pytest.raises(WorkloadError):
        parse(source)
    assert parse("train:a/b") == ("train", "a/b")
    assert parse("train:") == ("train", "")


def test_the_reader() -> None:
    """The pod that reads outputs cannot write, has no accelerators, and mounts the Job's folder."""
    team: Any = {"name": "vision", "requireQueue": False, "volume": {}}
    profile = derived(changed(GKE, teams=[team]))
    made = reader(
        profile,
        "train",
        "ada",
        image="python",
        pool="t4",
        namespace="vision",
        run_as_user=1000,
    )
    container = made["spec"]["template"]["spec"]["containers"][0]
    assert made["metadata"]["name"].startswith("train-cp-")
    assert container["volumeMounts"] == [
        {"name": "outputs", "mountPath": "/outputs", "subPath": "outputs", "readOnly": True}
    ]
    assert container["env"] == [{"name": "EBBTIDE_OUTPUTS", "value": "/outputs/train"}]
    assert "nvidia.com/gpu" not in container["resources"]["requests"]
    annotations = {"ebbtide.dev/parameters": '{"pool": "t4", "gpus": 1, "image": "python"}'}
    assert address_of(profile, "train", "vision") == "gs://acme-ml-train-vision/outputs/train"
    assert address_of(profile, "train", "vision", "own") == ""
    assert options_of({"metadata": {"annotations": annotations}}) == {"pool": "t4", "image": "python"}
