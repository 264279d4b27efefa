"""The command `ebbtide rehearse`: scenarios, tools, rehearsals, and stacks that stay. The command line
imports this module alone.
"""

import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from rich.console import Console

from ebbtide import __version__ as core_version
from ebbtide.analysis.preview.stack_files import StackFiles, read_stack, record_stack, stack_named_by
from ebbtide.analysis.recording.program import ProgramError
from ebbtide.declaration.model.addons import ReleasedAddOn
from ebbtide.declaration.model.cloud import Aks, Gke
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.operations.engine.interrupts import ending_signals
from ebbtide.text import install_command
from ebbtide.values import clock
from ebbtide_rehearsal import RehearsalError, __version__
from ebbtide_rehearsal.cloud.existing import tools_of
from ebbtide_rehearsal.cloud.running import CloudSettings
from ebbtide_rehearsal.report import page
from ebbtide_rehearsal.report.document import Report
from ebbtide_rehearsal.scenarios.argo import TOOLS
from ebbtide_rehearsal.scenarios.model import RunPipeline, Scenario, Up, built_in, chosen, general, read
from ebbtide_rehearsal.scenarios.runner import play
from ebbtide_rehearsal.stage import indexed, stage
from ebbtide_rehearsal.stay import reclaim, stay
from ebbtide_rehearsal.tools.__main__ import table
from ebbtide_rehearsal.tools.find import ensure
from ebbtide_rehearsal.tools.progress import narrated, narration
from ebbtide_rehearsal.tools.table import all_items, needed

__all__ = [
    "Rehearsal",
    "RehearsalError",
    "check_version",
    "document",
    "needs",
    "reclaim",
    "scenario_of",
    "scenario_titles",
    "show",
    "show_tools",
    "verdict",
]

Format: TypeAlias = Literal["text", "json", "html"]

verdict: Final = page.verdict


def check_version() -> None:
    """Check that both distributions have the same version.

    Raises:
        RehearsalError: they have not.
    """
    if __version__ != core_version:
        raise RehearsalError(
            f"The rehearsal is {__version__} and runs the internals of Ebbtide, which is "
            f"{core_version}. Install the same version of both with: {install_command('rehearse')}."
        )


def scenario_titles() -> Iterator[tuple[str, str]]:
    """Yield the names and titles of the built-in scenarios."""
    return ((name, read(path).title) for name, path in built_in().items())


