"""The `destroy` command. Its dependencies are imported on execution."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.consoles import ExitStatus, console, say
from ebbtide.cli.options import ConfigFile, Cwd, SelectedStack, Yes, opened_stack, stack_name
from ebbtide.cli.up import can_ask, confirmed
from ebbtide.values.given_command import given_command

if TYPE_CHECKING:
    from collections.abc import Iterable


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

    def ask_orphans(question: str, lines: "Iterable[str]") -> bool:
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
