"""Tables for terminals, also for narrow ones."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

if TYPE_CHECKING:
    from rich.table import Table

GAP: Final = 2
"""Blanks between columns."""

BELOW: Final = " " * 4
"""Indent of what is below a row."""

_HEADING: Final = "bold"

_NUMBERS: Final = frozenset(
    (
        *("VCPU", "GIB", "COUNT", "WEIGHT", "CARBON-FREE", "G/KWH"),
        *("$/H", "SPOT $/H", "FLEX $/H", "IDLE $/H", "MAX $/H", "GPU $/H"),
    )
)
"""Right-aligned columns."""


def plain_table(*columns: str, right: Container[str] = (), whole: Container[str] = ()) -> "Table":
    """Return a table without lines.

    Args:
        right: columns of numbers, aligned on the right and never broken.
        whole: other columns that a narrow terminal does not break.
    """
    from rich.table import Table  # noqa: PLC0415 - a preview needs none

    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        is_right = column in right
        justify = "right" if is_right else "left"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=is_right or column in whole)
    return table


class Indented:
    """Text with a prefix for its first line and another for all following lines."""

    def __init__(self, text: Text, first: str = "", rest: str = "") -> None:
        self._text, self._first, self._rest = text, first, rest

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the lines, wrapped to the available width."""
        width = max(options.max_width - len(self._rest), 20)
        for number, line in enumerate(self._text.wrap(console, width)):
            line.rstrip()
            yield Text.assemble(self._rest if number else self._first, line)


def print_blocks(blocks: Iterable[RenderableType], console: Console) -> None:
    """Print blocks with a blank line between them."""
    for number, block in enumerate(blocks):
        if number:
            console.print()
        console.print(block)


class FittedTable:
    """Columns of text. Those that do not fit the width move below their rows."""

    def __init__(self, columns: Mapping[str, Sequence[str]], width: int, movable: Sequence[str] = ()) -> None:
        self._columns = columns
        self._widths = {title: max(len(title), *map(len, cells)) for title, cells in columns.items()}
        self._moved: list[str] = []
        for title in movable:
            if sum(self._widths.values()) + GAP * (len(self._widths) - 1) > width:
                self._moved.insert(0, title)
                del self._widths[title]

    @property
    def head(self) -> str:
        """Line with the titles."""
        return self._line({title: title for title in self._widths})

    def row(self, number: int) -> str:
        """Return the line of a row."""
        return self._line({title: cells[number] for title, cells in self._columns.items()})

    def moved(self, number: int) -> list[str]:
        """Return the cells of a row that do not fit, each with its title."""
        return [f"{title.lower()} {self._columns[title][number]}" for title in self._moved]

    def lines(self) -> Iterator[RenderableType]:
        """Yield the titles and the rows, each with its cells that do not fit below it."""
        yield Text(self.head, style=_HEADING)
        for number in range(len(next(iter(self._columns.values())))):
            yield Text(self.row(number))
            if moved := self.moved(number):
                yield Indented(Text("; ".join(moved)), BELOW, BELOW)

    def _line(self, cells: Mapping[str, str]) -> str:
        padded = (
            cells[title].rjust(width) if title in _NUMBERS else cells[title].ljust(width)
            for title, width in self._widths.items()
        )
        return (" " * GAP).join(padded).rstrip()
