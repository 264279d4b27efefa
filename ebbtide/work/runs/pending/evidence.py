"""The objects from which the cause of a workload's waiting is derived."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from typing import Final

from ebbtide.clients.kubernetes.parts import part, parts, text
from ebbtide.placement import PoolProfile, Profile
from ebbtide.placement.profile import QUEUE_LABEL
from ebbtide.values import quantities
from ebbtide.work.objects import Object, condition
from ebbtide.work.submission import JOB_UID

_GATE: Final = "kueue.x-k8s.io/admission"
"""Scheduling gate of a pod that Kueue has not admitted (kueue, pkg/controller/jobs/pod, 0.19.2)."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The objects of a waiting workload. What the user may not read, or is not installed, is missing.

    Attributes:
        kind: kind for users, such as `TrainJob`.
        namespace: its namespace.
        name: its name.
        now: the current time.
        job: the workload in the form of a Job; None for a pod.
        pods: its pods.
        missing: names of the ConfigMaps that its pods mount and that do not exist.
        events: events of the workload, of its pods and of its Workload.
        workload: its Kueue Workload.
        local_queues: the LocalQueues of its namespace.
        cluster_queue: the ClusterQueue of its queue.
        workloads: the Workloads that the user may read, of all queues.
        is_complete: whether these are the Workloads of all namespaces.
        position: position in its queue, from 1.
        ahead: names of the workloads before it in its queue.
        request: its newest ProvisioningRequest.
        has_runtime_patches: whether the installed Trainer knows the field that Kueue sets; None if unknown.
        profile: the cluster's profile.
    """

    kind: str
    namespace: str
    name: str
    now: datetime
    job: Object | None = None
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

    @property
    def queue(self) -> str:
        """Return the name of its LocalQueue; empty without one."""
        named = text(self.workload or {}, "spec", "queueName")
        return named or text(self.job or {}, "metadata", "labels", QUEUE_LABEL)

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
