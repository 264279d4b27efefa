"""The stories' pipelines run for real, by kfp's own local runner."""

import gzip
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest
from kfp import components

from ebbtide.work.runs.archives import extract
from tests.buckets import Bucket, bucket
from tests.examples.workloads import EXAMPLES, outputs, start_locally
from tests.loopback import folder_served

__all__ = ["bucket"]  # a fixture

_COLOUR = re.compile(r"\x1b\[\d+m")
_TRAINING = EXAMPLES / "checkpointed-training"


def test_the_coin_flip_runs(tmp_path: Path) -> None:
    """Heads looks for GPUs, tails prints, and the other branch does not run."""
    heads, tails = {"seed": 1}, {"seed": 5}
    run = start_locally("preemptible-pipelines", "pipeline", "coin_flip", tmp_path, heads, tails)
    _, output = outputs(run)
    executed = re.findall(r"Executing task \S*?'([\w-]+)", _COLOUR.sub("", output))
    assert executed == ["flip-coin", "list-gpus", "flip-coin", "say"]


_MEMBERS = {"iris-1.csv": 1150, "iris-2.csv": 1350, "iris-3.csv": 1300}
"""Files of the tutorial's archive with their sizes in bytes, as its readers have listed them (2023-07)."""


def _tables(folder: Path) -> list[Path]:
    """Extract the tutorial's archive, and return its tables."""
    with gzip.open(EXAMPLES / "aks-spot" / "iris-csv-files.tar.gz") as archive:
        extract(archive, folder)
    return sorted(folder.glob("*.csv"))


def test_archives_are_merged(tmp_path: Path) -> None:
    """The tutorial's tables without headers, and one of them alone, lose no row and get no header; those of
    several directories with headers have one, and other and hidden files are left out."""
    header = "sepal_length,sepal_width,petal_length,petal_width,species\n"
    tables = _tables(tmp_path / "all")
    assert {table.name: table.stat().st_size for table in tables} == _MEMBERS
    contents = [table.read_text() for table in tables]
    (tmp_path / "one").mkdir()
    shutil.copy(tables[0], tmp_path / "one")
    for year in ("2026", "2027"):
        (tmp_path / "years" / year).mkdir(parents=True)
        for number, content in enumerate(contents):
            (tmp_path / "years" / year / f"{number}.csv").write_text(header + content)
    (tmp_path / "years" / "README.txt").write_text("no table")
    (tmp_path / "years" / "2026" / "._0.csv").write_bytes(b"\0\5\26\7")
    kinds = {"all": "gztar", "one": "gztar", "years": "zip"}
    archives = [
        Path(shutil.make_archive(str(tmp_path / name), kind, tmp_path / name)).name
        for name, kind in kinds.items()
    ]
    with folder_served(tmp_path) as address:
        inputs = [{"url": f"{address}/{name}", "header": "years" in name} for name in archives]
        run = start_locally("aks-spot", "pipelines", "spot_with_retries", tmp_path / "out", *inputs)
        results, _ = outputs(run)
    merged = [file.read_text() for file in sorted((tmp_path / "out").rglob("merge/merged"))]
    text = "".join(contents)
    assert merged == [text, contents[0], header + text * 2]
    assert [result["Output"] for result in results] == [150, 50, 300]


def test_component_files_are_loaded_from_an_address() -> None:
    """Another pipeline takes them by URL."""
    with folder_served(_TRAINING) as address:
        for name in ("copydata", "train"):
            assert components.load_component_from_url(f"{address}/{name}.yaml").name == name


def _children(parent: int) -> list[int]:
    """Every process below one."""
    try:
        below = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    except OSError:
        return []
    direct = [int(text) for text in below.split()]
    return [*direct, *(grandchild for child in direct for grandchild in _children(child))]


def _training_below(parent: int) -> int | None:
    """The process that trains, which is Python's own and not the shell's that started it."""
    for child in _children(parent):
        try:
            words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"python" in words[0] and b"kfp.dsl.executor_main" in words and b"train" in words:
            return child
    return None


def _is_written(marker: Path) -> bool:
    """Return whether a marker has its text, which one call writes; False once it is removed."""
    try:
        return marker.stat().st_size > 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds the step's process in /proc")
def test_the_training_is_preempted_three_times(tmp_path: Path) -> None:
    """Training continues from the latest checkpoint after each of three preemptions."""
    checkpoints = tmp_path / "checkpoints"
    run = start_locally(
        "checkpointed-training",
        "pipeline",
        "checkpointed_training",
        tmp_path / "out",
        {
            "initial": str(_TRAINING / "initial"),
            "data": str(_TRAINING / "data"),
            "root": str(checkpoints),
            "steps": 1500,
            "every": 5,
        },
    )
    reached: list[int] = []
    current, begun = 0, 0
    deadline = time.monotonic() + 900
    while len(reached) < 3 and run.poll() is None and time.monotonic() < deadline:
        training = _training_below(run.pid)
        # After it was found: an earlier process saves no more by then. A marker counts once it is written.
        markers = [file for file in checkpoints.glob("*/*.json") if _is_written(file)]
        saved = max((int(file.name.split("-")[0]) for file in markers), default=0)
        if training and training != current:
            current, begun = training, saved
        elif training and saved > begun:
            os.kill(training, signal.SIGKILL)
            reached.append(saved)
            begun = sys.maxsize  # it may take a moment to die, and dies once
        time.sleep(0.02)
    (result,), output = outputs(run)
    assert len(reached) == 3, output
    went_on = [int(text.split(" ")[0]) for text in output.split("Going on from step ")[1:]]
    assert went_on[0] == 0
    assert len(went_on) == 4
    assert all(step >= before for step, before in zip(went_on[1:], reached, strict=True))
    assert result["Output"].endswith("from the line.")


def test_the_training_runs_in_a_bucket(tmp_path: Path, bucket: Bucket) -> None:
    """Initial checkpoint, data and working directory have addresses; nothing is mounted."""
    for name in ("initial/model.json", "data/points.csv"):
        bucket.files.put_file(str(_TRAINING / name), f"{bucket.name}/{name}")
    run = start_locally(
        "checkpointed-training",
        "pipeline",
        "checkpointed_training",
        tmp_path,
        {
            "initial": f"gs://{bucket.name}/initial",
            "data": f"gs://{bucket.name}/data/points.csv",
            "root": f"gs://{bucket.name}/runs/",
            "steps": 40,
            "every": 10,
        },
    )
    (result,), output = outputs(run)
    assert "Going on from step 0 of 40." in output
    assert result["Output"].endswith("from the line.")
    markers = [path for path in bucket.files.find(f"{bucket.name}/runs") if path.endswith(".json")]
    runs = {path.split("/")[2] for path in markers}
    assert len(runs) == 1, "a run has one directory"
    saved = {path.split("/")[3].split("-")[0] for path in markers if path.count("/") == 3}
    assert saved == {"000000000020", "000000000030", "000000000040"}
