"""When waiting or planned work starts: replays of the present state of a cluster's queues."""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from ebbtide.operations import replays
from ebbtide.operations.traces.existing import ExistingWork
from ebbtide.operations.traces.present import Present, PresentJob
from ebbtide.placement.kueue import layers
from ebbtide.placement.profile import PoolProfile, Profile
from ebbtide.placement.queueing import Check, ClusterQueue, Cohort, LocalQueueObject, Queueing
from ebbtide.placement.quotas import CPU, MEMORY, Flavor, Offer
from ebbtide.text import and_list, several
from ebbtide.values import durations

if TYPE_CHECKING:
    from kueue_replay.replays import JobResult
    from kueue_replay.scheduler import Schedulers

VERSION: Final = "ebbtide.dev/start/v1"
"""Version of the document of `--when --format json`."""

_DRAWS: Final = 10
"""Replays with drawn run times and startup times, besides one with the longest run times."""
_ENOUGH: Final = 3
"""Number of earlier runs from which a job's time limit is no longer taken for a possible run time."""
_HORIZON: Final = 30 * 86400.0
_ENDLESS: Final = 2 * _HORIZON
"""Run time of a job without a limit and without earlier runs."""
_NEVER: Final = float("inf")
_NAMED: Final = 3
_AT_ONCE: Final = 1.0
_ALL: Final = "all"
_CONFIGURATION: Final = {
    "apiVersion": "config.kueue.x-k8s.io/v1beta2",
    "kind": "Configuration",
    "fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]},
}
"""The part of Ebbtide's configuration of Kueue that decides about order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """When a job starts.

    Attributes:
        namespace: its namespace.
        name: its name.
        queue: its queue; empty for none.
        position: its position among the waiting jobs of its queue, from 1.
        half: median of the seconds until it starts; None if it cannot be known.
        least: the shortest time.
        most: the longest time; None if a replay of 30 days does not reach it.
        node: part of the median that is the wait for nodes.
        limits: number of jobs whose run time is from their time limit.
        histories: number of jobs whose run time is from earlier runs.
        problem: why it cannot be known, or why it never starts, as a sentence; empty if it is known.
    """

    namespace: str
    name: str
    queue: str = ""
    position: int = 1
    half: float | None = None
    least: float = 0.0
    most: float | None = None
    node: float = 0.0
    limits: int = 0
    histories: int = 0
    problem: str = ""

    @property
    def time(self) -> str:
        """The time as a clause after `starts`; empty if it cannot be known."""
        if self.half is None:
            return ""
        if self.most is not None and self.most < _AT_ONCE:
            return "at once: quota and a node are available"
        about, least = durations.approximate(self.half), durations.approximate(self.least)
        most = durations.approximate(self.most) if self.most is not None else "more than 30 days"
        node = durations.approximate(self.node)
        return (
            f"in about {about}{f' ({least} to {most})' if least != most else ''}"
            f"{f'; a node takes {node} of it' if self.node >= _AT_ONCE else ''}"
        )

    @property
    def basis(self) -> str:
        """A sentence about the run times that it is from; empty if it depends on none."""
        sources = [
            *([several(self.limits, "time limit")] if self.limits else ()),
            *([f"earlier runs of {several(self.histories, 'job')}"] if self.histories else ()),
        ]
        return f"Run times are from {and_list(sources)}." if sources else ""

    def document(self) -> dict[str, Any]:
        """Return it as a part of a document."""
        known = self.half is not None
        return {
            "seconds": {"median": self.half, "least": self.least, "most": self.most} if known else None,
            "nodeSeconds": self.node if known else None,
            "position": self.position if self.queue else None,
            "problem": self.problem,
        }


def estimate(
    profile: Profile, present: Present, targets: Sequence[ExistingWork], kueue: "Path | Schedulers"
) -> list[Estimate]:
    """Return when some work starts; work that does not exist is added at the end of its queue.

    Args:
        profile: the cluster's profile.
        present: the state of its queues.
        targets: the work, existing or planned.
        kueue: Kueue's program, or another scheduler.
    """
    existing = [job.work for job in present.jobs]
    planned = [present.job(target) for target in targets if not any(target is work for work in existing)]
    jobs = (*present.jobs, *planned)
    numbers = {id(job.work): number for number, job in enumerate(jobs)}
    request = {
        "clusters": [present_cluster(profile, present)],
        "keepOrder": True,
        "untilStarted": [numbers[id(target)] + 1 for target in targets],
        "horizon": _HORIZON,
    }

    def drawn(draw: int) -> "tuple[JobResult, ...]":
        random = Random(draw) if draw else None  # noqa: S311 - a simulation
        rows = [_row(job, present.now, random) for job in jobs]
        (replay,) = replays.run({**request, "jobs": rows, "firstSeed": draw}, kueue).replays()
        return replay.jobs

    # Each waits for a process of its own most of the time.
    with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
        outcomes = list(pool.map(drawn, range(_DRAWS + 1))) if targets else []
    return [_estimated(jobs, numbers[id(target)], outcomes) for target in targets]


def _row(job: PresentJob, now: float, random: Random | None) -> dict[str, Any]:
    """Return work as a job of a replay that starts now."""
    work = job.work
    requests = work.requests
    return {
        "name": work.name,
        "seconds": _left(job, now, random),
        "pods": requests.pods,
        "cpu": requests.cpu or None,
        "memory": requests.memory or None,
        "gpus": requests.gpus,
        "queue": f"{work.namespace}/{work.queue or requests.pool}",
        "priority": work.priority,
        "keep_node": requests.keep_node,
        "admitted": work.admitted is not None,
        "started": work.started is not None,
        "flavor": work.flavor,
    }


def _left(job: PresentJob, now: float, random: Random | None) -> float:
    """Return the run time that is left to a job: of an earlier run, or up to its time limit; endless if
    neither is known. Without a generator, it is the longest."""
    done = now - job.work.started if job.work.admitted is not None and job.work.started is not None else 0.0
    possible, limit = [seconds - done for seconds in job.earlier if seconds > done], job.work.requests.limit
    if limit is not None:
        rest = limit - done if limit > done else float(limit)
        if not possible:
            return random.uniform(0.0, rest) if random else rest
        if len(possible) < _ENOUGH:
            possible.append(rest)
    if not possible:
        return _ENDLESS
    return random.choice(possible) if random else max(possible)


def _estimated(
    jobs: Sequence[PresentJob], number: int, outcomes: Sequence[Sequence["JobResult"]]
) -> Estimate:
    target, longest = jobs[number].work, outcomes[0]
    own, where = longest[number], target.queue or target.requests.pool
    found = Estimate(namespace=target.namespace, name=target.name, queue=target.queue)
    if not own.queue:
        kind = "queue" if target.queue else "pool"
        problem = f"The cluster has no {kind} {where}." if where else "It names no queue and no pool."
        return replace(found, problem=problem)
    found = replace(found, position=_position(jobs, longest, number))
    if not own.fits:
        return replace(found, problem=f"It never starts: {own.why_not}.")
    others = [
        job
        for job, row in zip(jobs, longest, strict=True)
        if row is not own and set(own.pools) & set(row.pools)
    ]
    drawn = [outcome[number] for outcome in outcomes[1:]]
    starts = [row.started if row.started is not None else _NEVER for row in drawn]
    half = median(starts)
    if half == _NEVER:
        return replace(found, problem=_unknown(others))
    ends = [own.started, *(row.started for row in drawn)]
    nodes = [row.started - (row.reserved or 0.0) for row in drawn if row.started is not None]
    return replace(
        found,
        half=half,
        least=min(at for at in ends if at is not None),
        most=None if None in ends else max(at for at in ends if at is not None),
        node=min(half, median(nodes)),
        limits=sum(job.work.requests.limit is not None and len(job.earlier) < _ENOUGH for job in others),
        histories=sum(bool(job.earlier) for job in others),
    )


def _position(jobs: Sequence[PresentJob], rows: Sequence["JobResult"], number: int) -> int:
    """Return the position of a job among the waiting ones of its queue: by priority, then by creation."""
    own = -rows[number].priority, number
    return 1 + sum(
        (-row.priority, other) < own
        for other, (job, row) in enumerate(zip(jobs, rows, strict=True))
        if row.queue == rows[number].queue and job.work.admitted is None
    )


def _unknown(others: Iterable[PresentJob]) -> str:
    """Return why the start of a job is not known."""
    endless = [job.work for job in others if not job.earlier and job.work.requests.limit is None]
    if not endless:
        return "It does not start within 30 days."
    more = f" and {len(endless) - _NAMED} more" if len(endless) > _NAMED else ""
    names = and_list(f"{work.namespace}/{work.name}" for work in endless[:_NAMED])
    has = "has" if len(endless) == 1 else "have"
    return (
        f"It cannot be known: {names}{more} {has} no time limit, and no earlier run. --max-run sets one for "
        "new Jobs."
    )


# The present cluster


def present_cluster(profile: Profile, present: Present) -> dict[str, Any]:
    """Return a running cluster; without Kueue's objects, its queues share all nodes."""
    nodes = present.nodes or {}
    objects = present.objects or tuple(item for layer in layers(_queueing(profile)) for item in layer)
    return {
        "name": profile.cluster,
        "pools": [
            replays.profiled_pool(pool)
            | {
                "cloud": "aks" if profile.cloud == "aks" else "gke",
                "region": profile.location,
                "taints": [asdict(taint) for taint in pool.taints],
                "maximum": pool.max_nodes,
                "existing": nodes.get(pool.name, 0),
                "hourly": pool.price.per_hour,
                "maxRunSeconds": pool.max_run_seconds,
                "together": pool.accelerator.slice_nodes if pool.accelerator else 1,
            }
            for pool in profile.pools
            if pool.cpu_m
        ],
        "objects": objects,
        "configuration": present.configuration or _CONFIGURATION,
    }


