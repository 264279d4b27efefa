"""The pages of the documentation, their blocks and the commands in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.repository import ROOT, relative

FILES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
    *sorted((ROOT / "policies").glob("*.md")),
    *sorted((ROOT / "skills").rglob("*.md")),
    *sorted((ROOT / "template").rglob("*.md")),
]


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def _blocks() -> Iterator[Block]:
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        for match in re.finditer(r"^```(.*)\n([\s\S]*?)^```$", text, flags=re.MULTILINE):
            yield Block(relative(path), text.count("\n", 0, match.start()) + 1, match[1], match[2])


BLOCKS = list(_blocks())


def of_kind(kind: str) -> list[Block]:
    """The blocks of a kind, such as `sh`."""
    return [block for block in BLOCKS if block.kind == kind]


_OMITTED: Final = "[...]\n"


def output(page: str, start: str) -> list[str]:
    """The parts of a page's block of output with these first words, between which it omits lines."""
    (shown,) = (it.text for it in of_kind("text") if it.page == page and it.text.startswith(start))
    return shown.split(_OMITTED)


def commands() -> Iterator[tuple[str, str]]:
    """Every command of every page: those in blocks, and those of make in a sentence."""
    for block in of_kind("sh"):
        for line in block.text.splitlines():
            if line and not line.startswith("#"):
                yield str(block), line
    for path in FILES:
        for command in re.findall(r"`(make [^`]+)`", path.read_text(encoding="utf-8")):
            yield relative(path), " ".join(command.split())
