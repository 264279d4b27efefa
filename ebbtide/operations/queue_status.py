"""Status of queues: waiting work, and the reasons."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ebbtide.clients.kubernetes import Api, Object
from ebbtide.clients.kubernetes.parts import parts, text
from ebbtide.operations import access
from ebbtide.operations.snapshot import Snapshot, take
from ebbtide.operations.status_report import QueueStatus, WaitingWork
from ebbtide.operations.work import root_of, roots
from ebbtide.placement import PoolProfile, Profile
from ebbtide.values import clock
from ebbtide.values.kueue_api import API_PATH
from ebbtide.work.objects import condition
from ebbtide.work.runs.pending.evidence import Evidence, Workloads
from ebbtide.work.runs.pending.queue_causes import queue_cause
from ebbtide.work.unplaceable import misfit

_UNKNOWN: Final = "waiting work is unknown"
_REQUESTS: Final = "/apis/autoscaling.x-k8s.io/v1/provisioningrequests"


@dataclass(frozen=True, slots=True)
class QueueObjects:
    """Objects of Kueue and ProvisioningRequests.

    Attributes:
        cluster_queues: the ClusterQueues.
        local_queues: the LocalQueues.
        requests: the ProvisioningRequests, each owned by a Workload.
    """

    cluster_queues: tuple[Object, ...] = ()
    local_queues: tuple[Object, ...] = ()
    requests: tuple[Object, ...] = ()


def take_queueing(api: Api) -> QueueObjects:
    """Read the objects of Kueue. A kind that is not installed has no objects.

    Raises:
        ApiError: the API server does not answer or denies access.
    """

    def items(path: str) -> tuple[Object, ...]:
        listed: Any = (api.find(path, resourceVersion="0") or {}).get("items")
        return tuple(listed or ())

    return QueueObjects(
        items(f"{API_PATH}/clusterqueues"), items(f"{API_PATH}/localqueues"), items(_REQUESTS)
    )


def queue_statuses(
    queueing: QueueObjects, snapshot: Snapshot, profile: Profile, now: datetime
) -> tuple[QueueStatus, ...]:
    """Return the status of the profile's queues.

    Args:
        queueing: Kueue's objects.
        snapshot: the cluster's objects.
        profile: the stack's profile.
        now: the current time.
    """
    cluster_queues = {_name(queue): queue for queue in queueing.cluster_queues}
    leads_to = {
        (_namespace(queue), _name(queue)): cluster_queues.get(text(queue, "spec", "clusterQueue"))
        for queue in queueing.local_queues
    }
    owners = roots(snapshot)
    requests = _by_workload(queueing.requests)
    unfinished = Workloads(item for item in snapshot.workloads if not condition(item, "Finished"))

    def waiting_work(workload: Object, pools: Iterable[PoolProfile]) -> WaitingWork:
        item = root_of("Workload", workload, owners)
        evidence = Evidence(
            kind=item.kind,
            namespace=item.namespace,
            name=item.name,
            now=now,
            workload=workload,
            local_queues=[queue for queue in queueing.local_queues if _namespace(queue) == item.namespace],
            cluster_queue=leads_to.get(_local_queue(workload)),
            workloads=unfinished,
            is_complete=True,
            request=requests.get(workload["metadata"]["uid"]),
        )
        return WaitingWork(
            kind=item.kind,
            namespace=item.namespace,
            name=item.name,
            since=datetime.fromisoformat(workload["metadata"]["creationTimestamp"]),
            reason=queue_cause(evidence).message,
            never=misfit(workload, pools),
        )

    statuses: list[QueueStatus] = []
    for queue in profile.queues:
        local = {(item.namespace, item.name) for item in queue.local_queues}
        own = [item for item in unfinished if _local_queue(item) in local]
        waiting = [
            waiting_work(item, map(profile.pool, queue.pools))
            for item in own
            if not condition(item, "Admitted")
        ]
        statuses.append(
            QueueStatus(
                name=queue.name,
                held=any(_is_held(leads_to.get(item)) for item in local),
                admitted=len(own) - len(waiting),
                waiting=tuple(sorted(waiting, key=lambda item: (item.since, item.namespace, item.name))),
            )
        )
    return tuple(statuses)


def never(outputs: Mapping[str, Any], profile: Profile) -> list[tuple[QueueStatus, WaitingWork]]:
    """Return the waiting work of a stack that no pool of its queue could ever run.

    Args:
        outputs: the stack's outputs.
        profile: the stack's profile as it would be.

    Raises:
        OperationError: the cluster does not answer, or an output is missing.
    """
    api, _ = access.connected(outputs, _UNKNOWN)
    with access.reaching(_UNKNOWN):
        statuses = queue_statuses(take_queueing(api), take(api), profile, clock.now())
    return [(queue, item) for queue in statuses for item in queue.waiting if item.never]


def _by_workload(requests: Iterable[Object]) -> dict[str, Object]:
    """Map uids of Workloads to their newest ProvisioningRequest: each retry creates one."""
    newest = sorted(requests, key=lambda item: item["metadata"]["creationTimestamp"])
    return {
        owner["uid"]: request for request in newest for owner in parts(request, "metadata", "ownerReferences")
    }


def _is_held(queue: Object | None) -> bool:
    return text(queue or {}, "spec", "stopPolicy") not in {"", "None"}


def _local_queue(workload: Object) -> tuple[str, str]:
    return _namespace(workload), text(workload, "spec", "queueName")


def _namespace(item: Object) -> str:
    return text(item, "metadata", "namespace")


def _name(item: Object) -> str:
    return str(item["metadata"]["name"])
