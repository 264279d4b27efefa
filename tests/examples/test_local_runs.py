"""The stories' pipelines run for real, by kfp's own local runner."""

import csv
import io
import os
import re
import signal
import sys
import time
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from kfp import components

from tests.examples.workloads import EXAMPLES, outputs, start_locally

_COLOUR = re.compile(r"\x1b\[\d+m")
_TRAINING = EXAMPLES / "checkpointed-training"


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as it is called there
        """Say nothing."""


@contextmanager
def _served(folder: Path) -> Generator[str]:
    """A folder over HTTP."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def test_the_coin_flip_runs(tmp_path: Path) -> None:
    """Heads looks for GPUs, tails prints, and the other branch does not run."""
    heads, tails = {"seed": 1}, {"seed": 5}
    run = start_locally("preemptible-pipelines", "pipeline", "coin_flip", tmp_path, heads, tails)
    _, said = outputs(run)
    executed = re.findall(r"Executing task \S*?'([\w-]+)", _COLOUR.sub("", said))
    assert executed == ["flip-coin", "list-gpus", "flip-coin", "say"]


def test_the_merge_runs(tmp_path: Path) -> None:
    """The archive's tables are fetched over HTTP and merged, row by row, by the pipeline for spot nodes."""
    tables = sorted((EXAMPLES / "aks-spot" / "data").glob("*.csv"))
    with zipfile.ZipFile(tmp_path / "tables.zip", "w") as archive:
        for table in tables:
            archive.write(table, f"weather/{table.name}")
        archive.writestr("../outside.csv", "day,station,celsius\n2026-04-01,hill,1.0\n")
        archive.writestr("README.txt", "no table")
    with _served(tmp_path) as address:
        run = start_locally(
            "aks-spot", "pipelines", "spot_with_retries", tmp_path / "out", {"url": f"{address}/tables.zip"}
        )
        (found,), _ = outputs(run)
    rows = [row for table in tables for row in list(csv.reader(io.StringIO(table.read_text())))[1:]]
    assert found == {"Output": len(rows) + 1}
    (merged,) = (tmp_path / "out").rglob("merge/merged")
    written = list(csv.reader(io.StringIO(merged.read_text())))
    assert written[0] == ["day", "station", "celsius"]
    assert sorted(written[1:]) == sorted([*rows, ["2026-04-01", "hill", "1.0"]])
    assert not list(tmp_path.glob("**/../outside.csv"))


def test_component_files_are_loaded_from_an_address() -> None:
    """Another pipeline takes them by URL."""
    with _served(_TRAINING) as address:
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


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds the step's process in /proc")
def test_the_training_is_preempted_three_times(tmp_path: Path) -> None:
    """As the story tells it: killed three times, it goes on from the latest checkpoint, and the rest runs."""
    checkpoints = tmp_path / "checkpoints"
    run = start_locally(
        "checkpointed-training",
        "pipeline",
        "checkpointed_training",
        tmp_path / "out",
        {"initial": str(_TRAINING / "initial"), "root": str(checkpoints), "steps": 600, "every": 5},
    )
    reached: list[int] = []
    current, begun = 0, 0
    deadline = time.monotonic() + 200
    while len(reached) < 3 and run.poll() is None and time.monotonic() < deadline:
        training = _training_below(run.pid)
        # After it was found: whoever trained before saves no more by then.
        saved = max((int(file.name.split("-")[0]) for file in checkpoints.glob("*/*.json")), default=0)
        if training and training != current:
            current, begun = training, saved
        elif training and saved > begun:
            os.kill(training, signal.SIGKILL)
            reached.append(saved)
            begun = sys.maxsize  # it may take a moment to die, and dies once
        time.sleep(0.02)
    (found,), said = outputs(run)
    assert len(reached) == 3, said
    went_on = [int(text.split(" ")[0]) for text in said.split("Going on from step ")[1:]]
    assert went_on[0] == 0
    assert len(went_on) == 4
    assert all(step >= before for step, before in zip(went_on[1:], reached, strict=True))
    assert found["Output"].endswith("from the true one.")
