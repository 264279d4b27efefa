"""Errors as data: a document for tools, and its text for users."""

from collections.abc import Iterator, Sequence
from textwrap import fill
from typing import Final, Literal

from ebbtide.declaration.model.faults import DeclarationError, Fault
from ebbtide.declaration.model.shape.findings import may_depend_on
from ebbtide.declaration.project.extends import Declaration
from ebbtide.declaration.project.source import MisplacedKey, Position, Source
from ebbtide.errors import ExtendsError
from ebbtide.text import and_list, did_you_mean, several
from ebbtide.values.documents import DocumentPart

Style = Literal["", "bold", "green"]


_INCOMPLETE: Final = {"required-field", "pool-has-machine-type", "pool-has-node-limit"}
"""Rules that a change of a missing item breaks."""

OTHER_RULES: Final = {
    "known-key": "The key is a field of the declaration.",
    "known-kind": "The kind of a cloud or capacity is known.",
    "known-rule": "The policy names an existing rule.",
    "known-value": "The value is one of the field's values.",
    "required-field": "A field without a default has a value.",
    "value-type": "The value is text, a number, a list or a mapping, as the field requires.",
    "value-range": "The number is within the field's limits.",
    "duration": "A duration has a unit, such as `30s` or `7d`.",
    "provider-installed": "The provider whose types validate overrides is installed; a warning.",
    "yaml-syntax": "The file is valid YAML for Pulumi.",
    "stack-file": "The project's and the stack's file exist, without unused keys.",
    "extends": "A file that a stack extends exists and declares a cluster.",
    "adopt": "A file of adopted resources has type, name and id of each, which the program has.",
    "prices": "A price file has the required columns, items and numbers.",
    "machine-search": "A search for machines names a known accelerator and region.",
    "program": "The program runs to its end.",
    "command": "Other requirements of the command: a file, a tool, a cluster.",
    "internal": "Ebbtide has no bug; exit status 3.",
}
"""Ids of checks outside of docs/rules.md, with their requirements."""


class FaultReport(DocumentPart):
    """A fault in a declaration, or another error of a command."""

    path: str | None = None
    """Path in the declaration, such as `pools[2].taints[0].effect`; null for other errors."""
    file: str | None = None
    """File to change; null if unknown, for example for values from elsewhere. A stack's file is relative to
    the working directory, a program's file to the program's directory."""
    line: int | None = None
    """Line, from 1; null if unknown."""
    column: int | None = None
    """Column, from 1; null if unknown."""
    message: str
    """Problem and its consequence."""
    suggestion: str | None = None
    """Suggested fix; null if the message has it."""
    rule: str
    """Id of the rule, one of those in docs/errors.md and docs/rules.md."""

    @property
    def heading(self) -> str:
        """Position and path, in the form that terminals and editors turn into a link."""
        position = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return ": ".join(part for part in (position, self.path) if part)


class Report(DocumentPart):
    """All errors of a command."""

    version: Literal["ebbtide.dev/errors/v1"] = "ebbtide.dev/errors/v1"
    """Version of the document format."""
    errors: tuple[FaultReport, ...]
    """Errors in the order of the file."""

    def json_document(self) -> str:
        """The document as JSON."""
        return self.model_dump_json(indent=2)


def declaration_report(
    error: DeclarationError, source: Source | None = None, program: Position | None = None
) -> Report:
    """Return the errors of a declaration with their positions.

    Args:
        error: the validation error.
        source: the file of the declaration.
        program: position in a Python program that created the invalid object.
    """
    faults: list[FaultReport] = []
    for fault in _with_bases(error.faults, source.declaration if source else None):
        position, suggestion = program, fault.fix
        if error.declared is not ...:
            position = source.position(fault.path, error.declared) if source else None
            if moved := _moved(fault, source):
                position = Position(str(moved.file), moved.line, moved.column)
                suggestion = f"{moved.problem} {moved.fix}"
        faults.append(
            FaultReport(
                path=fault.path,
                file=position.file if position else None,
                line=(position.line or None) if position else None,
                column=(position.column or None) if position else None,
                message=" ".join(part for part in (fault.problem, fault.consequence) if part),
                suggestion=suggestion or None,
                rule=fault.rule,
            )
        )
    # The engine sorts the keys of a declaration; users read the file from top to bottom.
    faults.sort(key=lambda fault: (fault.line is None, fault.line, fault.column))
    return Report(errors=tuple(faults))


def _with_bases(faults: Sequence[Fault], declaration: Declaration | None) -> Iterator[Fault]:
    """Yield faults; for a change of an item that the base does not have, one in place of those of a new item
    and of those that follow from them."""
    added = {
        item: fault
        for fault in reversed(faults)
        if declaration and fault.rule in _INCOMPLETE and (item := declaration.added(fault.path))
    }
    for fault in faults:
        if not any(
            fault.path.startswith(item.path) or may_depend_on(fault.path, item.path) for item in added
        ):
            yield fault
    for item, fault in added.items():
        base = and_list(declaration.bases if declaration else ())
        yield Fault(
            item.path,
            f"{base} has no {item.kind} {item.name}{did_you_mean(item.name, item.others)}",
            f"As a new {item.kind}, it is incomplete: {fault.problem}",
            f"Write the name of a {item.kind} there ({', '.join(item.others)}), or the fields of a new one.",
            rule=ExtendsError.rule,
        )


def _moved(fault: Fault, source: Source | None) -> MisplacedKey | None:
    """Return the misplaced key that was meant for a missing field."""
    if source is None or fault.rule != "required-field":
        return None
    return next((key for key in source.misplaced if key.field == fault.path != ""), None)


def declaration_lines(
    error: DeclarationError, report: Report, width: int | None = None
) -> Iterator[tuple[Style, str]]:
    """Yield the errors of a declaration as text: a heading, message and suggestion for each.

    Args:
        error: the validation error.
        width: columns to wrap at; None for one line per sentence.

    Yields:
        Lines with their style.
    """
    count = len(report.errors)
    yield "", f"{error.subject} has {several(count, 'error')}."
    for fault in report.errors:
        yield "", ""
        yield "bold", fault.heading or error.subject
        yield "", wrapped(fault.message, width, "  ")
        if fault.suggestion:
            yield "green", wrapped(fault.suggestion, width, "  ")


def declaration_text(error: DeclarationError, source: Source | None = None) -> str:
    """Return the errors of a declaration as plain, unwrapped text: for logs and the engine's messages."""
    report = declaration_report(error, source)
    return "\n".join(line for _, line in declaration_lines(error, report))


def wrapped(text: str, width: int | None, indent: str = "") -> str:
    """Wrap a text at word boundaries; names and paths stay whole."""
    if width is None:
        return indent + text
    return fill(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
