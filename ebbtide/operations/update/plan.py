"""Summary of an update's changes, for its confirmation."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from ebbtide.analysis.changes.inputs import recreates_nodes
from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.preview.preview_document import CostReport
from ebbtide.analysis.preview.stack_files import StackFiles
from ebbtide.analysis.preview.words import type_words
from ebbtide.analysis.reading.pools import read_pools
from ebbtide.analysis.recording.recording import Recording, urn_name
from ebbtide.analysis.review.baseline import Baseline
from ebbtide.analysis.review.build_review import new_pools_beside, review_of
from ebbtide.analysis.review.review_document import DifferenceReport, Review
from ebbtide.analysis.review.summary import action_counts
from ebbtide.clients.clouds.interfaces import StoredData
from ebbtide.clients.kubernetes.objects import parts
from ebbtide.operations import inspection
from ebbtide.operations.engine.stack import Completed
from ebbtide.operations.engine.state import CLUSTERS
from ebbtide.operations.update import pool_replacement
from ebbtide.text import several
from ebbtide.values import durations

_NEW: Final = ("adopt", "create")
_SHOWN: Final = 20
_PATHS: Final = 3
_WIDTH: Final = 76
"""Maximum length of a line of names, which is indented on a terminal of 80 columns."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The changes of an update.

    Attributes:
        lines: changes, and reasons why they are forbidden.
        question: confirmation prompt.
        is_refused: True if the policy or the engine would reject the update.
        deleted: people's data that the update deletes.
        changed: type and name of each changed resource; those that a chart or directory makes are unknown.
        costs: lines about the cost after the update; none if no price is known.
        evicted: names of the pools whose nodes the cloud deletes or recreates, with their pods; those that
            are replaced by a pool beside them are not among these.
    """

    lines: tuple[str, ...]
    question: str
    is_refused: bool
    deleted: tuple[StoredData, ...]
    changed: frozenset[tuple[str, str]]
    costs: tuple[str, ...]
    evicted: frozenset[str]


@dataclass(frozen=True, slots=True)
class Done:
    """Changes that an interrupted update made.

    Attributes:
        created: names of the created resources.
        updated: names of the updated resources.
        failed: names of resources whose last creation or update failed, which the next one updates again.
    """

    created: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


NOTHING: Final = Done()


def done_since(deployment: Mapping[str, Any], completed: Completed) -> Done:
    """Return the changes since the last completed update, from the times in the state; adopted resources
    were not changed, and those that a refresh has modified since were not updated.

    Args:
        deployment: the `deployment` of `pulumi stack export`.
        completed: the ends of that update, and of the last refresh.
    """
    names: dict[str, list[str]] = {"created": [], "modified": [], "failed": []}
    refreshed = max(filter(None, completed), default=None)
    since = {"created": completed.update, "modified": refreshed}
    for resource in parts(deployment, "resources"):
        if not resource.get("custom") or resource.get("external") or resource.get("delete"):
            continue
        if str(resource["type"]).startswith("pulumi:") or resource.get("importID"):
            continue
        times = (time for time, end in since.items() if is_later(resource.get(time), end))
        if found := "failed" if resource.get("initErrors") else next(times, ""):
            names[found].append(urn_name(str(resource["urn"])))
    return Done(*(tuple(found) for found in names.values()))


def is_later(time: object, end: datetime | None) -> bool:
    """Return whether a time of the state is after the end of a run, which is to the second; also if there was
    none."""
    if not isinstance(time, str):
        return False
    return end is None or datetime.fromisoformat(time) > end + timedelta(seconds=1)


def plan_of(
    recording: Recording,
    before: Baseline,
    files: StackFiles,
    replaced: Collection[str],
    drain_timeout: timedelta | None = None,
    done: Done = NOTHING,
) -> Plan:
    """Return the changes of an update.

    Args:
        before: the deployed stack.
        replaced: logical names of the pools that are replaced by a new pool beside the old one.
        drain_timeout: time for work on those pools to finish; None for each pool's own.
        done: changes of an interrupted update that this one continues.
    """
    declaration = files.source.declaration if files.source else None
    review = review_of(
        recording, before, warnings=files.warnings, policy=files.policy(), declaration=declaration
    )
    difference = review.difference
    assert difference is not None  # noqa: S101 - there is an earlier version
    own = {message.text for message in new_pools_beside(recording)}
    consequences = [text for text in difference.consequences if text not in own]
    mandatory = [item for item in review.findings if item.level == "mandatory" and not item.exception]
    errors = [message.text for message in review.preview.warnings if message.severity == "error"]
    counted = difference.model_copy(
        update={"changes": tuple(item for item in difference.changes if item.name not in replaced)}
    )
    counts = [f"{several(len(replaced), 'pool')} to replace"] if replaced else []
    counts += [action_counts(counted)] if counted.changes or not replaced else []
    lines = (
        f"Stack {files.stack}: {', '.join(counts)}.",
        *_done(done),
        *(f"  {line}" for line in _pools(recording, replaced, drain_timeout)),
        *(f"  {line}" for line in _changed(counted)),
        *(f"  {line}" for line in _created(counted)),
        *(f"  {line}" for line in consequences[:_SHOWN]),
        *_cost(review, _cost_before(before, difference, done)),
        *(f"Policy violation: {item.message} [{item.rule}]" for item in mandatory),
        *(f"The update would fail: {text}" for text in (*difference.refusals, *errors)),
    )
    gone = {item.urn for item in difference.changes if item.action in ("delete", "replace")}
    deleted = inspection.of_recording(before.recording, gone) if before.recording else []
    data = f", and delete {inspection.named(deleted)}" if deleted else ""
    return Plan(
        lines,
        f"Update stack {files.stack}{data}?",
        deleted=tuple(deleted),
        is_refused=bool(mandatory or difference.refusals or errors),
        changed=frozenset((item.type, item.name) for item in counted.changes),
        costs=tuple(_cost(review)),
        evicted=frozenset(evicted_pools(counted, before)),
    )


def evicted_pools(difference: DifferenceReport, before: Baseline) -> Iterator[str]:
    """Yield the pools whose nodes a change deletes or recreates; a cluster's change does so to all."""
    for change in difference.changes:
        ends = change.action in ("delete", "replace") or any(
            recreates_nodes(change.type, item.path, item.old, item.new) for item in change.fields
        )
        if ends and change.pool:
            yield change.pool
        elif ends and change.type in CLUSTERS and before.recording:
            yield from (pool.name for pool in read_pools(before.recording))


