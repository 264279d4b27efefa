"""Terminal rendering of a preview's document.

The overview of a common stack fits 80 columns and 24 lines. Nothing is cropped: long lines wrap at spaces,
with a hanging indent, and columns that do not fit move below their rows.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from rich.console import Console, Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from ebbtide.analysis.preview.fitted_table import BELOW, GAP, FittedTable, Indented, print_blocks
from ebbtide.analysis.preview.preview_document import (
    ChargeReport,
    Counts,
    FindingReport,
    PoolReport,
    Preview,
    QueueReport,
    ResourceReport,
)
from ebbtide.analysis.preview.words import (
    accelerator_words,
    amount_words,
    annotations,
    capacity_limit,
    cost_notes,
    name_below,
    never_zero,
    nodes_words,
    number_words,
    overrides_words,
    price_dates,
    queue_rows,
    quotas_words,
    type_words,
)
from ebbtide.analysis.recording.assumption_tables import assumed_spans
from ebbtide.analysis.recording.recording import Message, urn_name
from ebbtide.analysis.recording.values import SECRET_TEXT, UNKNOWN_TEXT
from ebbtide.text import several
from ebbtide.values.paths import child_path

_HEADING: Final = "bold"
_QUIET: Final = "dim"
_LONG: Final = 200
"""Maximum length of an output that is shown whole; longer ones, such as a compressed placement profile, are
shown in part."""
_SHOWN: Final = 24
_SEVERITY_STYLES: Final[Mapping[str, str]] = {"warning": "yellow", "error": "bold red", "info": _QUIET}
_NAMED: Final = 3
"""Maximum number of a rule's resources that the overview names; the rest are counted."""
_RULES: Final = 4
"""Maximum number of a level's rules that the overview names."""
_MORE: Final = "More: --tree, --values, --format json."
_ASSUMED: Final = (
    "No cloud was contacted. Values marked assumed replace a cloud's response; ids that a cloud derives from "
    "names are not marked. `--format json` lists all of them."
)
_LONGEST: Final = 100
"""Maximum length of a line; longer texts are shortened. The JSON document has them whole."""


def render(preview: Preview, console: Console, *, tree: bool = False, values: bool = False) -> None:
    """Print a preview.

    Args:
        preview: the document.
        console: the output; its width and colours are respected.
        tree: true for the tree of resources and all outputs.
        values: true for the tree with inputs, and for the taints of pools.
    """
    whole = tree or values
    blocks = [
        _title(preview),
        *_messages("Warnings", sorted(preview.warnings, key=lambda message: message.severity != "error")),
        *_findings(preview, whole=whole),
        *_pools(preview, console.width, admission=values),
        *_queues(preview.queues, console.width),
        *_totals(preview),
        *(_everything(preview, values=values) if whole else ()),
        _summary(preview) if whole else _end(preview),
    ]
    print_blocks(blocks, console)


def _findings(preview: Preview, *, whole: bool) -> Iterator[RenderableType]:
    """Yield the findings that fail the review; with `whole`, all findings with reasons and sources."""
    lines: list[RenderableType] = [Text("Policy", style=_HEADING)]
    for finding in preview.findings:
        if not (finding.is_refused or whole):
            continue
        level, style = _level(finding)
        text = f"{finding.rule}, {finding.name}: {finding.message}"
        lines.append(Indented(Text.assemble((f"{level}: ", style), text), "- ", "  "))
        if whole:
            because = finding.exception or f"{finding.reason} Source: {finding.source}."
            lines.append(Indented(Text(because, style=_QUIET), BELOW, BELOW))
    if len(lines) > 1:
        yield Group(*lines)


def _level(finding: FindingReport) -> tuple[str, str]:
    """Return the level of a finding for display, with its style."""
    if finding.exception:
        return "excepted", _QUIET
    return finding.level, _SEVERITY_STYLES["error" if finding.is_refused else "warning"]


