"""The `follow` command and the `--submit` option. Dependencies are imported on execution."""

import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ebbtide.cli.config import namespace_of
from ebbtide.cli.consoles import ExitStatus, console, say, write_json
from ebbtide.cli.options import Context, Format, PreviewFormat, available_profile
from ebbtide.clients.kubernetes import Api
from ebbtide.operations.engine.interrupts import repeated_interrupts
from ebbtide.text import printable
from ebbtide.values import clock, durations
from ebbtide.values.given_command import given_command
from ebbtide.work.arguments import is_label, is_subdomain
from ebbtide.work.errors import ClusterError, Problems

if TYPE_CHECKING:
    from ebbtide.placement import Profile
    from ebbtide.work.runs.listing import ListedWorkload, PodHistory


_OWN: Final = "ebbtide: "
"""Prefix of this command's lines among the lines of pods."""


def own_lines(message: str, *, logs: bool) -> str:
    """Return a message, each line with the prefix if the lines of pods are printed, too."""
    return "\n".join(f"{_OWN}{line}" for line in message.splitlines()) if logs else message


def of_pod(line: str) -> str:
    """Return a pod's line, with a backslash before the prefix of this command's own lines."""
    return f"\\{line}" if line.lstrip().startswith(_OWN.strip()) else line


def follow(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of a Job, a TrainJob, an experiment or a pipeline run's Workflow, or the run's id.",
        ),
    ],
    *,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", "-n", help="Its namespace; by default the configured one, or the context's."
        ),
    ] = "",
    context: Context = "",
    logs: Annotated[bool, typer.Option("--logs", help="Print the pods' logs as they are written.")] = False,
    format_: Format = PreviewFormat.TEXT,
    profile: Annotated[
        str,
        typer.Option(
            "--profile",
            envvar="EBBTIDE_PROFILE",
            help="The cluster's profile, for the link to the logs of failed pods: a file, or the JSON.",
        ),
    ] = "",
) -> None:
    """Follow a Job, TrainJob, Experiment or pipeline run to its end.

    Ctrl-C leaves it running. Exit status: 0 if it completed, 1 if it failed.
    """
    _check(name, namespace)
    api = Api.of_user(context)
    namespace = namespace_of(api, namespace)
    cluster = available_profile(profile, namespace, context)
    with _interruptible(name, namespace, logs=logs):
        _follow(api, name, namespace, cluster, format_, logs=logs)


def _check(name: str, namespace: str) -> None:

    problems = Problems()
    problems.check(is_subdomain(name), f"{name!r} is not a valid Job name.")
    problems.check(
        not namespace or is_label(namespace),
        f"namespace is {namespace!r}, which is not a valid namespace name.",
    )
    problems.end()


def submit(
    api: Api,
    manifest: dict[str, Any],
    *dependents: dict[str, Any],
    profile: "Profile",
    format_: PreviewFormat,
    logs: bool = False,
    notes: Iterable[str] = (),
    earlier: dict[str, Any] | None = None,
) -> None:
    """Create a Job and its dependent objects on the cluster, and follow it to its end.

    Args:
        manifest: the Job.
        *dependents: its Services and ConfigMaps.
        profile: the cluster's profile, for the logs of failed pods.
        format_: format of the end; progress is text, on standard error beside a document.
        logs: print the pods' logs as they are written.
        notes: lines to print after the creation.
        earlier: the Job with its name, which it replaces.

    Raises:
        ClusterError: the cluster rejects the Job or is unreachable.
    """
    from ebbtide.work import submission

    metadata = {"namespace": api.namespace, **manifest["metadata"]}
    try:
        created = submission.submit(api, manifest, *dependents, earlier=earlier)
    except KeyboardInterrupt as error:
        say(f"Interrupted during the creation of Job {metadata['name']}. {error}".rstrip(), err=True)
        raise SystemExit(ExitStatus.INTERRUPTED) from None
    with _interruptible(metadata["name"], metadata["namespace"], logs=logs):
        for line in (f"Job {metadata['name']} is created in namespace {metadata['namespace']}.", *notes):
            say(own_lines(line, logs=logs), err=format_ is PreviewFormat.JSON)
        uid = created["metadata"]["uid"]
        _follow(api, metadata["name"], metadata["namespace"], profile, format_, logs=logs, uid=uid)