def _pools(recording: Recording, replaced: Collection[str], drain_timeout: timedelta | None) -> Iterator[str]:
    for name in sorted(replaced):
        pool = next(item for item in recording if item.name == name and not item.custom)
        time = durations.rounded(pool_replacement.timeout(recording, name, drain_timeout))
        yield (
            f"Pool {pool_replacement.declared_name(pool)} is replaced by a new one beside it: its work has "
            f"{time} to finish, then its pods are evicted."
        )


def _done(done: Done) -> Iterator[str]:
    """Yield what an interrupted or failed update did: the number of creations, and the names of what it
    updated and of what failed."""
    counts = [
        f"{len(names)} {words}"
        for words, names in (("created", done.created), ("updated", done.updated))
        if names
    ]
    if counts:
        yield f"Already done since the last update that succeeded: {', '.join(counts)}."
    yield from (f"  updated {name}, done" for name in done.updated[:_SHOWN])
    if len(done.updated) > _SHOWN:
        yield f"  and {len(done.updated) - _SHOWN} more updated resources, done."
    if done.failed:
        yield listed("Failed in the last update, and updated again: ", done.failed)


def _changed(difference: DifferenceReport) -> Iterator[str]:
    """Yield the changed resources that exist, with the paths of their changed fields."""
    changes = [change for change in difference.changes if change.action not in _NEW]
    for change in changes[:_SHOWN]:
        paths = [item.path for item in change.fields]
        more = [several(len(paths) - _PATHS, "more field")] if len(paths) > _PATHS else []
        name = f"pool {change.pool}" if change.pool else change.name
        yield f"{change.action} {name}" + (f": {', '.join([*paths[:_PATHS], *more])}" if paths else "")
    if len(changes) > _SHOWN:
        yield f"and {len(changes) - _SHOWN} more changed resources."


def _created(difference: DifferenceReport) -> Iterator[str]:
    """Yield the resources to adopt and to create, a line for each type."""
    names: dict[tuple[str, str], list[str]] = {}
    for change in sorted(difference.changes, key=lambda change: change.action):
        if change.action in _NEW:
            kind = "pool" if change.pool else type_words(change.type).rpartition(".")[2]
            names.setdefault((change.action, kind), []).append(change.pool or change.name)
    for (action, kind), new in names.items():
        yield listed(f"{action} {kind} ", new)


def listed(line: str, names: Sequence[str]) -> str:
    """Return a line with the first names, at least one, and the number of those that do not fit."""
    shown = len(names)
    while True:
        more = f" and {len(names) - shown} more" if shown < len(names) else ""
        text = f"{line}{', '.join(names[:shown])}{more}"
        if len(text) <= _WIDTH or shown == 1:
            return text
        shown -= 1


def _cost_before(before: Baseline, difference: DifferenceReport, done: Done) -> CostReport | None:
    """Return the cost before the update; None if an interrupted one has changed what costs money.

    The state does not have the earlier inputs of an updated resource. The engine deletes last.
    """
    if before.recording is None or done == NOTHING:
        return difference.cost_before
    if done.updated or all(change.action == "delete" for change in difference.changes):
        return None
    kept = tuple(item for item in before.recording if item.name not in done.created)
    return preview_of(replace(before.recording, resources=kept)).cost


def _cost(review: Review, before: CostReport | None = None) -> Iterator[str]:
    """Yield the idle cost and the maximum cost, with their changes if the earlier cost is given, if any price
    is known."""
    after: CostReport = review.preview.cost
    if not after.prices_from:
        return
    amounts = (
        ("idle", before and before.idle, after.idle),
        ("maximum", before and before.maximum, after.maximum),
    )
    for title, by in (("hour", False), ("month", True)):
        parts = [
            f"{words} {new.amount.words(monthly=by)}"
            + (f" ({change})" if old and (change := new.amount.change_from(old.amount, monthly=by)) else "")
            for words, old, new in amounts
        ]
        yield f"Cost per {title}: {', '.join(parts)}."
