"""The workloads of a namespace: state, place, attempts and running time of each."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Final

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.parts import part, parts, text, words
from ebbtide.placement import Profile
from ebbtide.placement.profile import QUEUE_LABEL
from ebbtide.values.kueue_api import API_PATH
from ebbtide.work.cluster import ClusterError, explained
from ebbtide.work.job_progress import JobSnapshot, Phase, Progress, progress
from ebbtide.work.kinds import EXPERIMENT, JOB, TRIAL_LABEL, WORKLOADS, Kind, kind_of, lost, trials
from ebbtide.work.objects import Object, condition, message_of
from ebbtide.work.runs.pending.cause import OBVIOUS, Cause
from ebbtide.work.runs.pending.causes import cause_of
from ebbtide.work.runs.pending.evidence import Evidence, Workloads, is_gated
from ebbtide.work.runs.pending.reader import POSITIONS
from ebbtide.work.runs.pod_costs import Cost, cost_of, seconds_between, selected_pools
from ebbtide.work.sweeps import POINTS

VERSION: Final = "ebbtide.dev/jobs/v1"
"""Version of the document of `ebbtide jobs --format json`."""
USER: Final = "ebbtide.dev/user"
"""Annotation with the user who created a workload."""
_CREATED: Final = "Created pod: "
"""Message of the Job controller's event for a new pod (Kubernetes 1.36, pkg/controller, RealPodControl)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedWorkload:
    """A workload in the list.

    Attributes:
        kind: kind for users: `Job`, `sweep`, `TrainJob`, `experiment` or `pipeline run`.
        namespace: its namespace.
        name: its name.
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
        api: the cluster's API.
        namespace: their namespace; empty for all.
        now: the current time.
        profile: the cluster's profile, for the names and prices of pools.
        ended: whether to include those that have ended.

    Raises:
        ClusterError: reading Jobs or pods is forbidden, or the API server does not respond.
    """
    try:
        cluster = _Objects(api, namespace)
        rows = [
            _listed(cluster, kind, item, profile, now)
            for kind in WORKLOADS
            for item in cluster.items(kind)
            if ended or not _over(kind.as_job(item))
        ]
    except ApiError as error:
        raise ClusterError(_refusal(error, namespace)) from None
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
        api: the cluster's API.
        name: its name, or the id of a pipeline run.
        namespace: its namespace.
        now: the current time.
        profile: the cluster's profile, for the names and prices of pools.
        deleted: deleted pods of the workload, each with the time at which it was missing.

    Raises:
        ClusterError: it does not exist, reading it or pods is forbidden, or the API server does not respond.
    """
    kind, name = kind_of(api, name, namespace)
    try:
        item = api.get(f"{kind.path.format(namespace)}/{name}")
        return _listed(_Objects(api, namespace, deleted), kind, item, profile, now)
    except ApiError as error:
        raise ClusterError(lost(error, kind, name, namespace, known=True)) from None


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
        queues = self._optional(f"{API_PATH}/clusterqueues") if self._local_queues else []
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

    def cause(
        self, kind: Kind, job: Object, pods: Sequence[Object], profile: Profile | None, now: datetime
    ) -> Cause | None:
        """Return the cause of a workload's waiting; None if it does not wait."""
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
        return cause_of(replace(evidence, cluster_queue=self._cluster_queues.get(name)))

    def _path(self, template: str) -> str:
        return template.format(self._namespace) if self._namespace else template.replace("namespaces/{}/", "")

    def _optional(self, path: str, **query: str) -> list[Object]:
        """Return a list; empty if its kind is not installed, not served now, or forbidden."""
        try:
            return (self._api.find(path, **query) or {}).get("items") or []
        except ApiError as error:
            if error.forbidden or (error.unanswered and error.status):
                return []
            raise


def _listed(
    cluster: _Objects, kind: Kind, item: Object, profile: Profile | None, now: datetime
) -> ListedWorkload:
    job, metadata, pods = kind.as_job(item), item["metadata"], cluster.pods(kind, item)
    workload = cluster.workloads.by_job.get(metadata["uid"])
    events = [event for pod in pods for event in cluster.events[pod["metadata"]["uid"]]]
    current = progress(JobSnapshot(job=job, pods=pods, workload=workload, events=events))
    cause = cluster.cause(kind, job, pods, profile, now)
    if cause is not None:
        current = replace(current, reason="" if cause.reason in OBVIOUS else cause.message)
    queue = text(item, "metadata", "labels", QUEUE_LABEL)
    waits = (
        workload is not None and current.phase is Phase.QUEUED and not condition(workload, "QuotaReserved")
    )
    preemptions = _preemptions(workload, current)
    if kind is JOB:
        preemptions = max(preemptions, _replaced(cluster, job, pods))
    ended = condition(job, "Complete") or condition(job, "Failed")
    deleted = cluster.created(job, pods) - len(pods) if kind is JOB else 0
    has_started = bool(current.running or current.done or preemptions or part(job, "status").get("failed"))
    started = _started(job, pods) if has_started else None
    return ListedWorkload(
        kind=_kind(kind, job),
        namespace=metadata["namespace"],
        name=metadata["name"],
        user=text(item, "metadata", "annotations", USER),
        progress=current,
        cause=cause.reason if cause else "",
        pool=_pool(job, pods, profile),
        queue=queue,
        position=cluster.position(metadata["namespace"], queue, workload) if waits and workload else None,
        attempts=1 + current.retries + preemptions if pods or has_started else 0,
        preemptions=preemptions,
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        started=started,
        ended=datetime.fromisoformat(ended["lastTransitionTime"]) if ended else None,
        cost=cost_of(
            [(pod, cluster.deleted.get(pod["metadata"]["uid"], now)) for pod in pods],
            profile,
            complete=deleted == 0,
        ),
        deleted_pods=deleted,
    )


def _over(job: Object) -> bool:
    return bool(condition(job, "Complete") or condition(job, "Failed"))


def _kind(kind: Kind, job: Object) -> str:
    containers = parts(job, "spec", "template", "spec", "containers")
    names = {variable["name"] for container in containers for variable in parts(container, "env")}
    return "sweep" if kind is JOB and POINTS in names else kind.name


def _pool(job: Object, pods: Sequence[Object], profile: Profile | None) -> str:
    """Return the pools that a workload's pods select, from their node selector and required node affinity."""
    specs = (part(job, "spec", "template", "spec"), *(part(pod, "spec") for pod in pods))
    return ", ".join(dict.fromkeys(name for spec in specs for name in selected_pools(spec, profile)))


def _preemptions(workload: Object | None, current: Progress) -> int:
    """Return the number of pods that disruptions ended, or of evictions by the queue."""
    evictions = parts(workload or {}, "status", "schedulingStats", "evictions")
    return max(len(current.disrupted), sum(int(item.get("count") or 0) for item in evictions))


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
