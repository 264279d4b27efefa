"""The door to the replay of jobs with Kueue, a distribution of its own (`kueue_replay`): clusters as it reads
them, and its results. Nothing else of the core imports it."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import yaml

from ebbtide.analysis.costs.charges import CLOUD_NAT, charges, cloud_nat, coverages
from ebbtide.analysis.reading.facts import RecordedPool
from ebbtide.analysis.reading.pools import read_clusters, read_pools
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.review.report import ReplayColumn, ReplaySummary
from ebbtide.declaration.catalog.amounts import Amount
from ebbtide.declaration.cloud_kind import by_cloud
from ebbtide.errors import EbbtideError
from ebbtide.placement.profile import PoolProfile, Profile
from ebbtide.placement.profile_sources import is_profile_text
from ebbtide.text import and_list, several
from ebbtide.values import durations
from ebbtide.values.kueue_api import TYPES

if TYPE_CHECKING:
    from rich.console import Console

    from kueue_replay.public_traces import PublicTrace
    from kueue_replay.replays import Replay, Result
    from kueue_replay.report import ColumnReport, ReplayReport
    from kueue_replay.scheduler import Schedulers

_NAMESPACE: Final = "kubernetes:core/v1:Namespace"
_CHART: Final = "kubernetes:helm.sh/v4:Chart"
_ALL_NODES: Final = 10**6

REVIEW_SECONDS: Final = 60.0
"""Time limit of a review's replays."""


class ReplayError(EbbtideError):
    """A stack cannot be replayed."""

    rule = "replay"


# Clusters


def recorded_cluster(name: str, recording: Recording) -> dict[str, Any]:
    """Return the cluster of a recorded program.

    Raises:
        ReplayError: the program has no placement profile.
    """
    text = next((value for value in recording.outputs.values() if is_profile_text(str(value))), None)
    if text is None:
        raise ReplayError(
            f"{name} has no placement profile among its outputs, so the capacity of its nodes is unknown. "
            "Export one, as the program of `ebbtide` projects does."
        )
    profiles = {pool.name: pool for pool in Profile.load(str(text)).pools}
    pools = read_pools(recording)
    cluster: dict[str, Any] = {
        "name": name,
        "pools": [_recorded_pool(pool, profiles[pool.name]) for pool in pools if pool.name in profiles],
        "objects": [dict(resource.inputs) for resource in recording if resource.type.startswith(TYPES)],
        "namespaces": {
            metadata["name"]: metadata.get("labels", {})
            for metadata in (
                cast("Any", resource.inputs)["metadata"]
                for resource in recording
                if resource.type == _NAMESPACE
            )
        },
        **_charges(recording),
    }
    configuration = _configuration(recording)
    return cluster | ({"configuration": configuration} if configuration else {})


def _configuration(recording: Recording) -> Mapping[str, Any] | None:
    """Return the configuration of Kueue's controller in the values of its chart, if the stack installs it."""
    for resource in recording:
        if resource.type == _CHART:
            values = cast("Mapping[str, Any]", resource.inputs.get("values") or {})
            if config := values.get("managerConfig"):
                return yaml.safe_load(config["controllerManagerConfigYaml"])
    return None


def profiled_pool(profile: PoolProfile) -> dict[str, Any]:
    """Return what a pool's profile has of it: its nodes for pods."""
    accelerator = profile.accelerator
    return {
        "name": profile.name,
        "machine": profile.machine,
        "capacity": profile.capacity,
        "labels": dict(profile.labels),
        "cpu": profile.cpu_m,
        "memory": profile.memory_mib,
        "accelerator": {
            "type": accelerator.type,
            "count": accelerator.count // accelerator.shares,
            "resource": accelerator.resource,
            "shares": accelerator.shares,
        }
        if accelerator
        else None,
        "system": profile.role == "system",
        **dict(zip(("begins", "ends"), profile.period, strict=False)),
    }


