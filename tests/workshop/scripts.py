"""Checks of the shell of pipelines, which others' machines run."""

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from typer.main import get_command

from ebbtide.cli import app
from tests.repository import ran

_ENDS: Final = {"|", "||", "&&", ";", ">", ">>", "2>"}


def commands(script: str) -> Iterator[list[str]]:
    """Yield the commands of Ebbtide in a script, without their name."""
    for line in re.sub(r"\$\(\(.*?\)\)", "1", script).replace("\\\n", " ").splitlines():
        words = shlex.shlex(line.partition(" # ")[0], posix=True, punctuation_chars=True)
        words.whitespace_split, words.commenters = True, "#"
        found = list(words) if "ebbtide " in line and not line.lstrip().startswith(("#", "marker=")) else []
        while "ebbtide" in found:
            found = found[found.index("ebbtide") + 1 :]
            yield found[: next((at for at, word in enumerate(found) if word in _ENDS), len(found))]


def check_with(program: str, *arguments: str | Path, given: str = "") -> None:
    """Run a program of this environment, which must find nothing."""
    ran(Path(sys.executable).with_name(program), *arguments, given=given)


def check_script(script: str) -> None:
    """Check a script of bash with ShellCheck, and its commands of Ebbtide with the real parser."""
    check_with("shellcheck", "--shell", "bash", "--severity", "info", "-", given=script)
    group: Any = get_command(app)
    for name, *words in commands(script):
        group.commands[name].make_context(name, words)