def _other_findings(preview: Preview) -> Iterator[Text]:
    """Yield a line with the findings that do not fail the review, as rules with their resources."""
    rules: dict[tuple[str, str], list[str]] = {}
    for finding in preview.findings:
        if not finding.is_refused:
            rules.setdefault((_level(finding)[0], finding.rule), []).append(finding.name)
    levels: dict[str, list[str]] = {}
    for (level, rule), names in rules.items():
        shown = ", ".join(names) if len(names) <= _NAMED else f"{len(names)} resources"
        levels.setdefault(level, []).append(f"{rule} ({shown})")
    if levels:
        for own in levels.values():
            own[_RULES:] = [f"{len(own) - _RULES} more"] if len(own) > _RULES else []
        text = "; ".join(f"{level}: {', '.join(own)}" for level, own in levels.items())
        yield Text.assemble(("Policy ", _HEADING), text)


def _title(preview: Preview) -> RenderableType:
    clusters = dict.fromkeys((pool.cluster, pool.cloud.upper(), pool.location) for pool in preview.pools)
    places = [
        f"{cluster} on {cloud}" + (f" in {location}" if location else "")
        for cluster, cloud, location in clusters
    ]
    title = Text.assemble(
        (f"{preview.project}/{preview.stack}", _HEADING), ": ", "; ".join([*places, "an offline preview"])
    )
    details = [
        text
        for cluster in preview.clusters
        for text in (*cluster.settings, overrides_words(cluster.overrides))
        if text
    ]
    if preview.resource_overrides:
        details.append(overrides_words(preview.resource_overrides))
    if preview.extends:
        changes = ", ".join(preview.changes_to_base) or "nothing"
        details.append(f"extends {' and '.join(preview.extends)}; changes {changes}")
    return Group(Indented(title, "", "  "), *(Indented(Text(detail), BELOW, BELOW) for detail in details))


def _pools(preview: Preview, width: int, *, admission: bool) -> Iterator[RenderableType]:
    """Yield a row for each pool, with details below it."""
    pools = preview.pools
    if not pools:
        return
    table = FittedTable(
        {
            "POOL": [pool.name for pool in pools],
            "MACHINE": [pool.machine for pool in pools],
            "VCPU": [number_words(pool.vcpus) for pool in pools],
            "GIB": [number_words(pool.memory_gib) for pool in pools],
            "CAPACITY": [pool.capacity for pool in pools],
            "NODES": [nodes_words(pool.nodes) for pool in pools],
            "IDLE $/H": [amount_words(pool.charge.idle) for pool in pools],
            "MAX $/H": [amount_words(pool.charge.maximum) for pool in pools],
        },
        width,
        movable=("CAPACITY", "GIB", "VCPU", "MACHINE"),
    )
    lines: list[RenderableType] = [Text(table.head, style=_HEADING)]
    for number, pool in enumerate(pools):
        row = Text(table.row(number))
        row.stylize("bold cyan" if pool.role == "system" else "bold", 0, len(pool.name))
        lines.append(row)
        details = [*table.moved(number), *_details(pool)]
        if details:
            lines.append(Indented(Text("; ".join(details)), BELOW, BELOW))
        if admission:
            lines.append(Indented(Text.assemble(("runs ", _QUIET), pool.admits), BELOW, BELOW))
    yield Group(*lines)


def _details(pool: PoolReport) -> Iterator[str]:
    if accelerator := accelerator_words(pool):
        yield accelerator
    if limit := capacity_limit(pool):
        yield limit
    if pool.zones and pool.zones != (pool.location,):
        yield f"zones {', '.join(pool.zones)}"
    if pool.local_disks:
        yield pool.local_disks
    yield from pool.settings
    if pool.falls_back_to:
        yield f"falls back to {', '.join(pool.falls_back_to)}"
    if pool.network_tags:
        yield f"network tags {', '.join(pool.network_tags)}"
    if overrides := overrides_words(pool.overrides):
        yield overrides


