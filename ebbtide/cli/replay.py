"""The `replay` command. Its dependencies are imported on execution."""

import sys
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.consoles import console, write
from ebbtide.cli.consoles import screen as screen_of
from ebbtide.cli.error_output import require
from ebbtide.cli.options import ConfigFile, Cwd, Out, Stack, stack_files

if TYPE_CHECKING:
    from ebbtide.analysis.preview.stack_files import StackFiles


class ReplayFormat(StrEnum):
    """Output formats of a replay's report."""

    TEXT = "text"
    JSON = "json"
    HTML = "html"


def replay(  # noqa: PLR0913 - one parameter an option
    trace: Annotated[
        Path,
        typer.Argument(
            metavar="TRACE", help="Trace of jobs: CSV, SWF, or a public trace.", show_default=False
        ),
    ],
    stack: Stack = None,
    *,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="REF|FILE",
            help="Earlier version: a git ref, or another stack file (.yaml).",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=100, help="Number of replays, each with other random delays.")
    ] = 5,
    cloud_model: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="YAML file with the cloud's delays, stock-outs and reclaims.",
            show_default=False,
        ),
    ] = None,
    map_: Annotated[
        Path | None,
        typer.Option(
            "--map",
            metavar="FILE",
            help="YAML file that maps the trace's queues and GPU types to declared ones.",
            show_default=False,
        ),
    ] = None,
    format_: Annotated[
        ReplayFormat, typer.Option("--format", help="Text, JSON, or an HTML page.")
    ] = ReplayFormat.TEXT,
    starts: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time of the first submission, such as 2026-12-05T08:00Z, for reservations with a "
            "period. By default that of the trace, or without dates the begin of the first period.",
            show_default=False,
        ),
    ] = None,
    out: Out = None,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Replay a trace of jobs on a stack: waiting, cost and nodes.

    The scheduler is the real Kueue on a virtual clock; node pools and the cloud are simulated. With
    --against, the trace is also replayed on an earlier version of the stack. The first run builds Kueue from
    its Go module. Nothing is paid for. Exit status 1: no job of the trace runs on the stack.
    """
    require("replay")
    from kueue_replay import Replay, program, render  # noqa: PLC0415
    from kueue_replay.cloud_model import read_cloud_model  # noqa: PLC0415
    from kueue_replay.mapping import Table, read_table  # noqa: PLC0415

    files = stack_files(stack, config_file, cwd)
    model, availability = read_cloud_model(cloud_model)
    settings: dict[str, Any] = {
        "cloudModel": model,
        "availability": availability,
        "map": read_table(map_) if map_ else Table(),
    }
    if starts is not None:
        settings["starts"] = _start_time(starts)
    progress = console(sys.stderr)
    with files.prices():
        clusters = _clusters(files, against, config_file)
    planned = Replay({"clusters": clusters, "trace": str(trace), "seeds": seeds, "vary": True, **settings})
    kueue = program(progress)
    with progress.status("Replaying") as status:
        report = planned.run(kueue, lambda name: status.update(f"Replaying {name}")).report()
    match format_:
        case ReplayFormat.TEXT:
            with screen_of(out) as output:
                render.write(report, output)
        case ReplayFormat.JSON:
            write(report.model_dump_json(indent=2) + "\n", out)
        case ReplayFormat.HTML:
            write(render.render(report), out)
    if not report.columns[-1].waits[0].jobs:
        raise typer.Exit(1)


def _start_time(text: str) -> datetime:
    """Parse the time of a trace's first submission, in UTC unless it has an offset."""
    from ebbtide.operations.traces.clusters import ReplayError  # noqa: PLC0415

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ReplayError(
            f"--starts is {text or 'empty'}. Write a date and time, such as 2026-12-05T08:00Z."
        ) from None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _clusters(files: "StackFiles", against: str | None, config_file: Path | None) -> list[dict[str, Any]]:
    """Return the clusters to replay on, the earlier one first.

    Raises:
        BaselineError: there is no such earlier version, or it is a deployed state.
    """
    from ebbtide.analysis.preview.stack_files import record_stack  # noqa: PLC0415 - loads Pulumi
    from ebbtide.analysis.review.baseline import BaselineError, baseline  # noqa: PLC0415
    from ebbtide.operations.traces.clusters import recorded_cluster  # noqa: PLC0415

    after = recorded_cluster(config_file.name if config_file else files.stack, record_stack(files))
    if not against:
        return [after]
    before = baseline(files, against)
    if before.deployed:
        raise BaselineError(
            f"{against} is a deployed state, and a replay needs a declaration. Write a git ref or a stack "
            "file."
        )
    if before.recording is None:
        raise BaselineError(f"At {against}, there is no stack {files.stack} to compare with.")
    return [recorded_cluster(before.name, before.recording), after]
