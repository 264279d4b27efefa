"""Terminal rendering of a review's document, the decisive facts first, in 80 columns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ebbtide.analysis.preview.fitted_table import Indented, print_blocks
from ebbtide.analysis.preview.preview_document import AmountReport, CostReport, FindingReport
from ebbtide.analysis.preview.words import amount_words, cost_notes, quotas_words, type_words
from ebbtide.analysis.review.review_document import (
    ChangeReport,
    DifferenceReport,
    FailedReview,
    ReplaySummary,
    Review,
)
from ebbtide.analysis.review.summary import (
    action_counts,
    quota_rows,
    replay_rows,
    replay_title,
    shortened,
    value_text,
)
from ebbtide.text import several

_HEADING: Final = "bold"
_QUIET: Final = "dim"
_LONGEST: Final = 40
"""Maximum length of a value; longer ones are shortened. The JSON document has them whole."""
_VERDICTS: Final[Mapping[str, tuple[str, str]]] = {
    "pass": ("PASS", "bold green"),
    "warn": ("WARN", "bold yellow"),
    "fail": ("FAIL", "bold red"),
}
_ACTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "adopt": ("=", "green"),
    "create": ("+", "green"),
    "update": ("~", "yellow"),
    "replace": ("±", "bold red"),
    "delete": ("-", "red"),
}
_SHOWN_FIELDS: Final = 4
"""Maximum number of fields that are shown of a change; the rest are counted."""


def render(review: Review | FailedReview, console: Console) -> None:
    """Print a review.

    Args:
        review: the document.
        console: the output; its width and colours are respected.
    """
    blocks = _errors(review) if isinstance(review, FailedReview) else _blocks(review)
    print_blocks(blocks, console)


def _errors(review: FailedReview) -> list[RenderableType]:
    word, style = _VERDICTS[review.verdict]
    title = Text.assemble((word, style), f" {review.stack}: {several(len(review.errors), 'error')}")
    blocks = (
        Group(
            *([Text(error.heading, style=_HEADING)] if error.heading else []),
            *(Indented(Text(text), "  ", "  ") for text in (error.message, error.suggestion) if text),
        )
        for error in review.errors
    )
    return [title, *blocks]


def _blocks(review: Review) -> list[RenderableType]:
    difference = review.difference
    return [
        _title(review),
        *(_sentences("The update would fail", difference.refusals, "red") if difference else ()),
        *_findings(review.findings),
        *_messages(review),
        _money(review),
        *(_replay(review.replay) if review.replay else ()),
        *_quotas(review),
        *(_changes(difference) if difference else ()),
        *(_sentences("Consequences", difference.consequences, "yellow") if difference else ()),
    ]


def _title(review: Review) -> RenderableType:
    word, style = _VERDICTS[review.verdict]
    against = f" against {review.difference.against}" if review.difference else ""
    name = f"{review.preview.project}/{review.preview.stack}"
    return Indented(Text.assemble((word, style), f" {name}{against}: ", _summary(review)), "", "  ")


def _summary(review: Review) -> str:
    parts: list[str] = []
    if review.difference is None:
        parts.append(f"{several(review.preview.counts.created, 'resource')} to create")
    else:
        parts.append(action_counts(review.difference))
    for level in ("mandatory", "advisory"):
        number = sum(finding.level == level and not finding.exception for finding in review.findings)
        if number:
            parts.append(f"{number} {level} {'finding' if number == 1 else 'findings'}")
    return ", ".join(parts)


def _sentences(title: str, sentences: Sequence[str], style: str) -> Iterator[RenderableType]:
    if sentences:
        yield Group(
            Text(title, style=f"bold {style}"),
            *(Indented(Text(sentence), "- ", "  ") for sentence in sentences),
        )


def _findings(findings: Sequence[FindingReport]) -> Iterator[RenderableType]:
    if not findings:
        return
    lines: list[RenderableType] = [Text("Policy", style=_HEADING)]
    for finding in findings:
        style = "dim" if finding.exception else "red" if finding.level == "mandatory" else "yellow"
        level = "exception" if finding.exception else finding.level
        about = f"{finding.name}: " if finding.name else ""
        text = Text.assemble(
            (f"{level} ", style), f"{about}{finding.message} ", (f"[{finding.rule}]", _QUIET)
        )
        if finding.exception:
            text.append(f" Allowed: {finding.exception}", style=_QUIET)
        lines.append(Indented(text, "- ", "  "))
    yield Group(*lines)


def _messages(review: Review) -> Iterator[RenderableType]:
    """Yield the errors and warnings of the program."""
    messages = sorted(review.preview.warnings, key=lambda message: message.severity != "error")
    if messages:
        lines = [
            Indented(Text.assemble((f"{message.severity}: ", "yellow"), message.text), "- ", "  ")
            for message in messages
        ]
        yield Group(Text("Warnings", style=_HEADING), *lines)


def _money(review: Review) -> RenderableType:
    before = review.difference.cost_before if review.difference else None
    after = review.preview.cost
    shown = (("idle", "idle"), ("maximum", "at most"), ("on_demand", "on demand"))
    hourly, monthly = (
        ", ".join(f"{_changed_amount(before, after, name, monthly=by)} {words}" for name, words in shown)
        for by in (False, True)
    )
    dates = f" (list prices of {after.prices_from} to {after.prices_to})" if after.prices_from else ""
    lines = [
        Text.assemble(("Cost $/h ", _HEADING), hourly, dates),
        Text.assemble(("Cost $/month ", _HEADING), monthly),
    ]
    notes = cost_notes(review.preview)
    lines += [Text.assemble((f"{title}: ", "yellow"), ", ".join(items)) for title, items in notes]
    return Group(*(Indented(line, "", "  ") for line in lines))


def _replay(replay: ReplaySummary) -> Iterator[RenderableType]:
    """Yield the result of a replay, with the figures of each version."""
    lines: list[RenderableType] = [Text(replay_title(replay), style=_HEADING)]
    lines.append(Indented(Text(replay.problem or replay.verdict), "  ", "  "))
    if replay.columns:
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=_QUIET)
        table.add_column("")
        for column in replay.columns:
            table.add_column(column.name, justify="right", overflow="fold")
        for label, cells in replay_rows(replay):
            table.add_row(label, *cells)
        lines.append(Padding(table, (0, 0, 0, 2)))
    lines += [Indented(Text(note), "- ", "  ") for note in replay.notes]
    yield Group(*lines)


def _changed_amount(before: CostReport | None, after: CostReport, name: str, *, monthly: bool) -> str:
    new: AmountReport = getattr(after, name)
    old: AmountReport | None = getattr(before, name) if before else None
    if old is None or old == new:
        return amount_words(new, monthly=monthly)
    change = new.amount.change_from(old.amount, monthly=monthly).replace("$", "")
    return " -> ".join(amount_words(amount, monthly=monthly) for amount in (old, new)) + (
        f" ({change})" if change else ""
    )


def _quotas(review: Review) -> Iterator[RenderableType]:
    """Yield the needed quotas by region, each with its earlier amount if that differs."""
    rows = [
        (
            row.region,
            row.name,
            row.amount if row.before in (None, row.amount) else f"{row.before} -> {row.amount}",
        )
        for row in quota_rows(review)
    ]
    if rows:
        yield Indented(Text.assemble(("Quotas ", _HEADING), quotas_words(rows)), "", "  ")


def _changes(difference: DifferenceReport) -> Iterator[RenderableType]:
    """Yield the changes: pools, replacements and deletions first; created resources without their fields."""
    if not difference.changes:
        return
    order = ("replace", "delete", "update", "adopt", "create")
    changes = sorted(difference.changes, key=lambda change: (order.index(change.action), not change.pool))
    lines: list[RenderableType] = [Text("Changes", style=_HEADING)]
    for action in order:
        matching = [change for change in changes if change.action == action]
        for change in matching:
            lines.extend(() if _is_repeated(change) else _change(change))
        lines.extend(_repeated(matching))
    yield Group(*lines)


def _is_repeated(change: ChangeReport) -> bool:
    """Return whether a change follows from another or has no fields, so that its type needs only one line."""
    return not change.pool and all(item.path == "provider" for item in change.fields)


def _repeated(changes: Iterable[ChangeReport]) -> Iterator[RenderableType]:
    """Yield a line with the names for each type of the repeated changes."""
    types: dict[str, list[ChangeReport]] = {}
    for change in changes:
        if _is_repeated(change):
            types.setdefault(change.type, []).append(change)
    for type_, group in types.items():
        sign, style = _ACTIONS[group[0].action]
        names = group[0].name if len(group) == 1 else f"{len(group)} x, {group[0].name} and others"
        yield Indented(
            Text.assemble((f"{sign} ", style), type_words(type_), (f"  {names}", _QUIET)), "", "    "
        )


def _change(change: ChangeReport) -> Iterator[RenderableType]:
    sign, style = _ACTIONS[change.action]
    name = f"pool {change.pool}" if change.pool else change.name
    yield Indented(
        Text.assemble((f"{sign} ", style), (name, _HEADING), (f"  {type_words(change.type)}", _QUIET)),
        "",
        "    ",
    )
    fields = sorted(change.fields, key=lambda item: not item.replaces)
    for item in fields[:_SHOWN_FIELDS]:
        old, new = shortened(value_text(item.old), value_text(item.new), _LONGEST)
        text = Text(f"{item.path}: {'changed' if old == new else f'{old} -> {new}'}")
        if item.replaces:
            text.append("  forces replacement", style="red")
        yield Indented(text, "    ", "      ")
    if len(fields) > _SHOWN_FIELDS:
        more = several(len(fields) - _SHOWN_FIELDS, "field")
        yield Indented(Text(f"{more} more", style=_QUIET), "    ", "      ")
