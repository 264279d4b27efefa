"""The `sleep` and `wake` commands. Their dependencies are imported on execution."""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.consoles import ExitStatus, say
from ebbtide.cli.options import BackendStack, ConfigFile, Cwd, duration, stack_name
from ebbtide.errors import EbbtideError
from ebbtide.text import command_line
from ebbtide.values import durations

if TYPE_CHECKING:
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
            show_default=False,
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
    from ebbtide.operations import sleep as sleeping  # noqa: PLC0415

    if wait and now:
        raise SleepOptionsError("--wait and --now exclude each other: write one of them.")
    running = sleeping.Running.WAIT if wait else sleeping.Running.END if now else sleeping.Running.REFUSE
    options = [option for option, given in (("--wait", wait), ("--now", now)) if given]
    options += ["--for", durations.in_one_unit(planned)] if planned else []
    with _resumable("sleep", stack_name(stack, config_file), options, config_file, cwd):
        done = sleeping.sleep(_opened(stack, config_file, cwd), running, say, planned)
    if not done:
        raise typer.Exit(ExitStatus.FOUND)


def wake(stack: BackendStack = None, *, config_file: ConfigFile = None, cwd: Cwd = Path()) -> None:
    """Start a sleeping stack's machines and release its queues.

    An interrupted command continues with the same call. In a region without capacity the cloud may be unable
    to start the machines.
    """
    from ebbtide.operations import sleep as sleeping  # noqa: PLC0415

    with _resumable("wake", stack_name(stack, config_file), [], config_file, cwd):
        sleeping.wake(_opened(stack, config_file, cwd), say)


def _opened(stack: str | None, config_file: Path | None, cwd: Path) -> "Sleeper":
    from ebbtide.analysis.preview.stack_files import read_stack  # noqa: PLC0415
    from ebbtide.clients.clouds import connect  # noqa: PLC0415
    from ebbtide.operations.backend import Backend  # noqa: PLC0415
    from ebbtide.operations.sleep import sleeper  # noqa: PLC0415

    name = stack_name(stack, config_file)
    files = read_stack(cwd, name.rpartition("/")[2], config_file=config_file)
    opened = Backend(files.root).opened(name, config_file)
    with files.prices():
        return sleeper(
            name,
            opened.exported(),
            opened.outputs(),
            lambda cluster: connect.cluster_power(cluster.cloud, cluster.id, cluster.pools),
        )


@contextmanager
def _resumable(
    command: str, stack: str, options: list[str], config_file: Path | None, cwd: Path
) -> Generator[None]:
    """Print the command to continue with on Ctrl-C."""
    try:
        yield
    except KeyboardInterrupt:
        directory_options = ["--cwd", str(cwd)] if cwd != Path() else []
        config_options = ["--config-file", str(config_file)] if config_file else []
        again = command_line(command, stack, *options, *config_options, *directory_options)
        say(f"Interrupted. Continue with: {again}", err=True)
        raise typer.Exit(ExitStatus.INTERRUPTED) from None
