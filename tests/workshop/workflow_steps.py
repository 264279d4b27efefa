"""The shell of the steps of the workflows and actions, run with fakes of the programs that they call."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.repository import ROOT
from tests.workshop import fake_programs

PROGRAMS: Final = ("az", "ebbtide", "gcloud", "gh", "go", "jq", "make", "pulumi", "python")
_FILES: Final = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")
_OPTIONS: Final = {"bash": ("--noprofile", "--norc", "-eo", "pipefail"), "": ("-e",)}
"""Options of bash by `shell` (docs.github.com, workflow syntax, `jobs.<job_id>.steps[*].shell`, 2026-11)."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step with a script.

    Attributes:
        constants: variables that are written in the workflow.
        inputs: variables of the script that an expression determines.
    """

    script: str
    options: tuple[str, ...]
    constants: Mapping[str, str]
    inputs: tuple[str, ...]

    def run(self, home: Path, project: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the script in a project; calls, outputs and the summary are files of `home`."""
        if not (home / "bin").exists():
            install_fakes(home / "bin", PROGRAMS)
        (home / "GITHUB_OUTPUT").write_text("")
        environment = {
            "PATH": f"{home / 'bin'}:{os.environ['PATH']}",
            **dict.fromkeys(("HOME", "FAKE_HOME", "RUNNER_TEMP"), str(home)),
            **{name: str(home / name) for name in _FILES},
            **self.constants,
            **variables,
        }
        command = ["bash", *self.options, "-c", self.script]
        return subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True, check=False
        )


def _steps(file: Path) -> Iterator[tuple[str, Step]]:
    document: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    where = file.parent.name if file.stem == "action" else file.stem
    for part in [*document.get("jobs", {}).values(), document.get("runs", {})]:
        for number, step in enumerate(part.get("steps", ())):
            if "run" in step:
                variables = {**document.get("env", {}), **part.get("env", {}), **step.get("env", {})}
                texts = {key: str(value) for key, value in variables.items()}
                inputs = [
                    key
                    for key, value in texts.items()
                    if "${{" in value and re.search(rf"\b{key}\b", step["run"])
                ]
                constants = {key: value for key, value in texts.items() if "${{" not in value}
                options = _OPTIONS[step.get("shell", "")]
                name = f"{where}: {step.get('name', number)}"
                yield name, Step(step["run"], options, constants, tuple(inputs))


STEPS: Final = {
    name: step for file in sorted((ROOT / ".github").rglob("*.yml")) for name, step in _steps(file)
}
"""The steps with a script, by workflow or action, and name."""


def install_fakes(directory: Path, programs: Iterable[str]) -> None:
    """Write fakes of programs into a new directory for PATH."""
    directory.mkdir(parents=True)
    text = Path(fake_programs.__file__).read_text(encoding="utf-8")
    for name in programs:
        (directory / name).write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
        (directory / name).chmod(0o755)


def calls(home: Path, program: str) -> list[str]:
    """Return the calls of a program, without its name."""
    log = home / "calls"
    made = [json.loads(line)["argv"] for line in log.read_text().splitlines()] if log.exists() else []
    return [" ".join(words) for name, *words in made if name == program]
