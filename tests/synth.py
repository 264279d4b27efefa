"""The one way in which tests run the program: the repository's own, recorded, from a declaration."""

import gc
import json
import runpy
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording, Updates
from ebbtide.analysis.review.baseline import Baseline
from ebbtide.analysis.review.build_review import review_of
from ebbtide.analysis.review.review_document import Review
from tests.repository import ROOT, declaration

_MAIN = str(ROOT / "__main__.py")


def synth(declaration: dict[str, Any], *, stack: str = "test") -> Recording:
    """Record the resources that `__main__.py` creates for a declaration in YAML's form.

    Recordings are read-only, and many tests look at the same one: a test that patches the program uses
    `synth_anew`, or a declaration of its own.
    """
    return _cached(json.dumps(declaration), stack)


def synth_anew(
    declaration: dict[str, Any],
    *,
    stack: str = "test",
    deployed: Recording | None = None,
    updates: Updates | None = None,
    **settings: Any,
) -> Recording:
    """Run the program again, whether or not a test has done so.

    Args:
        deployed: the stack's state.
        updates: the updates for which the program's hooks are called.
        settings: further settings of the stack.
    """
    config = {f"ebbtide:{name}": json.dumps(value) for name, value in settings.items()}
    return _recorded(json.dumps(declaration), stack, config, deployed=deployed, updates=updates)


def reviewed(before: dict[str, Any], after: dict[str, Any], *, stack: str = "test") -> Review:
    """Review a change of a declaration."""
    earlier = Baseline("main", synth(before, stack=stack))
    return review_of(synth_anew(after, stack=stack, updates=earlier.updates), earlier)


def _recorded(
    declaration: str, stack: str, settings: Mapping[str, str] | None = None, **options: Any
) -> Recording:
    config = {"ebbtide:cluster": declaration, **(settings or {})}
    # The tests' process has the directory's modules already: it need not be entered.
    recording = record(
        lambda: runpy.run_path(_MAIN, run_name="__main__"),
        project="ebbtide",
        stack=stack,
        config=config,
        root=ROOT,
        **options,
    )
    # The run's tasks and resources are garbage in cycles. The SDK scans all tasks of the process in each run.
    gc.collect(1)
    return recording


_cached = lru_cache(maxsize=128)(_recorded)


@cache
def synth_stack(stack_file: Path) -> Recording:
    """Return what the program creates for a stack of the repository; recorded once."""
    return synth(declaration(stack_file), stack=stack_file.name.split(".")[1])
