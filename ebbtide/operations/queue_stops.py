"""Stops of queues: while a stack sleeps, and before their deletion.

With stop policy Hold a ClusterQueue admits nothing, and admitted work continues. With HoldAndDrain admitted
work is evicted: its pods end within the grace period, and a Job in another namespace remains, to be queued
elsewhere (Kueue docs, ClusterQueue, stop policy, 0.19). Kueue keeps a ClusterQueue while workloads reserve
its quota (finalizer `kueue.x-k8s.io/resource-in-use`), and the engine would wait in vain for its deletion.

An annotation marks the queues that Ebbtide held, so that waking does not release a queue that a user held.
"""

import time
from collections.abc import Callable, Iterable
from typing import Final

from ebbtide.clients.kubernetes import Api, ApiError, Object
from ebbtide.clients.kubernetes.objects import condition, part, text
from ebbtide.operations.engine.state import State
from ebbtide.text import several
from ebbtide.values.given_command import given_command
from ebbtide.values.kueue_api import API_PATH, ASLEEP

_QUEUES: Final = f"{API_PATH}/clusterqueues"
_WEBHOOKS: Final = 900.0  # seconds until system nodes and Kueue's webhooks run; nodes take 1 to 5 minutes
_DRAIN: Final = 600.0  # seconds; pods may have a long grace period
_STEP: Final = 5.0
_DRAIN_STEP: Final = 1.0


def is_asleep(queue: Object) -> bool:
    """Return whether a ClusterQueue is held while its stack sleeps."""
    return ASLEEP in part(queue, "metadata", "annotations")


def hold(api: Api, names: Iterable[str], *, drain: bool) -> None:
    """Hold queues. A queue that a user holds is unchanged unless it is to be drained.

    Args:
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
        given_command().happens(f"queue {name} is {'drained' if drain else 'held'}")
        body = {"metadata": {"annotations": {ASLEEP: known}}, "spec": {"stopPolicy": policy}}
        api.patch(f"{_QUEUES}/{name}", body)


def release(api: Api, names: Iterable[str]) -> None:
    """Restore the earlier stop policy of held queues once Kueue's webhooks answer.

    Args:
        names: names of the ClusterQueues.

    Raises:
        ApiError: the API server denies access, or does not answer for 15 minutes.
    """
    end = time.monotonic() + _WEBHOOKS
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
        given_command().happens(f"queue {text(queue or {}, 'metadata', 'name')} is released")
        api.patch(path, {"metadata": {"annotations": {ASLEEP: None}}, "spec": {"stopPolicy": before}})


def reserving(api: Api, names: frozenset[str]) -> int:
    """Return the number of workloads that reserve quota of the queues.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    workloads = api.find(f"{API_PATH}/workloads") or {}
    return sum(_reserves_quota(workload, names) for workload in workloads.get("items") or ())


def _reserves_quota(workload: Object, names: frozenset[str]) -> bool:
    queue = text(workload, "status", "admission", "clusterQueue")
    return (
        queue in names and bool(condition(workload, "QuotaReserved")) and not condition(workload, "Finished")
    )


def queues(state: State) -> frozenset[str]:
    """Return the ClusterQueues to stop before a destroy: none if the cluster itself is deleted."""
    return frozenset() if state.owns_cluster else state.queues


def drain_and_report(api: Api, names: frozenset[str], report: Callable[[str], None]) -> None:
    """Drain queues that are to be deleted, as far as the cluster answers.

    Args:
        names: names of the ClusterQueues.
        report: prints a line.
    """
    report(
        f"Before their deletion, the queues {', '.join(sorted(names))} are drained; pods end within their "
        "grace period."
    )
    try:
        remaining = drain_until_free(api, names)
    except ApiError as error:
        report(f"The queues cannot be drained, and the engine may time out deleting them: {error}")
        return
    if remaining:
        report(f"{several(remaining, 'piece')} of work still reserve quota; the engine waits for them.")


def drain_until_free(api: Api, names: frozenset[str]) -> int:
    """Stop queues and wait until no workload reserves their quota.

    Args:
        names: names of the ClusterQueues.

    Returns:
        The number of workloads that still reserve quota after ten minutes.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    for name in sorted(names):
        path = f"{_QUEUES}/{name}"
        if api.find(path) is not None:
            given_command().happens(
                f"queue {name} is drained; to admit work again, set its `stopPolicy: None` with kubectl edit"
            )
            api.patch(path, {"spec": {"stopPolicy": "HoldAndDrain"}})
    end = time.monotonic() + _DRAIN
    while (remaining := reserving(api, names)) and time.monotonic() < end:
        time.sleep(_DRAIN_STEP)
    return remaining
