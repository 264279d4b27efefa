"""Text with a hanging indent, for terminals."""

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text


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
