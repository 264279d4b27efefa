"""Comparisons, sums and paths of work to pools that the renderings of a review share."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any, Final

from ebbtide.analysis.preview.preview_document import PoolReport, Preview
from ebbtide.analysis.review.review_document import (
    DifferenceReport,
    FindingReport,
    ReplayColumn,
    ReplaySummary,
    Review,
)
from ebbtide.text import several
from ebbtide.values import durations

ACTIONS: Final = ("replace", "delete", "adopt", "create", "update")
"""Actions of changes, the most disruptive first."""


_SHORT: Final = 80
"""Maximum length of a value that is shown whole."""

_COMPARED: Final = 2000
"""Maximum number of lines of a value for a line-by-line diff; more take seconds."""
_BEFORE: Final = 12
"""Maximum number of shown characters before a difference."""


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """A cloud quota before and after.

    Attributes:
        region: the region, or `global`.
        amount: the need; 0 if the stack no longer needs it.
        before: the earlier need; None without an earlier version.
        pools: pools that count towards it.
    """

    region: str
    name: str
    amount: int
    before: int | None
    pools: tuple[str, ...]


def action_counts(difference: DifferenceReport) -> str:
    """Count changes by action: `1 to replace, 2 to create`."""
    counts = Counter(change.action for change in difference.changes)
    return ", ".join(f"{counts[action]} to {action}" for action in ACTIONS if counts[action]) or "no change"


def finding_counts(findings: tuple[FindingReport, ...]) -> str:
    """Count findings by level: `1 mandatory, 2 advisory, 1 by exception`."""
    counts = Counter("by exception" if finding.exception else finding.level for finding in findings)
    levels = ("mandatory", "advisory", "by exception")
    return ", ".join(f"{counts[level]} {level}" for level in levels if counts[level]) or "no broken rule"


def quota_rows(review: Review) -> list[QuotaRow]:
    """Return the quotas that the stack needs, and those that it no longer needs."""
    before = (
        {(quota.cloud, quota.region, quota.name): quota for quota in review.difference.quotas_before}
        if review.difference
        else None
    )
    rows: list[QuotaRow] = []
    for quota in review.preview.quotas:
        earlier = before.pop((quota.cloud, quota.region, quota.name), None) if before is not None else None
        amount = None if before is None else earlier.amount if earlier else 0
        rows.append(QuotaRow(quota.region, quota.name, quota.amount, amount, quota.pools))
    gone = before.values() if before else ()
    return rows + [QuotaRow(quota.region, quota.name, 0, quota.amount, quota.pools) for quota in gone]


def places(preview: Preview) -> str:
    """Name the clusters with their clouds and locations: `train on GKE in us-central1-a`."""
    clusters = dict.fromkeys(
        (cluster.name, cluster.cloud.upper(), cluster.location) for cluster in preview.clusters
    )
    return "; ".join(
        f"{name} on {cloud}" + (f" in {location}" if location else "") for name, cloud, location in clusters
    )


def changed_lines(old: Any, new: Any) -> tuple[list[str], list[str]]:
    """Return the removed and the added lines of a field; short values are one line.

    A JSON document, for example in a ConfigMap, has a line for each of its values.
    """
    before, after = _value_lines(old), _value_lines(new)
    while before and after and before[0] == after[0]:
        del before[0], after[0]
    while before and after and before[-1] == after[-1]:
        del before[-1], after[-1]
    if max(len(before), len(after)) > _COMPARED:
        return before, after
    opcodes = SequenceMatcher(None, before, after).get_opcodes()
    changes = [(a, b, c, d) for tag, a, b, c, d in opcodes if tag != "equal"]
    return (
        [line for start, end, _, _ in changes for line in before[start:end]],
        [line for _, _, start, end in changes for line in after[start:end]],
    )


def shortened(old: str, new: str, length: int) -> tuple[str, str]:
    """Shorten two texts at spaces, so that their first difference is shown."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    whole = same < length - _BEFORE or max(len(old), len(new)) <= length
    start = 0 if whole else max(old.rfind(" ", 0, same) + 1, same - _BEFORE)
    return _cut(old, start, length), _cut(new, start, length)


