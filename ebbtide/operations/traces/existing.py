"""The work that exists on a cluster: Kueue's Workloads, and Jobs in no queue."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.objects import Object, condition, end_condition, items_of, part, parts, text
from ebbtide.in_pods.cost_recorder import OWNER_LABEL
from ebbtide.placement import Profile
from ebbtide.placement.profile import MAX_RUN_ANNOTATION, PRIORITY_LABEL, QUEUE_LABEL, SAFE_TO_EVICT
from ebbtide.values.kueue_api import API_PATH
from ebbtide.values.pod_requests import pod_requests
from ebbtide.work.errors import ClusterError, explained
from ebbtide.work.runs.listing import selected_pools

ACCELERATORS: Final = ("nvidia.com/gpu", "amd.com/gpu", "google.com/tpu")
"""Resources of accelerators."""

_NONE: Final[Mapping[str, Any]] = {}
_JOB_UID: Final = "batch.kubernetes.io/controller-uid"
_JOB_SET: Final = "jobset.sigs.k8s.io/jobset-name"


@dataclass(frozen=True, slots=True)
class PodRequests:
    """The pods of a Workload or a Job.

    Attributes:
        pods: their number.
        cpu: CPUs that the largest one requests.
        memory: bytes that it requests.
        gpus: accelerators that it requests.
        is_mixed: whether they request different amounts.
        pool: the pool that they select; empty for any of their queue's.
        limit: time limit in seconds, of one attempt if it is the pods'; None without one.
        keep_node: whether one of them lets no scale-down end it.
    """

    pods: int
    cpu: float
    memory: float
    gpus: int
    is_mixed: bool = False
    pool: str = ""
    limit: int | None = None
    keep_node: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingWork:
    """A Workload, or a Job in no queue. Times are seconds since 1970.

    Attributes:
        name: name of the Job, TrainJob or pod.
        user: the user who created it; empty if unknown.
        created: time of its creation.
        admitted: time since which it has quota; None without.
        started: time since which its pods run, or last ran; None before.
        ended: time of its end; None before.
        queue: its LocalQueue; empty for none.
        priority: its WorkloadPriorityClass; empty for none.
        flavor: the flavor that Kueue has assigned; empty before.
    """

    namespace: str
    name: str
    user: str
    created: float
    admitted: float | None
    started: float | None
    ended: float | None
    queue: str
    priority: str
    requests: PodRequests
    pod_uids: frozenset[str]
    flavor: str = ""


def read_existing(api: Api, namespace: str, profile: Profile | None = None) -> list[ExistingWork]:
    """Read the work of a namespace.

    Args:
        namespace: the namespace; empty for all, or those of the profile's teams if it has any.
        profile: the cluster's profile, for the names of pools.

    Raises:
        ClusterError: reading Jobs or pods is forbidden, or the API server does not respond.
    """
    teams = {team.namespace for team in profile.teams} if profile and not namespace else set[str]()
    prefix = f"namespaces/{namespace}/" if namespace else ""
    try:
        jobs, pods = (
            _within(api.items(f"{path}/{prefix}{kind}"), teams)
            for path, kind in (("/apis/batch/v1", "jobs"), ("/api/v1", "pods"))
        )
        workloads = _within(items_of(api.find(f"{API_PATH}/{prefix}workloads")), teams)
    except ApiError as error:
        raise ClusterError(_refusal(error, namespace)) from None
    return list(_Reading(jobs, pods, profile).work(workloads))


def _within(items: Iterable[Object], namespaces: set[str]) -> list[Object]:
    return [item for item in items if not namespaces or item["metadata"]["namespace"] in namespaces]


def _refusal(error: ApiError, namespace: str) -> str:
    if not error.forbidden:
        return explained(error)
    where = f"namespace {namespace}" if namespace else "all namespaces"
    return f"You may not list the work of {where}: name another with --namespace. ({error.message})"


def planned(job: Object, namespace: str, profile: Profile, now: float) -> ExistingWork:
    """Return the work of a Job that does not exist.

    Args:
        namespace: its namespace if the manifest names none.
        now: the current time.
    """
    labels, template = part(job, "metadata", "labels"), job["spec"]["template"]
    return ExistingWork(
        namespace=job["metadata"].get("namespace") or namespace,
        name=job["metadata"]["name"],
        user="",
        created=now,
        admitted=None,
        started=None,
        ended=None,
        queue=labels.get(QUEUE_LABEL, ""),
        priority=labels.get(PRIORITY_LABEL, ""),
        requests=_requests([(_at_once(job), template)], job, profile),
        pod_uids=frozenset(),
    )


class _Reading:
    """The Jobs and pods of Workloads."""

    def __init__(self, jobs: Sequence[Object], pods: Sequence[Object], profile: Profile | None) -> None:
        self._profile = profile
        self._jobs: dict[str, Object] = {job["metadata"]["uid"]: job for job in jobs}
        self._pods: dict[str, list[Object]] = defaultdict(list[Object])
        for pod in pods:
            metadata = pod["metadata"]
            labels = part(metadata, "labels")
            keys = (metadata["uid"], labels.get(_JOB_UID))
            for key in (*filter(None, keys), f"{metadata['namespace']}/{labels.get(_JOB_SET)}"):
                self._pods[key].append(pod)

    def work(self, workloads: Iterable[Object]) -> Iterator[ExistingWork]:
        """Yield the work of Workloads, then the Jobs without one."""
        queued: set[str] = set()
        for workload in workloads:
            owner = next(iter(parts(workload, "metadata", "ownerReferences")), _NONE)
            queued.add(text(owner, "uid"))
            job = self._jobs.get(text(owner, "uid"))
            name = text(owner, "name") or workload["metadata"]["name"]
            by_set = self._pods[f"{workload['metadata']['namespace']}/{name}"]
            pods = self._pods[text(owner, "uid")] or (by_set if job is None else [])
            yield self._queued(workload, job, name, pods)
        for uid, job in self._jobs.items():
            owners = {owner["kind"] for owner in parts(job, "metadata", "ownerReferences")}
            if (
                uid not in queued
                and "JobSet" not in owners
                and not text(job, "metadata", "labels", QUEUE_LABEL)
            ):
                yield self._unqueued(job, self._pods[uid])

    def _queued(
        self, workload: Object, job: Object | None, name: str, pods: Sequence[Object]
    ) -> ExistingWork:
        kinds = ("Admitted", "PodsReady", "Finished")
        admitted, ready, ended = (_moment(condition(workload, kind)) for kind in kinds)
        started = _first_start(pods, admitted) or (ready if ready and ready >= (admitted or 0) else None)
        priority = part(workload, "spec", "priorityClassRef")
        assignments = parts(workload, "status", "admission", "podSetAssignments")
        flavors = (str(flavor) for item in assignments for flavor in part(item, "flavors").values())
        pod_sets = parts(workload, "spec", "podSets")
        limit = part(workload, "spec").get("maximumExecutionTimeSeconds")
        return ExistingWork(
            namespace=workload["metadata"]["namespace"],
            name=name,
            user=_user(job or workload, pods),
            created=_seconds((job or workload)["metadata"]["creationTimestamp"]),
            admitted=admitted,
            started=(started or (admitted if ended else None)) if admitted else None,
            ended=ended,
            queue=text(workload, "spec", "queueName"),
            priority=text(priority, "name") if priority.get("kind") == "WorkloadPriorityClass" else "",
            requests=_requests(
                [(int(item.get("count") or 1), item["template"]) for item in pod_sets],
                job,
                self._profile,
                limit,
            ),
            pod_uids=_uids(pods),
            flavor=next(flavors, ""),
        )

    def _unqueued(self, job: Object, pods: Sequence[Object]) -> ExistingWork:
        began = text(job, "status", "startTime")
        since = _seconds(began) if began and not part(job, "spec").get("suspend") else None
        ended = _moment(end_condition(job))
        return ExistingWork(
            namespace=job["metadata"]["namespace"],
            name=job["metadata"]["name"],
            user=_user(job, pods),
            created=_seconds(job["metadata"]["creationTimestamp"]),
            admitted=since,
            started=_first_start(pods, since) or (since if ended else None),
            ended=ended,
            queue="",
            priority="",
            requests=_requests([(_at_once(job), job["spec"]["template"])], job, self._profile),
            pod_uids=_uids(pods),
        )


def _requests(
    templates: Sequence[tuple[int, Mapping[str, Any]]],
    job: Object | None,
    profile: Profile | None,
    limit: int | None = None,
) -> PodRequests:
    """Return the requests of pod templates, each with its number of pods; a Job's pods that run one after
    another have their time limit one after another."""
    specs = [part(template, "spec") for _, template in templates]
    sizes = [tuple(_amounts(spec)) for spec in specs]
    pools = {name for spec in specs for name in selected_pools(spec, profile)}
    annotations = [part(template, "metadata", "annotations") for _, template in templates]
    asked = (item.get(MAX_RUN_ANNOTATION) for item in annotations)
    rounds = math.ceil(int(part(job, "spec").get("completions") or 1) / _at_once(job)) if job else 1
    of_pods = (*(spec.get("activeDeadlineSeconds") for spec in specs), *asked)
    limits = [rounds * int(seconds) for seconds in of_pods if seconds]
    whole = (limit, part(job or {}, "spec").get("activeDeadlineSeconds"))
    return PodRequests(
        sum(count for count, _ in templates),
        max(cpu for cpu, _, _ in sizes),
        max(memory for _, memory, _ in sizes),
        round(max(gpus for _, _, gpus in sizes)),
        is_mixed=len(set(sizes)) > 1,
        pool=pools.pop() if len(pools) == 1 else "",
        limit=min((*limits, *(int(seconds) for seconds in whole if seconds)), default=None),
        keep_node=any(item.get(SAFE_TO_EVICT) == "false" for item in annotations),
    )


def _user(item: Object, pods: Iterable[Object]) -> str:
    """Return the user whom the labels of an object or of its pods name; empty without one."""
    names = (text(labelled, "metadata", "labels", OWNER_LABEL) for labelled in (item, *pods))
    return next(filter(None, names), "")


def _uids(pods: Iterable[Object]) -> frozenset[str]:
    return frozenset(str(pod["metadata"]["uid"]) for pod in pods)


def _amounts(spec: Mapping[str, Any]) -> Iterator[float]:
    """Yield the CPUs, bytes and accelerators that a pod requests."""
    requests = pod_requests(spec)
    for resources in (("cpu",), ("memory",), ACCELERATORS):
        yield float(sum(requests.get(resource, 0) for resource in resources))


def _at_once(job: Object) -> int:
    """Return the number of a Job's pods that run at once."""
    spec = part(job, "spec")
    parallelism = spec.get("parallelism")
    most = 1 if parallelism is None else int(parallelism)
    return max(1, min(most, int(spec.get("completions") or most)))


def _first_start(pods: Iterable[Object], since: float | None) -> float | None:
    """Return the time at which the first of the pods that were created after a time began to run."""
    times = [
        text(state, key, "startedAt")
        for pod in pods
        if _seconds(pod["metadata"]["creationTimestamp"]) >= (since or 0) - 1
        for status in parts(pod, "status", "containerStatuses")
        for state in (part(status, "state"),)
        for key in ("running", "terminated")
    ]
    return min(map(_seconds, filter(None, times)), default=None)


def _moment(found: Object) -> float | None:
    return _seconds(found["lastTransitionTime"]) if found else None


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
