"""Queues held before they go: Kueue keeps a ClusterQueue that is to be deleted for as long as work has quota
of it (finalizer `kueue.x-k8s.io/resource-in-use`), and the engine would wait for that in vain.

Held and drained, a queue lets nothing in, and what it has let in is suspended: its pods end with their grace
period, and the Job stays, to be queued elsewhere, where its namespace does (Kueue docs, ClusterQueue, stop
policy, 0.19).
"""

import time
from typing import Final

from ebbtide.kubernetes_api import Api, Object
from ebbtide.kubernetes_api.parts import parts, text
from ebbtide.operations.state import State

_KUEUE: Final = "/apis/kueue.x-k8s.io/v1beta2"
_PATIENCE: Final = 600.0  # seconds; pods may have a long grace period
_STEP: Final = 1.0


def queues(state: State) -> frozenset[str]:
    """The ClusterQueues that have to be held: none on a cluster that goes with everything in it."""
    if state.owns_cluster:
        return frozenset()
    return frozenset(item.name for item in state.objects if item.kind == "ClusterQueue")


def hold(api: Api, names: frozenset[str]) -> int:
    """Hold queues until no work has quota of them.

    Args:
        api: the cluster.
        names: of the ClusterQueues.

    Returns:
        How many pieces of work have quota still, after ten minutes.

    Raises:
        ApiError: the API server does not answer, or one may not.
    """
    for name in sorted(names):
        path = f"{_KUEUE}/clusterqueues/{name}"
        if api.find(path) is not None:
            api.patch(path, {"spec": {"stopPolicy": "HoldAndDrain"}})
    end = time.monotonic() + _PATIENCE
    while (using := _using(api, names)) and time.monotonic() < end:
        time.sleep(_STEP)
    return using


def _using(api: Api, names: frozenset[str]) -> int:
    found = api.find(f"{_KUEUE}/workloads") or {}
    return sum(has_quota(one, names) for one in found.get("items") or ())


def has_quota(workload: Object, names: frozenset[str]) -> bool:
    """Whether a Workload has quota of one of the ClusterQueues."""
    true = {one["type"] for one in parts(workload, "status", "conditions") if one["status"] == "True"}
    of = text(workload, "status", "admission", "clusterQueue")
    return of in names and "QuotaReserved" in true and "Finished" not in true