def _recorded_pool(pool: RecordedPool, profile: PoolProfile) -> dict[str, Any]:
    """Return a pool; one without its own zones has the cluster's zone, or the region, whose zones share its
    minimum and maximum."""
    initial = pool.idle_nodes if pool.initial_nodes is None else pool.initial_nodes
    autoscaled = pool.nodes.count is None
    taints = pool.labels_and_taints.all_taints
    return profiled_pool(profile) | {
        "cloud": pool.site.cloud.value,
        "region": pool.site.region,
        "zones": pool.zones or (by_cloud(gke=pool.site.location, aks="0")[pool.site.cloud],),
        "taints": [
            {"key": taint.key, "value": taint.value, "effect": taint.effect.value} for taint in taints
        ],
        "minimum": pool.idle_nodes if autoscaled else initial,
        "maximum": pool.max_nodes if autoscaled else initial,
        "initial": initial,
        "autoscaled": autoscaled,
        "hourly": _hourly(pool),
        "maxRunSeconds": pool.max_run_seconds,
        "together": pool.slice_nodes,
    }


def _hourly(pool: RecordedPool) -> float | None:
    """Return the price of a node besides a machine that a reservation bills; None if it is unknown."""
    node = pool.priced_node
    return node.disk_amount().known if pool.reserves_machines else node.hourly(pool.capacity.kind)


def _charges(recording: Recording) -> dict[str, Any]:
    """Return the charges besides nodes, and the gaps in all prices."""
    others, without_price, estimated = list[dict[str, Any]](), Amount(), list[str]()
    for charge in charges(recording, read_clusters(recording), read_pools(recording)):
        if charge.pool:
            without_price += charge.maximum
            estimated += charge.maximum.estimated
        elif charge.begins and charge.ends:
            period = {"begins": charge.begins, "ends": charge.ends}
            others.append({"item": charge.item, "hourly": charge.maximum.known, **period})
            without_price += charge.maximum
            estimated += charge.maximum.estimated
        elif charge.item == CLOUD_NAT:
            fixed, one, most = (cloud_nat(nodes).known for nodes in (0, 1, _ALL_NODES))
            by_nodes = {"byNode": one - fixed, "mostByNodes": most - fixed}
            others.append({"item": charge.item, "hourly": fixed, **by_nodes})
            without_price += charge.idle
        else:
            others.append({"item": charge.item, "hourly": charge.idle.known})
            without_price += charge.idle
    committed = coverages(recording, read_pools(recording))
    return {
        "charges": others,
        **({"commitments": [item.document() for item in committed]} if committed else {}),
        "withoutPrice": without_price.unknown,
        "estimated": tuple(dict.fromkeys(estimated)),
    }


# Replays


def plan(request: Mapping[str, Any]) -> "Replay":
    """Check a request, and read its trace (`kueue_replay.Request`).

    Raises:
        EbbtideError: the request or the trace is invalid.
    """
    from kueue_replay import Replay  # noqa: PLC0415

    return Replay(request)


def kueue(console: "Console") -> Path:
    """Return Kueue's program; if it is missing, it is built, with its progress on a console."""
    from kueue_replay import program  # noqa: PLC0415

    return program(console)


def run(request: Mapping[str, Any], program: "Path | Schedulers") -> "Result":
    """Replay a request with Kueue's program, or with another scheduler."""
    return plan(request).run(program)


def check_trace(path: Path) -> None:
    """Check a trace by itself.

    Raises:
        TraceError: it is invalid.
    """
    from kueue_replay.trace import read_trace  # noqa: PLC0415

    read_trace(path)


def settings(cloud_model: Path | None, table: Path | None) -> dict[str, Any]:
    """Return the parts of a request that files have: the cloud's model, and names of the trace.

    Raises:
        EbbtideError: a file is invalid; the message has every fault.
    """
    from kueue_replay.cloud_model import read_cloud_model  # noqa: PLC0415
    from kueue_replay.mapping import Table, read_table  # noqa: PLC0415

    model, availability = read_cloud_model(cloud_model)
    names = read_table(table) if table else Table()
    return {"cloudModel": model, "availability": availability, "map": names}


