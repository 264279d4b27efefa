"""HTML rendering of a review: one file without scripts, web fonts or external images. Its diagram has work on
the left, pools in the middle, machines on the right.
"""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from jinja2 import Environment

from ebbtide.analysis.html import jinja_environment
from ebbtide.analysis.preview.preview_document import AmountReport, PoolReport
from ebbtide.analysis.preview.words import (
    accelerator_words,
    amount_words,
    capacity_limit,
    cost_notes,
    never_zero,
    nodes_words,
    number_words,
    overrides_words,
    price_dates,
    queue_rows,
    type_words,
)
from ebbtide.analysis.recording.recording import urn_name
from ebbtide.analysis.review.review_document import FailedReview, FindingReport, Review
from ebbtide.analysis.review.summary import (
    ACTIONS,
    Entry,
    action_counts,
    changed_lines,
    entries,
    fallbacks,
    finding_counts,
    places,
    quota_rows,
    replay_rows,
    replay_title,
)

_OPEN: Final = 40
"""Maximum number of pools in a diagram that is not folded."""
_LINE: Final = 17
_PADDING: Final = 12
_GAP: Final = 16
_LETTER: Final = 7.2
"""Width of a letter in a 13-pixel font, pixels."""
_NODE: Final = 9
"""Edge length of a node's square, pixels."""
_DRAWN: Final = 14
"""Maximum number of drawn nodes."""


def render(review: Review | FailedReview) -> str:
    """Render a review as an HTML page."""
    if isinstance(review, FailedReview):
        return _templates().get_template("failed.html").render(review=review)
    preview, difference = review.preview, review.difference
    cost = preview.cost
    changes = difference.changes if difference else ()
    return (
        _templates()
        .get_template("review.html")
        .render(
            review=review,
            preview=preview,
            cost=cost,
            difference=difference,
            changes=sorted(changes, key=lambda change: ACTIONS.index(change.action)),
            changed_lines=changed_lines,
            action_counts=action_counts(difference) if difference else "",
            finding_counts=finding_counts(review.findings),
            policy=[*finding_counts(review.findings).split(", ", 1), ""],
            rules=_rules(review),
            notes=_notes(review),
            places=places(preview),
            prices=price_dates(cost),
            cost_notes=dict(cost_notes(preview)),
            never_zero=never_zero(preview),
            others=[charge for charge in cost.charges if not charge.pool],
            most=max((pool.charge.on_demand.usd for pool in preview.pools), default=0),
            queues=queue_rows(preview.queues),
            quotas=quota_rows(review),
            replay=review.replay,
            replay_head=("", *(column.name for column in review.replay.columns)) if review.replay else (),
            replay_rows=replay_rows(review.replay) if review.replay else (),
            replay_title=replay_title(review.replay) if review.replay else "",
            pictures={"wide": _picture(preview.pools, _WIDE), "narrow": _picture(preview.pools, _NARROW)},
            open=len(preview.pools) <= _OPEN,
        )
    )


def _rules(review: Review) -> dict[str, list[FindingReport]]:
    """Return the findings by rule, in their order."""
    rules: dict[str, list[FindingReport]] = {}
    for finding in review.findings:
        rules.setdefault(finding.rule, []).append(finding)
    return rules


def _notes(review: Review) -> dict[str, str]:
    """Return the amounts per month, the earlier amounts and their changes."""
    before, after = review.difference and review.difference.cost_before, review.preview.cost
    return {
        name: _note(getattr(before, name, None), getattr(after, name))
        for name in ("idle", "maximum", "on_demand")
    }


def _note(before: AmountReport | None, after: AmountReport) -> str:
    month = f"{after.amount.words(monthly=True)} a month"
    if before is None:
        return month
    hourly, monthly = (after.amount.change_from(before.amount, monthly=by) for by in (False, True))
    if not monthly:
        return f"unchanged; {month}"
    return f"{f'{hourly}, ' if hourly else ''}was {before.amount.words()}; {month}, {monthly}"


def _dollars(amount: AmountReport) -> str:
    return amount.amount.words()


@cache
def _templates() -> Environment:
    templates = jinja_environment(__package__ or "")
    templates.filters |= {
        "accelerators": accelerator_words,
        "amount": amount_words,
        "dollars": _dollars,
        "limit": capacity_limit,
        "node_counts": nodes_words,
        "number": number_words,
        "overrides": overrides_words,
        "type": type_words,
        "urn_name": urn_name,
    }
    return templates


@dataclass(frozen=True, slots=True)
class Box:
    """A box with lines of text, and a square for each node.

    Attributes:
        kind: CSS classes.
        name: unabbreviated text.
        x: left edge.
        y: upper edge.
        lines: baseline, text and CSS class of each line.
        nodes: paths with a square for each node: those of the minimum, and those above it.
    """

    kind: str
    name: str
    x: int
    y: int
    width: int
    height: int
    lines: tuple[tuple[int, str, str], ...]
    nodes: tuple[str, ...] = ()

    @property
    def middle(self) -> int:
        """Vertical middle."""
        return self.y + self.height // 2


@dataclass(frozen=True, slots=True)
class Picture:
    """A diagram, in pixels.

    Attributes:
        edges: paths from work to pools and from pools to machines.
        fallbacks: paths from pools to their fallbacks, each with the path of its arrowhead.
    """

    width: int
    height: int
    boxes: tuple[Box, ...]
    edges: tuple[str, ...]
    fallbacks: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Columns:
    """Left edges and widths of the columns, of the whole diagram, and of arcs between pools.

    Without a column of their own, machines are part of the pools.
    """

    work: tuple[int, int]
    pools: tuple[int, int]
    machines: tuple[int, int] | None
    width: int
    arc: int


