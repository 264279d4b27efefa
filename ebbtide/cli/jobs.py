"""The commands for existing workloads: `jobs`, `cancel`, `rerun` and `why`. Dependencies are imported on
execution."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ebbtide.cli.config import namespace_of
from ebbtide.cli.consoles import say, show, write_json
from ebbtide.cli.options import (
    AllNamespaces,
    Context,
    Format,
    Namespace,
    OptionalProfile,
    PreviewFormat,
    Watch,
    available_profile,
    check_namespaces,
)
from ebbtide.cli.replay import starts_of
from ebbtide.cli.status import WatchError
from ebbtide.clients.kubernetes import Api
from ebbtide.text import several
from ebbtide.values import clock, durations
from ebbtide.values.given_command import given_command
from ebbtide.work.errors import ClusterError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ebbtide.operations.traces.when import Estimate
    from ebbtide.work.evidence import Evidence
    from ebbtide.work.runs.listing import ListedWorkload

_SHOWN: Final = 20
"""Maximum number of waiting workloads, and of others, in the table without --all."""


def jobs(
    *,
    ended: Annotated[
        bool, typer.Option("--all", "-a", help="Every one of many workloads, and those that have ended.")
    ] = False,
    watch: Watch = False,
    when: Annotated[
        bool, typer.Option("--when", help="Estimate when waiting ones start, from a replay of the queues.")
    ] = False,
    namespace: Namespace = "",
    all_namespaces: AllNamespaces = False,
    context: Context = "",
    format_: Format = PreviewFormat.TEXT,
    profile: OptionalProfile = "",
) -> None:
    """List workloads: Jobs, sweeps, TrainJobs, experiments, runs.

    Their number by state, then the newest: with pool or queue, position and reason while waiting, attempts
    (TRIES), pods lost to disruptions (LOST), running time, cost until now at the profile's list prices, and
    user. `+` after a cost means that pods are gone whose part is unknown.
    """
    from ebbtide.work.runs import listing

    if watch and (when or format_ is PreviewFormat.JSON):
        raise WatchError(
            f"--watch refreshes a table and excludes {'--when' if when else '--format json'}: omit it, and "
            "repeat the command."
        )
    check_namespaces(namespace, all_namespaces=all_namespaces)
    api = Api.of_user(context)
    place = "" if all_namespaces else namespace_of(api, namespace)
    cluster = available_profile(profile, place, context)

    def read() -> "list[ListedWorkload]":
        return listing.list_workloads(api, place, clock.now(), cluster, ended=ended)

    starts: Mapping[tuple[str, str], Estimate] = {}
    if when:
        starts = starts_of(api, place, cluster)
    if format_ is PreviewFormat.JSON:
        rows = [_document(row, clock.now(), starts) for row in read()]
        write_json({"version": listing.VERSION, "workloads": rows})
        return
    show(lambda: _table(read(), clock.now(), place, starts, ended=ended), ClusterError, watch=watch)


def _document(
    row: "ListedWorkload", now: datetime, starts: "Mapping[tuple[str, str], Estimate]"
) -> dict[str, Any]:
    start = starts.get((row.namespace, row.name))
    return row.document(now) | ({"start": start.document()} if start else {})


def _table(
    rows: "Sequence[ListedWorkload]",
    now: datetime,
    namespace: str,
    starts: "Mapping[tuple[str, str], Estimate]",
    *,
    ended: bool,
) -> "RenderableType":
    """Return the list for a terminal of 80 columns; a reason stands in a line of its own."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    from ebbtide.analysis.preview.fitted_table import plain_table

    where = f"in namespace {namespace}" if namespace else "in all namespaces"
    if not rows:
        others = ["Ended workloads: --all."] if not ended else []
        others += ["Other namespaces: --all-namespaces."] if namespace else []
        return Text(" ".join((f"No workload {'exists' if ended else 'waits or runs'} {where}.", *others)))
    counts = Counter(row.progress.phase.value for row in rows)
    states = ", ".join(f"{count:,} {phase}" for phase, count in counts.items())
    heading = Text(f"{several(len(rows), 'workload')} {where}: {states}.")
    numbers = ("TRIES", "LOST", "RAN", "COST")
    table = plain_table("NAME", "STATE", "ON", *numbers, "USER", right=numbers, whole=("STATE",))
    shown = rows if ended else _first(rows)
    for row in shown:
        seconds = row.running_seconds(now)
        table.add_row(
            Text(row.name if namespace else f"{row.namespace}/{row.name}"),
            _state(row),
            Text(row.pool or row.queue),
            str(row.attempts or ""),
            str(row.preemptions or ""),
            "" if seconds is None else durations.on_a_clock(seconds),
            _cost(row),
            Text(row.user.partition("@")[0]),
        )
    more = f"… and {len(rows) - len(shown):,} more: --all lists them, and those that have ended."
    return Group(
        heading,
        table,
        *(Padding(Text(line), (0, 0, 0, 2)) for line in _reasons(shown, now, starts)),
        *([Text(more)] if len(rows) > len(shown) else ()),
    )


def _first(rows: "Sequence[ListedWorkload]") -> "Sequence[ListedWorkload]":
    """Return the first of many rows: of those that wait, and of those that do not."""
    waiting, others = [row for row in rows if _waits(row)], [row for row in rows if not _waits(row)]
    kept = {id(row) for row in (*waiting[:_SHOWN], *others[:_SHOWN])}
    return [row for row in rows if id(row) in kept]


