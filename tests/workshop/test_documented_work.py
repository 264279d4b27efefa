"""Work in README, the manual, the pages and the help is accepted by the stack that they preview."""

import shlex
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

import pytest
import typer
from typer.main import get_command

from ebbtide.cli import follow, sessions
from ebbtide.cli.entry_point import EXAMPLES, app
from ebbtide.clients.kubernetes import Api
from ebbtide.work import submission
from ebbtide.work.runs import run
from tests.pages import FILES, commands
from tests.repository import ROOT, relative
from tests.unit.work.clusters import DEV

_CREATING: Final = ("run", "shell", "notebook", "job", "sweep")
_OTHER_STACKS: Final = {
    "docs/aks.md",
    "docs/daily-work.md",
    "docs/existing-cluster.md",
    "docs/gke.md",
    "docs/rehearsing.md",
    "docs/tutorial.md",
}
"""Pages whose commands run in a stack of their own, or in a namespace of no team."""


def _documented() -> list[tuple[str, str]]:
    """Yield each command of a page or the help that creates work, with its source."""
    shown = [
        (where.partition(":")[0], command.partition(" | ")[0].removeprefix(".venv/bin/ebbtide "))
        for where, command in commands()
        if command.startswith(".venv/bin/ebbtide ")
    ]
    inline = [
        (relative(page), text.partition("`")[0])
        for page in FILES
        if relative(page) in ("README.md", "skills/ebbtide/SKILL.md")
        for text in page.read_text(encoding="utf-8").split("`ebbtide ")[1:]
        if " -- " in text.partition("`")[0]
    ]
    helps = [("--help", example.replace("\\\n", "")) for example in EXAMPLES.values()]
    return [
        (page, command)
        for page, command in dict.fromkeys([*shown, *inline, *helps])
        if page not in _OTHER_STACKS and command.split()[0] in _CREATING
    ]


@pytest.mark.parametrize(("page", "command"), _documented())
def test_documented_work_is_accepted(
    page: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member of the team of `dev` gets a Job from it; no cluster is needed to build one."""
    assert page
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "grid.py"):
        Path(name).touch()
    Path("profile.json").write_text(DEV.json(), encoding="utf-8")
    monkeypatch.setenv("EBBTIDE_PROFILE", "profile.json")
    monkeypatch.setenv("HOME", str(tmp_path))
    created: list[Any] = []

    def create(*arguments: Any, **_: Any) -> None:
        created.extend(arguments)
        raise typer.Exit

    api = Mock(spec=Api, namespace="vision")
    monkeypatch.setattr(Api, "of_user", Mock(return_value=api))
    monkeypatch.setattr(run, "user_of", Mock(return_value="ada"))
    monkeypatch.setattr(run, "check", create)
    monkeypatch.setattr(submission, "dry_run", create)
    monkeypatch.setattr(follow, "submit", create)
    monkeypatch.setattr(sessions, "kubectl_command", Mock())
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    words = shlex.split(command)
    named = {"--code", "--namespace", "-n"} & {*words}
    if words[0] in ("job", "sweep") and not named:  # their manifests are for that namespace
        at = words.index("--") if "--" in words else len(words)
        words[at:at] = ["--namespace", "vision"]
    assert get_command(app)(words, standalone_mode=False) in (None, 0) or created


def test_the_readme_creates_work() -> None:
    """The README's and the manual's own commands are among them."""
    assert {"README.md", "skills/ebbtide/SKILL.md", "--help"} <= {page for page, _ in _documented()}
    assert (ROOT / "README.md").is_file()
