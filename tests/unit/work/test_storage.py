"""Checkpoints in a bucket, by its address: Cloud Storage's client against an emulator of its API."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import patch

import pytest

from ebbtide.in_pods.checkpoints import CheckpointError, Checkpoints
from ebbtide.in_pods.storage import Bucket as Storage
from ebbtide.in_pods.storage import copy
from tests.buckets import Bucket, bucket
from tests.repository import ROOT

__all__ = ["bucket"]  # a fixture

_FOREVER = """
import sys
from ebbtide.in_pods.checkpoints import Checkpoints
checkpoints = Checkpoints(sys.argv[1])
step = latest.step if (latest := checkpoints.latest()) else 0
while True:
    step += 1
    with checkpoints.saving(step) as directory:
        for part in "abc":
            (directory / part).write_text(f"{part} after {step}")
    print(step, flush=True)
"""


def _save(checkpoints: Checkpoints, step: int) -> None:
    with checkpoints.saving(step) as directory:
        (directory / "deep").mkdir()
        (directory / "deep" / "model").write_text(f"after {step}")


def _step(checkpoints: Checkpoints) -> int | None:
    latest = checkpoints.latest()
    return latest.step if latest else None


def _markers(bucket: Bucket, run: str) -> list[str]:
    return sorted(path for path in bucket.files.find(f"{bucket.name}/{run}") if path.endswith(".json"))


def test_checkpoints_in_a_bucket(bucket: Bucket) -> None:
    """Checkpoints in a bucket are saved, listed, restored on another machine, and cleared as in a
    directory."""
    root = f"gs://{bucket.name}//runs/1/"
    writer = Checkpoints(root, keep=2)
    assert writer.latest() is None
    for step in (1, 2, 3):
        _save(writer, step)
    latest = Checkpoints(f"gs://{bucket.name}/runs/1").latest()
    assert latest is not None
    assert (latest.step, (latest.path / "deep" / "model").read_text()) == (3, "after 3")
    assert len(_markers(bucket, "runs/1")) == 2
    assert len(bucket.files.find(f"{bucket.name}/runs/1")) == 4


def test_an_initial_checkpoint_never_comes_after_training(bucket: Bucket, tmp_path: Path) -> None:
    """A copy that is run again leaves what training reached; from a bucket, a file and a directory."""
    root = f"gs://{bucket.name}/run"
    bucket.files.pipe_file(f"{bucket.name}/initial/deep/model", b"pretrained")
    bucket.files.pipe_file(f"{bucket.name}/initial-of-others/model", b"other")
    first = Checkpoints(root).seed(f"gs://{bucket.name}/initial")
    assert {path.name for path in first.path.rglob("*")} == {"deep", "model"}
    assert (first.step, (first.path / "deep" / "model").read_text()) == (0, "pretrained")
    _save(Checkpoints(root), 7)
    assert Checkpoints(root).seed(f"gs://{bucket.name}/initial").step == 7
    checkpoint = Checkpoints(tmp_path / "run").seed(f"gs://{bucket.name}/initial/deep/model")
    assert (checkpoint.path / "model").read_text() == "pretrained"
    with pytest.raises(CheckpointError, match="There is no initial checkpoint at gs://"):
        Checkpoints(f"gs://{bucket.name}/other").seed(f"gs://{bucket.name}/nowhere")


@pytest.mark.parametrize("damage", ["object", "marker", "missing"])
def test_what_is_damaged_is_passed_over(bucket: Bucket, damage: str) -> None:
    """The checkpoint before is taken."""
    root = f"gs://{bucket.name}/run"
    for step in (1, 2):
        _save(Checkpoints(root), step)
    newest = _markers(bucket, "run")[-1]
    model = f"{newest.removesuffix('.json')}/deep/model"
    if damage == "missing":
        bucket.files.rm_file(model)
    else:
        bucket.files.pipe_file(newest if damage == "marker" else model, b"after X")
    assert _step(Checkpoints(root)) == 1


def test_a_bucket_that_refuses_is_no_damage(bucket: Bucket) -> None:
    """A checkpoint that cannot be read now is not skipped for an older one."""
    checkpoints = Checkpoints(f"gs://{bucket.name}/run")
    _save(checkpoints, 1)
    refused = OSError("Forbidden")
    with (
        patch.object(bucket.files, "cat_file", side_effect=refused),
        pytest.raises(CheckpointError, match=r"could not be used: Forbidden.* may read and write it"),
    ):
        checkpoints.latest()
    assert _step(checkpoints) == 1


def test_a_bucket_that_does_not_exist(bucket: Bucket) -> None:
    """Saving says which it is."""
    with pytest.raises(CheckpointError, match=r"^gs://none-\S+/run could not be used"):
        _save(Checkpoints(f"gs://none-{bucket.name}/run"), 1)


@pytest.mark.parametrize("address", ["ftp://host/run", "http://host/run"])
def test_what_keeps_no_checkpoints_is_refused(address: str) -> None:
    """Only storage with whole objects and listings that are never behind."""
    with pytest.raises(CheckpointError, match=r"write a path, gs://bucket/directory, or abfss://"):
        Checkpoints(address)


@pytest.mark.parametrize(
    ("address", "extra"), [("gs://bucket/run", "gcs"), ("abfss://c@a.dfs.core.windows.net/run", "abfs")]
)
def test_without_its_library(address: str, extra: str) -> None:
    """One sentence says what to install."""
    code = f"from ebbtide.in_pods.checkpoints import Checkpoints; Checkpoints({address!r})"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"{address} needs a library that is not installed. Install it with: uv pip" in done.stderr
    assert f"[{extra}]'." in done.stderr


def test_an_account_of_azure_is_read_from_the_address() -> None:
    """The pod's identity is used, and there is no anonymous access."""
    storage = Storage("abfss://shared@vision.dfs.core.windows.net/runs/1")
    files = storage._files  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    assert (files.account_name, files.anon) == ("vision", False)
    assert storage._root == "shared/runs/1"  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def test_a_file_has_an_address_too(tmp_path: Path) -> None:
    """`file:` is a path on a volume."""
    _save(Checkpoints((tmp_path / "a run").as_uri()), 1)
    assert _step(Checkpoints(tmp_path / "a run")) == 1
    copy((tmp_path / "a run").as_uri(), tmp_path / "copied")
    assert len(list((tmp_path / "copied").glob("*.json"))) == 1


def test_training_in_a_bucket_is_killed_again_and_again(bucket: Bucket) -> None:
    """Kills at any moment lose nothing that was saved, and leave nothing half."""
    root, saved = f"gs://{bucket.name}/run", 0
    for kill in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", _FOREVER, root],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert int(process.stdout.readline()) == saved + 1
            time.sleep(0.03 * kill)
            process.send_signal(signal.SIGKILL)
            steps = [
                int(line) for line in process.stdout.read().splitlines(keepends=True) if line[-1] == "\n"
            ]
        latest = Checkpoints(root).latest()
        assert latest is not None
        assert latest.step >= (steps or [saved + 1])[-1]
        saved = latest.step
        parts = {path.name: path.read_text() for path in latest.path.iterdir()}
        assert parts == {part: f"{part} after {saved}" for part in "abc"}