def write_text(report: "ReplayReport", console: "Console") -> None:
    """Print a report."""
    from kueue_replay import render  # noqa: PLC0415

    render.write(report, console)


def page(report: "ReplayReport") -> str:
    """Render a report as an HTML page."""
    from kueue_replay import render  # noqa: PLC0415

    return render.render(report)


def start_time(text: str) -> datetime:
    """Parse the time of a trace's first submission, in UTC unless it has an offset.

    Raises:
        ReplayError: it is no time.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ReplayError(
            f"--starts is {text or 'empty'}. Write a date and time, such as 2026-12-05T08:00Z."
        ) from None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def public_traces() -> "Mapping[str, PublicTrace]":
    """Return the public traces by name."""
    from kueue_replay.public_traces import TRACES  # noqa: PLC0415

    return TRACES


def fetch(name: str, file: Path | None) -> "tuple[Path, PublicTrace]":
    """Download a public trace; return the written file.

    Raises:
        PublicTraceError: there is no such trace, or it cannot be downloaded.
    """
    from kueue_replay.public_traces import fetch, public_trace  # noqa: PLC0415

    trace = public_trace(name)
    path = file or Path(trace.file_name)
    fetch(trace, path)
    return path, trace


# Summary for a review


def review_request(trace: Path, clusters: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the request of a review: as many of a trace's first jobs as its time limit allows."""
    return {"clusters": clusters, "trace": str(trace), "seeds": 3, "seconds": REVIEW_SECONDS}


def summary(trace: str, planned: "Replay", program: "Path | Schedulers") -> ReplaySummary:
    """Replay a review's request, and return its summary."""
    from kueue_replay.replays import TimeLimitError  # noqa: PLC0415

    try:
        return summary_of(planned.run(program))
    except TimeLimitError as error:
        return ReplaySummary.failed(trace, str(error))


def summary_of(result: "Result") -> ReplaySummary:
    """Return the summary of a result within a review's time limit."""
    report = result.report()
    return ReplaySummary(
        trace=report.trace,
        jobs=result.jobs,
        replayed=report.jobs,
        seeds=report.seeds,
        verdict=report.verdict[0],
        columns=tuple(map(_column, report.columns)),
        notes=tuple(_notes(result, report)),
        problem="",
    )


def _notes(result: "Result", report: "ReplayReport") -> Iterator[str]:
    if report.jobs < result.jobs:
        part, whole = (durations.rounded(span) for span in (report.seconds, result.submitted))
        yield (
            f"The first {report.jobs:,} of {result.jobs:,} jobs ({part} of {whole}) were replayed: all "
            f"of them take more than {REVIEW_SECONDS:.0f} s. `ebbtide replay` has no limit."
        )
    versions: dict[tuple[str, int, tuple[int, ...]], list[str]] = {}
    for column in report.columns:
        for never in column.never:
            versions.setdefault((never.why, never.jobs, never.lines), []).append(column.name)
    for (why, jobs, lines), names in versions.items():
        where = f"line {', '.join(map(str, lines))}"
        yield f"{and_list(names)}: {several(jobs, 'job')} never ended: {why} ({where})."


def _column(column: "ColumnReport") -> ReplayColumn:
    every = column.waits[0]
    return ReplayColumn(
        name=column.name,
        usd=column.usd.median,
        half_waited=every.half.median if every.half else None,
        most_waited=every.most.median if every.most else None,
        node_hours=sum(pool.node_hours.median for pool in column.pools),
        idle_hours=sum(pool.idle_hours.median for pool in column.pools),
        ended=column.ended.median,
        preemptions=column.preemptions.median,
        interruptions=sum(spread.median for spread in column.interruptions.values()),
        deadlines=column.deadlines,
        missed=column.missed.median,
    )
