"""Compiled pipelines of a scenario."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import ebbtide
from ebbtide.kubernetes_api.parts import part
from ebbtide.placement import Profile
from ebbtide_rehearsal.control_plane.stages import RUNS, RUNS_FOR
from ebbtide_rehearsal.failures import RehearsalError
from ebbtide_rehearsal.pipelines.compiled import UnsupportedPipelineError, read
from ebbtide_rehearsal.pipelines.templates import LAUNCHED
from ebbtide_rehearsal.pipelines.workflow import workflow
from ebbtide_rehearsal.scenarios.model import RunPipeline
from ebbtide_rehearsal.scenarios.observer import SUBMITTED_LABEL

_BASE_DIRECTORY: Final = "{home}"


def run_of(step: RunPipeline, profile: Profile, base_directory: Path, speed: float) -> dict[str, Any]:
    """Return the Workflow of a pipeline's run.

    Args:
        step: the pipeline and its arguments.
        profile: the cluster's profile.
        base_directory: the scenario's directory.
        speed: simulated seconds per second, by which the waits between retries are divided.

    Raises:
        RehearsalError: the program fails or writes no such file, or the pipeline uses an unsupported feature.
    """
    content = _compiled(step, profile, base_directory)
    try:
        compiled = read(content)
    except UnsupportedPipelineError as error:
        raise RehearsalError(f"{step.program} cannot be rehearsed: {error}") from None
    arguments = _arguments(step.arguments, base_directory)
    run = workflow(compiled, arguments, {RUNS: "process"}, speed=speed)
    run["metadata"]["labels"] = {SUBMITTED_LABEL: "true"}
    for template in run["spec"]["templates"] if step.runs_for else ():
        if LAUNCHED.items() <= part(template, "metadata", "annotations").items():
            template["metadata"]["annotations"][RUNS_FOR] = f"{step.runs_for:g}"
    return run


def _arguments(given: Mapping[str, Any], base_directory: Path) -> dict[str, Any]:
    return {
        name: value.replace(_BASE_DIRECTORY, str(base_directory.resolve()))
        if isinstance(value, str)
        else value
        for name, value in given.items()
    }


def _compiled(step: RunPipeline, profile: Profile, base_directory: Path) -> str:
    """Run the program in an empty directory, and return the compiled pipeline that it writes."""
    package = Path(ebbtide.__file__).parent.parent
    environment = os.environ | {"EBBTIDE_PROFILE": profile.json(), "PYTHONPATH": str(package)}
    program = (base_directory / step.program).resolve()
    with TemporaryDirectory() as folder:
        done = subprocess.run(  # noqa: S603 - the user's own
            [sys.executable, str(program)],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RehearsalError(f"{program} fails: {''.join(done.stderr.strip().splitlines()[-1:])}")
        files = {file.stem: file for file in sorted(Path(folder).glob("*.yaml"))}
        chosen = step.pipeline or next(iter(files), "")
        if chosen not in files or (len(files) > 1 and not step.pipeline):
            written = ", ".join(f"{name}.yaml" for name in files) or "no file"
            raise RehearsalError(f"{program} writes {written}: select one with `pipeline`, without .yaml.")
        return files[chosen].read_text(encoding="utf-8")
