"""The shell of each step of the workflows, with inputs that try to run commands or to set variables."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.repository import ROOT
from tests.workshop.github_runner import PROGRAMS, install_fakes

HOSTILE: Final = (
    "z/;s/.*/touch pwned/e;#",
    "x'; touch pwned; '\"; touch pwned; \"$(touch pwned)`touch pwned`",
    "a[$(touch pwned)]",
    "x\nHOSTILE=pwned\ntouch pwned\n",
    '") | input_filename, halt_error #',
    "../../pwned",
    "--out=pwned",
)
_FILES: Final = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")
_OPTIONS: Final = {"bash": ("--noprofile", "--norc", "-eo", "pipefail"), "": ("-e",)}
"""Options of bash by `shell` (docs.github.com, workflow syntax, `jobs.<job_id>.steps[*].shell`, 2026-11)."""
_USUAL: Final = {
    "STACK": "dev",
    "COMMAND": "reap",
    "NUMBER": "42",
    "EXPIRED": "[]",
    "CLOUD": "gke",
    "POOL": "cpu",
}
"""Values of inputs that select what a step does; others are a word."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A step with a script.

    Attributes:
        script: its script.
        options: options of its bash.
        constants: variables that are written in the workflow.
        inputs: variables of the script that an expression determines.
    """

    script: str
    options: tuple[str, ...]
    constants: Mapping[str, str]
    inputs: tuple[str, ...]


def _steps() -> Iterator[tuple[str, _Step]]:
    for file in sorted((ROOT / ".github").rglob("*.yml")):
        document: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
        for part in [*document.get("jobs", {}).values(), document.get("runs", {})]:
            for number, step in enumerate(part.get("steps", ())):
                if "run" in step:
                    variables = {**document.get("env", {}), **part.get("env", {}), **step.get("env", {})}
                    texts = {key: str(value) for key, value in variables.items()}
                    inputs = (
                        key
                        for key, value in texts.items()
                        if "${{" in value and re.search(rf"\b{key}\b", step["run"])
                    )
                    constants = {key: value for key, value in texts.items() if "${{" not in value}
                    options = _OPTIONS[step.get("shell", "")]
                    where = f"{file.parent.name}/{file.stem}-{number}"
                    yield where, _Step(step["run"], options, constants, tuple(inputs))


_STEPS: Final = dict(_steps())


def test_scripts_have_no_expressions() -> None:
    """An expression in a script would be replaced before the shell reads it."""
    assert [name for name, step in _STEPS.items() if "${{" in step.script] == []


@pytest.mark.parametrize(
    ("name", "variable"), [(name, variable) for name, step in _STEPS.items() for variable in step.inputs]
)
def test_an_input_is_no_command(name: str, variable: str, tmp_path: Path) -> None:
    """Whatever is entered, a step runs no command of it, and sets no variable of later steps."""
    step = _STEPS[name]
    install_fakes(tmp_path / "bin", PROGRAMS)
    for number, hostile in enumerate(HOSTILE):
        home, project = tmp_path / str(number), tmp_path / str(number) / "a" / "project"
        shutil.copytree(ROOT / ".github", project / ".github")
        for file in [*ROOT.glob("Pulumi*.yaml"), ROOT / "Makefile"]:
            shutil.copy(file, project)
        files = {key: str(home / key) for key in _FILES}
        environment = {
            "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
            **dict.fromkeys(("HOME", "FAKE_HOME", "RUNNER_TEMP"), str(home)),
            **files,
            **step.constants,
            **{key: _USUAL.get(key, "word") for key in step.inputs},
            variable: hostile,
        }
        command = ["bash", *step.options, "-c", step.script]
        subprocess.run(command, cwd=project, env=environment, capture_output=True, check=False)
        assert list(tmp_path.rglob("pwned*")) == [], hostile
        lines = [
            line
            for file in map(Path, files.values())
            if file.exists()
            for line in file.read_text(encoding="utf-8").splitlines()
        ]
        assert "HOSTILE=pwned" not in lines
