"""Tree of a preview's resources, with their inputs on request."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from ebbtide.analysis.preview.indented import Indented
from ebbtide.analysis.preview.report import Preview, ResourceReport
from ebbtide.analysis.preview.words import annotations, name_below, type_words
from ebbtide.analysis.recording.recording import urn_name

_HEADING: Final = "bold"
_QUIET: Final = "dim"
_LONGEST: Final = 100
"""Maximum length of a value; longer ones are shortened. The JSON document has them whole."""


def resource_tree(preview: Preview, *, values: bool) -> Iterator[RenderableType]:
    """Yield the tree of all resources. Names omit the parent's prefix, symbols mark `deleted_with`.

    Args:
        preview: the document.
        values: True to show the inputs below each resource.
    """
    if not preview.resources:
        return
    symbols = _symbols(preview.resources)
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


def _inputs(inputs: Mapping[str, Any]) -> Iterator[str]:
    """Yield one input per line, as JSON."""
    for name, value in inputs.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield f"{name}: {text if len(text) <= _LONGEST else text[: _LONGEST - 1] + '…'}"


def _symbols(resources: Sequence[ResourceReport]) -> dict[str, str]:
    """Assign a symbol to each resource that is the `deleted_with` of others, in order."""
    targets = dict.fromkeys(resource.deleted_with for resource in resources if resource.deleted_with)
    return {urn: "†" * number for number, urn in enumerate(targets, 1)}


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
