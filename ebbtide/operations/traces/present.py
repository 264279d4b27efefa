"""The present state of a cluster's queues: who runs and waits, since when, and how long it may take."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import yaml

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.objects import Object, condition, part
from ebbtide.operations.ledger import Line, Record, find_record
from ebbtide.operations.traces.existing import ExistingWork, PodRequests, read_existing
from ebbtide.operations.traces.history import pod_seconds, pods_at_once
from ebbtide.placement import Profile
from ebbtide.values.kueue_api import API_PATH, API_VERSION
from ebbtide.work.errors import ClusterError

_KINDS: Final = {
    "resourceflavors": "ResourceFlavor",
    "provisioningrequestconfigs": "ProvisioningRequestConfig",
    "admissionchecks": "AdmissionCheck",
    "cohorts": "Cohort",
    "clusterqueues": "ClusterQueue",
    "localqueues": "LocalQueue",
    "workloadpriorityclasses": "WorkloadPriorityClass",
}
_CONFIGURATION: Final = "/api/v1/namespaces/kueue-system/configmaps/kueue-manager-config"
"""ConfigMap with the configuration of Kueue's controller (its chart, 0.19.2)."""
_KEY: Final = "controller_manager_config.yaml"
_EARLIER: Final = 90 * 86400.0
"""Age of the oldest runs that count."""
_SUFFIX: Final = re.compile(r"-(?:[0-9]+|[bcdfghjklmnpqrstvwxz2456789]{5})$")
"""The suffix that `ebbtide rerun` and `ebbtide run` append to the name of a Job."""


@dataclass(frozen=True, slots=True)
class PresentJob:
    """Work that runs, waits or is planned.

    Attributes:
        work: the work.
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
        api: the cluster's API.
        namespace: the user's namespace.
        profile: the cluster's profile.
        now: the current time.

    Raises:
        ClusterError: reading the namespace is forbidden, or the API server does not respond.
    """
    try:
        existing, is_complete = read_existing(api, "", replace(profile, teams=())), True
    except ClusterError:
        existing, is_complete = read_existing(api, namespace, profile), False
    record, notes = _record(api, now), list[str]()
    if not is_complete:
        if record is not None:
            existing += _recorded(record, namespace)
        known = "running work of other teams is from the cost record" if record else "work of other teams"
        rest = ", their waiting work is not in it" if record else " is not in it"
        notes.append(f"You may read namespace {namespace} alone: {known}{rest}.")
    objects = _objects(api)
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
        configuration=_configuration(api),
        nodes=_nodes(api, profile),
        notes=tuple(notes),
        earlier=earlier,
    )
    return replace(present, jobs=tuple(map(present.job, current)))


def _stem(name: str) -> str:
    return _SUFFIX.sub("", name)


def _record(api: Api, now: float) -> Record | None:
    try:
        return find_record(api, now - _EARLIER, now)
    except ApiError:
        return None


def _by_job(record: Record) -> Mapping[tuple[str, str, float | None], Sequence[Line]]:
    lines: dict[tuple[str, str, float | None], list[Line]] = defaultdict(list[Line])
    for line in record.lines:
        if line.kind == "attempt":
            lines[line.namespace, line.job, line.submitted].append(line)
    return lines


def _runs(existing: Sequence[ExistingWork], record: Record | None) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield the run times of jobs that have ended, existing or deleted."""
    for work in existing:
        if work.ended is not None and work.started is not None:
            yield (work.namespace, _stem(work.name)), work.ended - work.started
    known = {(work.namespace, work.name, round(work.created)) for work in existing}
    for (namespace, name, submitted), lines in _by_job(record).items() if record else ():
        is_known = submitted is not None and (namespace, name, round(submitted)) in known
        if not is_known and not any(line.is_open for line in lines):
            yield (namespace, _stem(name)), pod_seconds(lines) / pods_at_once(lines)


def _recorded(record: Record, namespace: str) -> Iterator[ExistingWork]:
    """Yield the running jobs of other namespaces in the cost record, with the pods that run now."""
    for (other, name, submitted), lines in _by_job(record).items():
        running = [line for line in lines if line.is_open]
        if other == namespace or not running or submitted is None:
            continue
        first = min(running, key=lambda line: line.start)
        sizes = [max(getattr(line, key) for line in running) for key in ("cpu", "memory", "gpus")]
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
            requests=PodRequests(len(running), sizes[0], sizes[1], round(sizes[2]), pool=first.pool),
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


def _configuration(api: Api) -> Mapping[str, Any] | None:
    try:
        found = api.find(_CONFIGURATION)
    except ApiError:
        return None
    written = part(found or {}, "data").get(_KEY)
    return yaml.safe_load(str(written)) if written else None


def _nodes(api: Api, profile: Profile) -> dict[str, int] | None:
    try:
        nodes = api.items("/api/v1/nodes", resourceVersion="0")
    except ApiError:
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
