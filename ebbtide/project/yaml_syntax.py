"""YAML syntax errors in plain sentences, without the terms of the parser's grammar."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import yaml

_NO_SPACE: Final = re.compile(r"^\s*(?:- )?[\w.\"'-]+:[^\s:/]")
"""A key whose colon is directly followed by its value."""

Sentences = tuple[str, str]
"""Problem and fix; the fix is empty if unknown."""


@dataclass(frozen=True, slots=True)
class _Error:
    """A syntax error reported by the parser.

    Attributes:
        words: context and problem.
        lines: lines of the file.
        mark: position of the problem.
        start: start of the malformed construct.
    """

    words: str
    lines: list[str]
    mark: yaml.Mark
    start: yaml.Mark

    @property
    def line(self) -> str:
        """Line of the problem; empty at the end of the file."""
        return self.lines[self.mark.line] if self.mark.line < len(self.lines) else ""


def _bad_first_character(error: _Error) -> Sentences:
    return f"A value cannot begin with `{error.line[error.mark.column]}`.", "Put the value in quotes."


def _unexpected_colon(error: _Error) -> Sentences:
    if ": " in error.line[: error.mark.column].lstrip(" -"):
        return "The value has a colon followed by a space.", "Put the value in quotes."
    above = next((n for n in range(error.mark.line - 1, -1, -1) if error.lines[n].strip()), None)
    if above is not None and _NO_SPACE.match(error.lines[above]):
        return (
            f"Line {above + 1} has no space after its colon, so it is not a key.",
            f"Write `{error.lines[above].strip().replace(':', ': ', 1)}` there.",
        )
    return (
        "The line is indented further than the line above, which already has a value.",
        "Indent it like the first key above it.",
    )


def _no_item(_: _Error) -> Sentences:
    return (
        "There is a key where only list items are allowed.",
        "Begin a new item with a dash, or indent the key like the first key of the item above it.",
    )


def _no_key(error: _Error) -> Sentences:
    if error.line[: error.mark.column].strip():
        return "There is text after the end of the value.", "Remove it, or put the whole value in quotes."
    if error.line[error.mark.column :].startswith("- "):
        return (
            "There is a list item among the keys of a mapping.",
            "Start every entry with a dash, or write this one as `key: value`.",
        )
    return (
        "The indentation of this line does not match any key above it.",
        "Indent it like the keys that it belongs to.",
    )


def _not_closed(error: _Error) -> Sentences:
    kind, bracket = ("list", "]") if "sequence" in error.words else ("mapping", "}")
    return (
        f"A comma or the closing `{bracket}` of a {kind} is missing before this.",
        f"Write it; the {kind} begins in line {error.start.line + 1}, column {error.start.column + 1}.",
    )


def _quote_not_closed(error: _Error) -> Sentences:
    return f"The quote that opens in line {error.start.line + 1} is not closed.", "Close it in the same line."


def _colon_in_braces(_: _Error) -> Sentences:
    return "A colon has no space and no value after it.", "Write `key: value`, or `key: {}` for its defaults."


def _undefined_alias(_: _Error) -> Sentences:
    return (
        "An alias refers to an anchor that the file does not have.",
        "If the asterisk is part of the value, put the value in quotes.",
    )


def _second_document(_: _Error) -> Sentences:
    return "A second document begins here.", "Remove the `---` and what follows it."


_EXPLAINED: Final[tuple[tuple[str, Callable[[_Error], Sentences]], ...]] = (
    ("cannot start any token", _bad_first_character),
    ("mapping values are not allowed", _unexpected_colon),
    ("block (collection|sequence), .*('-' indicator|block end)", _no_item),
    ("block mapping", _no_key),
    ("',' or", _not_closed),
    ("quoted scalar", _quote_not_closed),
    ("unexpected ':'", _colon_in_braces),
    ("undefined alias", _undefined_alias),
    ("single document", _second_document),
)
"""Patterns of the parser's messages, in order of precedence."""


def explain_syntax(error: yaml.MarkedYAMLError, text: str) -> Sentences:
    """Explain a syntax error.

    Args:
        error: the parser's error.
        text: the file.
    """
    words = ", ".join(part for part in (error.context, error.problem) if part)
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return f"The file is not valid YAML: {words}.", ""
    fault = _Error(words, text.splitlines(), mark, error.context_mark or mark)
    indent = fault.line[: len(fault.line) - len(fault.line.lstrip())]
    if "\t" in indent or fault.line[mark.column : mark.column + 1] == "\t":
        return "The line is indented with a tab, which YAML does not allow.", "Indent with spaces."
    for pattern, explain in _EXPLAINED:
        if re.search(pattern, words):
            return explain(fault)
    return f"The file is not valid YAML: {words}.", ""
