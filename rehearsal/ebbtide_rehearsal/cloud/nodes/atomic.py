"""What becomes of ProvisioningRequests that the cluster autoscaler itself answers: nodes together, or none,
and a look at what is there (kubernetes/autoscaler, provisioningrequest/besteffortatomic and checkcapacity,
2026; azure-aks-docs, cluster-autoscaler, configure-kueue-with-cluster-autoscaler, 2026-07).

A request for nodes together is provisioned once the scale set has grown: nobody waits for the nodes to join.
One that finds no capacity is tried again and again; it never fails.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ebbtide_rehearsal.cloud.nodes.cluster import Request, Seen
from ebbtide_rehearsal.cloud.nodes.fitting import largest_first, place
from ebbtide_rehearsal.cloud.nodes.growing import offers, options, spread
from ebbtide_rehearsal.cloud.nodes.preferences import best
from ebbtide_rehearsal.cloud.nodes.rooms import unbooked
from ebbtide_rehearsal.cloud.nodes.settings import Settings
from ebbtide_rehearsal.cloud.nodes.verdicts import CHECK, Condition, Order, Verdict

_ACCEPTED: Final = Condition(
    kind="Accepted",
    status=True,
    reason="Accepted",
    message="ProvisioningRequest is accepted by ClusterAutoscaler",
)
_FOUND: Final = Condition(
    kind="Provisioned", status=True, reason="CapacityIsFound", message="Capacity is found in the cluster"
)
_BROUGHT: Final = replace(_FOUND, reason="CapacityIsProvisioned")
_NOT_FOUND: Final = Condition(
    kind="Provisioned",
    status=False,
    reason="CapacityIsNotFound",
    message="Capacity is not found, CA will try to find it later.",
)
_NEVER: Final = Condition(
    kind="Failed",
    status=True,
    reason="CapacityIsNotFound",
    message="CA could not find requested capacity",
)
_OVER: Final = Condition(
    kind="BookingExpired",
    status=True,
    reason="CapacityReservationTimeExpired",
    message="Capacity reservation time is expired",
)


def answer(
    request: Request, seen: Seen, since: float, backoff: Mapping[str, float], settings: Settings
) -> Verdict:
    """What is to be done about a request now.

    Args:
        request: the request.
        seen: the cluster.
        since: when it got its last condition, in simulated seconds.
        backoff: ends of backoffs in simulated seconds, by node group.
        settings: how long things take.
    """
    had = request.conditions
    if "Failed" in had or "BookingExpired" in had:
        return None
    if "Provisioned" in had:
        return _OVER if seen.now - since >= settings.booking_seconds else None
    if "Accepted" not in had:
        return _ACCEPTED
    _, without = place(largest_first(request.pods), unbooked(seen))
    if not without:
        return _FOUND
    if request.kind == CHECK:
        return _NEVER if request.parameters.get("noRetry") == "true" else ordered(request, came=False)
    offered = list(offers(seen, backoff))
    enough = [each for each in options(without, offered) if len(each.pods) == len(without)]
    chosen = best(enough, seen)
    return ordered(request, came=False) if chosen is None else Order(chosen.pool, spread(chosen, offered))


def ordered(request: Request, *, came: bool) -> Condition | None:
    """What a request is told of its capacity; nothing where it was told before."""
    if came:
        return _BROUGHT
    return None if "Provisioned" in request.denied else _NOT_FOUND
