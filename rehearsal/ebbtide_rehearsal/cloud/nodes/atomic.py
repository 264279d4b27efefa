"""ProvisioningRequests that the cluster autoscaler itself handles: best-effort-atomic and check-capacity
(kubernetes/autoscaler, provisioningrequest/besteffortatomic and checkcapacity, 2026; azure-aks-docs,
cluster-autoscaler, configure-kueue-with-cluster-autoscaler, 2026-07).

A best-effort-atomic request is provisioned once the scale set has grown, before the nodes have joined. A
request without capacity is retried and never fails."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ebbtide_rehearsal.cloud.nodes.cluster import ClusterSnapshot, ProvisioningRequest
from ebbtide_rehearsal.cloud.nodes.decisions import CHECK, Decision, Order, RequestCondition
from ebbtide_rehearsal.cloud.nodes.free_capacity import unbooked
from ebbtide_rehearsal.cloud.nodes.preferences import best
from ebbtide_rehearsal.cloud.nodes.scale_up import expansion_options, options, spread
from ebbtide_rehearsal.cloud.nodes.scheduling import largest_first, schedule
from ebbtide_rehearsal.cloud.nodes.settings import NodeSettings

_ACCEPTED: Final = RequestCondition(
    kind="Accepted",
    status=True,
    reason="Accepted",
    message="ProvisioningRequest is accepted by ClusterAutoscaler",
)
_FOUND: Final = RequestCondition(
    kind="Provisioned", status=True, reason="CapacityIsFound", message="Capacity is found in the cluster"
)
_BROUGHT: Final = replace(_FOUND, reason="CapacityIsProvisioned")
_NOT_FOUND: Final = RequestCondition(
    kind="Provisioned",
    status=False,
    reason="CapacityIsNotFound",
    message="Capacity is not found, CA will try to find it later.",
)
_NEVER: Final = RequestCondition(
    kind="Failed",
    status=True,
    reason="CapacityIsNotFound",
    message="CA could not find requested capacity",
)
_OVER: Final = RequestCondition(
    kind="BookingExpired",
    status=True,
    reason="CapacityReservationTimeExpired",
    message="Capacity reservation time is expired",
)


def answer(
    request: ProvisioningRequest,
    snapshot: ClusterSnapshot,
    since: float,
    backoff: Mapping[str, float],
    settings: NodeSettings,
) -> Decision:
    """Decide on a request.

    Args:
        request: the request.
        snapshot: snapshot of the cluster.
        since: time of its last condition, in simulated seconds.
        backoff: ends of backoffs in simulated seconds, by node group.
        settings: durations.
    """
    had = request.conditions
    if "Failed" in had or "BookingExpired" in had:
        return None
    if "Provisioned" in had:
        return _OVER if snapshot.now - since >= settings.booking_seconds else None
    if "Accepted" not in had:
        return _ACCEPTED
    _, without = schedule(largest_first(request.pods), unbooked(snapshot))
    if not without:
        return _FOUND
    if request.kind == CHECK:
        return _NEVER if request.parameters.get("noRetry") == "true" else ordered(request, came=False)
    offered = list(expansion_options(snapshot, backoff))
    enough = [option for option in options(without, offered) if len(option.pods) == len(without)]
    chosen = best(enough, snapshot)
    return ordered(request, came=False) if chosen is None else Order(chosen.pool, spread(chosen, offered))


def ordered(request: ProvisioningRequest, *, came: bool) -> RequestCondition | None:
    """Return a request's condition after an order; None if it already has that condition."""
    if came:
        return _BROUGHT
    return None if "Provisioned" in request.denied else _NOT_FOUND
