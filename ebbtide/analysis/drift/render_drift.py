"""Renderings of a stack's drift: for a terminal of 80 columns, and as Markdown for an issue."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ebbtide.analysis.drift.differences import undo
from ebbtide.analysis.drift.drift_document import Action, Drift, FieldDrift, ResourceDrift
from ebbtide.analysis.markdown import Section, code_span, escaped, rendered, table_row
from ebbtide.analysis.preview.fitted_table import Indented, print_blocks
from ebbtide.analysis.preview.words import type_words
from ebbtide.analysis.review.summary import shortened, value_text
from ebbtide.text import and_list, several

_LONGEST: Final = 40
"""Maximum length of a value; longer ones are shortened. The JSON document has them whole."""
_SHOWN: Final = 6
"""Maximum number of differences that are shown of a resource."""
_SIGNS: Final[dict[Action, tuple[str, str]]] = {
    "refuse": ("!", "bold red"),
    "replace": ("±", "bold red"),
    "delete": ("-", "red"),
    "create": ("+", "green"),
    "update": ("~", "yellow"),
    "none": ("=", "dim"),
}
_EFFECTS: Final[dict[Action, str]] = {
    "refuse": "an update fails",
    "replace": "an update replaces it",
    "delete": "an update deletes it",
    "create": "an update creates it again",
    "update": "an update sets it back in place",
    "none": "an update keeps it as it is",
}
_MAKERS: Final = {"autoscaler": "autoscalers", "cloud": "the cloud", "controller": "controllers"}
_ADVICE: Final = (
    "Until its state is refreshed, an update does not see these changes, and overwrites those of a resource "
    "that it changes. To keep one, declare it. To set {} back:"
)
_KEPT: Final = "A refresh takes these over, and no update sets them back: undo them first, or keep them"


def render(drift: Drift, console: Console, commands: Sequence[str]) -> None:
    """Print the drift of a stack.

    Args:
        console: the output; its width and colours are respected.
        commands: command lines that set a person's changes back.
    """
    print_blocks(_blocks(drift, commands), console)


def summary(drift: Drift) -> str:
    """Describe the drift in a sentence."""
    people = drift.of_person
    counts = [
        *([f"{several(len(people), 'resource')} changed by a person"] if people else []),
        *([f"{several(len(drift.unowned), 'resource')} in no state"] if drift.unowned else []),
    ]
    return f"{and_list(counts) if counts else 'no drift'}; {several(drift.read, 'resource')} read"


def _others(drift: Drift) -> str:
    """Count the differences that no person made, in a sentence; empty if there are none."""
    counts: Counter[str] = Counter(
        field.maker for item in drift.resources for field in item.fields if field.maker != "person"
    )
    listed = [f"{counts[maker]} of {words}" for maker, words in _MAKERS.items() if counts[maker]]
    return f"Differences that are not drift: {and_list(listed)}." if listed else ""


def _blocks(drift: Drift, commands: Sequence[str]) -> Iterator[RenderableType]:
    word, style = ("DRIFT", "bold yellow") if drift.is_found else ("PASS", "bold green")
    yield Indented(Text.assemble((word, style), f" {drift.stack}: {summary(drift)}."), "", "  ")
    if people := drift.of_person:
        yield Group(
            Text("Changed by a person", style="bold"), *(line for item in people for line in _of(item))
        )
    if drift.consequences:
        yield Group(
            Text("An update that sets them back", style="bold yellow"),
            *(Indented(Text(text), "- ", "  ") for text in drift.consequences),
        )
    if drift.unowned:
        yield Group(
            Text("In no state", style="bold"),
            *(
                Indented(Text.assemble((f"{item.kind} {item.name}", "bold"), f": {item.effect}"), "? ", "  ")
                for item in drift.unowned
            ),
        )
    notes = [*([others] if (others := _others(drift)) else []), *drift.unread]
    if notes:
        yield Group(*(Indented(Text(note), "", "  ") for note in notes))
    if kept := [line for item in drift.of_person for line in _kept(item)]:
        yield Group(Text(_KEPT, style="bold yellow"), *(Indented(Text(line), "- ", "  ") for line in kept))
    if drift.of_person:
        advice = _ADVICE.format("the others" if kept else "all of them")
        yield Group(Indented(Text(advice), "", ""), *(Text(f"  {command}") for command in commands))


def _kept(resource: ResourceDrift) -> Iterator[str]:
    """Yield a line for each difference that stays, with what undoes it."""
    for field in resource.kept:
        how = undo(resource.type, resource.id, field.path, field.state)
        yield f"{_name(resource)} {field.path}: {how}"


def _of(resource: ResourceDrift) -> Iterator[RenderableType]:
    sign, style = _SIGNS[resource.action]
    yield Indented(
        Text.assemble(
            (f"{sign} ", style),
            (_name(resource), "bold"),
            (f"  {type_words(resource.type)}", "dim"),
            f": {'deleted; ' if resource.deleted else ''}{_EFFECTS[resource.action]}",
        ),
        "",
        "    ",
    )
    fields = resource.of_person
    for field in fields[:_SHOWN]:
        old, new = _values(field)
        text = Text(f"{field.path}: {'changed' if old == new else f'{old} -> {new}'}")
        if field.replaces:
            text.append("  forces replacement", style="red")
        if field.source:
            text.append(f"  {field.source}", style="dim")
        yield Indented(text, "    ", "      ")
    if len(fields) > _SHOWN:
        yield Indented(Text(f"{several(len(fields) - _SHOWN, 'more difference')}", "dim"), "    ", "      ")


def _name(resource: ResourceDrift) -> str:
    return f"pool {resource.pool}" if resource.pool else resource.name


def _values(field: FieldDrift) -> tuple[str, str]:
    return shortened(value_text(field.state), value_text(field.cloud), _LONGEST)


def markdown(drift: Drift, commands: Sequence[str]) -> str:
    """Render the drift as GitHub Flavored Markdown; arguments as for `render`.

    The first line identifies the stack's issue, and the second has the fingerprint.
    """
    sign = "⚠️" if drift.is_found else "✅"
    heading = f"### {sign} {escaped(f'Drift of {drift.stack}: {summary(drift)}')}"
    shape = f"shape {drift.fingerprint}" if drift.fingerprint else "no drift"
    marks = f"<!-- ebbtide drift of {drift.stack} -->\n<!-- {shape} -->"
    head = Section(rows=(f"{marks}\n\n{heading}",), folded=False)
    changed = Section(
        title="Changed by a person",
        head=(table_row("resource", "property", "state", "now", "once refreshed"), "|---|---|---|---|---|"),
        rows=tuple(row for item in drift.of_person for row in _rows(item)),
        noun="difference",
        folded=False,
    )
    effects = Section(
        title="An update that sets them back",
        rows=tuple(f"- {escaped(text)}" for text in drift.consequences),
        noun="effect",
        folded=False,
    )
    unowned = Section(
        title="In no state",
        rows=tuple(
            f"- {escaped(item.kind)} {code_span(item.name)}: {escaped(item.effect)}" for item in drift.unowned
        ),
        noun="resource",
        folded=False,
    )
    notes = tuple(f"- {escaped(text)}" for text in (_others(drift), *drift.unread) if text)
    kept = Section(
        title=_KEPT,
        rows=tuple(f"- {escaped(line)}" for item in drift.of_person for line in _kept(item)),
        noun="difference",
        folded=False,
    )
    text = _ADVICE.format("the others" if kept.rows else "all of them")
    advice = (escaped(text), "", "```shell", *commands, "```") if drift.of_person else ()
    sections = [head, changed, effects, unowned, Section(rows=notes, folded=False), kept]
    sections.append(Section(rows=advice, folded=False, whole=True))
    everything = "`ebbtide drift --format json` has everything."
    return rendered(sections, [changed, unowned, effects], everything)


def _rows(resource: ResourceDrift) -> Iterator[str]:
    name = code_span(_name(resource)) + (f" ({escaped(type_words(resource.type))})")
    effect = escaped(_EFFECTS[resource.action])
    if resource.deleted:
        yield table_row(name, "", "", "deleted", effect)
    for field in resource.of_person:
        old, new = _values(field)
        yield table_row(name, code_span(field.path), code_span(old), code_span(new), effect)
