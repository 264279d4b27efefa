"""The preview as text for a terminal, from the document alone.

Wide or narrow, coloured or plain: everything is there at 80 columns too. Long lines are broken at spaces and
indented below their beginning.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text
from rich.tree import Tree

from ebbtide.preview.report import Counts, MessageReport, PoolReport, Preview, ResourceReport
from ebbtide.preview.words import (
    accelerator_words,
    capacity_words,
    marks,
    name_below,
    nodes_words,
    overrides_words,
    type_words,
    urn_name,
)
from ebbtide.recording.marks import assumed_spans
from ebbtide.recording.values import SECRET_TEXT, UNKNOWN_TEXT

_HEADING: Final = "bold"
_QUIET: Final = "dim"
_GAP: Final = 2
_BELOW: Final = " " * 4
_SEVERITY_STYLES: Final[Mapping[str, str]] = {"warning": "yellow", "error": "bold red", "info": _QUIET}


class Indented:
    """Text with something before its first line and something before all others, and nothing after any."""

    def __init__(self, text: Text, first: str = "", rest: str = "") -> None:
        self._text, self._first, self._rest = text, first, rest

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The lines, as long as the width allows."""
        room = max(options.max_width - len(self._rest), 20)
        for number, line in enumerate(self._text.wrap(console, room)):
            line.rstrip()
            yield Text.assemble(self._rest if number else self._first, line)


def render(preview: Preview, console: Console) -> None:
    """Print a preview.

    Args:
        preview: the document.
        console: where to; its width and colours are respected.
    """
    blocks = [
        _title(preview),
        *_pools(preview.pools, console.width),
        *_resources(preview),
        *_outputs(preview.outputs),
        *_messages("Messages", preview.messages),
        *_messages("Warnings", preview.warnings),
        _summary(preview),
    ]
    for number, block in enumerate(blocks):
        if number:
            console.print()
        console.print(block)


def _title(preview: Preview) -> RenderableType:
    title = Text.assemble((f"{preview.project}/{preview.stack}", _HEADING), ": an offline preview")
    clusters = dict.fromkeys((pool.cluster, pool.cloud.upper(), pool.location) for pool in preview.pools)
    lines: list[RenderableType] = [title]
    for cluster, cloud, location in clusters:
        lines.append(Text(f"Cluster {cluster} on {cloud}" + (f" in {location}" if location else "")))
        made = [one for one in preview.clusters if one.name == cluster]
        details = [text for one in made for text in (*one.settings, overrides_words(one.overrides)) if text]
        lines += [Indented(Text(detail), _BELOW, _BELOW) for detail in details]
    return Group(*lines)


def _pools(pools: Sequence[PoolReport], width: int) -> Iterator[RenderableType]:
    """A row a pool, and below each row what may run there: sentences, which no column is wide enough for."""
    if not pools:
        return
    columns: dict[str, list[str]] = {
        "POOL": [pool.name for pool in pools],
        "MACHINE": [pool.machine for pool in pools],
        "ACCELERATOR": [accelerator_words(pool) or "-" for pool in pools],
        "CAPACITY": [capacity_words(pool) for pool in pools],
        "NODES": [nodes_words(pool.nodes) for pool in pools],
    }
    widths = {title: max(len(title), *map(len, cells)) for title, cells in columns.items()}
    moved: list[str] = []
    for title in ("CAPACITY", "ACCELERATOR", "MACHINE"):
        if sum(widths.values()) + _GAP * (len(widths) - 1) > width:
            moved.append(title)
            del widths[title]
    lines: list[RenderableType] = [Text(_row(widths, {title: title for title in widths}), style=_HEADING)]
    for number, pool in enumerate(pools):
        row = Text(_row(widths, {title: cells[number] for title, cells in columns.items()}))
        row.stylize("bold cyan" if pool.role == "system" else "bold", 0, len(pool.name))
        lines.append(row)
        details = [f"{title.lower()} {columns[title][number]}" for title in reversed(moved)]
        details += [f"zones {', '.join(pool.zones)}"] if pool.zones else []
        details += [pool.local_disks] if pool.local_disks else []
        details += pool.settings
        details += [f"queues {', '.join(pool.queues)}"] if pool.queues else []
        details += [f"falls back to {', '.join(pool.falls_back_to)}"] if pool.falls_back_to else []
        details += [f"network tags {', '.join(pool.network_tags)}"] if pool.network_tags else []
        details += [overrides] if (overrides := overrides_words(pool.overrides)) else []
        if details:
            lines.append(Indented(Text("; ".join(details)), _BELOW, _BELOW))
        lines.append(Indented(Text.assemble(("runs ", _QUIET), pool.admits), _BELOW, _BELOW))
    yield Group(Text("Pools", style=_HEADING), *lines)


