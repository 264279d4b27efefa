"""Markdown rendering of a review, for a comment on a pull request.

Syntax: GitHub Flavored Markdown. GitHub rejects a comment longer than `LIMIT` (rest-api-description,
`body is too long`), so the least important rows are replaced with a sentence.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from ebbtide.analysis.preview.report import CostReport, PoolReport, Preview
from ebbtide.analysis.preview.words import (
    accelerator_words,
    amount_words,
    gaps,
    never_zero,
    nodes_words,
    price_dates,
    queue_rows,
    type_words,
)
from ebbtide.analysis.review.report import (
    ChangeReport,
    FailedReview,
    FieldChangeReport,
    FindingReport,
    ReplaySummary,
    Review,
)
from ebbtide.analysis.review.summary import (
    ACTIONS,
    action_counts,
    changed_lines,
    entries,
    fallbacks,
    finding_counts,
    places,
    quota_rows,
    replay_rows,
    replay_title,
    shortened,
)
from ebbtide.text import several

LIMIT: Final = 65_536
"""Maximum number of characters of a GitHub comment."""

_SIGNS: Final = {"pass": "✅", "warn": "⚠️", "fail": "❌"}
_PICTURED: Final = 40
"""Maximum number of pools in a diagram; GitHub renders no flowchart of more than 50,000 characters."""

_LONGEST: Final = 300
"""Maximum number of characters of a message."""

_LONGEST_NAME: Final = 150
_LONGEST_VALUE: Final = 60
_SPECIAL: Final = re.compile(r"[\\`*{}\[\]<>#|~&$]|(?<![^\W_])_|_(?![^\W_])")
_REWRITTEN: Final = re.compile(r"@|:(?=[\w+-]+:)")
"""Beginnings of GitHub's mentions and emoji."""

