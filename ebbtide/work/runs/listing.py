"""The workloads of a namespace: state, place, attempts, running time and cost of each."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.objects import (
    Object,
    condition,
    end_condition,
    items_of,
    message_of,
    part,
    parts,
    phase_of,
    text,
    words,
)
from ebbtide.placement import PoolProfile, Profile
from ebbtide.placement.profile import QUEUE_LABEL
from ebbtide.values import clock
from ebbtide.values.kueue_api import API_PATH, CLUSTER_QUEUES
from ebbtide.values.pod_requests import node_share, pod_requests
from ebbtide.work.errors import answered, explained
from ebbtide.work.evidence import POSITIONS, USER, Evidence, Workloads, is_gated
from ebbtide.work.kinds import EXPERIMENT, JOB, TRIAL_LABEL, WORKLOADS, Kind, kind_of, lost, trials
from ebbtide.work.placement import offered
from ebbtide.work.progress import Phase, Progress, progress
from ebbtide.work.sweeps import POINTS

_POOL_LABELS: Final = ("ebbtide.dev/pool", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool")
_HOUR: Final = 3600
VERSION: Final = "ebbtide.dev/jobs/v1"
"""Version of the document of `ebbtide jobs --format json`."""
_CREATED: Final = "Created pod: "
"""Message of the Job controller's event for a new pod (Kubernetes 1.36, pkg/controller, RealPodControl)."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a workload's pods, at the profile's list prices.

    Attributes:
        amount: its amount: of each pod the share of its node's price, from the pod's start to its end. The
            start of nodes and their idle time are not included.
        currency: currency, as in ISO 4217.
        complete: False if pods are gone whose times are unknown, which makes it a lower bound.
        seconds: time of all pods.
    """

    amount: float
    currency: str
    complete: bool
    seconds: int

    def __str__(self) -> str:
        """Format the amount: `$0.42`."""
        return f"{'$' if self.currency == 'USD' else f'{self.currency} '}{self.amount:.2f}"


def cost_of(
    pods: Sequence[tuple[Object, datetime]], profile: Profile | None, *, complete: bool
) -> Cost | None:
    """Return the cost of pods until now, or until they were missing."""
    amount, currencies, total = 0.0, set[str](), 0
    for pod, until in pods:
        started = text(pod, "status", "startTime")
        if not started:
            continue
        names = selected_pools(part(pod, "spec"), profile)
        pool = next((item for item in profile.pools if [item.name] == names), None) if profile else None
        share = _share(pod, pool) if pool else None
        if pool is None or share is None or pool.price.per_hour is None:
            return None
        seconds = seconds_between(datetime.fromisoformat(started), _end(pod, until))
        amount += pool.price.per_hour * share * seconds / _HOUR
        currencies.add(pool.price.currency)
        total += seconds
    return Cost(round(amount, 6), currencies.pop(), complete, total) if len(currencies) == 1 else None


def _end(pod: Object, now: datetime) -> datetime:
    """Return the end of a pod: of its last container, or of a disrupted pod the disruption; else now."""
    if phase_of(pod) not in {"Succeeded", "Failed"}:
        return now
    statuses = parts(pod, "status", "containerStatuses")
    ends = [text(item, "state", "terminated", "finishedAt") for item in statuses]
    last = max(
        filter(None, (*ends, condition(pod, "DisruptionTarget").get("lastTransitionTime"))), default=""
    )
    return datetime.fromisoformat(last) if last else now


def _share(pod: Object, pool: PoolProfile) -> float | None:
    """Return a pod's share of a node; None if the machine or an amount is unknown."""
    resource = pool.accelerator.resource if pool.accelerator else ""
    try:
        return node_share(pod_requests(part(pod, "spec")), offered(pool), resource)
    except ValueError:
        return None


