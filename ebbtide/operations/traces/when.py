"""When waiting or planned work starts: the present state of a cluster's queues, and replays of it."""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from random import Random
from statistics import median
from typing import Any, Final, TypeAlias, TypeVar

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.objects import Object, condition, part
from ebbtide.operations.ledger import Record, by_job, find_record
from ebbtide.operations.status import read_controller
from ebbtide.operations.traces import clusters
from ebbtide.operations.traces.existing import ExistingWork, PodRequests, read_existing
from ebbtide.operations.traces.history import largest, pod_seconds, pods_at_once
from ebbtide.placement import Profile
from ebbtide.placement.profile import PoolProfile
from ebbtide.placement.queue_objects import FAIR_SHARING, layers
from ebbtide.placement.queueing import (
    CPU,
    MEMORY,
    Check,
    ClusterQueue,
    Cohort,
    Flavor,
    LocalQueueObject,
    Offer,
    Queueing,
)
from ebbtide.text import and_list, several
from ebbtide.values import durations
from ebbtide.values.kueue_api import API_PATH, API_VERSION, CONFIGURATION
from ebbtide.work.errors import ClusterError

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
_CONFIGURATION: Final = {**CONFIGURATION, "fairSharing": FAIR_SHARING}
"""The part of Ebbtide's configuration of Kueue that decides about order."""
_KINDS: Final = {
    "resourceflavors": "ResourceFlavor",
    "provisioningrequestconfigs": "ProvisioningRequestConfig",
    "admissionchecks": "AdmissionCheck",
    "cohorts": "Cohort",
    "clusterqueues": "ClusterQueue",
    "localqueues": "LocalQueue",
    "workloadpriorityclasses": "WorkloadPriorityClass",
}
_EARLIER: Final = 90 * 86400.0
"""Age of the oldest runs that count."""
_SUFFIX: Final = re.compile(r"-(?:[0-9]+|[bcdfghjklmnpqrstvwxz2456789]{5})$")
"""The suffix that `ebbtide rerun` and `ebbtide run` append to the name of a Job."""


# The state of the queues
_Known = TypeVar("_Known")
Replayed: TypeAlias = Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]]
"""Replays a request of the replay of jobs with Kueue, and returns the jobs of its document, as JSON."""


@dataclass(frozen=True, slots=True)
class PresentJob:
    """Work that runs, waits or is planned.

    Attributes:
        earlier: run times of the earlier runs of its name, in seconds.
    """

    work: ExistingWork
    earlier: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The present state of a cluster's queues.

    Attributes:
        now: time of reading, seconds since 1970.
        jobs: those with quota by time of admission, then those that wait by time of creation.
        objects: Kueue's objects; empty if the user may not read them.
        configuration: configuration of Kueue's controller; None if the user may not read it.
        nodes: number of ready nodes by pool; None if the user may not read nodes.
        notes: sentences about what is not known.
        earlier: run times of ended jobs, by namespace and name without suffix.
    """

    now: float
    jobs: tuple[PresentJob, ...]
    objects: tuple[Object, ...] = ()
    configuration: Mapping[str, Any] | None = None
    nodes: Mapping[str, int] | None = None
    notes: tuple[str, ...] = ()
    earlier: Mapping[tuple[str, str], Sequence[float]] = field(
        default_factory=dict[tuple[str, str], Sequence[float]]
    )

    def job(self, work: ExistingWork) -> PresentJob:
        """Return work with the run times of the earlier runs of its name."""
        return PresentJob(work, tuple(self.earlier.get((work.namespace, _stem(work.name)), ())))


def read_present(api: Api, namespace: str, profile: Profile, now: float) -> Present:
    """Read the state of all queues, as far as the user may.

    Members may read the work of their namespace; the cost record has the running pods of all teams.

    Args:
        now: the current time.

    Raises:
        ClusterError: reading the namespace is forbidden, or the API server does not respond.
    """
    try:
        existing, is_complete = read_existing(api, "", replace(profile, teams=())), True
    except ClusterError:
        existing, is_complete = read_existing(api, namespace, profile), False
    record, notes = _read(lambda: find_record(api, now - _EARLIER, now)), list[str]()
    if not is_complete:
        if record is not None:
            existing += _recorded(record, namespace)
        known = "running work of other teams is from the cost record" if record else "work of other teams"
        rest = ", their waiting work is not in it" if record else " is not in it"
        notes.append(f"You may read namespace {namespace} alone: {known}{rest}.")
    objects, controller = _objects(api), _read(lambda: read_controller(api))
    if not objects and profile.queues:
        notes.append("You may not read ClusterQueues: guarantees of teams are not in it.")
    earlier: dict[tuple[str, str], list[float]] = defaultdict(list[float])
    for key, seconds in _runs(existing, record):
        earlier[key].append(seconds)
    current = [work for work in existing if work.ended is None]
    current.sort(key=lambda work: (work.admitted is None, work.admitted or work.created, work.name))
    present = Present(
        now=now,
        jobs=(),
        objects=objects,
        configuration=controller[0] if controller else None,
        nodes=_nodes(api, profile),
        notes=tuple(notes),
        earlier=earlier,
    )
    return replace(present, jobs=tuple(map(present.job, current)))


def _stem(name: str) -> str:
    return _SUFFIX.sub("", name)


def _read(read: Callable[[], _Known | None]) -> _Known | None:
    """Return what is read; None if the user may not read it, or there is none."""
    try:
        return read()
    except ApiError:
        return None


def _runs(existing: Sequence[ExistingWork], record: Record | None) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield the run times of jobs that have ended, existing or deleted."""
    for work in existing:
        if work.ended is not None and work.started is not None:
            yield (work.namespace, _stem(work.name)), work.ended - work.started
    known = {(work.namespace, work.name, round(work.created)) for work in existing}
    for (namespace, name, submitted), lines in by_job(record.lines).items() if record else ():
        is_known = submitted is not None and (namespace, name, round(submitted)) in known
        if not is_known and not any(line.is_open for line in lines):
            yield (namespace, _stem(name)), pod_seconds(lines) / pods_at_once(lines)


