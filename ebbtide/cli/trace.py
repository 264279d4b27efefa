"""The `trace` commands. Their dependencies are imported on execution."""

from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.consoles import say


def _names() -> list[str]:
    """Return the names of the public traces, for shell completion."""
    from ebbtide_rehearsal.replay.public import TRACES  # noqa: PLC0415

    return list(TRACES)


def trace_fetch(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Public trace; without a name, all are listed.",
            autocompletion=_names,
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="File to write; by default the trace's own name.", show_default=False
        ),
    ] = None,
) -> None:
    """Download a public trace for `ebbtide replay`.

    Each is pinned by commit and SHA-256, and has a licence of its own.
    """
    from ebbtide_rehearsal.replay.public import TRACES, fetch, public_trace  # noqa: PLC0415

    if name is None:
        for known, trace in TRACES.items():
            say(f"{known:<8} {trace.content}; {trace.licence}; {trace.repository}")
        return
    trace = public_trace(name)
    path = file or Path(trace.file_name)
    fetch(trace, path)
    say(f"{path}: {trace.content}. Source: {trace.repository}, licence: {trace.licence}.")