def selected_pools(spec: Mapping[str, Any], profile: Profile | None) -> list[str]:
    """Return the pools that a pod selects, by its node selector and required node affinity."""
    selected = {key: {str(value)} for key, value in part(spec, "nodeSelector").items()}
    required = part(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = parts(required, "nodeSelectorTerms")
    for expression in parts(terms[0], "matchExpressions") if len(terms) == 1 else ():
        if expression["operator"] == "In":
            selected[expression["key"]] = set(words(expression, "values"))
    named = next((sorted(selected[label]) for label in _POOL_LABELS if label in selected), list[str]())
    if named or profile is None or not selected:
        return named
    matching = [
        pool.name
        for pool in profile.pools
        if all(pool.labels.get(key) in values for key, values in selected.items())
    ]
    return matching if len(matching) == 1 else []


def seconds_between(begin: datetime, end: datetime) -> int:
    """Return the whole seconds from one time to a later one."""
    return max(0, round((end - begin).total_seconds()))


class PodHistory:
    """The last state of each pod of a followed workload.

    A preempted node takes its pods along, and the queue deletes the pods of evicted work: without a history,
    their cost would be unknown at the end.
    """

    def __init__(self) -> None:
        self._pods: dict[str, Object] = {}
        self._deleted: dict[str, datetime] = {}

    def add(self, pods: Sequence[Object]) -> None:
        """Record the existing pods; the other ones have been deleted."""
        current = {pod["metadata"]["uid"]: pod for pod in pods}
        for uid in self._pods.keys() - current.keys():
            self._deleted.setdefault(uid, clock.now())
        self._pods |= current

    def deleted(self) -> Iterator[tuple[Object, datetime]]:
        """Yield the deleted pods, each with the time at which it was missing."""
        for uid, time in self._deleted.items():
            yield self._pods[uid], time


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedWorkload:
    """A workload in the list.

    Attributes:
        kind: kind for users: `Job`, `sweep`, `TrainJob`, `experiment` or `pipeline run`.
        user: the user who created it; empty if it does not say.
        progress: its progress; the reason is the message of its cause.
        cause: the kind of cause of its waiting, as in `ebbtide why`; empty if it does not wait.
        pool: its pool; empty before a queue has chosen one.
        queue: its queue in the namespace; empty on a pool.
        position: position among the waiting workloads of its queue, from 1; None if it does not wait in one.
        attempts: 1, and 1 for each retry and each pod replaced after a disruption; 0 before the first pod.
        preemptions: pods that a disruption or the queue ended. The cluster keeps the events of deleted pods
            for an hour: older ones are not counted.
        created: time of its creation.
        started: time of its first start, or of its latest one from a queue; None before.
        ended: time of its end; None before.
        cost: cost of its pods until now; None if its pool or the pool's price is unknown.
        deleted_pods: number of a Job's deleted pods, as far as the cluster knows.
    """

    kind: str
    namespace: str
    name: str
    user: str
    progress: Progress
    cause: str
    pool: str
    queue: str
    position: int | None
    attempts: int
    preemptions: int
    created: datetime
    started: datetime | None
    ended: datetime | None
    cost: Cost | None
    deleted_pods: int

    def running_seconds(self, now: datetime) -> int | None:
        """Return the time from its start to its end or to now; None before its start."""
        return None if self.started is None else seconds_between(self.started, self.ended or now)

    def document(self, now: datetime) -> dict[str, Any]:
        """Return it as a part of the document."""
        current = self.progress
        return {
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "user": self.user,
            "phase": current.phase.value,
            "reason": current.reason,
            "cause": self.cause,
            "pool": self.pool,
            "queue": self.queue,
            "position": self.position,
            "completions": current.done,
            "points": current.points,
            "failedPoints": current.failed,
            "attempts": self.attempts,
            "preemptions": self.preemptions,
            "created": self.created.isoformat(),
            "seconds": self.running_seconds(now),
            "cost": None if self.cost is None else asdict(self.cost),
        }


def list_workloads(
    api: Api, namespace: str, now: datetime, profile: Profile | None = None, *, ended: bool = False
) -> list[ListedWorkload]:
    """List workloads, newest first; those that another workload controls are omitted.

    Args:
        namespace: their namespace; empty for all.
        profile: the cluster's profile, for the names and prices of pools.
        ended: whether to include those that have ended.

    Raises:
        ClusterError: reading Jobs or pods is forbidden, or the API server does not respond.
    """
    with answered(lambda error: _refusal(error, namespace)):
        cluster = _Objects(api, namespace)
        rows = [
            _listed(cluster, kind, item, profile, now)
            for kind in WORKLOADS
            for item in cluster.items(kind)
            if ended or not end_condition(kind.as_job(item))
        ]
    return sorted(rows, key=lambda row: (row.created, row.name), reverse=True)


def read_workload(
    api: Api,
    name: str,
    namespace: str,
    now: datetime,
    profile: Profile | None,
    deleted: Iterable[tuple[Object, datetime]] = (),
) -> ListedWorkload:
    """Return a workload as in the list.

    Args:
        name: its name, or the id of a pipeline run.
        profile: the cluster's profile, for the names and prices of pools.
        deleted: deleted pods of the workload, each with the time at which it was missing.

    Raises:
        ClusterError: it does not exist, reading it or pods is forbidden, or the API server does not respond.
    """
    kind, name = kind_of(api, name, namespace)
    with answered(lambda error: lost(error, kind, name, namespace, known=True)):
        item = api.get(f"{kind.path.format(namespace)}/{name}")
        return _listed(_Objects(api, namespace, deleted), kind, item, profile, now)


def _refusal(error: ApiError, namespace: str) -> str:
    if not error.forbidden:
        return explained(error)
    if not namespace:
        return (
            f"You may not list the workloads of all namespaces: name one with --namespace. ({error.message})"
        )
    return (
        f"You may not list the workloads of namespace {namespace}: name another with --namespace, or ask its "
        f"team for membership. ({error.message})"
    )


class _Objects:
    """The objects of a namespace, each list read at most once.

    Attributes:
        deleted: the times at which deleted pods were missing, by uid.
    """

    def __init__(self, api: Api, namespace: str, deleted: Iterable[tuple[Object, datetime]] = ()) -> None:
        self._api, self._namespace = api, namespace
        self._pods: dict[tuple[str, str, str], list[Object]] = defaultdict(list)
        core = self._path("/api/v1/namespaces/{}/")
        existing = api.items(f"{core}pods", resourceVersion="0")
        uids = {pod["metadata"]["uid"] for pod in existing}
        missing = [(pod, time) for pod, time in deleted if pod["metadata"]["uid"] not in uids]
        self.deleted = {pod["metadata"]["uid"]: time for pod, time in missing}
        for pod in (*existing, *(pod for pod, _ in missing)):
            for key, value in part(pod, "metadata", "labels").items():
                self._pods[pod["metadata"]["namespace"], key, value].append(pod)
        of_pods = self._optional(f"{core}events", fieldSelector="involvedObject.kind=Pod")
        self.events: dict[str, list[Object]] = defaultdict(list)
        for event in of_pods:
            self.events[text(event, "involvedObject", "uid")].append(event)
        self._created: dict[str, list[Object]] = defaultdict(list)
        for event in self._optional(f"{core}events", fieldSelector="involvedObject.kind=Job"):
            uid = text(event, "involvedObject", "uid")
            if event.get("reason") == "SuccessfulCreate":
                self._created[uid].append(event)
            elif event.get("reason") == "FailedCreate":
                self.events[uid].append(event)
        self.workloads = Workloads(self._optional(self._path(f"{API_PATH}/namespaces/{{}}/workloads")))
        self._local_queues: dict[str, list[Object]] = defaultdict(list)
        for queue in self._optional(self._path(f"{API_PATH}/namespaces/{{}}/localqueues")):
            self._local_queues[queue["metadata"]["namespace"]].append(queue)
        queues = self._optional(CLUSTER_QUEUES) if self._local_queues else []
        self._cluster_queues = {queue["metadata"]["name"]: queue for queue in queues}
        self._positions: dict[tuple[str, str], dict[str, int]] = {}

    def items(self, kind: Kind) -> Iterator[Object]:
        """Yield the objects of a kind that no other object controls."""
        path = self._path(kind.path)
        for item in self._api.items(path) if kind is JOB else self._optional(path):
            if not any(owner.get("controller") for owner in parts(item, "metadata", "ownerReferences")):
                yield item

    def pods(self, kind: Kind, item: Object) -> list[Object]:
        """Return the pods of a workload."""
        namespace = item["metadata"]["namespace"]
        if kind is EXPERIMENT:
            return [pod for trial in trials(item) for pod in self._pods[namespace, TRIAL_LABEL, trial]]
        key, _, value = kind.pod_selector(item).partition("=")
        return self._pods[namespace, key, value]

    def created(self, job: Object, pods: Sequence[Object]) -> int:
        """Return the number of pods that a Job has had, as far as the cluster knows.

        A combined event names the last of its pods, and counts them.
        """
        events = self._created[job["metadata"]["uid"]]
        names = {message_of(event).removeprefix(_CREATED) for event in events}
        known = {pod["metadata"]["name"] for pod in pods} | names
        return max(len(known), sum(int(event.get("count") or 1) for event in events))

    def position(self, namespace: str, queue: str, workload: Object) -> int | None:
        """Return the position of a waiting workload in its queue, from 1; None if Kueue does not tell it."""
        key = (namespace, queue)
        if key not in self._positions:
            pending = self._optional(POSITIONS.format(namespace, queue))
            self._positions[key] = {
                item["metadata"]["name"]: int(item.get("positionInLocalQueue") or 0) + 1 for item in pending
            }
        return self._positions[key].get(workload["metadata"]["name"])

    def evidence(
        self, kind: Kind, job: Object, pods: Sequence[Object], profile: Profile | None, now: datetime
    ) -> Evidence:
        """Return the objects of a workload."""
        metadata = job["metadata"]
        uids = (metadata["uid"], *(pod["metadata"]["uid"] for pod in pods))
        owning = (metadata["uid"], *(pod["metadata"]["uid"] for pod in pods if is_gated(pod)))
        evidence = Evidence(
            kind=kind.name,
            namespace=metadata["namespace"],
            name=metadata["name"],
            now=now,
            job=job,
            pods=pods,
            events=[event for uid in uids for event in self.events[uid]],
            workload=next(filter(None, map(self.workloads.by_job.get, owning)), None),
            local_queues=self._local_queues[metadata["namespace"]],
            workloads=self.workloads,
            is_complete=not self._namespace,
            profile=profile,
        )
        name = text(evidence.local_queue or {}, "spec", "clusterQueue")
        return replace(evidence, cluster_queue=self._cluster_queues.get(name))

    def _path(self, template: str) -> str:
        return template.format(self._namespace) if self._namespace else template.replace("namespaces/{}/", "")

    def _optional(self, path: str, **query: str) -> list[Object]:
        """Return a list; empty if its kind is not installed, not served now, or forbidden."""
        try:
            return items_of(self._api.find(path, **query))
        except ApiError as error:
            if error.forbidden or (error.unanswered and error.status):
                return []
            raise


def _listed(
    cluster: _Objects, kind: Kind, item: Object, profile: Profile | None, now: datetime
) -> ListedWorkload:
    job, metadata, pods = kind.as_job(item), item["metadata"], cluster.pods(kind, item)
    workload = cluster.workloads.by_job.get(metadata["uid"])
    current = progress(cluster.evidence(kind, job, pods, profile, now))
    queue = text(item, "metadata", "labels", QUEUE_LABEL)
    waits = (
        workload is not None and current.phase is Phase.QUEUED and not condition(workload, "QuotaReserved")
    )
    evictions = parts(workload or {}, "status", "schedulingStats", "evictions")
    preemptions = max(len(current.disrupted), sum(int(item.get("count") or 0) for item in evictions))
    if kind is JOB:
        preemptions = max(preemptions, _replaced(cluster, job, pods))
    end = end_condition(job)
    deleted = cluster.created(job, pods) - len(pods) if kind is JOB else 0
    has_started = bool(current.running or current.done or preemptions or part(job, "status").get("failed"))
    started = _started(job, pods) if has_started else None
    return ListedWorkload(
        kind=_kind(kind, job),
        namespace=metadata["namespace"],
        name=metadata["name"],
        user=text(item, "metadata", "annotations", USER),
        progress=current,
        cause=current.cause.reason if current.cause else "",
        pool=_pool(job, pods, profile),
        queue=queue,
        position=cluster.position(metadata["namespace"], queue, workload) if waits and workload else None,
        attempts=1 + current.retries + preemptions if pods or has_started else 0,
        preemptions=preemptions,
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        started=started,
        ended=datetime.fromisoformat(end["lastTransitionTime"]) if end else None,
        cost=cost_of(
            [(pod, cluster.deleted.get(pod["metadata"]["uid"], now)) for pod in pods],
            profile,
            complete=deleted == 0,
        ),
        deleted_pods=deleted,
    )


def _kind(kind: Kind, job: Object) -> str:
    containers = parts(job, "spec", "template", "spec", "containers")
    names = {variable["name"] for container in containers for variable in parts(container, "env")}
    return "sweep" if kind is JOB and POINTS in names else kind.name


def _pool(job: Object, pods: Sequence[Object], profile: Profile | None) -> str:
    """Return the pools that a workload's pods select, from their node selector and required node affinity."""
    specs = (part(job, "spec", "template", "spec"), *(part(pod, "spec") for pod in pods))
    return ", ".join(dict.fromkeys(name for spec in specs for name in selected_pools(spec, profile)))


def _replaced(cluster: _Objects, job: Object, pods: Sequence[Object]) -> int:
    """Return the number of a Job's pods that are neither alive nor completions nor failures."""
    status = part(job, "status")
    known = sum(int(status.get(field) or 0) for field in ("succeeded", "failed", "active", "terminating"))
    uncounted = part(status, "uncountedTerminatedPods")
    ended = sum(len(words(uncounted, field)) for field in ("succeeded", "failed"))
    return cluster.created(job, pods) - known - ended


def _started(job: Object, pods: Sequence[Object]) -> datetime | None:
    """Return the start of a workload: of a Job from its status, of another from its oldest pod."""
    times = [text(pod, "status", "startTime") for pod in pods]
    first = text(job, "status", "startTime") or min(filter(None, times), default="")
    return datetime.fromisoformat(first) if first else None
