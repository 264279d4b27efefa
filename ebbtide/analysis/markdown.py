"""GitHub Flavored Markdown for comments and issues: escaped text, and sections that fit the maximum length.

GitHub rejects a text longer than `LIMIT` (rest-api-description, `body is too long`), so the least important
rows are replaced with a sentence.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from ebbtide.text import several

LIMIT: Final = 65_536
"""Maximum number of characters of a GitHub comment."""

_LONGEST: Final = 300
"""Maximum number of characters of a message."""

_LONGEST_NAME: Final = 150
_SPECIAL: Final = re.compile(r"[\\`*{}\[\]<>#|~&$]|(?<![^\W_])_|_(?![^\W_])")
_REWRITTEN: Final = re.compile(r"@|:(?=[\w+-]+:)")
"""Beginnings of GitHub's mentions and emoji."""

_SIMPLE: Final = re.compile(r"[\w ./:=,()+-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of the comment.

    Attributes:
        title: heading, or the summary of a folded section; empty for none.
        head: lines before the rows, such as a table's head.
        rows: lines that may be dropped, the most important first.
        noun: noun for a row.
        folded: True for details that are collapsed by default.
        whole: True if the rows are meaningless without each other.
    """

    title: str = ""
    head: tuple[str, ...] = ()
    rows: tuple[str, ...]
    noun: str = "line"
    folded: bool = True
    whole: bool = False

    def text(self, count: int, everything: str) -> str:
        """Render the section with its first `count` rows, and where the others are, as a sentence."""
        missing = len(self.rows) - count
        rows = [*self.head, *self.rows[:count]] if count else []
        omitted = (
            [f"_{several(missing, self.noun)} not shown: a comment has a maximum length. {everything}_"]
            if missing
            else []
        )
        title = [f"<details><summary>{self.title}</summary>" if self.folded else f"#### {self.title}"]
        blocks = (title if self.title else [], rows, omitted, ["</details>"] if self.folded else [])
        return "\n\n".join("\n".join(block) for block in blocks if block)


def rendered(sections: Iterable[Section], expendable: Iterable[Section], everything: str) -> str:
    """Render sections as at most `LIMIT` characters.

    Args:
        sections: the sections, in order; those without rows are omitted.
        expendable: sections whose rows may be dropped, the least important first.
        everything: a sentence about where dropped rows are.
    """
    counts = _fit([section for section in sections if section.rows], expendable, everything)
    return "\n\n".join(section.text(count, everything) for section, count in counts) + "\n"


def _fit(
    sections: Sequence[Section], expendable: Iterable[Section], everything: str
) -> list[tuple[Section, int]]:
    """Return the number of rows of each section so that all sections fit, dropping expendable rows first."""
    counts = {id(section): len(section.rows) for section in sections}

    def excess() -> int:
        return sum(len(section.text(counts[id(section)], everything)) + 2 for section in sections) - LIMIT

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


def table_row(*cells: str) -> str:
    """Format a row of a table; the cells are Markdown."""
    return f"| {' | '.join(cells)} |"


def one_line(text: str) -> str:
    """Join the lines of a text."""
    return " ".join(text.split())


def clipped(text: str, length: int) -> str:
    """Shorten text to one line of a maximum length."""
    text = one_line(text)
    return text if len(text) <= length else f"{text[: length - 1]}…"


def escaped(text: str) -> str:
    """Escape text. Code in backticks is unchanged; a comment after `@` and after the first colon of `:x:`
    prevents notifications and emoji."""
    parts = re.split(r"`([^`]+)`", clipped(text, _LONGEST))
    pairs = zip(parts[::2], chain(parts[1::2], [""]), strict=True)
    return "".join(f"{_plain(text)}{code_span(code) if code else ''}" for text, code in pairs)


def _plain(text: str) -> str:
    escaped = _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", text)
    return _REWRITTEN.sub(r"\g<0><!-- -->", escaped)


def code_span(text: str) -> str:
    """Format a name as code."""
    text = clipped(text, _LONGEST_NAME)
    if _SIMPLE.fullmatch(text):
        return f"`{text}`"
    return f"<code>{''.join(_entities(text))}</code>" if text else ""


def _entities(text: str) -> Iterator[str]:
    for letter in text:
        yield letter if letter.isalnum() or letter in " ./:-" else f"&#{ord(letter)};"