@contextmanager
def _interruptible(name: str, namespace: str, *, logs: bool) -> Generator[None]:
    """Let Ctrl-C end the command and not what it follows, and print how to follow and cancel that."""
    try:
        with repeated_interrupts():
            yield
    except KeyboardInterrupt:
        given = given_command()
        again = (
            given.again("-n", namespace)
            if given.name == "follow"
            else given.on_job("follow", name, namespace, *(["--logs"] if logs else []))
        )
        say(own_lines(f"{name} keeps running. Follow it again with: {again}", logs=logs), err=True)
        if logs:
            cancel = given_command().on_job("cancel", name, namespace)
            say(own_lines(f"Cancel it with: {cancel}", logs=logs), err=True)
        raise SystemExit(ExitStatus.INTERRUPTED) from None


def _follow(
    api: Api,
    name: str,
    namespace: str,
    profile: "Profile | None",
    format_: PreviewFormat,
    *,
    logs: bool,
    uid: str = "",
) -> None:
    from ebbtide.cli.follow_progress import MissingModules, ProgressLines, ended_pods, narration
    from ebbtide.work import submission
    from ebbtide.work.logs import LogStream
    from ebbtide.work.progress import Phase, end_document, end_message
    from ebbtide.work.runs.listing import PodHistory

    is_document = format_ is PreviewFormat.JSON
    output = console(sys.stderr if is_document else sys.stdout)
    modules = MissingModules(lambda line: output.print(printable(of_pod(line)), markup=False, soft_wrap=True))
    stream = LogStream(api, namespace, modules)
    history = PodHistory()

    def note(line: str) -> None:
        output.print(own_lines(line, logs=logs), markup=False, soft_wrap=True)

    report_ended = ended_pods(note)

    def on_pods(pods: Sequence[dict[str, Any]]) -> None:
        history.add(pods)
        report_ended(pods)
        if logs:
            stream.add(pods)

    with narration(output) as narrate:

        def show(line: str) -> None:
            narrate(own_lines(line, logs=logs))

        remain = note if output.is_terminal else show
        lines = ProgressLines(api, name, namespace, profile, show, remain, stream.end)
        snapshot, progress = submission.follow(api, name, namespace, lines, show, on_pods, uid=uid)
        unread = stream.end()
    for line in (*unread, *modules.hints(progress)):
        say(own_lines(line, logs=logs), err=True)
    row = _row(api, name, namespace, profile, history)
    if is_document:
        document = end_document(snapshot, namespace, progress, profile)
        if row:
            document |= {key: row.document(clock.now())[key] for key in ("attempts", "cost")}
        write_json(document)
    else:
        say(own_lines(end_message(snapshot, progress, profile), logs=logs))
        if profile:
            say(own_lines(_cost_line(row), logs=logs))
    if progress.phase is not Phase.COMPLETED:
        raise SystemExit(ExitStatus.FOUND)


def _row(
    api: Api, name: str, namespace: str, profile: "Profile | None", history: "PodHistory"
) -> "ListedWorkload | None":
    """Return a workload that has ended as in the list; None if it cannot be read."""
    from ebbtide.work.runs.listing import read_workload

    try:
        return read_workload(api, name, namespace, clock.now(), profile, history.deleted())
    except ClusterError:  # the end is reported all the same
        return None


def _cost_line(row: "ListedWorkload | None") -> str:
    """Return a sentence about the time and the cost of a workload's pods."""
    if row is None or row.cost is None:
        return "Its cost is unknown: no pod has started, or the profile lacks the price or size of its pool."
    cost = row.cost
    parts = [f"Its pods ran {durations.elapsed(cost.seconds)}"]
    if row.attempts > 1:
        parts.append(f"in {row.attempts} attempts")
    if row.pool:
        parts.append(f"on {row.pool}")
    amount = "less than $0.01" if str(cost) == "$0.00" else str(cost)
    lost = "" if cost.complete else "at least "
    return f"{' '.join(parts)}: {lost}{amount} at list prices."
