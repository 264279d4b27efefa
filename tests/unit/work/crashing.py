"""Saves, each killed one line later than the one before: `python crashing.py ROOT`. It prints how many kills
there were until a save ran through."""

import os
import shutil
import signal
import sys
from collections import Counter
from types import FrameType
from typing import Any

from ebbtide.in_pods import checkpoints as module
from ebbtide.in_pods import storage
from tests.unit.work.training import read, save

_TRACED = {module.__file__, storage.__file__, shutil.__file__}
_VISITS = 2
"""Times at which a line is killed: what a loop does first, and again."""
_BEFORE = 3
"""Steps that are saved before; the next save has one to clear away."""


def _kill_at(line: int) -> None:
    left, seen = line, Counter[tuple[str, int]]()
    if not line:
        return

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename not in _TRACED:
            return None
        seen[at := (frame.f_code.co_filename, frame.f_lineno)] += event == "line"
        if event == "line" and seen[at] <= _VISITS:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)


def _train(root: str, *, kill_at: int = 0) -> int:
    """Resume and save one step more; the step that it resumed from."""
    _kill_at(kill_at)
    checkpoints = module.Checkpoints(root, keep=2)
    state = read(checkpoints.latest())
    before = len(state["seen"])
    state["seen"].append(before + 1)
    save(checkpoints, state)
    sys.settrace(None)
    return before


def _killed(root: str, *, at: int) -> bool:
    """Return whether a save was killed before it had run that many lines."""
    child = os.fork()
    if child == 0:
        _train(root, kill_at=at)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def main(root: str) -> None:
    """Kill a save at every line, each time over the same checkpoints, and go on after it."""
    base = f"{root}/base"
    for step in range(_BEFORE):
        assert _train(base) == step
    kills, resumed = 0, set[int]()
    while True:
        run = f"{root}/{kills}"
        shutil.copytree(base, run)
        killed = _killed(run, at=kills + 1)
        resumed.add(_train(run))  # which looks at what it resumes from
        shutil.rmtree(run)
        if not killed:
            break
        kills += 1
    assert resumed == {_BEFORE, _BEFORE + 1}
    print(kills, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
