"""A rehearsal from its tools to its report."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from ebbtide.model import Cluster, DeclarationError, declare
from ebbtide.preview.record_stack import record_stack
from ebbtide.preview.stack_files import StackFiles, read_stack, stack_named_by
from ebbtide.recording.failures import ProgramError
from ebbtide.rehearsal.cloud.kubernetes.sources import INDEX, indexed
from ebbtide.rehearsal.cloud.provider import RefusedError
from ebbtide.rehearsal.cloud.settings import Settings
from ebbtide.rehearsal.failures import RehearsalError
from ebbtide.rehearsal.report.document import Report
from ebbtide.rehearsal.scenarios.argo import TOOLS
from ebbtide.rehearsal.scenarios.general import general
from ebbtide.rehearsal.scenarios.model import RunPipeline, Scenario, Up
from ebbtide.rehearsal.scenarios.playing import Watch, play
from ebbtide.rehearsal.stage import stage
from ebbtide.rehearsal.tools import ITEMS, Say, Tools, ensure, needed


def needs(files: StackFiles, scenario: Scenario, home: Path) -> tuple[str, ...]:
    """The tools that a rehearsal asks for, by name: what can be used by one of the declarations that come up
    in it.

    Args:
        files: as `rehearse` takes them.
        scenario: what is played.
        home: the directory that files of the scenario are relative to.

    Raises:
        StackFileError: the stack's file cannot be read.
        DeclarationError: what the stack declares has faults.
        RehearsalError: the scenario's stack has no such file.
    """
    files = _declaring(files, scenario, home)
    declared = files.declaration()
    _cluster(files)
    changes = (step.change for step in scenario.steps if isinstance(step, Up))
    names = needed({addon for written in (declared, *changes) for addon in _addons(written)})
    runs = any(isinstance(step, RunPipeline) for step in scenario.steps)
    return (*names, *(TOOLS if runs else ()))


def tools(say: Say, names: Iterable[str] = ITEMS) -> Tools:
    """What a rehearsal runs with; everything, where nothing is said of the stack.

    Raises:
        ToolError: something can be neither found nor built.
    """
    return ensure(names, say=say)


def check_directories(manifests: tuple[Path, ...], charts: tuple[Path, ...]) -> None:
    """Check the directories of `--manifests` and `--charts` before anything is built.

    Raises:
        RehearsalError: one does not exist, or the index of manifests is missing or names a missing file.
    """
    for option, directories in (("manifests", manifests), ("charts", charts)):
        for directory in directories:
            if not directory.is_dir():
                raise RehearsalError(f"`--{option} {directory}`: there is no such directory.")
    for directory in manifests:
        try:
            missing = [path.name for path in indexed(directory).values() if not path.exists()]
        except RefusedError as error:
            raise RehearsalError(f"{error}. {_INDEX}") from None
        if missing:
            raise RehearsalError(
                f"{directory / INDEX} names {', '.join(missing)}, which is not in {directory}. {_INDEX}"
            )


_INDEX = (
    f"Write an {INDEX} with a line for each kustomization: its address as the program gives it, a colon, and "
    "the name of a file beside it with what `kubectl kustomize ADDRESS` prints."
)


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
        found: what `needs` names.
        home: the directory that files of the scenario are relative to.
        watch: is told of each step that has ended.
        manifests: directories with what kustomize would render, for what a network would be needed for.
        charts: directories with charts that the tools do not bring.
        keep: a directory for all of it, which stays.

    Raises:
        DeclarationError: what the stack declares has faults; nothing is started.
        RehearsalError: it cannot take place.
    """
    files = _declaring(files, scenario, home)
    _cluster(files)
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
    return general(_cluster(files))


def _cluster(files: StackFiles) -> Cluster:
    """The declaration in the stack's file, which a scenario changes and the outcome is compared with.

    Raises:
        DeclarationError: it has faults.
        RehearsalError: it is not whole, and the program completes it.
    """
    try:
        return declare(files.declaration(), default_name=files.cluster_name)
    except DeclarationError as error:
        missing = ", ".join(f"`{fault.path}`" for fault in error.faults)
        if not _is_accepted(files):
            raise
    # Not raised above: there the faults would be taken for its cause and reported in its place.
    raise RehearsalError(
        f"{files.config_file} declares a part of the cluster, and the program adds the rest. A rehearsal "
        f"reads the file alone: write there what is missing or refused, {missing}, under `ebbtide:cluster`."
    )


def _is_accepted(files: StackFiles) -> bool:
    """True where the program deploys the declaration in the stack's file."""
    try:
        record_stack(files)
    except ProgramError:
        return False
    return True


def _declaring(files: StackFiles, scenario: Scenario, home: Path) -> StackFiles:
    """The files of the stack that the scenario is about."""
    if scenario.stack is not None:
        config_file = home / scenario.stack
        named = stack_named_by(config_file)
        if named is None:
            raise RehearsalError(f"{config_file} is no stack's file: those are called Pulumi.<stack>.yaml.")
        files = read_stack(files.root, named, config_file=config_file)
    return files if scenario.declaration is None else files.declaring(scenario.declaration)


def _addons(written: Mapping[str, Any]) -> Iterator[str]:
    """The add-ons that are named in a declaration, or in a change of one, which may have faults."""
    addons = written.get("addons")
    if isinstance(addons, Mapping):
        yield from (
            str(name) for name, value in cast("Mapping[Any, Any]", addons).items() if value is not None
        )
