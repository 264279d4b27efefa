"""Stop of queues before their deletion: Kueue keeps a ClusterQueue while workloads reserve its quota
(finalizer `kueue.x-k8s.io/resource-in-use`), and the engine would wait in vain for its deletion.

With stop policy HoldAndDrain a queue admits nothing, and its admitted workloads are evicted: their pods end
within the grace period, and a Job in another namespace remains, to be queued elsewhere (Kueue docs,
ClusterQueue, stop policy, 0.19).
"""

import time
from collections.abc import Callable
from typing import Final

from ebbtide.clients.kubernetes import Api, ApiError, Object
from ebbtide.clients.kubernetes.parts import parts, text
from ebbtide.operations.state import State
from ebbtide.text import several
from ebbtide.values.kueue_api import API_PATH

_TIMEOUT: Final = 600.0  # seconds; pods may have a long grace period
_STEP: Final = 1.0


def queues(state: State) -> frozenset[str]:
    """Return the ClusterQueues to stop before a destroy: none if the cluster itself is deleted."""
    return frozenset() if state.owns_cluster else state.queues


def drain_and_report(api: Api, names: frozenset[str], report: Callable[[str], None]) -> None:
    """Drain queues that are to be deleted, as far as the cluster answers.

    Args:
        api: the cluster.
        names: names of the ClusterQueues.
        report: prints a line.
    """
    report(
        f"Before their deletion, the queues {', '.join(sorted(names))} are drained; pods end within their "
        "grace period."
    )
    try:
        remaining = drain(api, names)
    except ApiError as error:
        report(f"The queues cannot be drained, and the engine may time out deleting them: {error}")
        return
    if remaining:
        report(f"{several(remaining, 'piece')} of work still reserve quota; the engine waits for them.")


def drain(api: Api, names: frozenset[str]) -> int:
    """Stop queues and wait until no workload reserves their quota.

    Args:
        api: the cluster.
        names: names of the ClusterQueues.

    Returns:
        The number of workloads that still reserve quota after ten minutes.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    for name in sorted(names):
        path = f"{API_PATH}/clusterqueues/{name}"
        if api.find(path) is not None:
            api.patch(path, {"spec": {"stopPolicy": "HoldAndDrain"}})
    end = time.monotonic() + _TIMEOUT
    while (remaining := _reserving(api, names)) and time.monotonic() < end:
        time.sleep(_STEP)
    return remaining


def _reserving(api: Api, names: frozenset[str]) -> int:
    workloads = api.find(f"{API_PATH}/workloads") or {}
    return sum(reserves_quota(workload, names) for workload in workloads.get("items") or ())


def reserves_quota(workload: Object, names: frozenset[str]) -> bool:
    """Return whether a Workload reserves quota of one of the ClusterQueues."""
    true = {
        condition["type"]
        for condition in parts(workload, "status", "conditions")
        if condition["status"] == "True"
    }
    queue = text(workload, "status", "admission", "clusterQueue")
    return queue in names and "QuotaReserved" in true and "Finished" not in true