_SIMPLE: Final = re.compile(r"[\w ./:=,()+-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """A section of the comment.

    Attributes:
        title: heading, or the summary of a folded section; empty for none.
        head: lines before the rows, such as a table's head.
        rows: lines that may be dropped, the most important first.
        tail: lines after the rows, such as the end of a fence.
        noun: noun for a row.
        folded: True for details that are collapsed by default.
        whole: True if the rows are meaningless without each other.
    """

    title: str = ""
    head: tuple[str, ...] = ()
    rows: tuple[str, ...]
    tail: tuple[str, ...] = ()
    noun: str = "line"
    folded: bool = True
    whole: bool = False

    def text(self, count: int) -> str:
        """Render the section with its first `count` rows."""
        missing = len(self.rows) - count
        rows = [*self.head, *self.rows[:count], *self.tail] if count else []
        omitted = [f"_{several(missing, self.noun)} not shown: {_WHOLE}_"] if missing else []
        title = [f"<details><summary>{self.title}</summary>" if self.folded else f"#### {self.title}"]
        blocks = (title if self.title else [], rows, omitted, ["</details>"] if self.folded else [])
        return "\n\n".join("\n".join(block) for block in blocks if block)


_WHOLE: Final = "a comment has a maximum length. `ebbtide review --format html` has everything."


def render(review: Review | FailedReview) -> str:
    """Render a review as Markdown of at most `LIMIT` characters."""
    if isinstance(review, FailedReview):
        errors = _errors(review)
        return _rendered([errors], [errors])
    changes, findings = _changes(review), _findings(review)
    pools, queues, quotas = _pools(review), _queues(review), _quotas(review)
    fields, rules, warnings, picture = _fields(review), _rules(review), _warnings(review), _picture(review)
    replay = _replay(review.replay) if review.replay else _Section(rows=())
    shown = [
        _head(review),
        *([] if warnings.folded else [warnings]),
        changes,
        replay,
        findings,
        pools,
        queues,
        quotas,
        picture,
        fields,
        rules,
        *([warnings] if warnings.folded else []),
    ]
    expendable = [picture, fields, rules, queues, quotas, warnings, pools, changes, findings]
    return _rendered(shown, expendable)


def _rendered(sections: Iterable[_Section], expendable: Iterable[_Section]) -> str:
    counts = _fit([section for section in sections if section.rows], expendable)
    return "\n\n".join(section.text(count) for section, count in counts) + "\n"


def _fit(sections: Sequence[_Section], expendable: Iterable[_Section]) -> list[tuple[_Section, int]]:
    """Return the number of rows of each section so that all sections fit, dropping expendable rows first."""
    counts = {id(section): len(section.rows) for section in sections}

    def excess() -> int:
        return sum(len(section.text(counts[id(section)])) + 2 for section in sections) - LIMIT

    for section in expendable:
        while id(section) in counts and counts[id(section)] and (over := excess()) > 0:
            if section.whole:
                counts[id(section)] = 0
                continue
            row = counts[id(section)]
            while row and over > -_LONGEST:
                row -= 1
                over -= len(section.rows[row]) + 1
            counts[id(section)] = row
    return [(section, counts[id(section)]) for section in sections]


def _errors(review: FailedReview) -> _Section:
    title = f"Review of {review.stack}: {review.verdict}, {several(len(review.errors), 'error')}"
    return _Section(
        head=(f"### {_SIGNS[review.verdict]} {_text(title)}", ""),
        rows=tuple(
            "- "
            + (f"{_code(error.heading)}: " if error.heading else "")
            + " ".join(_text(text) for text in (error.message, error.suggestion) if text)
            for error in review.errors
        ),
        noun="error",
        folded=False,
    )


def _head(review: Review) -> _Section:
    preview, difference = review.preview, review.difference
    cost = preview.cost
    before = difference.cost_before if difference else None
    title = _text(f"Review of {preview.project}/{preview.stack}: {review.verdict}")
    idle, most, on_demand = (amount.amount for amount in (cost.idle, cost.maximum, cost.on_demand))
    money = (
        f"**{idle.words()}/h idle**{_was(before, cost, 'idle')}, **{most.words()}/h at "
        f"most**{_was(before, cost, 'maximum')}, {on_demand.words()}/h with only on-demand capacity "
        f"({price_dates(cost)})."
    )
    monthly = (
        f"Per month: **{idle.words(monthly=True)} idle**{_was(before, cost, 'idle', monthly=True)}, "
        f"**{most.words(monthly=True)} at most**{_was(before, cost, 'maximum', monthly=True)}, "
        f"{on_demand.words(monthly=True)} with only on-demand capacity."
    )
    lines = [f"### {_SIGNS[review.verdict]} {title}"]
    lines += ["", money.replace("$", "&#36;"), "", monthly.replace("$", "&#36;")]
    if where := places(preview):
        lines += ["", f"{_text(where)}; {finding_counts(review.findings)}; an offline preview."]
    for gap, items in gaps(preview):
        lines += ["", f"**{gap}:** {', '.join(map(_text, items[:_SHOWN]))}{_more(items)}"]
    if held := never_zero(preview):
        lines += ["", f"**Always with nodes:** {', '.join(map(_text, held[:_SHOWN]))}{_more(held)}"]
    return _Section(rows=("\n".join(lines),), folded=False)


_SHOWN: Final = 10


def _more(items: Sequence[str]) -> str:
    return f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""


def _was(before: CostReport | None, after: CostReport, name: str, *, monthly: bool = False) -> str:
    """Format the earlier amount and the change: ` (was $1.00, +$0.20)`."""
    if before is None:
        return ""
    old, new = (getattr(cost, name).amount for cost in (before, after))
    change = new.change_from(old, monthly=monthly)
    return f" (was {old.words(monthly=monthly)}, {change})" if change else " (unchanged)"


def _changes(review: Review) -> _Section:
    difference = review.difference
    if difference is None:
        return _Section(rows=())
    changes = sorted(difference.changes, key=lambda change: ACTIONS.index(change.action))
    risky, others = (
        [change for change in changes if (change.action in ("replace", "delete")) is risk]
        for risk in (True, False)
    )
    return _Section(
        title=f"Changes against {_code(difference.against)}: {action_counts(difference)}",
        rows=(
            *(f"- ❌ {_text(text)}" for text in difference.refusals),
            *(f"- **{_text(text)}**" for text in difference.consequences),
            *map(_change, risky),
            *map(_change, others),
        )
        or ("- The resources are the same.",),
        noun="change",
        folded=False,
    )


def _change(change: ChangeReport) -> str:
    forcing = [field.path for field in change.fields if field.replaces]
    paths = forcing or [field.path for field in change.fields]
    named = ", ".join(map(_code, paths[:_PATHS])) + (" …" if len(paths) > _PATHS else "")
    why = f", forced by {named}" if forcing else f": {named}" if paths else ""
    name = f"pool {_code(change.pool)}" if change.pool else f"{_code(change.name)}"
    return f"- {change.action} {name} ({_text(type_words(change.type))}){why}"


_PATHS: Final = 3


def _fields(review: Review) -> _Section:
    changes = review.difference.changes if review.difference else ()
    return _Section(
        title="Changed fields, before and after",
        head=("| resource | field | before | after | |", "|---|---|---|---|---|"),
        rows=tuple(_field(change, field) for change in changes for field in change.fields),
        noun="field",
    )


def _field(change: ChangeReport, field: FieldChangeReport) -> str:
    effect = "forces replacement" if field.replaces else ""
    before, after = changed_lines(field.old, field.new)
    if before and after:
        before[0], after[0] = shortened(_line(before[0]), _line(after[0]), _LONGEST_VALUE)
    old = _lines(before) if field.old is not None else "not set"
    new = _lines(after) if field.new is not None else "not set"
    return _row(_code(change.name), _code(field.path), old, new, effect)


def _lines(lines: Sequence[str]) -> str:
    """Format the first of the changed lines, and the number of the others."""
    if not lines:
        return ""
    rest = f" and {several(len(lines) - 1, 'line')}" if len(lines) > 1 else ""
    return f"{_code(_clip(lines[0], _LONGEST_VALUE))}{rest}"


def _findings(review: Review) -> _Section:
    return _Section(
        title=f"Policy: {finding_counts(review.findings)}",
        rows=tuple(map(_finding, review.findings)),
        noun="finding",
        folded=False,
    )


def _finding(finding: FindingReport) -> str:
    level = f"~~{finding.level}~~" if finding.exception else f"**{finding.level}**"
    why = f" _Exception: {_text(finding.exception)}_" if finding.exception else ""
    return f"- {level} {_code(finding.rule)} {_text(finding.name)}: {_text(finding.message)}{why}"


def _replay(replay: ReplaySummary) -> _Section:
    table = (
        _row("", *(_code(column.name) for column in replay.columns)),
        _row("---", *("--:" for _ in replay.columns)),
        *(_row(label, *map(_text, cells)) for label, cells in replay_rows(replay)),
    )
    notes = [f"- {_text(note)}" for note in replay.notes]
    return _Section(
        title=_text(replay_title(replay)),
        head=(f"**{_text(replay.verdict)}**", "") if replay.columns else (),
        rows=(*table, *([""] if notes else ()), *notes) if replay.columns else (_text(replay.problem),),
        folded=False,
    )


def _rules(review: Review) -> _Section:
    rules = {finding.rule: finding for finding in review.findings}
    return _Section(
        title="Reasons and sources of these rules",
        head=("| rule | reason | source |", "|---|---|---|"),
        rows=tuple(
            _row(_code(rule), _text(finding.reason), _text(finding.source)) for rule, finding in rules.items()
        ),
        noun="rule",
    )


def _pools(review: Review) -> _Section:
    pools = review.preview.pools
    return _Section(
        title=several(len(pools), "pool"),
        head=(
            "| pool | machine | accelerators | capacity | nodes | idle $/h | max $/h |",
            "|---|---|---|---|--:|--:|--:|",
        ),
        rows=tuple(
            _row(
                _code(pool.name),
                _machine(pool),
                _text(accelerator_words(pool)),
                pool.capacity,
                nodes_words(pool.nodes),
                _text(amount_words(pool.charge.idle)),
                _text(amount_words(pool.charge.maximum)),
            )
            for pool in pools
        ),
        noun="pool",
    )


def _machine(pool: PoolReport) -> str:
    if pool.vcpus is None or pool.memory_gib is None:
        return _text(pool.machine)
    return _text(f"{pool.machine} ({pool.vcpus} vCPU, {pool.memory_gib:g} GiB)")


def _queues(review: Review) -> _Section:
    queues = review.preview.queues
    return _Section(
        title=several(len(queues), "queue"),
        head=(
            "| queue | pool | guarantee | at most | weight | $ per GPU-hour |",
            "|---|---|--:|--:|--:|--:|",
        ),
        rows=tuple(
            _row(
                _code(row.names),
                _code(row.flavor),
                *map(_text, (row.guarantee, row.most, row.weight, row.gpu_hour)),
            )
            for row in queue_rows(queues)
        ),
        noun="row",
    )


def _quotas(review: Review) -> _Section:
    rows = quota_rows(review)
    compared = review.difference is not None
    head = ("region", "quota", *(("before",) if compared else ()), "needed", "pools")
    return _Section(
        title=f"Cloud quotas at the maximum: {several(len(rows), 'quota')}",
        head=(_row(*head), _row("---", "---", *(("--:",) if compared else ()), "--:", "---")),
        rows=tuple(
            _row(
                _text(row.region),
                _code(row.name),
                *((str(row.before),) if compared else ()),
                f"**{row.amount}**" if row.before not in (None, row.amount) else str(row.amount),
                ", ".join(map(_text, row.pools[:_PATHS])) + (" …" if len(row.pools) > _PATHS else ""),
            )
            for row in rows
        ),
        noun="quota",
    )


def _picture(review: Review) -> _Section:
    preview = review.preview
    if not 0 < len(preview.pools) <= _PICTURED:
        return _Section(rows=())
    return _Section(
        title="Topology",
        rows=("```mermaid", *flowchart(preview), "```"),
        noun="line",
        folded=len(preview.pools) > _OPEN,
        whole=True,
    )


_OPEN: Final = 12
"""Maximum number of pools in a diagram that is not folded."""


def _warnings(review: Review) -> _Section:
    warnings = review.preview.warnings
    return _Section(
        title=several(len(warnings), "message"),
        rows=tuple(f"- {message.severity}: {_text(message.text)}" for message in warnings),
        noun="message",
        folded=all(message.severity != "error" for message in warnings),
    )


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _line(text: str) -> str:
    return " ".join(text.split())


def _clip(text: str, length: int) -> str:
    """Shorten text to one line of a maximum length."""
    text = _line(text)
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _text(text: str) -> str:
    """Escape text. Code in backticks is unchanged; a comment after `@` and after the first colon of `:x:`
    prevents notifications and emoji."""
    parts = re.split(r"`([^`]+)`", _clip(text, _LONGEST))
    pairs = zip(parts[::2], chain(parts[1::2], [""]), strict=True)
    return "".join(f"{_plain(text)}{_code(code) if code else ''}" for text, code in pairs)


def _plain(text: str) -> str:
    escaped = _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", text)
    return _REWRITTEN.sub(r"\g<0><!-- -->", escaped)


def _code(text: str) -> str:
    """Format a name as code."""
    text = _clip(text, _LONGEST_NAME)
    if _SIMPLE.fullmatch(text):
        return f"`{text}`"
    return f"<code>{''.join(_entities(text))}</code>" if text else ""


def _entities(text: str) -> Iterator[str]:
    for letter in text:
        yield letter if letter.isalnum() or letter in " ./:-" else f"&#{ord(letter)};"


_PLAIN = re.compile(r"[^\w ./:,+=()-]")


def flowchart(preview: Preview) -> Iterator[str]:
    """Yield the lines of a flowchart: queues and other work, their pools, and fallbacks."""
    yield "flowchart LR"
    for number, entry in enumerate(entries(preview.pools)):
        label = _label(entry.label)
        yield f'  w{number}["{label}"]' if entry.is_queue else f'  w{number}(["{label}"])'
        for pool in entry.pools:
            yield f"  w{number} --> p{pool}"
    by_cluster: dict[str, list[tuple[int, PoolReport]]] = {}
    for number, pool in enumerate(preview.pools):
        by_cluster.setdefault(pool.cluster, []).append((number, pool))
    for number, (cluster, pools) in enumerate(by_cluster.items()):
        yield f'  subgraph c{number}["{_label(cluster)}"]'
        for index, pool in pools:
            yield f'    p{index}["{_pool(pool)}"]'
        yield "  end"
    for pool, fallback in fallbacks(preview.pools):
        yield f"  p{pool} -. no stock .-> p{fallback}"


def _pool(pool: PoolReport) -> str:
    nodes = f"{nodes_words(pool.nodes)} {'node' if pool.nodes.fixed == 1 else 'nodes'}, {pool.capacity}"
    lines = (pool.name, pool.machine, accelerator_words(pool), nodes)
    return "<br/>".join(_label(line) for line in lines if line)


def _label(text: str) -> str:
    """Escape a label with Mermaid's character codes, such as `#34;`."""
    return _PLAIN.sub(lambda match: f"#{ord(match[0])};", text) or " "