def _waits(row: "ListedWorkload") -> bool:
    return row.started is None and not row.progress.over


def _state(row: "ListedWorkload") -> str:
    from ebbtide.work.progress import Phase

    current = row.progress
    counts = f" {current.done}/{current.points}" if current.points > 1 else ""
    return f"{'waiting' if current.phase is Phase.WAITING else current.phase}{counts}"


def _cost(row: "ListedWorkload") -> str:
    """Return the cost, with `+` if pods are gone whose cost is unknown; empty if there is none."""
    if row.cost is None:
        return ""
    return f"{row.cost}{'' if row.cost.complete else '+'}"


def _reasons(
    rows: "Sequence[ListedWorkload]", now: datetime, starts: "Mapping[tuple[str, str], Estimate]"
) -> Iterator[str]:
    """Yield the reasons of states, each once with the workloads that have it."""
    groups: dict[tuple[object, ...], list[ListedWorkload]] = {}
    for row in rows:
        key = row.progress.phase, row.queue, row.progress.reason, _waits(row), _estimated(row, starts)
        groups.setdefault(key, []).append(row)
    for alike in groups.values():
        if why := _why(alike, now, _estimated(alike[0], starts)):
            more = f" and {len(alike) - 1:,} more" if len(alike) > 1 else ""
            yield f"{alike[0].name}{more}: {why}"


def _estimated(row: "ListedWorkload", starts: "Mapping[tuple[str, str], Estimate]") -> str:
    start = starts.get((row.namespace, row.name))
    return (start.problem.rstrip(".") or f"it starts {start.time}") if start else ""


def _why(rows: "Sequence[ListedWorkload]", now: datetime, estimated: str) -> str:
    """Return the reason of a state, with the times, the positions and the start of waiting workloads."""
    current, parts = rows[0].progress, list[str]()
    if current.over:
        return current.reason
    if _waits(rows[0]):
        ages = [now - row.created for row in rows]
        parts.append(f"{current.phase} for {_range(*map(durations.elapsed, (min(ages), max(ages))))}")
    if places := [row.position for row in rows if row.position is not None]:
        noun = "position" if min(places) == max(places) else "positions"
        parts.append(f"{noun} {_range(str(min(places)), str(max(places)))} in queue {rows[0].queue}")
    text = ", ".join(parts)
    return "; ".join(filter(None, (": ".join(filter(None, (text, current.reason))), estimated)))


def _range(least: str, most: str) -> str:
    return least if least == most else f"{least} to {most}"


def cancel(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, or a pipeline run's id.")],
    *,
    namespace: Namespace = "",
    context: Context = "",
) -> None:
    """Delete a workload with its pods; end a pipeline run.

    It does not ask. Checkpoints and outputs on volumes and in buckets stay.
    """
    from ebbtide.work.runs import existing

    api = Api.of_user(context)
    say(existing.cancel(api, name, namespace_of(api, namespace)))


def rerun(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the earlier workload.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- ARGUMENTS]", help="Other arguments; by default the same."),
    ] = None,
    *,
    new_name: Annotated[str, typer.Option("--name", help="Its name; by default the next free number.")] = "",
    namespace: Namespace = "",
    context: Context = "",
) -> None:
    """Create a workload again under a new name.

    It works for Jobs, sweeps, TrainJobs and experiments. Image, code, pool or queue, and parameters are those
    of the earlier one. Arguments after `--` replace those of the container, or its command if it has no
    arguments.
    """
    from ebbtide.work.runs import existing

    api = Api.of_user(context)
    created = existing.rerun(api, name, namespace_of(api, namespace), words or (), new_name)
    metadata = created["metadata"]
    follow = given_command().on_job("follow", metadata["name"], metadata["namespace"])
    say(f"{created['kind']} {metadata['name']} is created, from {name}. Follow it: {follow}")


def why(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name of a Job, a TrainJob, an experiment, a pipeline run, a pod or a Kueue Workload.",
        ),
    ],
    *,
    namespace: Namespace = "",
    context: Context = "",
    format_: Format = PreviewFormat.TEXT,
    profile: OptionalProfile = "",
) -> None:
    """Say why a workload is waiting, and who can change it.

    One sentence from Kueue's objects, the pods and their events. What the user may not read, such as
    workloads of other teams, is not in it.
    """
    from ebbtide.work.evidence import VERSION, read_evidence
    from ebbtide.work.progress import cause_of

    api = Api.of_user(context)
    place = namespace_of(api, namespace)
    cluster = available_profile(profile, place, context)  # most causes are known without it
    evidence = read_evidence(api, name, place, clock.now(), cluster)
    cause = cause_of(evidence)
    if format_ is PreviewFormat.JSON:
        document = {
            "version": VERSION,
            "kind": evidence.kind,
            "namespace": evidence.namespace,
            "name": evidence.name,
            "cause": cause.document() if cause else None,
        }
        write_json(document)
        return
    subject = f"{evidence.kind[0].upper()}{evidence.kind[1:]} {evidence.name}"
    say(f"{subject} waits: {cause}" if cause else f"{subject} does not wait{_phase(evidence)}.")


def _phase(evidence: "Evidence") -> str:
    """Return the clause about the phase of a workload that does not wait; empty if it has none."""
    from ebbtide.clients.kubernetes.objects import phase_of
    from ebbtide.work.progress import progress

    if evidence.job:
        return f": it is {progress(evidence).phase}"
    return f": it is {phase_of(evidence.pods[0]).lower()}" if evidence.pods else ""