def _queues(queues: Sequence[QueueReport], width: int) -> Iterator[RenderableType]:
    """Yield a row for each flavor of each queue, with its guarantee and borrowing limit."""
    rows = queue_rows(queues)
    if not rows:
        return
    table = FittedTable(
        {
            "QUEUE": [row.names for row in rows],
            "POOL": [row.pool for row in rows],
            "GUARANTEE": [row.guarantee for row in rows],
            "AT MOST": [row.most for row in rows],
            "WEIGHT": [row.weight for row in rows],
            "GPU $/H": [row.gpu_hour for row in rows],
        },
        width,
        movable=("WEIGHT", "GUARANTEE", "POOL"),
    )
    yield Group(*table.lines())


def _totals(preview: Preview) -> Iterator[RenderableType]:
    """Yield the cost, the pools that keep it above zero, and the quotas."""
    if not preview.pools:
        return
    cost = preview.cost
    amounts = (cost.idle, cost.maximum, cost.on_demand)
    idle, maximum, on_demand = map(amount_words, amounts)
    by_month = (amount_words(amount, monthly=True) for amount in amounts)
    words = ("idle", "at most", "on demand")
    monthly = ", ".join(f"{amount} {label}" for amount, label in zip(by_month, words, strict=True))
    charges = "; ".join(_charge(charge) for charge in cost.charges if not charge.pool)
    lines = [
        Text.assemble(
            (f"Cost {idle} $/h idle", _HEADING),
            f", {maximum} at most, {on_demand} on demand; $/month {monthly} "
            f"({price_dates(cost)}). {charges}".rstrip(),
        )
    ]
    notes = cost_notes(preview)
    lines += [Text.assemble((f"{title}: ", "yellow"), ", ".join(items)) for title, items in notes]
    if held := never_zero(preview):
        lines.append(Text.assemble(("Always with nodes: ", "yellow"), ", ".join(held)))
    if needs := quotas_words((item.region, item.name, item.amount) for item in preview.quotas):
        lines.append(Text.assemble(("Quotas ", _HEADING), needs))
    yield Group(*(Indented(line, "", "  ") for line in lines))


def _charge(charge: ChargeReport) -> str:
    idle, maximum = amount_words(charge.idle), amount_words(charge.maximum)
    note = f" ({charge.note})" if charge.note else ""
    return f"{charge.item} {idle if idle == maximum else f'{idle} to {maximum}'}{note}"


def _everything(preview: Preview, *, values: bool) -> Iterator[RenderableType]:
    """Yield all resources, outputs and messages."""
    yield from resource_tree(preview, values=values)
    if outputs := preview.outputs:
        width = max(map(len, outputs)) + GAP
        lines = [Indented(_value(value), name.ljust(width), " " * width) for name, value in outputs.items()]
        yield Group(Text("Outputs", style=_HEADING), *lines)
    yield from _messages("Messages", preview.messages)


def _value(value: Any) -> Text:
    """Render an output. Objects, lists and long texts are summarized; the JSON document has them whole."""
    if isinstance(value, dict):
        return Text(f"an object: {', '.join(map(str, value))}", style=_QUIET)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, list):
        return Text(f"a list of {len(value)}", style=_QUIET)  # pyright: ignore[reportUnknownArgumentType]
    if value in (SECRET_TEXT, UNKNOWN_TEXT):
        return Text(str(value), style="magenta" if value == SECRET_TEXT else _QUIET)
    if len(str(value)) > _LONG:
        return Text(f"a text of {len(str(value))} characters: {str(value)[:_SHOWN]}…", style=_QUIET)
    text = Text(str(value))
    for start, end in assumed_spans(str(value)):
        text.stylize("italic", start, end)
    if assumed_spans(str(value)):
        text.append(" (assumed)", style="dim italic")
    return text


def _messages(title: str, messages: Sequence[Message]) -> Iterator[RenderableType]:
    if not messages:
        return
    lines: list[RenderableType] = [Text(title, style=_HEADING)]
    for message in messages:
        about = f" ({urn_name(message.urn)})" if message.urn else ""
        style = _SEVERITY_STYLES[message.severity]
        head = [] if message.severity == "info" else [(f"{message.severity}: ", style)]
        lines.append(Indented(Text.assemble(*head, message.text, (about, _QUIET)), "- ", "  "))
    yield Group(*lines)


