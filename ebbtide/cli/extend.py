"""The `extend` command. Its dependencies are imported on execution."""

from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.consoles import say
from ebbtide.cli.options import ConfigFile, Cwd, Stack, stack_files, stack_name
from ebbtide.values.given_command import given_command


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
    from ebbtide.cli.up import up  # noqa: PLC0415
    from ebbtide.operations.ending import expiry as extending  # noqa: PLC0415
    from ebbtide.operations.engine.backend import Backend  # noqa: PLC0415
    from ebbtide.values import clock  # noqa: PLC0415
    from ebbtide.values.clock import in_utc  # noqa: PLC0415

    name = stack_name(stack, config_file)
    files = stack_files(name.rpartition("/")[2], config_file, cwd)
    opened = Backend(files.root).opened(name, config_file)
    extension = extending.extension(name, files.declaration(), opened.state(), hours, clock.now())
    extending.check_policy(name, files.policy(), extension.hours)
    given = given_command()
    given.begin(name)
    given.happens(f"the lifetime is {extension.hours} hours in {files.config_file.name}")
    opened.configure(extending.PATH, extension.hours)
    say(
        f"Once it is updated, stack {name} expires at {in_utc(extension.after)}, not at "
        f"{in_utc(extension.before)}: lifetime is {extension.hours} hours in {files.config_file.name}."
    )
    up(name, yes=yes, config_file=config_file, cwd=cwd)
