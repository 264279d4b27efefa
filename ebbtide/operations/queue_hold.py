"""Hold of the queues of a sleeping stack. With stop policy Hold a ClusterQueue admits nothing, and admitted
work continues; with HoldAndDrain admitted work is evicted, and waits (Kueue docs, ClusterQueue, stop policy,
0.19).

An annotation marks the queues that Ebbtide held, so that waking does not release a queue that a user held.
"""

import time
from collections.abc import Iterable
from typing import Final

from ebbtide.clients.kubernetes import Api, ApiError, Object
from ebbtide.clients.kubernetes.parts import part, text
from ebbtide.operations.queue_drain import reserves_quota
from ebbtide.values.kueue_api import API_PATH

_QUEUES: Final = f"{API_PATH}/clusterqueues"
_WORKLOADS: Final = f"{API_PATH}/workloads"
ASLEEP: Final = "ebbtide.dev/asleep"
"""Annotation of a ClusterQueue that is held while its stack sleeps."""
_TIMEOUT: Final = 900.0  # seconds until system nodes and Kueue's webhooks run; nodes take 1 to 5 minutes
_STEP: Final = 5.0


def is_asleep(queue: Object) -> bool:
    """Return whether a ClusterQueue is held while its stack sleeps."""
    return ASLEEP in part(queue, "metadata", "annotations")


def hold(api: Api, names: Iterable[str], *, drain: bool) -> None:
    """Hold queues. A queue that a user holds is unchanged unless it is to be drained.

    Args:
        api: the cluster.
        names: names of the ClusterQueues.
        drain: True to evict admitted work.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    policy = "HoldAndDrain" if drain else "Hold"
    for name in sorted(names):
        queue = api.find(f"{_QUEUES}/{name}")
        if queue is None:
            continue
        before = text(queue, "spec", "stopPolicy") or "None"
        if before == policy or (before != "None" and not drain):
            continue
        known = part(queue, "metadata", "annotations").get(ASLEEP, before)
        body = {"metadata": {"annotations": {ASLEEP: known}}, "spec": {"stopPolicy": policy}}
        api.patch(f"{_QUEUES}/{name}", body)


def release(api: Api, names: Iterable[str]) -> None:
    """Restore the earlier stop policy of held queues once Kueue's webhooks answer.

    Args:
        api: the cluster.
        names: names of the ClusterQueues.

    Raises:
        ApiError: the API server denies access, or does not answer for 15 minutes.
    """
    end = time.monotonic() + _TIMEOUT
    for name in sorted(names):
        while True:
            try:
                _release(api, f"{_QUEUES}/{name}")
                break
            except ApiError as error:
                if not error.unanswered or time.monotonic() > end:
                    raise
            time.sleep(_STEP)


def _release(api: Api, path: str) -> None:
    queue = api.find(path)
    before = part(queue or {}, "metadata", "annotations").get(ASLEEP)
    if before is not None:
        api.patch(path, {"metadata": {"annotations": {ASLEEP: None}}, "spec": {"stopPolicy": before}})


def reserving(api: Api, names: frozenset[str]) -> int:
    """Return the number of workloads that reserve quota of the queues.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    workloads = api.find(_WORKLOADS) or {}
    return sum(reserves_quota(workload, names) for workload in workloads.get("items") or ())
