"""Output reaches a terminal, a pipe or a file as text, whatever it contains and wherever it goes."""

import io
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.text import Text

from ebbtide.cli.consoles import console, say, screen, write
from ebbtide.text import printable
from tests.commands import ebbtide_with
from tests.repository import ROOT

_PROGRAM = """
import pulumi

shop = pulumi.ComponentResource("my:index:Shop", "shop")
for number in range(400):
    opts = pulumi.ResourceOptions(parent=shop)
    pulumi.CustomResource("my:index:Bag", f"shop-bag-{number}", {"text": "\\x1b[31m\\nred\\x9b1m"}, opts)
"""
_ESCAPES = {*map(chr, range(32)), *map(chr, range(127, 160)), "\u202e"} - {"\n"}


@pytest.fixture(name="project")
def _project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: shop\nruntime: python\n")
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {}\n")
    (tmp_path / "__main__.py").write_text(_PROGRAM)
    return tmp_path


def _preview(project: Path, arguments: str, redirection: str, **environment: str) -> tuple[int, bytes]:
    """Run a preview in a shell; return its exit status and what it writes to standard error."""
    command = f'set -o pipefail; "{sys.executable}" -m ebbtide preview {arguments} {redirection}'
    done = subprocess.run(
        ["/bin/bash", "-c", command],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stderr=subprocess.PIPE,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_encodings_without_the_characters(project: Path, encoding: str) -> None:
    """Characters that a stream lacks are written in ASCII, and no control character passes."""
    status, errors = _preview(project, "dev --values", "> out.txt", PYTHONIOENCODING=encoding)
    assert (status, errors) == (0, b"")
    text = (project / "out.txt").read_text(encoding=encoding)
    assert ("…" if encoding == "utf-8" else "...") + "-bag-1" in text
    assert r"\u001b[31m" in text
    assert not _ESCAPES & {*text}


def test_documents_are_utf_8(project: Path) -> None:
    """JSON has an encoding of its own, whatever that of the stream is."""
    assert _preview(project, "dev --format json", "> out.json", PYTHONIOENCODING="ascii") == (0, b"")
    assert json.loads((project / "out.json").read_text(encoding="utf-8"))["stack"] == "dev"


@pytest.mark.parametrize(
    ("arguments", "streams", "status", "message"),
    [
        ("dev --values", {"output": "/dev/full"}, 2, "Standard output: No space left on device."),
        ("dev", {"output": "/dev/full"}, 2, "Standard output: No space left on device."),
        ("dev --format json", {"output": "/dev/full"}, 2, "Standard output: No space left on device."),
        ("dev --out /dev/full", {}, 2, "/dev/full: No space left on device."),
        ("dev --format json --out /dev/full", {}, 2, "/dev/full: No space left on device."),
        ("other", {"errors": "/dev/full"}, 2, ""),
        ("dev --config-file ''", {}, 2, "--config-file is empty."),
    ],
)
def test_streams_that_cannot_be_written(
    project: Path, arguments: str, streams: dict[str, str], status: int, message: str
) -> None:
    """A full disk ends in a sentence at most, which names the file."""
    done = ebbtide_with(os.environ, "preview", *shlex.split(arguments), cwd=project, **streams)
    assert done.returncode == status, done.stderr
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == bool(message)


@pytest.mark.parametrize(("redirection", "status"), [(">&-", 0), ("<&- >&- 2>&-", 0), ("| true", 141)])
def test_streams_that_are_closed(project: Path, redirection: str, status: int) -> None:
    """A closed stream and a closed pipe end in no sentence."""
    assert _preview(project, "dev --values", redirection) == (status, b"")


class _Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


_NAME = "a\x1b]0;title\x9c\x9b2J\u202eb"


@pytest.mark.parametrize(
    "show",
    [
        lambda: say(_NAME),
        lambda: write(json.dumps([_NAME], ensure_ascii=False), None),
        lambda: console(sys.stdout).print(_NAME, style="bold"),
    ],
)
def test_a_terminal_gets_no_escape_of_a_name(
    show: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text, a document and styled text have the name's control characters escaped, as in JSON."""
    monkeypatch.setattr(sys, "stdout", terminal := _Terminal())
    monkeypatch.setenv("TERM", "xterm")
    show()
    shown = terminal.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert not _ESCAPES & {*shown}
    assert r"\u001b]0;title\u009c\u009b2J\u202eb" in shown
    if shown.startswith("["):
        assert json.loads(shown) == [_NAME]


def test_printable() -> None:
    """Newlines and tabs stay, unless the text is one line; so does every letter."""
    assert printable("a\tb\nc é 漢 …") == "a\tb\nc é 漢 …"
    assert printable("a\nb\r", one_line=True) == r"a\nb\u000d"


def test_a_file_of_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The console of a file is plain, also where colours are forced, and the file is written at the end."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    with screen(tmp_path / "out.txt") as output:
        output.print("a", style="bold")
        assert not (tmp_path / "out.txt").exists()
    assert (tmp_path / "out.txt").read_text() == "a\n"


@pytest.mark.parametrize("no_color", ["", "1"])
def test_no_color_is_no_bold_either(no_color: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With NO_COLOR, a terminal gets plain text."""
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    console(stream).print(Text("words", style="bold"))
    assert ("\x1b[" in stream.getvalue()) == (not no_color)
