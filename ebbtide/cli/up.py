"""The `up` command. Its dependencies are imported on execution."""

import sys
import time
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.consoles import ExitStatus, console, say
from ebbtide.cli.doctor import quota_checks, show_checks
from ebbtide.cli.options import (
    BackendStack,
    ConfigFile,
    Cwd,
    Yes,
    duration,
    opened_stack,
    stack_name,
)
from ebbtide.errors import EbbtideError
from ebbtide.values import durations
from ebbtide.values.given_command import given_command

if TYPE_CHECKING:
    from rich.console import Console

    from ebbtide.analysis.preview.stack_files import StackFiles
    from ebbtide.analysis.recording.recording import Recording
    from ebbtide.operations.update.up import Update


def up(
    stack: BackendStack = None,
    *,
    yes: Yes = False,
    quotas: Annotated[
        bool, typer.Option("--quotas", help="Compare the stack's quotas with the cloud's limits first.")
    ] = False,
    no_drift_check: Annotated[
        bool, typer.Option("--no-drift-check", help="Do not read changed pools for changes by hand first.")
    ] = False,
    drain_timeout: Annotated[
        timedelta | None,
        typer.Option(
            parser=duration,
            metavar="DURATION",
            help="Time for work on replaced pools to finish, such as 1h; by default the pools' drainTimeout.",
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Print the engine's errors in full.")] = False,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Update a stack, and replace pools when their work has ended.

    It checks the policy, shows what changes, and runs your own `pulumi up`, with your backend and login. A
    pool whose change its cloud refuses is created anew beside the old one, which is deleted when its work has
    finished. Where the cloud recreates nodes itself, as GKE for another machine type, it names the work that
    this evicts. Pools that it changes are read first, for a warning of what was changed by hand. Interrupted,
    run it again. Exit status 1: the stack is not as declared, because you did not confirm, the policy or a
    quota forbids it, or the engine failed.
    """
    name = stack_name(stack, config_file)
    given_command().begin(name)
    from ebbtide.operations import access, drift
    from ebbtide.operations.engine import state
    from ebbtide.operations.leftovers.stack import existing_refusals, lost_state_refusals
    from ebbtide.operations.update import pool_replacement
    from ebbtide.operations.update.plan import plan_of
    from ebbtide.operations.update.up import Update

    files, _, opened = opened_stack(name, config_file, cwd)
    output = console(sys.stdout)
    update = Update(opened, files, output, drain_timeout, verbose)
    document, done = update.begin()
    deployment = document["deployment"]
    if begun := pool_replacement.interrupted(deployment):
        update.log(f"An earlier update was interrupted while it replaced {', '.join(begun)}; it continues.")
    before = update.baseline({**document, "deployment": pool_replacement.without_replacements(deployment)})
    recording = update.recorded(before)
    replaced = pool_replacement.refused(recording)
    with files.prices():
        plan = plan_of(recording, before, files, replaced, drain_timeout, done)
    question, evicted = update.evicted(plan, deployment)
    for line in (*plan.lines, *update.losses(plan), *evicted):
        update.log(line)
    refusals: list[str] = []
    if not plan.is_refused:
        refusals = [
            *_adoption_refusals(update, recording, deployment),
            *existing_refusals(update.stack, recording, deployment, update.log, verbose=update.verbose),
            *lost_state_refusals(recording, deployment, name),
        ]
        drifted = (
            () if no_drift_check else drift.overwritten(update.stack, deployment, plan.changed, replaced)
        )
        for line in (*refusals, *update.unplaceable(recording), *drifted):
            update.log(line)
    if plan.is_refused or refusals or (quotas and not _within_quotas(files, recording, output)):
        raise typer.Exit(ExitStatus.FOUND)
    if not confirmed(question, yes=yes):
        raise typer.Exit(ExitStatus.FOUND)
    start = time.monotonic()
    with access.reaching_own("pools are not replaced", name, state.read(deployment)):
        outcome = update.run(plan.changed)
    if outcome.interrupted:
        raise typer.Exit(ExitStatus.INTERRUPTED)
    if outcome.errors:
        raise typer.Exit(ExitStatus.FOUND)
    _conclude(update, time.monotonic() - start, plan.costs)


def _adoption_refusals(
    update: "Update", recording: "Recording", deployment: Mapping[str, Any]
) -> tuple[str, ...]:
    """Print what the engine would update of adopted resources, and return why it must not."""
    from ebbtide.operations.adopting import resources

    held = resources.held(recording, deployment, update.stack.completed())
    if not held:
        return ()
    update.log("Preview of the adopted resources by the engine:")
    checked = resources.check(update, recording, held)
    for line in checked.updates or ("nothing is updated",):
        update.log(f"  {line}")
    return checked.refusals


def _conclude(update: "Update", seconds: float, costs: Iterable[str]) -> None:
    """Print the end of an update; after changes also their number, the time that they took, and the cost."""
    update.log(f"Stack {update.stack.name} matches its declaration.")
    if counts := [f"{count} {word}" for word, count in update.made.items() if count]:
        for line in (f"{', '.join(counts)}, in {durations.elapsed(seconds)}.", *costs):
            update.log(line)


def _within_quotas(files: "StackFiles", recording: "Recording", output: "Console") -> bool:
    """Compare the stack's quotas with the cloud's limits; a cloud that does not answer allows the update."""
    try:
        checks = quota_checks(files, recording)
    except EbbtideError as error:
        output.print(f"Quotas are not checked: {error}", markup=False, soft_wrap=True)
        return True
    show_checks(files, checks)
    return all(check.request is None for own in checks.values() for check in own)


def confirmed(question: str, *, yes: bool) -> bool:
    """Ask the user on a terminal; without one, print the command that needs no confirmation."""
    if yes or can_ask():
        return yes or typer.confirm(question)
    say(given_command().unconfirmed(question))
    return False


def can_ask() -> bool:
    """Return whether the user can be asked."""
    return sys.stdin.isatty()
