"""A rehearsal from its tools to its report."""

from pathlib import Path

from ebbtide.model import declare
from ebbtide.preview.stack_files import StackFiles, read_stack, stack_named_by
from ebbtide.rehearsal.cloud.settings import Settings
from ebbtide.rehearsal.failures import RehearsalError
from ebbtide.rehearsal.report.document import Report
from ebbtide.rehearsal.scenarios.general import general
from ebbtide.rehearsal.scenarios.model import Scenario
from ebbtide.rehearsal.scenarios.playing import Watch, play
from ebbtide.rehearsal.stage import stage
from ebbtide.rehearsal.tools import ITEMS, Say, Tools, ensure


def tools(say: Say) -> Tools:
    """Everything that a rehearsal runs with.

    Raises:
        ToolError: something can be neither found nor built.
    """
    return ensure(ITEMS, say=say)


def rehearse(
    files: StackFiles,
    scenario: Scenario,
    found: Tools,
    *,
    home: Path,
    watch: Watch,
    manifests: tuple[Path, ...] = (),
    charts: tuple[Path, ...] = (),
    keep: Path | None = None,
) -> Report:
    """Play a scenario on a stack.

    Args:
        files: the project and the stack that is rehearsed where the scenario names none.
        scenario: what to do and what must come of it.
        found: see `tools`.
        home: the directory that files of the scenario are relative to.
        watch: is told of each step that has ended.
        manifests: directories with what kustomize would render, for what a network would be needed for.
        charts: directories with charts that the tools do not bring.
        keep: a directory for all of it, which stays.

    Raises:
        DeclarationError: what the stack declares has faults; nothing is started.
        RehearsalError: it cannot take place.
    """
    if scenario.stack is not None:
        config_file = home / scenario.stack
        named = stack_named_by(config_file)
        if named is None:
            raise RehearsalError(f"{config_file} is no stack's file: those are called Pulumi.<stack>.yaml.")
        files = read_stack(files.root, named, config_file=config_file)
    if scenario.declaration is not None:
        files = files.declaring(scenario.declaration)
    declare(files.declaration(), default_name=files.cluster_name)
    settings = Settings(
        speed=scenario.speed,
        manifests=tuple(str(directory.resolve()) for directory in manifests),
        charts=tuple(str(directory.resolve()) for directory in charts),
        declaration=files.declaration(),
    )
    with stage(files, settings, found, keep=keep) as on:
        return play(scenario, on, home, watch)


def scenario_of(files: StackFiles) -> Scenario:
    """The scenario for a stack of which nothing is known but its declaration.

    Raises:
        DeclarationError: the declaration has faults.
    """
    return general(declare(files.declaration(), default_name=files.cluster_name))
