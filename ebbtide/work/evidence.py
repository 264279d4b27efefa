"""The cause of a workload's waiting, and the objects from which it is derived, read with the rights of its
user.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from ebbtide.clients.kubernetes import METADATA, Api, ApiError
from ebbtide.clients.kubernetes.objects import Object, condition, items_of, part, parts, phase_of, text, waits
from ebbtide.placement import PoolProfile, Profile
from ebbtide.placement.profile import QUEUE_LABEL
from ebbtide.values import quantities
from ebbtide.values.kueue_api import API_PATH, CLUSTER_QUEUES
from ebbtide.work.errors import answered
from ebbtide.work.kinds import EXPERIMENT, JOB, TRAIN_JOB, WORKLOADS, Kind, kind_of, lost, trials, unchanged

VERSION: Final = "ebbtide.dev/why/v1"
"""Version of the document of `ebbtide why --format json`."""
OBVIOUS: Final = frozenset({"New", "Starting"})
"""Causes that the phase of a workload tells."""
USER: Final = "ebbtide.dev/user"
"""Annotation with the user who created a workload."""
JOB_UID: Final = "kueue.x-k8s.io/job-uid"
"""The label by which Kueue's Workload names its Job (kueue, pkg/controller/constants, 0.19)."""
_GATE: Final = "kueue.x-k8s.io/admission"
"""Scheduling gate of a pod that Kueue has not admitted (kueue, pkg/controller/jobs/pod, 0.19.2)."""
POSITIONS: Final = "/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/{}/localqueues/{}/pendingworkloads"
_REQUESTS: Final = "/apis/autoscaling.x-k8s.io/v1/namespaces/{}/provisioningrequests"
_TRAINER: Final = "/openapi/v3/apis/trainer.kubeflow.org/v1alpha1"


class Actor(StrEnum):
    """Person or team who can change a cause."""

    OWNER = "owner"
    """The user who created the workload."""
    OTHERS = "others"
    """The users of other workloads, which hold what it needs."""
    ADMINISTRATOR = "administrator"
    """An administrator of the cluster, or of the stack."""
    CLOUD = "cloud"
    """The cloud, once it has capacity."""
    TIME = "time"
    """No user: a controller continues by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The cause of a workload's waiting.

    Attributes:
        reason: the kind of cause, in CamelCase as in a condition.
        message: the cause, as a clause without a full stop.
        remedy: what changes it and by whom, as a clause.
        actor: who can change it.
        until: the next time at which it can start, where a controller or an estimate tells; else None.
    """

    reason: str
    message: str
    remedy: str
    actor: Actor
    until: datetime | None = None

    def __str__(self) -> str:
        """Return one sentence."""
        return f"{self.message}; {self.remedy}."

    def document(self) -> dict[str, Any]:
        """Return it as a part of the document."""
        return {
            "reason": self.reason,
            "message": self.message,
            "remedy": self.remedy,
            "actor": self.actor.value,
            "until": self.until.isoformat() if self.until else None,
        }


class Workloads(tuple[Object, ...]):  # noqa: SLOT001 - cached properties
    """Kueue Workloads; what all of them say about the waiting of each is read once."""

    @cached_property
    def by_job(self) -> Mapping[str, Object]:
        """The Workloads by the uid of their Job."""
        return {text(item, "metadata", "labels", JOB_UID): item for item in reversed(self)}

    @cached_property
    def quota(self) -> Mapping[tuple[str, str], Sequence[tuple[Object, Decimal]]]:
        """The unfinished Workloads with quota by resource and flavor, each with its amount."""
        held: defaultdict[tuple[str, str], list[tuple[Object, Decimal]]] = defaultdict(list)
        for item in self:
            if condition(item, "Finished"):
                continue
            for assigned in parts(item, "status", "admission", "podSetAssignments"):
                for resource, flavor in part(assigned, "flavors").items():
                    used = text(assigned, "resourceUsage", resource) or "0"
                    held[resource, flavor].append((item, quantities.parse(used)))
        return held


