"""Outputs of Jobs: their copy from a pod, through a kubectl that runs the command on this machine."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ebbtide.work.errors import ClusterError, WorkloadError
from ebbtide.work.runs.archives import Extracted
from ebbtide.work.runs.folder import read_folder
from ebbtide.work.runs.outputs import LIFE, address_of, options_of, parse, reader, receive
from tests.declarations import GKE, changed
from tests.unit.work.clusters import derived

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
    """A file, the files of a folder, and all, with tar or with Python; links are not copied, and named."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for tool in (*tools, "sh", "ls"):
        found = sys.executable if tool == "python3" else shutil.which(tool)
        (programs / tool).symlink_to(Path(found or "").resolve())
    kubectl = _kubectl(tmp_path, outputs, path=str(programs))
    file = receive(kubectl, _POD, "model.txt", tmp_path / "file")
    assert (file.extracted, file.warning) == (Extracted(1, 5), "")
    assert (tmp_path / "file/model.txt").read_text() == "model"
    receive(kubectl, _POD, "steps", tmp_path / "folder")
    assert (tmp_path / "folder/1.txt").read_text() == "one"
    receive(kubectl, _POD, "steps/1.txt", tmp_path / "deep")
    assert (tmp_path / "deep/1.txt").read_text() == "one"
    every = receive(kubectl, _POD, "", tmp_path / "all")
    assert (every.extracted.files, sorted(every.extracted.skipped)) == (
        2,
        ["./elsewhere is a symbolic link", "./latest is a symbolic link"],
    )
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == [".gitignore", "model.txt", "steps"]


def test_copied_outputs_are_no_code(tmp_path: Path, outputs: Path) -> None:
    """The next run of the folder does not send a new directory of outputs; existing ones stay as they are."""
    code = tmp_path / "model"
    (code / "kept").mkdir(parents=True)
    (code / "train.py").touch()
    for target in ("results", "kept"):
        receive(_kubectl(tmp_path, outputs), _POD, "model.txt", code / target)
    assert [file.path for file in read_folder(code).files] == ["kept/model.txt", "train.py"]


def test_a_copy_over_existing_files(tmp_path: Path, outputs: Path) -> None:
    """A file with other content is kept and named, and replaced with --force; equal content is not a loss."""
    target = tmp_path / "target"
    (target / "steps").mkdir(parents=True)
    (target / "model.txt").write_text("my own")
    (target / "steps/1.txt").write_text("one")
    kept = receive(_kubectl(tmp_path, outputs), _POD, "", target).extracted
    assert (kept.files, kept.skipped_count) == (1, 3)
    assert "./model.txt exists with other content" in kept.skipped
    assert (target / "model.txt").read_text() == "my own"
    receive(_kubectl(tmp_path, outputs), _POD, "", target, overwrite=True)
    assert (target / "model.txt").read_text() == "model"
    assert [path.name for path in target.rglob(".ebbtide-*")] == []


def test_a_disk_without_space(tmp_path: Path, outputs: Path) -> None:
    """A target that cannot be written ends with its reason, and without a part of a file."""
    (outputs / "large").write_bytes(b"x" * 100_000)
    script = (
        "import resource, signal, sys; from pathlib import Path\n"
        "from ebbtide.work.runs.outputs import receive\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "receive([sys.argv[1]], {'metadata': {'name': 'train-x'}}, 'large', Path(sys.argv[2]))"
    )
    kubectl = _kubectl(tmp_path, outputs)
    words = [sys.executable, "-c", script, *kubectl, str(tmp_path / "target")]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "target: File too large. What was copied before stays." in ended.stderr
    assert list((tmp_path / "target").iterdir()) == []


def test_a_pod_that_does_not_end(tmp_path: Path, outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod that sends more after its archive, without an end, is an error."""
    monkeypatch.setattr("ebbtide.work.runs.outputs._LAST", 0.2)
    endless = _kubectl(tmp_path, outputs, after="\nexec sh -c 'trap \"\" PIPE; yes; exec sleep 100'")
    with pytest.raises(ClusterError, match="incomplete"):
        receive(endless, _POD, "model.txt", tmp_path / "target")


def test_copies_that_fail(tmp_path: Path, outputs: Path) -> None:
    """A missing file has those that exist, and a lost connection is not a complete copy, however much kubectl
    writes about it."""
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
    noisy = _kubectl(tmp_path, outputs, after=" | head -c 700\nyes | head -c 200000 >&2; exit 1")
    with pytest.raises(ClusterError) as long:
        receive(noisy, _POD, "", tmp_path / "x")
    assert len(str(long.value)) < 66_000
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
    assert made["spec"]["activeDeadlineSeconds"] == LIFE
    assert address_of(profile, "train", "vision") == "gs://acme-ml-train-vision/outputs/train"
    assert address_of(profile, "train", "vision", "own") == ""


@pytest.mark.parametrize(
    ("recorded", "options"),
    [
        ('{"pool": "t4", "gpus": 1, "image": "python"}', {"pool": "t4", "image": "python"}),
        ('{"pool": ["t4"], "run_as_user": "root", "image": "python"}', {"image": "python"}),
        ("not JSON", {}),
        ('["t4"]', {}),
        ("[" * 100_000, {}),
    ],
)
def test_recorded_options(recorded: str, options: Any) -> None:
    """Options of the Job that its reader has too; what a colleague may have written instead is ignored."""
    assert options_of({"metadata": {"annotations": {"ebbtide.dev/parameters": recorded}}}) == options