def _end(preview: Preview) -> RenderableType:
    """Return the last lines of the overview."""
    lines = list(_other_findings(preview))
    if preview.outputs:
        lines.append(Text.assemble(("Outputs ", _HEADING), ", ".join(preview.outputs)))
    counts = preview.counts
    kept = f", {counts.protected} protected" if counts.protected else ""
    adopted = f", {counts.adopted} to adopt" if counts.adopted else ""
    created = f"{several(counts.created, 'resource')} to create"
    lines.append(Text(f"{created}{adopted}{kept}. {_MORE}", style=_QUIET))
    return Group(*(Indented(line, "", "  ") for line in lines))


def _summary(preview: Preview) -> RenderableType:
    lines = [Indented(Text(_counted(preview.counts), style=_HEADING))]
    if preview.assumptions:
        lines.append(Indented(Text(_ASSUMED, style=_QUIET)))
    return Group(*lines)


def _counted(counts: Counts) -> str:
    parts = [f"{counts.created} to create"]
    for number, label in (
        (counts.adopted, "to adopt"),
        (counts.protected, "protected"),
        (counts.deleted_with, "deleted with another"),
        (counts.retained, "retained on delete"),
        (counts.read, "existing"),
        (counts.components, "component" if counts.components == 1 else "components"),
        (counts.opaque, "of them opaque"),
        (counts.providers, "provider" if counts.providers == 1 else "providers"),
    ):
        if number:
            parts.append(f"{number} {label}")
    return f"{counts.resources} resources: {', '.join(parts)}."


def resource_tree(preview: Preview, *, values: bool) -> Iterator[RenderableType]:
    """Yield the tree of all resources. Names omit the parent's prefix, symbols mark `deleted_with`.

    Args:
        preview: the document.
        values: True to show the inputs below each resource.
    """
    if not preview.resources:
        return
    targets = dict.fromkeys(item.deleted_with for item in preview.resources if item.deleted_with)
    symbols = {urn: "†" * number for number, urn in enumerate(targets, 1)}
    tree = Tree(Text("Resources", style=_HEADING), guide_style=_QUIET)
    branches: dict[str | None, Tree] = {None: tree}
    for resource in preview.resources:
        lines: list[RenderableType] = [Indented(_label(resource, symbols), "", "  ")]
        if values and resource.kind == "resource":
            lines += [Indented(Text(line, style=_QUIET), "  ", "    ") for line in _inputs(resource.inputs)]
        branches[resource.urn] = branches.get(resource.parent, tree).add(Group(*lines))
    legend = [
        Indented(Text(f"deleted with {urn_name(urn)}"), f"{symbol} ", "  ") for urn, symbol in symbols.items()
    ]
    yield Group(tree, *legend)


def _inputs(value: Any, path: str = "") -> Iterator[str]:
    """Yield one input per line, as JSON; objects and lists that are too long for a line, by their members."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict) and not (path and len(text) <= _LONGEST):
        for key, item in cast("dict[str, Any]", value).items():
            yield from _inputs(item, child_path(path, key))
    elif isinstance(value, list) and len(text) > _LONGEST:
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _inputs(item, child_path(path, index))
    else:
        yield f"{path}: {text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}"


def _label(resource: ResourceReport, symbols: Mapping[str, str]) -> Text:
    parent = urn_name(resource.parent) if resource.parent else None
    style = "bold" if resource.kind == "component" else ""
    label = Text.assemble(
        (name_below(resource.name, parent), style), "  ", (type_words(resource.type), _QUIET)
    )
    if resource.deleted_with and resource.kind != "component":
        label.append(f" {symbols[resource.deleted_with]}", style="yellow")
    for text, mark_style in annotations(resource):
        label.append(", ", style=_QUIET)
        label.append(text, style=mark_style)
    return label
