"""The commands of the repository."""

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

from tests.repository import ROOT, makefile_targets, ran


def _make(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Return make's output, independent of a make that runs the tests."""
    quiet = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return ran("make", *arguments, env=quiet, status=status)


@cache
def _would_run(*arguments: str) -> str:
    """Return make's commands in a fresh clone, without an environment."""
    return _make("--dry-run", "VENV=nowhere-yet", *arguments).stdout


def test_every_target_is_phony() -> None:
    """A file named like a command does not keep it from running."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.+)$", text, flags=re.MULTILINE)
    assert phony is not None
    assert set(phony[1].split()) == set(makefile_targets())


def test_help_names_every_target() -> None:
    """`make` alone says what there is to call."""
    done = _make()
    assert [line.split()[1] for line in done.stdout.splitlines()] == list(makefile_targets())


def test_preview_installs_what_it_runs_with_and_no_more() -> None:
    """A first preview waits for no linter and no type checker."""
    planned = _would_run("preview")
    assert "-r requirements.txt" in planned
    assert "tests/requirements.txt" not in planned
    assert "ebbtide preview dev" in planned


def test_preview_installs_the_command_without_a_network() -> None:
    """The checkout is installed editable, with the command `.venv/bin/ebbtide`, and no index is queried."""
    planned = _would_run("preview")
    assert "--no-deps --no-index --no-build-isolation --editable ." in planned
    assert planned.index("-r requirements.txt") < planned.index("--editable .") < planned.index("bin/ebbtide")


def test_test_runs_every_check() -> None:
    """`make test` omits none of the checks."""
    planned = _would_run("test")
    steps = ["ruff check", "ruff format --check", "lint-imports", "pyrefly", "pytest"]
    assert [step for step in steps if step not in planned] == []


def test_a_path_replaces_the_directories_of_a_target() -> None:
    """A path in ARGS is collected alone, and other options leave the directories."""
    path, option = (_would_run("pytest", f"ARGS={args}") for args in ("tests/unit/model -k spot", "-k spot"))
    assert path.endswith('not rehearsal"  tests/unit/model -k spot\n')
    assert option.endswith('not rehearsal" tests -k spot\n')


def test_rehearse_all_runs_the_tests_of_released_manifests() -> None:
    """The manifests are rendered first; a rehearsal without them, as without a network, goes on."""
    planned = _would_run("rehearse-all")
    assert planned.index("-m tests.manifests") < planned.index("or released")


def test_old_python_is_refused_in_a_sentence() -> None:
    """Without a suitable Python, make prints the required version and the fix."""
    done = _make("preview", "VENV=nowhere-yet", "PYTHON=python0", status=2)
    assert "Ebbtide needs Python 3.11 or later, and python0 is not there" in done.stderr


def test_another_python_makes_the_environment_again(tmp_path: Path) -> None:
    """`PYTHON=…` of another version than the environment's makes it again; the same version keeps it."""
    environment, other = tmp_path / "env", tmp_path / "python3.99"
    (environment / "bin").mkdir(parents=True)
    (environment / "bin/python").symlink_to(sys.executable)
    for stamp in (".python", ".runtime", ".checkout"):
        (environment / stamp).touch()
    other.write_text("#!/bin/sh\ncase $2 in *platform*) echo 3.99.0 ;; esac\n")
    other.chmod(0o755)
    again = f"-m venv --clear {environment}"
    for python, makes in ((sys.executable, False), (str(other), True)):
        planned = _make("--dry-run", f"VENV={environment}", "preview", f"PYTHON={python}").stdout
        assert (again in planned, "-r requirements.txt" in planned) == (makes, makes)
    assert again not in _make("--dry-run", f"VENV={environment}", "preview").stdout