def owner_of(job: Object) -> str:
    """Return the name of the user who created a workload."""
    return text(job, "metadata", "annotations", USER) or "another user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The objects of a waiting workload. What the user may not read, or is not installed, is missing.

    Attributes:
        kind: kind for users, such as `TrainJob`.
        job: the workload in the form of a Job; empty for a pod.
        missing: names of the ConfigMaps that its pods mount and that do not exist.
        events: events of the workload, of its pods and of its Workload.
        local_queues: the LocalQueues of its namespace.
        cluster_queue: the ClusterQueue of its queue.
        workloads: the Workloads that the user may read, of all queues.
        is_complete: whether these are the Workloads of all namespaces.
        position: position in its queue, from 1.
        ahead: names of the workloads before it in its queue.
        request: its newest ProvisioningRequest.
        has_runtime_patches: whether the installed Trainer knows the field that Kueue sets; None if unknown.
        label: label of the pods, `key=value`, for a log query; empty for a Job.
    """

    kind: str
    namespace: str
    name: str
    now: datetime
    job: Object = field(default_factory=dict[str, Any])
    pods: Sequence[Object] = ()
    missing: Sequence[str] = ()
    events: Sequence[Object] = ()
    workload: Object | None = None
    local_queues: Sequence[Object] = ()
    cluster_queue: Object | None = None
    workloads: Workloads = field(default_factory=Workloads)
    is_complete: bool = False
    position: int | None = None
    ahead: Sequence[str] = ()
    request: Object | None = None
    has_runtime_patches: bool | None = None
    profile: Profile | None = None
    label: str = ""

    @property
    def queue(self) -> str:
        """Return the name of its LocalQueue; empty without one."""
        named = text(self.workload or {}, "spec", "queueName")
        return named or text(self.job, "metadata", "labels", QUEUE_LABEL)

    @property
    def local_queue(self) -> Object | None:
        """Return its LocalQueue; None if it does not exist or is unknown."""
        return next((item for item in self.local_queues if item["metadata"]["name"] == self.queue), None)

    @property
    def queue_pools(self) -> tuple[PoolProfile, ...]:
        """Return the pools of its queue; empty if the profile does not have the queue."""
        own = (self.namespace, self.queue)
        return tuple(
            self.profile.pool(name)
            for queue in (self.profile.queues if self.profile else ())
            if own in {(item.namespace, item.name) for item in queue.local_queues}
            for name in queue.pools
            if self.profile
        )

    def age_seconds(self, since: str) -> float:
        """Return the time since a timestamp of the API."""
        return (self.now - datetime.fromisoformat(since)).total_seconds()

    def events_of(self, uid: str, *reasons: str) -> list[Object]:
        """Return the events of an object with one of the reasons, oldest first."""
        own = [
            item
            for item in self.events
            if text(item, "involvedObject", "uid") == uid and item.get("reason") in reasons
        ]
        return sorted(own, key=lambda item: (event_time(item), _version(item)))


def is_gated(pod: Object) -> bool:
    """Return whether a pod waits for Kueue, as single pods in a queue do."""
    return any(gate.get("name") == _GATE for gate in parts(pod, "spec", "schedulingGates"))


def _version(event: Object) -> int:
    """Return an event's resource version, which orders events of the same second (Kubernetes API concepts,
    resource versions, 1.35)."""
    version = text(event, "metadata", "resourceVersion")
    return int(version) if version.isdecimal() else 0


def clock_time(time: str | datetime) -> str:
    """Return a time, or a timestamp of the API, as `14:05 UTC`."""
    return f"{datetime.fromisoformat(time) if isinstance(time, str) else time:%H:%M} UTC"


def event_time(event: Object) -> str:
    """Return the time of an event's last occurrence."""
    return (
        text(event, "series", "lastObservedTime")
        or text(event, "lastTimestamp")
        or text(event, "eventTime")
        or text(event, "metadata", "creationTimestamp")
    )


def owner_name(workload: Object, namespace: str = "") -> str:
    """Return the name of a Workload's owner, with its namespace if that is another."""
    owners = parts(workload, "metadata", "ownerReferences")
    name = text(owners[0], "name") if owners else text(workload, "metadata", "name")
    own = text(workload, "metadata", "namespace")
    return name if own == namespace else f"{own}/{name}"


def _by_name(item: Object) -> str:
    return f"metadata.name={item['metadata']['name']}"


POD: Final = Kind("pod", "/api/v1/namespaces/{}/pods", _by_name, unchanged)
WORKLOAD: Final = Kind("Workload", f"{API_PATH}/namespaces/{{}}/workloads", _by_name, unchanged)
_KINDS: Final = (*WORKLOADS, POD, WORKLOAD)
_OWNERS: Final = {"Job": JOB, "TrainJob": TRAIN_JOB, "Pod": POD}


def read_evidence(
    api: Api, name: str, namespace: str, now: datetime, profile: Profile | None = None
) -> Evidence:
    """Read the objects of a workload. Objects that the user may not read are missing.

    Args:
        name: name of a Job, TrainJob, pipeline run, experiment, pod or Workload.

    Raises:
        ClusterError: it does not exist, reading it is forbidden, or the API server does not respond.
    """
    kind, name = kind_of(api, name, namespace, _KINDS)
    with answered(lambda error: lost(error, kind, name, namespace, known=False)):
        return _read(_Reader(api, namespace), kind, name, now, profile)