_WIDE: Final = _Columns((0, 280), (390, 300), (800, 330), 1130, 40)
"""For a screen."""
_NARROW: Final = _Columns((0, 118), (150, 180), None, 350, 24)
"""For a phone."""


def _picture(pools: Sequence[PoolReport], columns: _Columns) -> Picture:
    boxes: list[Box] = []
    for pool in pools:
        boxes.append(_pool(pool, columns, _end(boxes)))
    machines = [_machine(pool, box, columns) for pool, box in zip(pools, boxes, strict=True)]
    work: list[Box] = []
    edges: list[str] = []
    for entry, middle in sorted(
        (
            (entry, sum(boxes[index].middle for index in entry.pools) // len(entry.pools))
            for entry in entries(pools)
        ),
        key=lambda pair: pair[1],
    ):
        box = _work(entry, columns, middle, _end(work))
        work.append(box)
        edges += (_curve(box, boxes[index]) for index in entry.pools)
    edges += (
        _curve(box, machine) for box, machine in zip(boxes, machines, strict=True) if machine is not None
    )
    shown = (*work, *boxes, *(machine for machine in machines if machine))
    height = max((box.y + box.height for box in shown), default=0) + 1
    arcs = tuple(_arc(boxes[pool], boxes[fallback], columns.arc) for pool, fallback in fallbacks(pools))
    return Picture(columns.width, height, shown, tuple(edges), arcs)


def _end(boxes: Sequence[Box]) -> int:
    """Return the upper edge of the next box."""
    return boxes[-1].y + boxes[-1].height + _GAP if boxes else 1


def _pool(pool: PoolReport, columns: _Columns, y: int) -> Box:
    left, width = columns.pools
    nodes = f"{nodes_words(pool.nodes)} {'node' if pool.nodes.fixed == 1 else 'nodes'}, {pool.capacity}"
    machine = () if columns.machines else (pool.machine, accelerator_words(pool))
    lines = [pool.name, nodes, *(line for line in machine if line)]
    drawn = pool.nodes.most <= _DRAWN
    kind = {"spot": "spot", "preemptible": "spot", "queued": "queued", "flex-start": "queued"}
    height = _height(lines) + (_NODE + 9 if drawn else 0)
    return Box(
        f"pool {kind.get(pool.capacity, '')}".strip(),
        pool.name,
        left,
        y,
        width,
        height,
        tuple(_lines(lines, y, width)),
        _nodes(pool, left + _PADDING, y + height - _NODE - 10) if drawn else (),
    )


def _nodes(pool: PoolReport, left: int, y: int) -> tuple[str, str]:
    """Return the squares of the minimum nodes, and those above the minimum."""
    squares = [
        f"M{left + number * (_NODE + 2)} {y}h{_NODE}v{_NODE}h-{_NODE}z" for number in range(pool.nodes.most)
    ]
    return "".join(squares[: pool.nodes.idle]), "".join(squares[pool.nodes.idle :])


def _machine(pool: PoolReport, box: Box, columns: _Columns) -> Box | None:
    if columns.machines is None:
        return None
    left, width = columns.machines
    size = "" if pool.vcpus is None else f"{pool.vcpus} vCPU, {pool.memory_gib or 0:g} GiB"
    lines = [
        line for line in (pool.machine, ", ".join(filter(None, (size, accelerator_words(pool))))) if line
    ]
    height = _height(lines)
    y = box.middle - height // 2
    return Box("machine", " ".join(lines), left, y, width, height, tuple(_lines(lines, y, width)))


def _work(entry: Entry, columns: _Columns, middle: int, earliest: int) -> Box:
    left, width = columns.work
    letters = int((width - 2 * _PADDING) / _LETTER)
    lines = textwrap.wrap(entry.label, letters, max_lines=5, placeholder="…") or [""]
    height = _height(lines)
    y = max(earliest, middle - height // 2)
    kind, style = ("queue", "strong") if entry.is_queue else ("work", "quiet")
    return Box(kind, entry.label, left, y, width, height, tuple(_lines(lines, y, width, style, style)))


def _height(lines: Sequence[str]) -> int:
    return 2 * _PADDING + _LINE * len(lines) - 4


def _lines(
    lines: Sequence[str], y: int, width: int, first: str = "strong", others: str = "quiet"
) -> Iterator[tuple[int, str, str]]:
    """Yield baseline, text and CSS class of each line; long ones are shortened."""
    letters = int((width - 2 * _PADDING) / _LETTER)
    for number, line in enumerate(lines):
        text = line if len(line) <= letters else f"{line[: letters - 1]}…"
        yield y + _PADDING + _LINE * number + 10, text, others if number else first


def _curve(left: Box, right: Box) -> str:
    """Return a path between two boxes side by side."""
    start, end = left.x + left.width, right.x
    bend = (start + end) // 2
    return f"M{start} {left.middle}C{bend} {left.middle} {bend} {right.middle} {end} {right.middle}"


def _arc(box: Box, other: Box, width: int) -> tuple[str, str]:
    """Return a path to the right of two boxes of a column, and its arrowhead."""
    x, way = box.x + box.width, 10 if other.y > box.y else -10
    start, end, bend = box.middle + way, other.middle - way, x + width
    return f"M{x} {start}C{bend} {start} {bend} {end} {x + 2} {end}", f"M{x + 8} {end - 4}l-6 4l6 4"
