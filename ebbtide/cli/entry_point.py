"""The command line. Dependencies of commands are imported on execution, so that `--help` is fast.

Exit status: 0 success; 1 success with a negative result; 2 wrong declaration or call; 3 a bug in Ebbtide.
Errors go to standard error as sentences.
"""

import contextlib
import functools
import gc
import inspect
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, ParamSpec, cast

import typer
from typer.core import TyperGroup

from ebbtide import __version__, lazy_packages
from ebbtide.cli import config as config_commands
from ebbtide.cli.adopt import adopt
from ebbtide.cli.consoles import ExitStatus, discard_output, prepare_streams, say, write
from ebbtide.cli.cost import cost
from ebbtide.cli.cp import cp
from ebbtide.cli.doctor import doctor, quota
from ebbtide.cli.error_output import advice, explain, message_of, unexplained
from ebbtide.cli.follow import follow
from ebbtide.cli.init import init
from ebbtide.cli.job import job
from ebbtide.cli.jobs import cancel, jobs, rerun, why
from ebbtide.cli.lifecycle import destroy, extend, reap, sleep, wake
from ebbtide.cli.logs import logs
from ebbtide.cli.machines import machines, prices_refresh
from ebbtide.cli.options import Command, PreviewFormat, stack_files, stack_names
from ebbtide.cli.profile import profile, schema
from ebbtide.cli.rehearse import rehearse
from ebbtide.cli.replay import replay, trace_export, trace_fetch
from ebbtide.cli.review import preview, review, write_failure
from ebbtide.cli.run import RunCommand, run, sweep
from ebbtide.cli.sessions import notebook, shell
from ebbtide.cli.status import drift, status
from ebbtide.cli.up import up
from ebbtide.operations.engine.interrupts import is_for_interrupt, keep_interrupts
from ebbtide.text import command_line

if TYPE_CHECKING:
    from ebbtide.declaration.project.source import Source

EXAMPLES: Final[Mapping[str, str]] = {
    "init": "init ml --project acme-ml --machines t4",
    "preview": "preview dev --format json --out preview.json",
    "review": "review dev --against main",
    "schema": "schema stack --out stack.schema.json",
    "machines": "machines --gpu t4 --region us-central1",
    "prices refresh": "prices refresh dev --out prices.csv",
    "quota": "quota dev",
    "profile": "profile dev --out profile.json",
    "run": "run --queue t4 --gpus 1 -- python train.py",
    "shell": "shell --queue t4 --gpus 1 --idle 30m",
    "notebook": "notebook --queue t4 --gpus 1",
    "job": (
        "job train --profile profile.json --queue t4 \\\n"
        "      --gpus 4 --cpu 4 --memory 40Gi -- python train.py"
    ),
    "sweep": (
        "sweep seeds --profile profile.json --pool cpu-spot \\\n"
        "      --set lr=0.1,0.01 --set seed=1,2,3 -- python train.py"
    ),
    "config set": "config set queue=t4 image=python:3.13-slim",
    "config get": "config get queue",
    "config unset": "config unset queue",
    "logs": "logs train --follow",
    "cp": "cp train:model.pt results --namespace vision",
    "cost": "cost --since 7d --by user",
    "follow": "follow train --namespace vision",
    "jobs": "jobs --all --namespace vision",
    "why": "why train --namespace vision",
    "cancel": "cancel train --namespace vision",
    "rerun": "rerun train --namespace vision -- python train.py --lr 0.2",
    "rehearse": "rehearse dev --scenario spot-storm",
    "replay": "replay examples/traces/dev.csv dev --against main",
    "trace fetch": "trace fetch philly",
    "trace export": "trace export --since 30d --all-namespaces --out jobs.csv",
    "adopt": "adopt shared --from cluster.json",
    "doctor": "doctor dev",
    "up": "up dev",
    "status": "status dev --watch",
    "drift": "drift dev --format markdown",
    "sleep": "sleep dev --wait",
    "wake": "wake dev",
    "extend": "extend dev --hours 4",
    "reap": "reap --yes",
    "destroy": "destroy dev",
}
"""Arguments by command; pools, queues and namespaces are those of the repository's stack dev."""
_P = ParamSpec("_P")
_STACK_OPTION: Final = inspect.Parameter(
    "stack_option",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        str | None,
        typer.Option("--stack", "-s", help="The stack, as for pulumi.", autocompletion=stack_names),
    ],
)
_COMMANDS = cast(
    "Mapping[str, list[Callable[..., None]]]",
    {
        "Review": [init, preview, review, machines, quota, schema],
        "Cluster": [adopt, doctor, up, status, drift, sleep, wake, extend, reap, destroy],
        "Work": [profile, run, shell, notebook, job, sweep, follow, jobs, logs, cp, why, cancel, rerun, cost],
        "Rehearsal": [rehearse, replay],
    },
)
"""The commands, by their group in the help."""


def epilog(command: str) -> str:
    """Return the last paragraph of a command's help: its example, with line breaks kept."""
    name = command_line()
    return f"\b\nExample:\n  {'ebbtide' if name.startswith('/') else name} {EXAMPLES[command]}"


