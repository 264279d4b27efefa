"""The repository as tests look at it."""

import ast
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from ebbtide.declaration.project.extends import extended

ROOT = Path(__file__).parent.parent

_STACKS = ("dev", "dev-aks", "pr", "prod")
STACK_FILES = sorted(
    [*(ROOT / f"Pulumi.{name}.yaml" for name in _STACKS), *ROOT.glob("examples/*/Pulumi.*.yaml")]
)
"""Every stack's file, but the template's, which declares no whole cluster, and a developer's own."""

STORIES = sorted(
    path.name for path in (ROOT / "examples").iterdir() if path.is_dir() and path.name != "traces"
)


def relative(path: Path) -> str:
    """A path as a test names it."""
    return path.relative_to(ROOT).as_posix()


def declaration(stack_file: Path) -> dict[str, Any]:
    """Return the declaration under `ebbtide:cluster` in a stack's file, with what it extends."""
    written: dict[str, Any] = yaml.safe_load(stack_file.read_text(encoding="utf-8"))
    return extended(written["config"]["ebbtide:cluster"], ROOT).value


def sources(*directories: str) -> list[Path]:
    """The Python files below directories."""
    return [path for directory in directories for path in sorted((ROOT / directory).rglob("*.py"))]


def syntax(path: Path) -> ast.Module:
    """A Python file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def code_strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every string of a module that is not a docstring, with its line."""
    documentation = {id(statement.value) for statement in ast.walk(tree) if isinstance(statement, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.lineno, node.value


def ran(
    *command: str | Path,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    given: str = "",
    status: int | None = 0,
) -> "subprocess.CompletedProcess[str]":
    """Run a program, which must end with this status; None for any."""
    done = subprocess.run(command, cwd=cwd, env=env, input=given, capture_output=True, text=True, check=False)
    assert status in (None, done.returncode), done.stdout + done.stderr
    return done


def git(directory: Path, *arguments: str) -> str:
    """Run git in a directory, as a user without settings of their own, and return its output."""
    options = ("-c", "user.name=us", "-c", "user.email=us@acme.example", "-c", "commit.gpgsign=false")
    return ran("git", *options, *arguments, cwd=directory).stdout


def commit_all(directory: Path) -> None:
    """Make a directory a repository with everything in a commit on `main`."""
    git(directory, "init", "--quiet", "--initial-branch", "main")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message", "first")


def makefile_targets() -> dict[str, str]:
    """The Makefile's targets that are commands, with what `make help` says of each."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z-]+):.*?## (.+)$", text, flags=re.MULTILINE))
