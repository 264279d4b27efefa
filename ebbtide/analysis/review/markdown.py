"""Markdown rendering of a review, for a comment on a pull request."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ebbtide.analysis.markdown import Section, clipped, code_span, escaped, one_line, rendered, table_row
from ebbtide.analysis.preview.preview_document import CostReport, PoolReport, Preview
from ebbtide.analysis.preview.words import (
    accelerator_words,
    amount_words,
    cost_notes,
    never_zero,
    nodes_words,
    price_dates,
    queue_rows,
    type_words,
)
from ebbtide.analysis.review.review_document import (
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

_SIGNS: Final = {"pass": "✅", "warn": "⚠️", "fail": "❌"}
_PICTURED: Final = 40
"""Maximum number of pools in a diagram; GitHub renders no flowchart of more than 50,000 characters."""
_LONGEST_VALUE: Final = 60
_WHOLE: Final = "`ebbtide review --format html` has everything."
_SHOWN: Final = 10
_PATHS: Final = 3
_OPEN: Final = 12
"""Maximum number of pools in a diagram that is not folded."""
_PLAIN = re.compile(r"[^\w ./:,+=()-]")


def render(review: Review | FailedReview) -> str:
    """Render a review as Markdown of at most `LIMIT` characters."""
    if isinstance(review, FailedReview):
        errors = _errors(review)
        return rendered([errors], [errors], _WHOLE)
    changes, findings = _changes(review), _findings(review)
    pools, queues, quotas = _pools(review), _queues(review), _quotas(review)
    fields, rules, warnings, picture = _fields(review), _rules(review), _warnings(review), _picture(review)
    replay = _replay(review.replay) if review.replay else Section(rows=())
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
    return rendered(shown, expendable, _WHOLE)


def _errors(review: FailedReview) -> Section:
    title = f"Review of {review.stack}: {review.verdict}, {several(len(review.errors), 'error')}"
    return Section(
        head=(f"### {_SIGNS[review.verdict]} {escaped(title)}", ""),
        rows=tuple(
            "- "
            + (f"{code_span(error.heading)}: " if error.heading else "")
            + " ".join(escaped(text) for text in (error.message, error.suggestion) if text)
            for error in review.errors
        ),
        noun="error",
        folded=False,
    )


def _head(review: Review) -> Section:
    preview, difference = review.preview, review.difference
    cost = preview.cost
    before = difference.cost_before if difference else None
    title = escaped(f"Review of {preview.project}/{preview.stack}: {review.verdict}")
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
        lines += ["", f"{escaped(where)}; {finding_counts(review.findings)}; an offline preview."]
    for title, items in cost_notes(preview):
        lines += ["", f"**{title}:** {', '.join(map(escaped, items[:_SHOWN]))}{_more(items)}"]
    if held := never_zero(preview):
        lines += ["", f"**Always with nodes:** {', '.join(map(escaped, held[:_SHOWN]))}{_more(held)}"]
    return Section(rows=("\n".join(lines),), folded=False)


def _more(items: Sequence[str]) -> str:
    return f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""


def _was(before: CostReport | None, after: CostReport, name: str, *, monthly: bool = False) -> str:
    """Format the earlier amount and the change: ` (was $1.00, +$0.20)`."""
    if before is None:
        return ""
    old, new = (getattr(cost, name).amount for cost in (before, after))
    change = new.change_from(old, monthly=monthly)
    return f" (was {old.words(monthly=monthly)}, {change})" if change else " (unchanged)"


def _changes(review: Review) -> Section:
    difference = review.difference
    if difference is None:
        return Section(rows=())
    changes = sorted(difference.changes, key=lambda change: ACTIONS.index(change.action))
    risky, others = (
        [change for change in changes if (change.action in ("replace", "delete")) is risk]
        for risk in (True, False)
    )
    return Section(
        title=f"Changes against {code_span(difference.against)}: {action_counts(difference)}",
        rows=(
            *(f"- ❌ {escaped(text)}" for text in difference.refusals),
            *(f"- **{escaped(text)}**" for text in difference.consequences),
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
    named = ", ".join(map(code_span, paths[:_PATHS])) + (" …" if len(paths) > _PATHS else "")
    why = f", forced by {named}" if forcing else f": {named}" if paths else ""
    name = f"pool {code_span(change.pool)}" if change.pool else f"{code_span(change.name)}"
    return f"- {change.action} {name} ({escaped(type_words(change.type))}){why}"


def _fields(review: Review) -> Section:
    changes = review.difference.changes if review.difference else ()
    return Section(
        title="Changed fields, before and after",
        head=("| resource | field | before | after | |", "|---|---|---|---|---|"),
        rows=tuple(_field(change, field) for change in changes for field in change.fields),
        noun="field",
    )


def _field(change: ChangeReport, field: FieldChangeReport) -> str:
    effect = "forces replacement" if field.replaces else ""
    before, after = changed_lines(field.old, field.new)
    if before and after:
        before[0], after[0] = shortened(one_line(before[0]), one_line(after[0]), _LONGEST_VALUE)
    old = _lines(before) if field.old is not None else "not set"
    new = _lines(after) if field.new is not None else "not set"
    return table_row(code_span(change.name), code_span(field.path), old, new, effect)


def _lines(lines: Sequence[str]) -> str:
    """Format the first of the changed lines, and the number of the others."""
    if not lines:
        return ""
    rest = f" and {several(len(lines) - 1, 'line')}" if len(lines) > 1 else ""
    return f"{code_span(clipped(lines[0], _LONGEST_VALUE))}{rest}"


def _findings(review: Review) -> Section:
    return Section(
        title=f"Policy: {finding_counts(review.findings)}",
        rows=tuple(map(_finding, review.findings)),
        noun="finding",
        folded=False,
    )


def _finding(finding: FindingReport) -> str:
    level = f"~~{finding.level}~~" if finding.exception else f"**{finding.level}**"
    why = f" _Exception: {escaped(finding.exception)}_" if finding.exception else ""
    return f"- {level} {code_span(finding.rule)} {escaped(finding.name)}: {escaped(finding.message)}{why}"


def _replay(replay: ReplaySummary) -> Section:
    table = (
        table_row("", *(code_span(column.name) for column in replay.columns)),
        table_row("---", *("--:" for _ in replay.columns)),
        *(table_row(label, *map(escaped, cells)) for label, cells in replay_rows(replay)),
    )
    notes = [f"- {escaped(note)}" for note in replay.notes]
    return Section(
        title=escaped(replay_title(replay)),
        head=(f"**{escaped(replay.verdict)}**", "") if replay.columns else (),
        rows=(*table, *([""] if notes else ()), *notes) if replay.columns else (escaped(replay.problem),),
        folded=False,
    )


def _rules(review: Review) -> Section:
    rules = {finding.rule: finding for finding in review.findings}
    return Section(
        title="Reasons and sources of these rules",
        head=("| rule | reason | source |", "|---|---|---|"),
        rows=tuple(
            table_row(code_span(rule), escaped(finding.reason), escaped(finding.source))
            for rule, finding in rules.items()
        ),
        noun="rule",
    )


def _pools(review: Review) -> Section:
    pools = review.preview.pools
    return Section(
        title=several(len(pools), "pool"),
        head=(
            "| pool | machine | accelerators | capacity | nodes | idle $/h | max $/h | max $/month |",
            "|---|---|---|---|--:|--:|--:|--:|",
        ),
        rows=tuple(
            table_row(
                code_span(pool.name),
                _machine(pool),
                escaped(accelerator_words(pool)),
                pool.capacity,
                nodes_words(pool.nodes),
                escaped(amount_words(pool.charge.idle)),
                escaped(amount_words(pool.charge.maximum)),
                escaped(amount_words(pool.charge.maximum, monthly=True)),
            )
            for pool in pools
        ),
        noun="pool",
    )


def _machine(pool: PoolReport) -> str:
    if pool.vcpus is None or pool.memory_gib is None:
        return escaped(pool.machine)
    return escaped(f"{pool.machine} ({pool.vcpus} vCPU, {pool.memory_gib:g} GiB)")


def _queues(review: Review) -> Section:
    queues = review.preview.queues
    return Section(
        title=several(len(queues), "queue"),
        head=(
            "| queue | pool | guarantee | at most | weight | $ per GPU-hour |",
            "|---|---|--:|--:|--:|--:|",
        ),
        rows=tuple(
            table_row(
                code_span(row.names),
                code_span(row.pool),
                *map(escaped, (row.guarantee, row.most, row.weight, row.gpu_hour)),
            )
            for row in queue_rows(queues)
        ),
        noun="row",
    )


def _quotas(review: Review) -> Section:
    rows = quota_rows(review)
    compared = review.difference is not None
    head = ("region", "quota", *(("before",) if compared else ()), "needed", "pools")
    return Section(
        title=f"Cloud quotas at the maximum: {several(len(rows), 'quota')}",
        head=(table_row(*head), table_row("---", "---", *(("--:",) if compared else ()), "--:", "---")),
        rows=tuple(
            table_row(
                escaped(row.region),
                code_span(row.name),
                *((str(row.before),) if compared else ()),
                f"**{row.amount}**" if row.before not in (None, row.amount) else str(row.amount),
                ", ".join(map(escaped, row.pools[:_PATHS])) + (" …" if len(row.pools) > _PATHS else ""),
            )
            for row in rows
        ),
        noun="quota",
    )


def _picture(review: Review) -> Section:
    preview = review.preview
    if not 0 < len(preview.pools) <= _PICTURED:
        return Section(rows=())
    return Section(
        title="Topology",
        rows=("```mermaid", *flowchart(preview), "```"),
        noun="line",
        folded=len(preview.pools) > _OPEN,
        whole=True,
    )


def _warnings(review: Review) -> Section:
    warnings = review.preview.warnings
    return Section(
        title=several(len(warnings), "message"),
        rows=tuple(f"- {message.severity}: {escaped(message.text)}" for message in warnings),
        noun="message",
        folded=all(message.severity != "error" for message in warnings),
    )


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