def value_text(value: Any) -> str:
    """Format a value in one line: text as it is, anything else as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "none" if value is None else " ".join(text.split())


def _cut(text: str, start: int, length: int) -> str:
    """Return at most `length` characters of a text, with an ellipsis for each omitted end."""
    text = f"…{text[start:]}" if start else text
    if len(text) <= length:
        return text
    space = text.rfind(" ", length // 2, length)
    return f"{text[: space if space > 0 else length - 1]}…"


def _value_lines(value: Any) -> list[str]:
    """Return the lines of a value; none if it is not set."""
    if value is None:
        return []
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= _SHORT and "\n" not in text:
        return [text]
    try:
        document = json.loads(text)
    except ValueError:
        return text.splitlines()
    return [line.strip() for line in json.dumps(document, ensure_ascii=False, indent=1).splitlines()]


def replay_title(replay: ReplaySummary) -> str:
    """Return the title of a replay: its trace, with the number of its jobs."""
    jobs = several(replay.jobs, "job", "jobs")
    return f"Replay of {replay.trace}" + (
        f": {jobs}, {several(replay.seeds, 'seed')}" if replay.columns else ""
    )


def replay_rows(replay: ReplaySummary) -> list[tuple[str, list[str]]]:
    """Return the figures of a replay: a label, and a cell for each version."""
    rows: list[tuple[str, Callable[[ReplayColumn], str]]] = [
        ("waiting, median", lambda column: _waited(column.half_waited)),
        ("waiting, 95 %", lambda column: _waited(column.most_waited)),
        ("cost", lambda column: f"${column.usd:,.2f}"),
        ("node hours", lambda column: f"{column.node_hours:,.1f}"),
        ("idle node hours", lambda column: f"{column.idle_hours:,.1f}"),
        ("jobs that ended", lambda column: f"{column.ended:,.0f}"),
        ("preemptions", lambda column: f"{column.preemptions:,.0f}"),
        ("interruptions", lambda column: f"{column.interruptions:,.0f}"),
    ]
    if any(column.deadlines for column in replay.columns):
        rows.append(("missed deadlines", lambda column: f"{column.missed:,.0f} of {column.deadlines:,}"))
    return [(label, [cell(column) for column in replay.columns]) for label, cell in rows]


def _waited(seconds: float | None) -> str:
    return "-" if seconds is None else durations.elapsed(seconds)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of work into node pools.

    Attributes:
        label: a LocalQueue, as `namespace/name`, or the admitted pods.
        is_queue: True for a LocalQueue.
        pools: indexes of the pools, in order of preference.
    """

    label: str
    is_queue: bool
    pools: tuple[int, ...]


def entries(pools: Sequence[PoolReport]) -> list[Entry]:
    """Return the entries of each cluster's pools: LocalQueues, or the admitted pods without a queue."""
    indexes: dict[tuple[str, str, bool], list[int]] = {}
    for index, pool in enumerate(pools):
        for label in pool.queues or (pool.admits,):
            indexes.setdefault((pool.cluster, label, bool(pool.queues)), []).append(index)
    return [Entry(label, is_queue, tuple(pools)) for (_, label, is_queue), pools in indexes.items()]


def fallbacks(pools: Sequence[PoolReport]) -> list[tuple[int, int]]:
    """Return the indexes of each pool with a fallback, and of the first pool that it falls back to."""
    numbers = {(pool.cluster, pool.name): number for number, pool in enumerate(pools)}
    return [
        (number, numbers[pool.cluster, pool.falls_back_to[0]])
        for number, pool in enumerate(pools)
        if pool.falls_back_to and (pool.cluster, pool.falls_back_to[0]) in numbers
    ]
