"""The `trace` commands. Their dependencies are imported on execution."""

import secrets
import time
from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.config import namespace_of
from ebbtide.cli.consoles import say, write
from ebbtide.cli.follow import Context, available_profile
from ebbtide.cli.jobs import AllNamespaces, Namespace, Profile, check_namespaces
from ebbtide.cli.options import Out, duration


def _names() -> list[str]:
    """Return the names of the public traces, for shell completion."""
    from kueue_replay.public_traces import TRACES  # noqa: PLC0415

    return list(TRACES)


def trace_fetch(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Public trace; without a name, all are listed.",
            autocompletion=_names,
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="File to write; by default the trace's own name.", show_default=False
        ),
    ] = None,
) -> None:
    """Download a public trace for `ebbtide replay`.

    Each is pinned by commit and SHA-256, and has a licence of its own.
    """
    from kueue_replay.public_traces import TRACES, fetch, public_trace  # noqa: PLC0415

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
    profile: Profile = "",
) -> None:
    """Write the jobs of a cluster as a trace for `ebbtide replay`.

    A trace has the Workloads and Jobs that exist, and those that the cost record has (the add-on `costs`).
    What it lacks is on standard error. Queues and priorities keep their names, also with --anonymous: the
    declaration has them.
    """
    from ebbtide.clients.kubernetes import Api  # noqa: PLC0415
    from ebbtide.operations.traces import history as traces  # noqa: PLC0415

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
