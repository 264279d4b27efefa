"""The `sleep`, `wake`, `extend`, `reap` and `destroy` commands, importing what they need when they run."""

import sys
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.consoles import ExitStatus, console, say, write
from ebbtide.cli.options import (
    BackendStack,
    ConfigFile,
    Cwd,
    Format,
    PreviewFormat,
    SelectedStack,
    Stack,
    Yes,
    duration,
    opened_stack,
    stack_name,
)
from ebbtide.cli.up import can_ask, confirmed, up
from ebbtide.errors import EbbtideError
from ebbtide.values import clock, durations
from ebbtide.values.clock import in_utc
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.given_command import given_command

if TYPE_CHECKING:
    from rich.table import Table

    from ebbtide.operations.ending.expiry import Reaping
    from ebbtide.operations.sleep import Sleeper


class SleepOptionsError(EbbtideError):
    """Mutually exclusive options."""

    rule = "sleep-options"


def sleep(
    stack: BackendStack = None,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until running work has ended.")] = False,
    now: Annotated[
        bool, typer.Option("--now", help="End running work; work of queues runs again when the stack wakes.")
    ] = False,
    planned: Annotated[
        timedelta | None,
        typer.Option(
            "--for",
            parser=duration,
            metavar="DURATION",
            help="Time until the stack is woken, such as 11h; rejected if the stack expires before.",
        ),
    ] = None,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Stop a stack's machines and keep its waiting work.

    Queues are held, then AKS stops the cluster, and on GKE all node pools go to zero. An interrupted command
    continues with the same call. Exit status 1: work runs, and neither --wait nor --now is given, or the
    stack expires before it is woken; nothing was changed.
    """
    if wait and now:
        raise SleepOptionsError("--wait and --now exclude each other: write one of them.")
    opened = _opened(stack, config_file, cwd)
    from ebbtide.operations import sleep as sleeping

    running = sleeping.Running.WAIT if wait else sleeping.Running.END if now else sleeping.Running.REFUSE
    if not sleeping.sleep(opened, running, say, planned):
        raise typer.Exit(ExitStatus.FOUND)


def wake(stack: BackendStack = None, *, config_file: ConfigFile = None, cwd: Cwd = Path()) -> None:
    """Start a sleeping stack's machines and release its queues.

    An interrupted command continues with the same call. In a region without capacity the cloud may be unable
    to start the machines.
    """
    opened = _opened(stack, config_file, cwd)
    from ebbtide.operations import sleep as sleeping

    sleeping.wake(opened, say)


def _opened(stack: str | None, config_file: Path | None, cwd: Path) -> "Sleeper":
    name = stack_name(stack, config_file)
    given_command().begin(name)
    from ebbtide.clients.clouds import connect
    from ebbtide.operations.sleep import sleeper

    files, _, opened = opened_stack(name, config_file, cwd)
    with files.prices():
        return sleeper(
            name,
            opened.exported(),
            opened.outputs(),
            lambda cluster: connect.cluster_power(cluster.cloud, cluster.id, cluster.pools),
        )


def _account(kind: str) -> Any:
    help_ = f"Additional {kind} to search; repeatable."
    return typer.Option(metavar="ID", help=help_)


def reap(
    stacks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="STACK", help="Stacks, or patterns such as 'pr-*'; by default all of the project."
        ),
    ] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Destroy them instead of listing.")] = False,
    format_: Format = PreviewFormat.TEXT,
    google_project: Annotated[list[str] | None, _account("Project")] = None,
    azure_subscription: Annotated[list[str] | None, _account("Subscription")] = None,
    only_resources: Annotated[
        bool,
        typer.Option("--only-resources", help="Destroy resources without a stack alone; list the stacks."),
    ] = False,
    delete_data: Annotated[
        bool, typer.Option("--delete-data", help="Also delete disks and snapshots without a stack.")
    ] = False,
    cwd: Cwd = Path(),
) -> None:
    """List expired stacks and resources, or destroy them.

    The stacks are those of `pulumi stack ls`, with your backend and login; the expiry is in their state. Each
    is destroyed as by `ebbtide destroy`, and a failure does not stop the others. The expiry is read again
    under the lock of the stack. With credentials, the cloud is asked for expired resources that no
    state of the backend knows. Name the stacks of one identity if the project has several, as in CI. Exit
    status 1: an expired stack or resource remains, or a project or subscription that you named cannot be
    searched. Exit status 2: the machine's clock is wrong, or with --yes none could be started.
    """
    given = given_command()
    if yes:
        given.begin()
    from ebbtide.clients.clouds.interfaces import Account
    from ebbtide.declaration.project.configuration import project_directory
    from ebbtide.operations.ending import expiry as reaping
    from ebbtide.operations.engine.backend import Backend

    now = clock.now()
    backend = Backend(project_directory(cwd.resolve()), stacks or ())
    accounts = [
        *(Account(CloudKind.GKE, name) for name in google_project or ()),
        *(Account(CloudKind.AKS, name) for name in azure_subscription or ()),
    ]
    groups, notes = reaping.find_unmanaged(backend, accounts, now)
    reaping.check_clock()
    report = reaping.expired(backend, now, groups, notes)
    if yes:
        report = reaping.reap(
            backend,
            report,
            groups,
            now,
            console(sys.stderr if format_ is PreviewFormat.JSON else sys.stdout),
            only_resources=only_resources,
            deletes_data=delete_data,
        )
    if format_ is PreviewFormat.JSON:
        write(report.model_dump_json(indent=2) + "\n", None)
    else:
        _show(report, now)
        if not yes and (report.stacks or report.resources):
            say(f"Destroy them with: {given.again('--yes')}")
        elif any(item.outcome == "failed" for item in (*report.stacks, *report.resources)):
            say(f"Continue with: {given.again()}")
    if yes and report.is_refused:
        raise typer.Exit(ExitStatus.WRONG)
    if not report.is_done or {*accounts} - {group.account for group in groups}:
        raise typer.Exit(ExitStatus.FOUND)


def _show(report: "Reaping", now: datetime) -> None:
    """Print tables of what has expired, and reasons why some remain."""
    output = console(sys.stdout)
    if report.stacks:
        output.print(_table(report, now))
    else:
        say("No stack has expired.")
    if report.resources:
        output.print("\nExpired resources that no state of the backend knows:", soft_wrap=True)
        output.print(_resources(report))
    for name, error in (
        *((stack.stack, stack.error) for stack in report.stacks),
        *((resource.name, resource.error) for resource in report.resources),
    ):
        if error:
            output.print(f"{name}: {error}", markup=False, soft_wrap=True)
    if any(resource.outcome == "kept" for resource in report.resources):
        output.print("Resources with data are kept without --delete-data.", markup=False, soft_wrap=True)
    for note in report.notes:
        output.print(note, markup=False, soft_wrap=True)


def _resources(report: "Reaping") -> "Table":
    from ebbtide.analysis.preview.fitted_table import plain_table

    table = plain_table("KIND", "NAME", "LOCATION", "EXPIRED AT", "$/H", "STATE", right=("$/H",))
    for item in report.resources:
        cost = "?" if item.usd_per_hour is None else f"{item.usd_per_hour:.4f}"
        table.add_row(item.kind, item.name, item.location, in_utc(item.expires), cost, item.outcome)
    return table


def _table(report: "Reaping", now: datetime) -> "Table":
    from ebbtide.analysis.preview.fitted_table import plain_table

    columns = ("STACK", "EXPIRED AT", "AGO", "CLUSTER", "IDLE $/H", "STATE")
    table = plain_table(*columns, right=("IDLE $/H",), whole=("STACK",))
    for stack in report.stacks:
        cost = stack.idle_usd_per_hour
        table.add_row(
            stack.stack,
            in_utc(stack.expires) if stack.expires else "?",
            durations.rounded(now - stack.expires) if stack.expires else "",
            ", ".join(stack.clusters),
            "?" if cost is None else f"{'~' if stack.estimated else ''}{cost:.2f}",
            stack.outcome,
        )
    return table


def extend(
    stack: Stack = None,
    *,
    hours: Annotated[int, typer.Option(min=1, help="Hours to add, from now on if it has expired.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation of the update.")] = False,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Extend the lifetime of a stack.

    It writes the longer `lifetime` to the stack's file, then updates the stack as `ebbtide up` does: the
    label `ebbtide-expires` of all resources moves in place. A permanent stack, one without a cluster and one
    whose policy limits the lifetime are refused. Exit status 1: the stack is not updated, and expires as
    before.
    """
    name = stack_name(stack, config_file)
    given = given_command()
    given.begin(name)
    from ebbtide.operations.ending import expiry as extending

    files, _, opened = opened_stack(name, config_file, cwd)
    extension = extending.extension(name, files.declaration(), opened.state(), hours, clock.now())
    extending.check_policy(name, files.policy(), extension.hours)
    given.happens(f"the lifetime is {extension.hours} hours in {files.config_file.name}")
    opened.configure(extending.PATH, extension.hours)
    say(
        f"Once it is updated, stack {name} expires at {in_utc(extension.after)}, not at "
        f"{in_utc(extension.before)}: lifetime is {extension.hours} hours in {files.config_file.name}."
    )
    up(name, yes=yes, config_file=config_file, cwd=cwd)


def destroy(
    stack: SelectedStack = None,
    *,
    yes: Yes = False,
    confirm_name: Annotated[
        str | None,
        typer.Option(
            metavar="STACK", help="Name of the stack, to confirm the destruction of a permanent one."
        ),
    ] = None,
    keep_volumes: Annotated[
        bool, typer.Option("--keep-volumes", help="Keep the disks of users' volumes.")
    ] = False,
    delete_orphans: Annotated[
        bool,
        typer.Option("--delete-orphans", help="Delete resources of the cluster that remain in the cloud."),
    ] = False,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Destroy a stack after listing the work that would end.

    Users' load balancers and volumes are deleted first, then your own `pulumi destroy` runs, with your
    backend and login; at the end the cloud is asked what is left of the cluster. A permanent stack is
    confirmed by its name. Exit status 1: something remains, because you did not confirm, the engine failed
    midway, or buckets and disks remain. Exit status 2: nothing was changed, as in another project or
    subscription than the stack's.
    """
    given = given_command()
    given.begin()
    from ebbtide.operations.ending import destroy as destroying

    name = stack_name(stack, config_file) if stack or config_file else _selected(cwd)
    given.begin(name)
    files, _, opened = opened_stack(name, config_file, cwd)
    is_asked = can_ask() and not yes

    def ask_name(question: str) -> str | None:
        return typer.prompt(question) if confirm_name is None and is_asked else confirm_name

    def ask_orphans(question: str, lines: Iterable[str]) -> bool:
        if delete_orphans or not is_asked:
            return delete_orphans
        for line in lines:
            say(line)
        return typer.confirm(question)

    options = destroying.Options(
        config_file=files.config_file.name,
        confirm=partial(confirmed, yes=yes),
        ask_name=ask_name,
        ask_orphans=ask_orphans,
        config=files.config,
        declaration=files.declaration() if files.source else {},
        keep_volumes=keep_volumes,
    )
    outcome = destroying.destroy(opened, options, console(sys.stdout))
    if outcome and outcome.interrupted:
        raise typer.Exit(ExitStatus.INTERRUPTED)
    if outcome is None or outcome.leftovers or not outcome.done:
        raise typer.Exit(ExitStatus.FOUND)


def _selected(cwd: Path) -> str:
    """Return the stack that `pulumi stack select` selected, as `pulumi destroy` does.

    Raises:
        OperationError: none is selected.
    """
    from ebbtide.declaration.project.configuration import project_directory
    from ebbtide.operations.engine.backend import Backend
    from ebbtide.operations.engine.failures import OperationError

    if (name := Backend(project_directory(cwd.resolve())).selected) is None:
        again = given_command().on_stack("destroy", "STACK")
        raise OperationError(f"No stack is named, and Pulumi has none selected. Write: {again}")
    return name