class _Groups(TyperGroup):
    """Commands in groups, in Typer's `rich_help_panel` without Rich."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands below the name of their group."""
        groups: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        width = formatter.width - 6 - max(map(len, self.commands))
        for name in self.list_commands(ctx):
            command = self.commands[name]
            group = str(getattr(command, "rich_help_panel", None) or "")
            groups[group].append((name, command.get_short_help_str(width)))
        for group in _COMMANDS:
            with formatter.section(group):
                formatter.write_dl(groups[group])


app = typer.Typer(
    name="ebbtide",
    cls=_Groups,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(value: bool) -> None:  # noqa: FBT001 - called by Typer
    if value:
        say(f"ebbtide {__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """ML clusters on GKE and AKS from one declaration.

    Only `quota`, `prices`, `adopt` unless from files, `doctor`, `up`, `status`, `drift`, `sleep`, `wake`,
    `extend`, `reap`, `destroy`, `follow`, `jobs`, `logs`, `cp`, `why`, `cancel`, `rerun`, `run`, `shell`,
    `notebook`, `cost`, `trace export`, --submit and --when need access to a backend, a cloud or a cluster.
    """


def _reporting(command: Callable[_P, None]) -> Callable[_P, None]:
    """Wrap a command: errors become sentences and exit status 2, never a traceback; with `--format json`, and
    for a review in every format, they also become a document in place of the command's own.
    """

    @functools.wraps(command)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> None:
        _take_stack_option(cast("dict[str, Any]", kwargs))
        try:
            with warnings.catch_warnings():
                if not sys.warnoptions:
                    # Pulumi's providers warn about their own deprecations, which are also messages.
                    warnings.simplefilter("ignore")
                try:
                    command(*args, **kwargs)
                finally:
                    sys.stdout.flush()
        except typer.Exit:
            raise
        except BrokenPipeError:
            discard_output()
            raise typer.Exit(ExitStatus.OUTPUT_CLOSED) from None
        except Exception as error:  # noqa: BLE001 - no traceback reaches a user
            if is_for_interrupt(error):
                raise KeyboardInterrupt from None
            raise typer.Exit(_reported(error, command, kwargs)) from None

    own = inspect.signature(command)
    if "stack" in own.parameters:
        parameters = [*own.parameters.values(), _STACK_OPTION]
        run.__signature__ = own.replace(parameters=parameters)  # pyright: ignore[reportAttributeAccessIssue]  # PEP 362's
    return run


def _take_stack_option(options: dict[str, Any]) -> None:
    """Take the stack from `--stack`, which stands for the argument.

    Raises:
        UsageError: both are given, and differ.
    """
    named = options.pop("stack_option", None)
    if named is not None and options["stack"] not in (None, named):
        raise typer.BadParameter(
            f"The stack is {options['stack']}, and --stack is {named}. Write one of them."
        )
    if named is not None:
        options["stack"] = named


def _reported(error: Exception, command: Callable[..., None], options: Mapping[str, Any]) -> ExitStatus:
    """Show the error that ended a command, and return the exit status. It never raises another."""
    try:
        explained = explain(error, _source(options), advice(error, command.__name__.replace("_", " ")))
    except Exception:  # noqa: BLE001 - the first error counts
        explained = unexplained(error)
    try:
        explained.show()
        if command is review:
            write_failure(explained.report, options)
        elif options.get("format_") == PreviewFormat.JSON:
            write(explained.report.json_document() + "\n", cast("Path | None", options.get("out")))
        sys.stdout.flush()
    except Exception as unwritable:  # noqa: BLE001 - nowhere to write is no other error
        with contextlib.suppress(Exception):
            discard_output()
        if str(unwritable) != str(error):
            with contextlib.suppress(Exception):
                say(message_of(unwritable) or "The error cannot be shown.", err=True)
    return ExitStatus.BROKEN if explained.is_internal else ExitStatus.WRONG


def _source(options: Mapping[str, Any]) -> "Source | None":
    """Return the stack's file of a command, for the positions of errors."""
    if "config_file" not in options:
        return None
    from ebbtide.analysis.preview.stack_files import StackFileError

    with contextlib.suppress(StackFileError):
        return stack_files(options["stack"], options["config_file"], options["cwd"]).source
    return None


for _group, _members in _COMMANDS.items():
    for _command in _members:
        app.command(
            cls=RunCommand if _command is run else Command,
            epilog=epilog(_command.__name__),
            rich_help_panel=_group,
        )(_reporting(_command))


def _add_group(name: str, text: str, panel: str, commands: Iterable[Callable[..., None]]) -> None:
    """Add commands such as `config_set` as `config set`."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=text)
    for command in commands:
        part = command.__name__.removeprefix(f"{name}_")
        group.command(part, cls=Command, epilog=epilog(f"{name} {part}"))(_reporting(command))
    app.add_typer(group, name=name, rich_help_panel=panel)


_add_group("config", "Defaults of the workload commands.", "Work", config_commands.COMMANDS)
_add_group("prices", "Prices of the clouds.", "Review", [prices_refresh])
_add_group("trace", "Traces of jobs for a replay.", "Rehearsal", [trace_fetch, trace_export])


def main() -> None:
    """Run the command line."""
    lazy_packages.collect_rarely()
    lazy_packages.install()
    prepare_streams()
    keep_interrupts()
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(ExitStatus.INTERRUPTED)
    finally:
        gc.freeze()
