"""The door of the rehearsal, which alone the command line imports: scenarios, tools, rehearsals, and stacks
that stay."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal, TypeAlias

from rich.console import Console

from ebbtide import __version__ as core_version
from ebbtide.analysis.preview.stack_files import StackFiles
from ebbtide.operations.engine.interrupts import ending_signals
from ebbtide.text import install_command
from ebbtide.values import clock
from ebbtide_rehearsal import RehearsalError, __version__, rehearse
from ebbtide_rehearsal import stay as staying
from ebbtide_rehearsal.report import page
from ebbtide_rehearsal.report.document import Report
from ebbtide_rehearsal.scenarios import model as scenarios
from ebbtide_rehearsal.tools.__main__ import table
from ebbtide_rehearsal.tools.progress import narration

Format: TypeAlias = Literal["text", "json", "html"]


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
    return ((name, scenarios.read(path).title) for name, path in scenarios.built_in().items())


def reclaim(pool: str) -> str:
    """Let the cloud reclaim a spot node of a pool of the stack that stays; return the node."""
    return staying.reclaim(pool)


def show_tools(screen: Console) -> None:
    """Find or build the tools, and list them."""
    with narration(screen) as on_step:
        screen.print(table(rehearse.tools(on_step).by_name.values()))


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
        """Play the scenario."""
        rehearse.check_directories(self.manifests, self.charts)
        file = scenarios.chosen(self.scenario) if self.scenario else None
        selected = scenarios.read(file) if file else rehearse.scenario_of(self.files)
        base_directory = file.parent if file else self.files.root
        needs = rehearse.needs(self.files, selected, base_directory)
        with narration(self.screen) as on_step:
            installed = rehearse.tools(on_step, needs)
        self.screen.print(page.heading(selected.title, self.files.stack, selected.speed))
        with ending_signals(), page.narration(self.screen) as watch:
            return rehearse.rehearse(
                self.files,
                selected,
                installed,
                base_directory=base_directory,
                watch=watch,
                manifests=self.manifests,
                charts=self.charts,
                keep=self.keep,
            )

    def stay(self, limit: timedelta | None, say: Callable[[str], None]) -> bool:
        """Create the stack, say how other terminals get its environment, and wait.

        Args:
            limit: time until the end; None until Ctrl-C.
            say: prints a text.

        Returns:
            True if the stack is as declared.
        """
        rehearse.check_directories(self.manifests, self.charts)
        needs = rehearse.needs(self.files, rehearse.scenario_of(self.files), self.files.root)
        with ending_signals(), ExitStack() as ending:
            with narration(self.screen) as on_step:
                installed = rehearse.tools(on_step, needs)
                stack = staying.stay(
                    self.files,
                    installed,
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


def verdict(report: Report) -> str:
    """Return a report's verdict as a sentence."""
    return page.verdict(report)
