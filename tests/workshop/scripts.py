"""Checks of the shell of pipelines, which others' machines run."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from typer.main import get_command

from ebbtide.cli import app

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


def check_script(script: str) -> None:
    """Check a script of bash with ShellCheck, and its commands of Ebbtide with the real parser."""
    program = Path(sys.executable).with_name("shellcheck")
    command = [program, "--shell", "bash", "--severity", "info", "-"]
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    group: Any = get_command(app)
    for name, *words in commands(script):
        group.commands[name].make_context(name, words)
