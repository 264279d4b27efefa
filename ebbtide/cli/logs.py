"""The `logs` command. Dependencies are imported on execution."""

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ebbtide.cli.config import namespace_of
from ebbtide.cli.consoles import ExitStatus, console, say
from ebbtide.cli.job import ProfileSource
from ebbtide.cli.options import Context, Namespace, available_profile
from ebbtide.clients.kubernetes import Api
from ebbtide.values import clock
from ebbtide.work.errors import WorkloadError, answered

if TYPE_CHECKING:
    from ebbtide.clients.kubernetes.objects import Object
    from ebbtide.placement import Profile
    from ebbtide.work.evidence import Evidence
    from ebbtide.work.kinds import Kind

_LINKS: Final = ("pod", "job", "label")


def logs(  # noqa: PLR0913 - one parameter an option
    name: Annotated[
        str,
        typer.Argument(metavar="[NAME]", help="A Job, a sweep, a TrainJob, an experiment or a pipeline run."),
    ] = "",
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Continue until its end, with later attempts.")
    ] = False,
    index: Annotated[
        int | None, typer.Option(min=0, help="Only one index of a sweep, or one of several nodes.")
    ] = None,
    namespace: Namespace = "",
    context: Context = "",
    pod: Annotated[str, typer.Option(help="A link, of one pod.")] = "",
    job: Annotated[str, typer.Option(help="A link, of every pod of a Job or a sweep.")] = "",
    label: Annotated[str, typer.Option(metavar="KEY=VALUE", help="A link, of every pod with a label.")] = "",
    workspace: Annotated[str, typer.Option(help="On AKS: resource id of the Log Analytics workspace.")] = "",
    profile: ProfileSource = "",
) -> None:
    """Print a workload's logs, or a link to those of deleted pods.

    Lines of a sweep, and of a Job on several nodes, begin with the index, those of an experiment with the
    trial. The cloud's log store keeps the logs of deleted pods: --pod, --job or --label instead of NAME
    prints a link to it, and the query. Exit status 1: a log could not be read.
    """
    from ebbtide.placement import Profile
    from ebbtide.work.kinds import NoWorkloadError, kind_of

    links = {key: value for key, value in zip(_LINKS, (pod, job, label), strict=True) if value}
    if not name:
        if follow or index is not None:
            raise WorkloadError(f"{'--follow' if follow else '--index'} needs the name of a workload.")
        if not namespace:
            namespace = namespace_of(Api.of_user(context), "")
        cluster = Profile.load(profile, namespace=namespace, context=context)
        say(_links(cluster, namespace, workspace, links))
        return
    if links:
        raise WorkloadError(f"{name} and --{next(iter(links))} are both given: write one of them.")
    api = Api.of_user(context)
    namespace = namespace_of(api, namespace)
    try:
        kind, name = kind_of(api, name, namespace)
    except NoWorkloadError as error:
        found = available_profile(profile, namespace, context)
        if found is None:
            raise
        say(f"{str(error).partition(' It may have ended')[0]} The logs of a deleted Job:", err=True)
        say(_links(found, namespace, workspace, {"job": name}))
        raise SystemExit(ExitStatus.FOUND) from None
    snapshot = _snapshot(api, name, namespace, kind)
    _check_index(snapshot.job, index)
    if follow:
        _follow(api, name, namespace, index, available_profile(profile, namespace, context))
        return
    is_complete = _print(api, snapshot, namespace, index)
    if found := available_profile(profile, namespace, context):
        _print_link(api, snapshot, namespace, found, workspace, is_complete=is_complete)
    if not is_complete:
        raise SystemExit(ExitStatus.FOUND)


def _links(profile: "Profile", namespace: str, workspace: str, pods: Mapping[str, str]) -> str:
    from ebbtide.work.logs import log_link, log_query

    link = log_link(profile, namespace=namespace, workspace=workspace, **pods)
    return "\n\n".join(filter(None, (link, log_query(profile, namespace=namespace, **pods))))


def _snapshot(api: Api, name: str, namespace: str, kind: "Kind") -> "Evidence":
    from ebbtide.work.kinds import lost
    from ebbtide.work.submission import take_snapshot

    with answered(lambda error: lost(error, kind, name, namespace, known=True)):
        return take_snapshot(api, name, namespace, kind)


def _check_index(job: "Object", index: int | None) -> None:

    name, spec = job["metadata"]["name"], job["spec"]
    if index is not None and spec.get("completionMode") != "Indexed":
        raise WorkloadError(f"{name} has no indexes: omit --index.")
    if index is not None and index >= spec["completions"]:
        raise WorkloadError(f"--index is {index}, and {name} has the indexes 0 to {spec['completions'] - 1}.")


def _print(api: Api, snapshot: "Evidence", namespace: str, index: int | None) -> bool:
    """Print the existing lines; without any pod that has started, the state on standard error.

    Returns:
        False if a log could not be read, as after the deletion of the pod's node.
    """
    from ebbtide.work.logs import has_started, of_index, print_logs
    from ebbtide.work.progress import progress, progress_line

    pods = of_index(snapshot.pods, index)
    unread = print_logs(api, namespace, pods, say, prefixed=index is None)
    for line in unread:
        say(line, err=True)
    if not any(map(has_started, pods)):
        state = progress_line(progress(snapshot))
        say(f"No pod of {snapshot.job['metadata']['name']} has a log now. {state.capitalize()}.", err=True)
    return not unread


def _follow(api: Api, name: str, namespace: str, index: int | None, profile: "Profile | None") -> None:
    """Print lines until the end of the workload, and changes of its state on standard error."""
    from ebbtide.cli.follow_progress import ProgressLines, changes
    from ebbtide.work import submission
    from ebbtide.work.logs import LogStream, of_index

    show = changes(console(sys.stderr))
    stream = LogStream(api, namespace, say, prefixed=index is None)
    try:
        submission.follow(
            api,
            name,
            namespace,
            ProgressLines(api, name, namespace, profile, show, before_end=stream.end),
            show,
            lambda pods: stream.add(of_index(pods, index)),
        )
        for line in stream.end():
            say(line, err=True)
    except KeyboardInterrupt:
        raise SystemExit(ExitStatus.INTERRUPTED) from None


def _print_link(
    api: Api,
    snapshot: "Evidence",
    namespace: str,
    profile: "Profile",
    workspace: str,
    *,
    is_complete: bool,
) -> None:
    """Print the link to the logs on standard error, if some were not read, or pods are deleted."""
    from ebbtide.work.progress import progress
    from ebbtide.work.runs.listing import read_workload

    name = snapshot.job["metadata"]["name"]
    deleted = read_workload(api, name, namespace, clock.now(), profile).deleted_pods
    if not is_complete or deleted or (progress(snapshot).over and not snapshot.pods):
        pods = {"label": snapshot.label} if snapshot.label else {"job": name}
        say(f"The logs of all pods of {name}, deleted ones included:", err=True)
        say(_links(profile, namespace, workspace, pods), err=True)