class _Reader:
    """A namespace's objects; a list that is not installed or forbidden is empty."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self.namespace = api, namespace

    def get(self, kind: Kind, name: str) -> Object:
        """Return an object."""
        return self._api.get(f"{kind.path.format(self.namespace)}/{name}")

    def find(self, path: str, **query: str) -> Object | None:
        """Return an object; None if it does not exist, or the user may not read it."""
        try:
            return self._api.find(path.format(self.namespace), **query)
        except ApiError as error:
            if error.forbidden or (error.unanswered and error.status):
                return None
            raise

    def items(self, path: str, **query: str) -> list[Object]:
        """Return the objects of a list."""
        return items_of(self.find(path, **query))

    def missing(self, path: str, names: Sequence[str]) -> list[str]:
        """Return which objects of a list do not exist; none if the user may not read them."""
        listed = self.find(path, accept=METADATA) if names else None
        existing = {item["metadata"]["name"] for item in items_of(listed)}
        return [name for name in names if name not in existing] if listed else []

    def workload(self, item: Object) -> Object | None:
        """Return the newest Workload of an object."""
        selector = f"{JOB_UID}={item['metadata']['uid']}"
        return next(reversed(self.items(WORKLOAD.path, labelSelector=selector)), None)


def _read(reader: _Reader, kind: Kind, name: str, now: datetime, profile: Profile | None) -> Evidence:
    item, workload = reader.get(kind, name), None
    if kind is WORKLOAD:
        workload, owners = item, parts(item, "metadata", "ownerReferences")
        owner, owner_kind = (text(owners[0], key) if owners else "" for key in ("name", "kind"))
        if owner_kind not in _OWNERS:
            is_over = condition(item, "Admitted") or condition(item, "Finished")
            job = {} if is_over else {**item, "spec": {"suspend": True}, "status": {}}
            seen = Evidence(
                kind=owner_kind or kind.name, namespace=reader.namespace, name=name, now=now, job=job
            )
            return _complete(reader, replace(seen, workload=workload, profile=profile))
        kind, name = _OWNERS[owner_kind], owner
        item = reader.get(kind, name)
    job, pods = _job_and_pods(reader, kind, item)
    # Kueue has Workloads for the pods of a pipeline run, and for the Jobs of an experiment.
    owning = (job or item, *filter(is_gated, pods))
    workload = workload or next(filter(None, map(reader.workload, owning)), None)
    seen = Evidence(kind=kind.name, namespace=reader.namespace, name=name, now=now, job=job, pods=pods)
    return _complete(reader, replace(seen, workload=workload, profile=profile))


def _job_and_pods(reader: _Reader, kind: Kind, item: Object) -> tuple[Object, list[Object]]:
    """Return a workload in the form of a Job, and its pods; of an experiment, the first suspended trial."""
    if kind is POD:
        return {}, [item]
    names = trials(item) if kind is EXPERIMENT else []
    pods = reader.items(POD.path, labelSelector=kind.pod_selector(item))
    jobs = reader.items(JOB.path) if names else []
    queued = (job for job in jobs if job["metadata"]["name"] in names and job["spec"].get("suspend"))
    return next(queued, kind.as_job(item)), pods


def _complete(reader: _Reader, evidence: Evidence) -> Evidence:
    """Add the events, the queues and the other workloads."""
    everywhere = reader.find(f"{API_PATH}/workloads")
    workloads: list[Object] = reader.items(WORKLOAD.path) if everywhere is None else items_of(everywhere)
    complete = replace(
        evidence,
        missing=reader.missing("/api/v1/namespaces/{}/configmaps", _maps(evidence.pods)),
        events=reader.items("/api/v1/namespaces/{}/events"),
        local_queues=reader.items(f"{API_PATH}/namespaces/{{}}/localqueues"),
        workloads=Workloads(workloads),
        is_complete=everywhere is not None,
    )
    return _with_queue(reader, complete, evidence.workload) if evidence.workload else complete


def _maps(pods: Sequence[Object]) -> list[str]:
    """Return the names of the ConfigMaps without which pods that have a node do not start."""
    starting = [pod for pod in pods if phase_of(pod) == "Pending" and not waits(pod)]
    sources = [part(volume, "configMap") for pod in starting for volume in parts(pod, "spec", "volumes")]
    return list(
        dict.fromkeys(text(source, "name") for source in sources if source and not source.get("optional"))
    )


def _with_queue(reader: _Reader, evidence: Evidence, workload: Object) -> Evidence:
    """Add the Trainer's schema, or the ClusterQueue, the position and the ProvisioningRequest."""
    if condition(workload, "Admitted"):
        schema = reader.find(_TRAINER) if evidence.kind == TRAIN_JOB.name else None
        known = "runtimePatches" in json.dumps(schema) if schema else None
        return replace(evidence, has_runtime_patches=known)
    uid, own = workload["metadata"]["uid"], workload["metadata"]["name"]
    requests = [
        item
        for item in reader.items(_REQUESTS)
        if any(owner.get("uid") == uid for owner in parts(item, "metadata", "ownerReferences"))
    ]
    cluster_queue = text(evidence.local_queue or {}, "spec", "clusterQueue")
    pending = reader.items(POSITIONS.format(reader.namespace, evidence.queue)) if evidence.queue else []
    ordered = sorted(pending, key=lambda item: int(item.get("positionInLocalQueue") or 0))
    names = [text(item, "metadata", "name") for item in ordered]
    place = names.index(own) if own in names else None
    owners = {item["metadata"]["name"]: owner_name(item, reader.namespace) for item in evidence.workloads}
    return replace(
        evidence,
        cluster_queue=reader.find(f"{CLUSTER_QUEUES}/{cluster_queue}") if cluster_queue else None,
        position=None if place is None else place + 1,
        ahead=[owners.get(name, name) for name in names[: place or 0]],
        request=max(requests, key=lambda item: item["metadata"]["creationTimestamp"], default=None),
    )