def _queueing(profile: Profile) -> Queueing:
    """Return the queues of a profile, in one cohort that owns all nodes."""
    used = [pool for pool in profile.pools if pool.cpu_m and pool.queues]
    flavors = {pool.name: _flavor(pool) for pool in used}
    checks = {
        item.name: Check(f"queued-{item.name}", "queued", item.accelerator, ())
        for item in flavors.values()
        if item.queued
    }
    local = [(queue, local) for queue in profile.queues for local in queue.local_queues]
    return Queueing(
        flavors=tuple(flavors.values()),
        checks=tuple(checks.values()),
        cohorts=(
            Cohort(_ALL, "", tuple((flavors[pool.name], {pool.name: pool.max_nodes}) for pool in used)),
        ),
        cluster_queues=tuple(
            ClusterQueue(
                name=f"{own.namespace}.{own.name}",
                cohort=_ALL,
                flavors=tuple((flavors[pool], dict[str, int]()) for pool in queue.pools if pool in flavors),
                weight=1,
                namespaces=(own.namespace,),
                checks={checks[pool].name: (pool,) for pool in queue.pools if pool in checks},
            )
            for queue, own in local
        ),
        local_queues=tuple(
            LocalQueueObject(own.name, own.namespace, f"{own.namespace}.{own.name}") for _, own in local
        ),
    )


def _flavor(pool: PoolProfile) -> Flavor:
    node: dict[str, Any] = {CPU: pool.cpu_m, MEMORY: pool.memory_mib}
    if pool.accelerator:
        node[pool.accelerator.resource] = pool.accelerator.count
    return Flavor(
        name=pool.name,
        labels={item.key: item.values[0] for item in pool.affinity},
        taints=pool.taints,
        tolerations=pool.tolerations,
        offers=(Offer(pool.name, node, pool.max_nodes),),
        queued=pool.capacity == "queued",
    )
