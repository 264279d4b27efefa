"""Sweeps over a grid of parameters: one Indexed Job, each index a point of the grid."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from ebbtide.placement import Profile
from ebbtide.values.paths import Object
from ebbtide.work.arguments import LABEL_LENGTH
from ebbtide.work.errors import Problems
from ebbtide.work.jobs import manifest, placed
from ebbtide.work.tasks import Task, check_free, with_fields
from ebbtide.work.volumes import by_index

Value = str | int | float | bool
Grid = Mapping[str, Sequence[Value]]

POINTS: Final = "EBBTIDE_SWEEP"
"""Variable with every point of the grid, as a JSON list in the order of the index."""
INDEX: Final = "JOB_COMPLETION_INDEX"
"""Variable in which Kubernetes passes a pod its index."""
_MOST: Final = 100_000
"""Maximum number of indexes with a backoff limit per index (Kubernetes, batch validation, 1.36)."""
_LONGEST: Final = 128 * 1024 - len(POINTS) - 2
"""Maximum length of a value in Linux (MAX_ARG_STRLEN, include/uapi/linux/binfmts.h)."""


def points(grid: Grid) -> list[dict[str, Value]]:
    """Return every point of a grid, by index: parameters in the declared order, the last one varying
    fastest."""
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def parameters(environment: Mapping[str, str] = os.environ) -> dict[str, Value]:
    """Return the parameters of this index, in a pod of a sweep.

    An image without Ebbtide can do the same: the variable `EBBTIDE_SWEEP` is a JSON list, and
    `JOB_COMPLETION_INDEX` is the index of the item.

    Raises:
        KeyError: this is not a pod of a sweep.
    """
    return json.loads(environment[POINTS])[int(environment[INDEX])]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepTask(Task):
    """The task of a sweep, whose `retries` are per index."""

    parallelism: int | None = None
    """Maximum number of concurrent pods. Default: all."""
    max_failed: int | None = None
    """Number of failed indexes that is tolerated before the Job fails. Default: no limit."""


def sweep_of(profile: Profile, grid: Grid, task: SweepTask) -> Object:
    """Return the manifest of an Indexed Job that runs a task once for each point of a grid.

    Each index has its own retries, and a disruption uses none; an exit code in `fail_on` fails only its
    index, and the others continue. The points are in an environment variable and not in a ConfigMap: the Job
    is deleted after its time to live, and the ConfigMap would remain.

    Args:
        grid: values of each parameter; see `points` for the order.

    Raises:
        WorkloadError: the sweep cannot run as described; the message lists all problems.
    """
    problems, parallelism, max_failed = Problems(), task.parallelism, task.max_failed
    _check_grid(grid, problems)
    every = [] if problems.all else points(grid)
    # `$(` would be parsed as a reference to a variable (Kubernetes docs, dependent environment variables).
    text = _json(every).replace("$(", "$$(")
    problems.check(
        len(_json(every).encode()) <= _LONGEST,
        f"The grid's {len(every)} points are longer than the {_LONGEST // 1024} KiB that a process accepts "
        "as arguments: split it into several sweeps.",
    )
    check_free(task, (POINTS, INDEX), "a sweep", problems)
    problems.check(parallelism is None or parallelism > 0, f"parallelism is {parallelism}; write 1 or more.")
    problems.check(max_failed is None or max_failed >= 0, f"max_failed is {max_failed}; write 0 or more.")
    # A pod's host name is the Job's name with the index, and must be a DNS label.
    max_length = LABEL_LENGTH - len(f"-{max(0, len(every) - 1)}")
    placement = placed(profile, task, problems, name_length=max_length)
    placement = replace(placement, mounts=by_index(placement.mounts, INDEX))
    count = len(every)
    return manifest(
        replace(task, env={**task.env, POINTS: text}),
        placement,
        fail="FailIndex",
        completionMode="Indexed",
        completions=count,
        parallelism=min(parallelism or count, count),
        backoffLimitPerIndex=task.retries,
        **({} if max_failed is None else {"maxFailedIndexes": min(max_failed, count)}),
    )


sweep = with_fields(SweepTask, sweep_of)
"""`sweep_of`, with the fields of a task by their names: `sweep(profile, grid, name=…, image=…)`."""


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _check_grid(grid: Grid, problems: Problems) -> None:
    problems.check(grid, "The grid is empty: write at least one parameter, with its values.")
    count = math.prod(len(values) for values in grid.values())
    problems.check(
        count <= _MOST, f"The grid has {count} points, and a Job supports at most {_MOST} indexes."
    )
    for name, values in grid.items():
        problems.check(values, f"The grid has no values for {name}: the sweep would have no points.")
        if isinstance(values, str):
            problems.add(f"The grid's {name} is a text: write its values as a list.")
            continue
        for value in values:
            problems.check(
                isinstance(value, str | int | float)  # pyright: ignore[reportUnnecessaryIsInstance]
                and not (isinstance(value, float) and not math.isfinite(value)),
                f"The grid's {name} has {value!r}; values are texts, finite numbers, true and false.",
            )
        written = [repr(value) for value in values]
        for twice in dict.fromkeys(text for text in written if written.count(text) > 1):
            problems.add(f"The grid's {name} has {twice} twice: the same point would run twice.")
