"""Recorder of the terminal session on the site's first page: `make session`.

The commands run in a terminal of 80 columns, in a directory with the repository's files. The recording has
asciinema's format 2 (docs.asciinema.org/manual/asciicast/v2); `asciinema play` replays it.
"""

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
CAST: Final = ROOT / "docs/site/session.cast"
COLUMNS: Final = 80
_LINES: Final = 50
STEPS: Final = {
    "Preview a stack": ("ebbtide preview dev",),
    "Preview a stack with two mistakes": (
        "sed 's/highmem/highmen/; s/min: 1/min: 5/' Pulumi.dev.yaml > Pulumi.typo.yaml",
        "ebbtide preview typo",
    ),
}
_PROMPT: Final = "\x1b[1;32m$\x1b[0m "
_ESCAPE: Final = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
Event = tuple[float, str, str]
"""Seconds from the start, `o` for output or `m` for a marker, and the text."""


def record() -> Iterator[Event]:
    """Run the steps, and yield what the terminal shows; a marker begins each step."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        for entry in ROOT.iterdir():
            if not entry.name.startswith("."):
                (Path(directory) / entry.name).symlink_to(entry)
        for title, commands in STEPS.items():
            yield time.monotonic() - start, "m", title
            for command in commands:
                yield time.monotonic() - start, "o", f"{_PROMPT}{command}\r\n"
                for output in _run(command, directory):
                    yield time.monotonic() - start, "o", output


def _run(command: str, directory: str) -> Iterator[str]:
    terminal, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", _LINES, COLUMNS, 0, 0))
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": directory,
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
    }
    shell = shutil.which("sh") or "/bin/sh"
    with subprocess.Popen(
        [shell, "-c", command], cwd=directory, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ):
        os.close(theirs)
        while output := _read(terminal):
            yield output.decode(errors="replace")
    os.close(terminal)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 2**16)
    except OSError:  # Linux: the command has ended
        return b""


def text(events: Iterator[Event]) -> str:
    """Return what the terminal shows, without colors."""
    shown = "".join(data for _, kind, data in events if kind == "o")
    return _ESCAPE.sub("", shown).replace("\r\n", "\n")


def read() -> Iterator[Event]:
    """Yield the events of the recorded session."""
    for line in CAST.read_text(encoding="utf-8").splitlines()[1:]:
        seconds, kind, data = json.loads(line)
        yield seconds, kind, data


def _write() -> None:
    header = {"version": 2, "width": COLUMNS, "height": _LINES, "title": "Ebbtide: a first look"}
    lines = [header, *((round(seconds, 3), kind, data) for seconds, kind, data in record())]
    CAST.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    _write()
