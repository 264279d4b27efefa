"""The `sleep` and `wake` commands. Their dependencies are imported on execution."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ebbtide.cli.consoles import ExitStatus, say
from ebbtide.cli.options import BackendStack, ConfigFile, Cwd, duration, opened_stack, stack_name
from ebbtide.errors import EbbtideError
from ebbtide.values.given_command import given_command

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