def _recorded(record: Record, namespace: str) -> Iterator[ExistingWork]:
    """Yield the running jobs of other namespaces in the cost record, with the pods that run now."""
    for (other, name, submitted), lines in by_job(record.lines).items():
        running = [line for line in lines if line.is_open]
        if other == namespace or not running or submitted is None:
            continue
        first = min(running, key=lambda line: line.start)
        yield ExistingWork(
            namespace=other,
            name=name,
            user=first.user,
            created=submitted,
            admitted=first.start,
            started=first.start,
            ended=None,
            queue=first.queue,
            priority=first.priority,
            requests=PodRequests(len(running), **largest(running), pool=first.pool),
            pod_uids=frozenset(line.uid for line in running),
        )


def _objects(api: Api) -> tuple[Object, ...]:
    """Return Kueue's objects without their status; empty if one kind is forbidden or not installed."""
    objects: list[Object] = []
    for plural, kind in _KINDS.items():
        try:
            listed = api.items(f"{API_PATH}/{plural}")
        except ApiError as error:
            if error.forbidden or error.not_found:
                return ()
            raise
        for item in listed:
            metadata = {
                key: item["metadata"][key] for key in ("name", "namespace") if key in item["metadata"]
            }
            content = {key: item[key] for key in ("spec", "value") if key in item}
            objects.append({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, **content})
    return tuple(objects)


def _nodes(api: Api, profile: Profile) -> dict[str, int] | None:
    nodes = _read(lambda: api.items("/api/v1/nodes", resourceVersion="0"))
    if nodes is None:
        return None
    ready = [
        part(node, "metadata", "labels")
        for node in nodes
        if condition(node, "Ready") and not node["spec"].get("unschedulable")
    ]
    return {
        pool.name: sum(all(labels.get(item.key) in item.values for item in pool.affinity) for labels in ready)
        for pool in profile.pools
        if pool.affinity
    }


# Estimates


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """When a job starts.

    Attributes:
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
    profile: Profile, present: Present, targets: Sequence[ExistingWork], replayed: Replayed
) -> list[Estimate]:
    """Return when some work starts; work that does not exist is added at the end of its queue.

    Args:
        present: the state of its queues.
        targets: the work, existing or planned.
        replayed: replays the queues.
    """
    existing = [job.work for job in present.jobs]
    planned = [present.job(target) for target in targets if not any(target is work for work in existing)]
    jobs = (*present.jobs, *planned)
    numbers = {id(job.work): number for number, job in enumerate(jobs)}
    request = {
        "clusters": [present_cluster(profile, present)],
        "starts": datetime.fromtimestamp(present.now, UTC).isoformat(),
        "keepOrder": True,
        "untilStarted": [numbers[id(target)] + 1 for target in targets],
        "horizon": _HORIZON,
    }

    def drawn(draw: int) -> Sequence[Mapping[str, Any]]:
        random = Random(draw) if draw else None  # noqa: S311 - a simulation
        rows = [_row(job, present.now, random) for job in jobs]
        return replayed({**request, "jobs": rows, "firstSeed": draw})

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
    jobs: Sequence[PresentJob], number: int, outcomes: Sequence[Sequence[Mapping[str, Any]]]
) -> Estimate:
    target, longest = jobs[number].work, outcomes[0]
    own, where = longest[number], target.queue or target.requests.pool
    found = Estimate(namespace=target.namespace, name=target.name, queue=target.queue)
    if not own["queue"]:
        kind = "queue" if target.queue else "pool"
        problem = f"The cluster has no {kind} {where}." if where else "It names no queue and no pool."
        return replace(found, problem=problem)
    found = replace(found, position=_position(jobs, longest, number))
    if not own["fits"]:
        return replace(found, problem=f"It never starts: {own['why_not']}.")
    others = [
        job
        for job, row in zip(jobs, longest, strict=True)
        if row is not own and set(own["pools"]) & set(row["pools"])
    ]
    drawn = [outcome[number] for outcome in outcomes[1:]]
    starts = [_NEVER if row["started"] is None else row["started"] for row in drawn]
    half = median(starts)
    if half == _NEVER:
        return replace(found, problem=_unknown(others))
    ends = [row["started"] for row in (own, *drawn)]
    nodes = [row["started"] - (row["reserved"] or 0.0) for row in drawn if row["started"] is not None]
    return replace(
        found,
        half=half,
        least=min(at for at in ends if at is not None),
        most=None if None in ends else max(at for at in ends if at is not None),
        node=min(half, median(nodes)),
        limits=sum(job.work.requests.limit is not None and len(job.earlier) < _ENOUGH for job in others),
        histories=sum(bool(job.earlier) for job in others),
    )


def _position(jobs: Sequence[PresentJob], rows: Sequence[Mapping[str, Any]], number: int) -> int:
    """Return the position of a job among the waiting ones of its queue: by priority, then by creation."""
    own = -rows[number]["priority"], number
    return 1 + sum(
        (-row["priority"], other) < own
        for other, (job, row) in enumerate(zip(jobs, rows, strict=True))
        if row["queue"] == rows[number]["queue"] and job.work.admitted is None
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
            clusters.profiled_pool(pool)
            | {
                "cloud": profile.cloud,
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