def _row(widths: Mapping[str, int], cells: Mapping[str, str]) -> str:
    return (" " * _GAP).join(cells[title].ljust(width) for title, width in widths.items()).rstrip()


def _resources(preview: Preview) -> Iterator[RenderableType]:
    """All of them, none folded: names go on from their parent's, and signs stand for what they die with."""
    if not preview.resources:
        return
    signs = _signs(preview.resources)
    tree = Tree(Text("Resources", style=_HEADING), guide_style=_QUIET)
    branches: dict[str | None, Tree] = {None: tree}
    for resource in preview.resources:
        label = Indented(_label(resource, signs), "", "  ")
        branches[resource.urn] = branches.get(resource.parent, tree).add(label)
    legend = [
        Indented(Text(f"dies with {urn_name(urn)}, and needs no deletion of its own"), f"{sign} ", "  ")
        for urn, sign in signs.items()
    ]
    yield Group(tree, *legend)


def _signs(resources: Sequence[ResourceReport]) -> dict[str, str]:
    """A sign for each resource that others die with, in order."""
    targets = dict.fromkeys(resource.deleted_with for resource in resources if resource.deleted_with)
    return {urn: "†" * number for number, urn in enumerate(targets, 1)}


def _label(resource: ResourceReport, signs: Mapping[str, str]) -> Text:
    parent = urn_name(resource.parent) if resource.parent else None
    style = "bold" if resource.kind == "component" else ""
    label = Text.assemble(
        (name_below(resource.name, parent), style), "  ", (type_words(resource.type), _QUIET)
    )
    if resource.deleted_with and resource.kind != "component":
        label.append(f" {signs[resource.deleted_with]}", style="yellow")
    for text, mark_style in marks(resource):
        label.append(", ", style=_QUIET)
        label.append(text, style=mark_style)
    return label


def _outputs(outputs: Mapping[str, Any]) -> Iterator[RenderableType]:
    if not outputs:
        return
    width = max(map(len, outputs)) + _GAP
    lines = [Indented(_value(value), name.ljust(width), " " * width) for name, value in outputs.items()]
    yield Group(Text("Outputs", style=_HEADING), *lines)


def _value(value: Any) -> Text:
    """An output in a line; objects and lists are counted, since the JSON document has them whole."""
    if isinstance(value, dict):
        return Text(f"an object: {', '.join(map(str, value))}", style=_QUIET)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, list):
        return Text(f"a list of {len(value)}", style=_QUIET)  # pyright: ignore[reportUnknownArgumentType]
    if value in (SECRET_TEXT, UNKNOWN_TEXT):
        return Text(str(value), style="magenta" if value == SECRET_TEXT else _QUIET)
    text = Text(str(value))
    for start, end in assumed_spans(str(value)):
        text.stylize("italic", start, end)
    if assumed_spans(str(value)):
        text.append(" (assumed)", style="dim italic")
    return text


def _messages(title: str, messages: Sequence[MessageReport]) -> Iterator[RenderableType]:
    if not messages:
        return
    lines: list[RenderableType] = [Text(title, style=_HEADING)]
    for message in messages:
        about = f" ({urn_name(message.urn)})" if message.urn else ""
        style = _SEVERITY_STYLES[message.severity]
        head = [] if message.severity == "info" else [(f"{message.severity}: ", style)]
        lines.append(Indented(Text.assemble(*head, message.text, (about, _QUIET)), "- ", "  "))
    yield Group(*lines)


def _summary(preview: Preview) -> RenderableType:
    lines = [Indented(Text(_counted(preview.counts), style=_HEADING))]
    if preview.assumptions:
        lines.append(Indented(Text(_ASSUMED, style=_QUIET)))
    return Group(*lines)


_ASSUMED: Final = (
    "No cloud was asked. What is called assumed stands for a cloud's answer; ids that a cloud makes of names "
    "by a rule are taken for granted. `--format json` has every one."
)


def _counted(counts: Counts) -> str:
    parts = [f"{counts.created} to create"]
    for number, words in (
        (counts.protected, "protected"),
        (counts.dying, "dying with another"),
        (counts.retained, "staying when deleted"),
        (counts.read, "there already"),
        (counts.components, "component" if counts.components == 1 else "components"),
        (counts.opaque, "of them opaque"),
        (counts.providers, "provider" if counts.providers == 1 else "providers"),
    ):
        if number:
            parts.append(f"{number} {words}")
    return f"{counts.resources} resources: {', '.join(parts)}."
