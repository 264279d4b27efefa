"""The `replay` and `trace` commands, and the option `--when`. Dependencies are imported on execution."""

import secrets
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ebbtide.cli.config import namespace_of
from ebbtide.cli.consoles import console, say, write, write_json
from ebbtide.cli.consoles import screen as screen_of
from ebbtide.cli.error_output import require
from ebbtide.cli.options import (
    AllNamespaces,
    ConfigFile,
    Context,
    Cwd,
    FormatOfReport,
    Namespace,
    OptionalProfile,
    Out,
    PreviewFormat,
    ReportFormat,
    Stack,
    available_profile,
    check_namespaces,
    duration,
    stack_files,
)
from ebbtide.clients.kubernetes import Api

if TYPE_CHECKING:
    from ebbtide.analysis.preview.stack_files import StackFiles
    from ebbtide.operations.traces.existing import ExistingWork
    from ebbtide.operations.traces.when import Estimate, Present
    from ebbtide.placement import Profile


def replay(  # noqa: PLR0913 - one parameter an option
    trace: Annotated[
        Path,
        typer.Argument(metavar="TRACE", help="Trace of jobs: CSV, SWF, or a public trace."),
    ],
    stack: Stack = None,
    *,
    against: Annotated[
        str | None,
        typer.Option(metavar="REF|FILE", help="Earlier version: a git ref, or another stack file (.yaml)."),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, max=100, help="Number of replays, each with other random delays.")
    ] = 5,
    cloud_model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="YAML file with the cloud's delays, stock-outs and reclaims."),
    ] = None,
    map_: Annotated[
        Path | None,
        typer.Option(
            "--map",
            metavar="FILE",
            help="YAML file that maps the trace's queues and GPU types to declared ones.",
        ),
    ] = None,
    format_: FormatOfReport = ReportFormat.TEXT,
    starts: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time of the first submission, such as 2026-12-05T08:00Z, for reservations with a "
            "period. By default that of the trace, or without dates the begin of the first period.",
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
    from kueue_replay import Replay, program, render
    from kueue_replay.cloud_model import read_cloud_model
    from kueue_replay.mapping import Table, read_table

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
        case ReportFormat.TEXT:
            with screen_of(out) as output:
                render.write(report, output)
        case ReportFormat.JSON:
            write(report.model_dump_json(indent=2) + "\n", out)
        case ReportFormat.HTML:
            write(render.render(report), out)
    if not report.columns[-1].waits[0].jobs:
        raise typer.Exit(1)


def _start_time(text: str) -> datetime:
    """Parse the time of a trace's first submission, in UTC unless it has an offset."""
    from ebbtide.operations.traces.clusters import ReplayError

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
    from ebbtide.analysis.preview.stack_files import record_stack  # loads Pulumi
    from ebbtide.analysis.review.baseline import BaselineError, baseline
    from ebbtide.operations.traces.clusters import recorded_cluster

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


def _names() -> list[str]:
    """Return the names of the public traces, for shell completion."""
    from kueue_replay.public_traces import TRACES

    return list(TRACES)


def trace_fetch(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="Public trace; without a name, all are listed.", autocompletion=_names
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="File to write; by default the trace's own name.")
    ] = None,
) -> None:
    """Download a public trace for `ebbtide replay`.

    Each is pinned by commit and SHA-256, and has a licence of its own.
    """
    from kueue_replay.public_traces import TRACES, fetch, public_trace

    if name is None:
        for known, trace in TRACES.items():
            say(f"{known:<8} {trace.content}; {trace.licence}; {trace.repository}")
        return
    trace = public_trace(name)
    path = file or Path(trace.file_name)
    fetch(trace, path)
    say(f"{path}: {trace.content}. Source: {trace.repository}, licence: {trace.licence}.")


def trace_export(
    *,
    since: Annotated[str, typer.Option(help="Period until now, such as 30d or 8h.")] = "30d",
    anonymous: Annotated[
        bool, typer.Option("--anonymous", help="Replace names of jobs and users with pseudonyms.")
    ] = False,
    out: Out = None,
    namespace: Namespace = "",
    all_namespaces: AllNamespaces = False,
    context: Context = "",
    profile: OptionalProfile = "",
) -> None:
    """Write the jobs of a cluster as a trace for `ebbtide replay`.

    A trace has the Workloads and Jobs that exist, and those that the cost record has (the add-on `costs`).
    What it lacks is on standard error. Queues and priorities keep their names, also with --anonymous: the
    declaration has them.
    """
    from ebbtide.operations.traces import history as traces

    length = duration(since)
    check_namespaces(namespace, all_namespaces=all_namespaces)
    api = Api.of_user(context)
    place = "" if all_namespaces else namespace_of(api, namespace)
    cluster = available_profile(profile, place, context)
    now = time.time()
    history = traces.read_history(api, place, now - length.total_seconds(), now, cluster)
    exported = traces.anonymous(history.rows, secrets.token_bytes(32)) if anonymous else history.rows
    write(traces.to_csv(exported), out)
    for note in history.notes:
        say(note, err=True)


def show_when(api: Api, manifest: dict[str, Any], profile: "Profile", format_: PreviewFormat) -> None:
    """Tell when a Job would start, which is not created."""
    from ebbtide.operations.traces.existing import planned
    from ebbtide.operations.traces.when import VERSION

    namespace = manifest["metadata"].get("namespace") or api.namespace
    present, (start,) = _estimates(
        api, namespace, profile, lambda present: [planned(manifest, namespace, profile, present.now)]
    )
    if format_ is PreviewFormat.JSON:
        document = {
            "version": VERSION,
            "namespace": start.namespace,
            "name": start.name,
            "queue": start.queue,
            **start.document(),
            "notes": present.notes,
        }
        write_json(document)
        return
    place = f": position {start.position} in queue {start.queue}" if start.queue else ""
    sentences = [
        f"Job {start.name} would start {start.time}{place}." if start.time else start.problem,
        start.basis,
    ]
    say(" ".join(filter(None, (*sentences, *present.notes))))


def starts_of(api: Api, namespace: str, profile: "Profile | None") -> "dict[tuple[str, str], Estimate]":
    """Return when the waiting work of a namespace starts, by namespace and name; empty for all namespaces.

    Raises:
        ProfileError: the namespace has no profile.
    """
    from ebbtide.placement import ProfileError

    if profile is None:
        raise ProfileError(
            "--when needs the cluster's profile, for the capacity of nodes. Name one with --profile."
        )

    def waiting(present: "Present") -> "list[ExistingWork]":
        works = (job.work for job in present.jobs if job.work.started is None)
        return [work for work in works if namespace in ("", work.namespace)]

    _, starts = _estimates(api, namespace, profile, waiting)
    return {(start.namespace, start.name): start for start in starts}


def _estimates(
    api: Api, namespace: str, profile: "Profile", targets: "Callable[[Present], list[ExistingWork]]"
) -> "tuple[Present, Sequence[Estimate]]":
    """Read the state of the queues, and replay it."""
    require("replay")
    from ebbtide.operations.traces.when import estimate, read_present
    from kueue_replay import Replay, program

    progress = console(sys.stderr)
    kueue = program(progress)
    present = read_present(api, namespace, profile, time.time())
    with progress.status("Replaying the queues"):
        return present, estimate(
            profile, present, targets(present), lambda request: Replay(request).run(kueue).job_documents()
        )
