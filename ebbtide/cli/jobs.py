"""The commands for existing workloads: `jobs`, `cancel` and `rerun`. Dependencies are imported on
execution."""

import json
from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ebbtide.cli.config import namespace_of
from ebbtide.cli.consoles import say, show, write
from ebbtide.cli.follow import Context, Format, available_profile
from ebbtide.cli.options import PreviewFormat
from ebbtide.cli.status import WatchError
from ebbtide.text import several
from ebbtide.values import durations
from ebbtide.values.given_command import given_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from ebbtide.operations.traces.when import Estimate
    from ebbtide.work.runs.listing import ListedWorkload

_SHOWN: Final = 20
"""Maximum number of waiting workloads, and of others, in the table without --all."""

Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        help="The namespace; by default the configured one, or the context's.",
        show_default=False,
    ),
]
Profile = Annotated[
    str,
    typer.Option(
        "--profile",
        envvar="EBBTIDE_PROFILE",
        help="The cluster's profile: a file, or the JSON.",
        show_default=False,
    ),
]
AllNamespaces = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="Include workloads of all namespaces.")
]


def check_namespaces(namespace: str, *, all_namespaces: bool) -> None:
    """Check the options for namespaces, which exclude each other.

    Raises:
        WorkloadError: both are given.
    """
    from ebbtide.work.errors import WorkloadError  # noqa: PLC0415

    if namespace and all_namespaces:
        raise WorkloadError("--namespace and --all-namespaces exclude each other: write one of them.")


def jobs(
    *,
    ended: Annotated[
        bool, typer.Option("--all", "-a", help="Every one of many workloads, and those that have ended.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Refresh every 5 seconds until Ctrl-C.")
    ] = False,
    when: Annotated[
        bool, typer.Option("--when", help="Estimate when waiting ones start, from a replay of the queues.")
    ] = False,
    namespace: Namespace = "",
    all_namespaces: AllNamespaces = False,
    context: Context = "",
    format_: Format = PreviewFormat.TEXT,
    profile: Profile = "",
) -> None:
    """List workloads: Jobs, sweeps, TrainJobs, experiments, runs.

    Their number by state, then the newest: with pool or queue, position and reason while waiting, attempts
    (TRIES), pods lost to disruptions (LOST), running time, cost until now at the profile's list prices, and
    user. `+` after a cost means that pods are gone whose part is unknown.
    """
    from ebbtide.clients.kubernetes import Api  # noqa: PLC0415
    from ebbtide.values import clock  # noqa: PLC0415
    from ebbtide.work.errors import ClusterError  # noqa: PLC0415
    from ebbtide.work.runs import listing  # noqa: PLC0415

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
        from ebbtide.cli.when import starts_of  # noqa: PLC0415

        starts = starts_of(api, place, cluster)
    if format_ is PreviewFormat.JSON:
        rows = [_document(row, clock.now(), starts) for row in read()]
        write(json.dumps({"version": listing.VERSION, "workloads": rows}, indent=2) + "\n", None)
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
    from rich.console import Group  # noqa: PLC0415
    from rich.padding import Padding  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    where = f"in namespace {namespace}" if namespace else "in all namespaces"
    if not rows:
        others = "" if ended else " Ended workloads: --all."
        return Text(f"No workload {'exists' if ended else 'waits or runs'} {where}.{others}")
    counts = Counter(row.progress.phase.value for row in rows)
    states = ", ".join(f"{count:,} {phase}" for phase, count in counts.items())
    heading = Text(f"{several(len(rows), 'workload')} {where}: {states}.")
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("NAME", "STATE", "ON", "TRIES", "LOST", "RAN", "COST", "USER"):
        right = column in {"TRIES", "LOST", "RAN", "COST"}
        may_break = column in {"NAME", "ON", "USER"}
        table.add_column(column, justify="right" if right else "left", overflow="fold", no_wrap=not may_break)
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
    from ebbtide.work.progress import Phase  # noqa: PLC0415

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
) -> "Iterator[str]":
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
    from ebbtide.clients.kubernetes import Api  # noqa: PLC0415
    from ebbtide.work.runs import existing  # noqa: PLC0415

    api = Api.of_user(context)
    say(existing.cancel(api, name, namespace_of(api, namespace)))


def rerun(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the earlier workload.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- ARGUMENTS]", help="Other arguments; by default the same.", show_default=False
        ),
    ] = None,
    *,
    new_name: Annotated[
        str, typer.Option("--name", help="Its name; by default the next free number.", show_default=False)
    ] = "",
    namespace: Namespace = "",
    context: Context = "",
) -> None:
    """Create a workload again under a new name.

    It works for Jobs, sweeps, TrainJobs and experiments. Image, code, pool or queue, and parameters are those
    of the earlier one. Arguments after `--` replace those of the container, or its command if it has no
    arguments.
    """
    from ebbtide.clients.kubernetes import Api  # noqa: PLC0415
    from ebbtide.work.runs import existing  # noqa: PLC0415

    api = Api.of_user(context)
    created = existing.rerun(api, name, namespace_of(api, namespace), words or (), new_name)
    metadata = created["metadata"]
    follow = given_command().on_job("follow", metadata["name"], metadata["namespace"])
    say(f"{created['kind']} {metadata['name']} is created, from {name}. Follow it: {follow}")
