"""The training of the checkpoint story, killed again and again over the checkpoints that it goes on from."""

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from ebbtide.in_pods.checkpoints import Checkpoints
from tests.examples.workloads import EXAMPLES, module
from tests.repository import ROOT

_STORY = EXAMPLES / "checkpointed-training"
_DATA = str(_STORY / "data")
_KILLS = 52
_FOREVER = 10**9
Model = dict[str, float]


def _points() -> list[tuple[float, float]]:
    """The points of the story."""
    _, *rows = (Path(_DATA) / "points.csv").read_text().splitlines()
    return [(float(x), float(y)) for x, y in (row.split(",") for row in rows)]


def _never_interrupted() -> Iterator[Model]:
    """The model after each step, by itself: what the training would have been with no kill at all."""
    model = json.loads((_STORY / "initial" / "model.json").read_text())
    yield dict(model)
    points = _points()
    for step in count(1):
        x, y = points[step % len(points)]
        error = model["slope"] * x + model["offset"] - y
        model["slope"] -= 0.05 * error * x
        model["offset"] -= 0.05 * error
        yield dict(model)


def _step(call: str) -> "subprocess.Popen[str]":
    """A step's function in a process of its own; without site-packages, so that it starts at once."""
    return subprocess.Popen(
        [sys.executable, "-S", "-c", f"from trainer import *; print({call}, flush=True)"],
        env={"PYTHONPATH": f"{ROOT}:{_STORY}", "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _reached(directory: Path) -> int:
    latest = Checkpoints(directory).latest()
    return latest.step if latest else 0


def test_training_is_killed_at_any_moment(tmp_path: Path) -> None:
    """Fifty kills lose no saved step, corrupt none and repeat none; a copy in between changes nothing."""
    chance = random.Random(60)  # noqa: S311
    directory = tmp_path / "run"
    copydata = module("checkpointed-training", "trainer").copydata
    assert copydata(str(_STORY / "initial"), str(directory)) == 0
    expected = [next(steps := _never_interrupted())]
    reached, moved = 0, 0
    for kill in range(_KILLS):
        with _step(f"train({_DATA!r}, {str(directory)!r}, {_FOREVER}, 1)") as process:
            assert process.stdout is not None
            begun = process.stdout.readline()
            assert begun.startswith("Going on from step "), process.communicate()[1]
            assert int(begun.split()[4]) == reached
            # A busy machine may save nothing within the time.
            while kill % 4 == 0 and _reached(directory) == reached and process.poll() is None:
                time.sleep(0.001)
            time.sleep(chance.uniform(0, 0.03))
            process.kill()
        latest = Checkpoints(directory).latest()
        assert latest is not None
        assert latest.step >= reached
        moved += latest.step > reached
        reached = latest.step
        # A copy that is run again too late, as a retried step is, goes back to nothing.
        assert copydata(str(_STORY / "initial"), str(directory)) == reached
        expected += [next(steps) for _ in range(reached + 1 - len(expected))]
        assert json.loads((latest.path / "model.json").read_text()) == expected[reached]
    assert moved > _KILLS // 6
    with _step(f"train({_DATA!r}, {str(directory)!r}, {reached + 10}, 100)") as process:
        output, failed = process.communicate()
    assert process.returncode == 0, failed
    expected += [next(steps) for _ in range(10)]
    last, points = expected[reached + 10], _points()
    left = [abs(last["slope"] * x + last["offset"] - y) for x, y in points]
    assert float(output.splitlines()[-1]) == sum(left) / len(points)


def test_the_copy_is_killed_at_any_moment(tmp_path: Path) -> None:
    """A copy that is repeated after kills is complete, and training begins with it."""
    chance = random.Random(20)  # noqa: S311
    directory = tmp_path / "run"
    call = f"copydata({str(_STORY / 'initial')!r}, {str(directory)!r})"
    for _ in range(20):
        with _step(call) as process:
            time.sleep(chance.uniform(0.02, 0.06))
            process.kill()
    with _step(call) as process:
        assert process.communicate() == ("0\n", "")
    latest = Checkpoints(directory).latest()
    assert latest is not None
    assert (latest.path / "model.json").read_bytes() == (_STORY / "initial" / "model.json").read_bytes()


def test_two_that_train_at_once_count_no_step_twice(tmp_path: Path) -> None:
    """A replaced pod that still runs neither takes the run back nor mixes its steps in."""
    directory = tmp_path / "run"
    module("checkpointed-training", "trainer").copydata(str(_STORY / "initial"), str(directory))
    call = f"train({_DATA!r}, {str(directory)!r}, 60, 1)"
    with _step(call) as process, _step(call) as other:
        process.wait(timeout=600)
        other.wait(timeout=600)
    latest = Checkpoints(directory).latest()
    assert latest is not None
    steps = _never_interrupted()
    expected = [next(steps) for _ in range(61)]
    assert json.loads((latest.path / "model.json").read_text()) == expected[latest.step]
    assert latest.step == 60


def test_training_before_the_copy_says_so(tmp_path: Path) -> None:
    """Without an initial checkpoint the step ends with a sentence, and begins nothing of its own."""
    with _step(f"train({_DATA!r}, {str(tmp_path)!r}, 10, 1)") as process:
        _, failed = process.communicate()
    assert "copydata comes first" in failed
    assert process.returncode == 1
    assert list(tmp_path.iterdir()) == []