def show_tools(screen: Console) -> None:
    """Find or build the tools, and list them."""
    screen.print(table(narrated(all_items(), screen).by_name.values()))


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A rehearsal of a stack.

    Attributes:
        screen: console for progress.
        scenario: file or name of a scenario; None for that of every stack.
        manifests: directories with manifests that kustomize would fetch.
        charts: directories with charts that helm would fetch.
        keep: directory to keep state and logs in.
    """

    files: StackFiles
    screen: Console
    scenario: str | None = None
    manifests: tuple[Path, ...] = ()
    charts: tuple[Path, ...] = ()
    keep: Path | None = None

    def run(self) -> Report:
        """Play the scenario.

        Raises:
            DeclarationError: the stack's declaration is invalid; nothing was started.
            RehearsalError: the rehearsal could not run.
        """
        check_directories(self.manifests, self.charts)
        file = chosen(self.scenario) if self.scenario else None
        selected = read(file) if file else scenario_of(self.files)
        base_directory = file.parent if file else self.files.root
        names = needs(self.files, selected, base_directory)
        installed = narrated(names, self.screen)
        self.screen.print(page.heading(selected.title, self.files.stack, selected.speed))
        files = _declaring(self.files, selected, base_directory)
        settings = CloudSettings(speed=selected.speed, declaration=files.declaration())
        with (
            ending_signals(),
            page.narration(self.screen) as watch,
            stage(
                files, settings, installed, manifests=self.manifests, charts=self.charts, keep=self.keep
            ) as on,
        ):
            return play(selected, on, base_directory, watch)

    def stay(self, limit: timedelta | None, say: Callable[[str], None]) -> bool:
        """Create the stack, say how other terminals get its environment, and wait.

        Args:
            limit: time until the end; None until Ctrl-C.
            say: prints a text.

        Returns:
            True if the stack is as declared.
        """
        check_directories(self.manifests, self.charts)
        names = needs(self.files, scenario_of(self.files), self.files.root)
        with ending_signals(), ExitStack() as ending:
            with narration(self.screen) as on_step:
                stack = stay(
                    self.files,
                    ensure(names, on_step=on_step),
                    on_step,
                    manifests=self.manifests,
                    charts=self.charts,
                    keep=self.keep,
                )
                up = ending.enter_context(stack)
            status = up.create()
            end = clock.now() + limit if limit is not None else None
            until = f"until {end:%Y-%m-%d %H:%M} UTC or Ctrl-C" if end else "until Ctrl-C"
            outcome = "as declared" if status == 0 else "not as declared"
            say(
                f"\nStack {self.files.stack} is {outcome}, and stays {until}. In another terminal:\n\n"
                f"    source {up.exports}\n"
            )
            up.wait(limit)
        kept = f"Its files are in {self.keep}." if self.keep else "Nothing is left."
        say(f"The rehearsal has ended. {kept}")
        return status == 0


def document(report: Report, format_: Format) -> str:
    """Return a report as JSON, or as an HTML page."""
    return page.render(report) if format_ == "html" else report.model_dump_json(indent=2) + "\n"


def show(report: Report, screen: Console, *, whole: bool) -> None:
    """Print a report; unless it is the whole, its steps are already on the screen."""
    if whole:
        page.write(report, screen)
    else:
        screen.print(page.ending(report))


def needs(files: StackFiles, scenario: Scenario, base_directory: Path) -> tuple[str, ...]:
    """Return the names of the tools that the rehearsal's declarations need.

    Args:
        files: as for `rehearse`.
        base_directory: the base directory of the scenario's relative paths.

    Raises:
        StackFileError: the stack's file is unreadable.
        DeclarationError: the stack's declaration is invalid.
        RehearsalError: the scenario's stack file does not exist, or this platform cannot rehearse it.
    """
    files = _declaring(files, scenario, base_directory)
    declared = files.declaration()
    cluster = _cluster(files)
    _check_platform(cluster.cloud)
    _check_releases(cluster)
    changes = (step.change for step in scenario.steps if isinstance(step, Up))
    names = needed({addon for written in (declared, *changes) for addon in _addons(written)})
    runs = any(isinstance(step, RunPipeline) for step in scenario.steps)
    return (*names, *tools_of(declared), *(TOOLS if runs else ()))


def _check_releases(cluster: Cluster) -> None:
    """Check that the add-ons have the releases that a rehearsal runs."""
    kueue = cluster.addons.kueue
    if kueue is not None and kueue.is_managed:
        raise RehearsalError(
            "The declaration has the managed Kueue of AKS, which no rehearsal installs: rehearse without "
            "addons.kueue.install."
        )
    for add_on in cluster.installed:
        if isinstance(add_on, ReleasedAddOn) and not add_on.is_tested:
            raise RehearsalError(
                f"The declaration has {add_on.spec.title} {add_on.version}, and a rehearsal only "
                f"{add_on.pin.version}: rehearse without addons.{add_on.spec.name}.version and digest."
            )


def _check_platform(cloud: Gke | Aks) -> None:
    """Check the platform before anything is built.

    Sources: pkg.go.dev, crypto/x509, SystemCertPool (Go 1.26), which reads `SSL_CERT_FILE` on other Unix
    systems than macOS; docs.python.org, os.killpg, which is for Unix alone (2026).
    """
    if platform.system() == "Windows":
        raise RehearsalError(
            "A rehearsal does not run on Windows, which lacks the process groups that end its programs. Run "
            "it in WSL 2."
        )
    if platform.system() == "Darwin" and isinstance(cloud, Gke) and not cloud.access.private:
        raise RehearsalError(
            "A rehearsal of GKE's DNS endpoint does not run on macOS: its certificate is publicly trusted, "
            "and Go programs on macOS cannot be told to trust that of the fake endpoint. Run it in a Linux "
            "container or virtual machine, or rehearse a private cluster or AKS."
        )


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
        indexed(directory)


def scenario_of(files: StackFiles) -> Scenario:
    """Build the default scenario of a stack from its declaration.

    Raises:
        DeclarationError: the declaration has faults.
    """
    return general(_cluster(files))


def _cluster(files: StackFiles) -> Cluster:
    """Return the declaration in the stack's file, the base of a scenario's changes and comparisons.

    Raises:
        DeclarationError: it is invalid.
        RehearsalError: it is incomplete, and the program completes it.
    """
    try:
        return declare(files.declaration(), default_name=files.cluster_name)
    except DeclarationError as error:
        missing = ", ".join(f"`{fault.path}`" for fault in error.faults)
        if not _is_accepted(files):
            raise
    # Not raised in the handler, which would report the validation errors as its cause.
    raise RehearsalError(
        f"{files.config_file} declares a part of the cluster, and the program adds the rest. A rehearsal "
        f"reads only the file: write the missing or refused fields, {missing}, under `ebbtide:cluster`."
    )


def _is_accepted(files: StackFiles) -> bool:
    """Check that the program deploys the declaration in the stack's file."""
    try:
        record_stack(files)
    except ProgramError:
        return False
    return True


def _declaring(files: StackFiles, scenario: Scenario, base_directory: Path) -> StackFiles:
    """Return the files of the scenario's stack."""
    if scenario.stack is not None:
        config_file = base_directory / scenario.stack
        named = stack_named_by(config_file)
        if named is None:
            raise RehearsalError(
                f"{config_file} is not a stack's file: its name must be Pulumi.<stack>.yaml."
            )
        files = read_stack(files.root, named, config_file=config_file)
    return files if scenario.declaration is None else files.declaring(scenario.declaration)


def _addons(written: Mapping[str, Any]) -> Iterator[str]:
    """Return the add-ons named in a declaration or a change, which may be invalid."""
    addons = written.get("addons")
    if isinstance(addons, Mapping):
        yield from (
            str(name) for name, value in cast("Mapping[Any, Any]", addons).items() if value is not None
        )
