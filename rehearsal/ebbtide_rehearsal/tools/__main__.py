"""`python -m ebbtide_rehearsal.tools [NAME ...]`: find or build tools, by default all, and list their paths.

Exit status: 0 done; 2 a tool is unavailable; 130 stopped by Ctrl-C.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console

from ebbtide_rehearsal.tools.find import AvailableTool
from ebbtide_rehearsal.tools.items import ToolError
from ebbtide_rehearsal.tools.progress import narrated
from ebbtide_rehearsal.tools.table import all_items

_WRONG: Final = 2
_STOPPED: Final = 130
_HEAD: Final = ("name", "version", "from", "path")


def table(tools: Iterable[AvailableTool]) -> str:
    """Tabulate name, version, origin and path; paths are not truncated, so that they can be copied."""
    rows = [_HEAD, *((item.name, item.version, item.origin.value, str(item.path)) for item in tools)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def main(names: Sequence[str] = ()) -> int:
    """Find or build the named tools; all of them without names."""
    errors = Console(stderr=True, highlight=False, emoji=False)
    if unknown := sorted(set(names) - set(all_items())):
        errors.print(
            f"No such tool: {', '.join(unknown)}. There are {', '.join(all_items())}.", soft_wrap=True
        )
        return _WRONG
    try:
        tools = narrated(names or all_items(), errors)
    except (ToolError, OSError) as error:
        errors.print(str(error), markup=False, soft_wrap=True)
        return _WRONG
    except KeyboardInterrupt:
        errors.print("Stopped; completed builds stay in the cache.")
        return _STOPPED
    sys.stdout.write(f"{table(tools.by_name.values())}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
