"""Decisions on ProvisioningRequests: those of the cluster autoscaler, and those that GKE queues.

A best-effort-atomic request is provisioned once the scale set has grown, before the nodes have joined;
without capacity it is retried and never fails. Sources: kubernetes/autoscaler, ProvisioningRequest API
autoscaling.x-k8s.io/v1, provisioningrequest/besteffortatomic and checkcapacity (2026); azure-aks-docs,
cluster-autoscaler, configure-kueue-with-cluster-autoscaler (2026-07); GKE docs, provisioningrequest
(2026-04-08); Kueue 0.19.2's use of the conditions: pkg/controller/admissionchecks/provisioning; reasons and
messages: GoogleCloudPlatform/cluster-autoscaler@7d250507, pkg/provisioningrequests.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ebbtide.autoscaler.backoff import NodeSettings
from ebbtide.autoscaler.expander import best
from ebbtide.autoscaler.nodes import Machine, NodePool, billed_count, node_info, resize_request
from ebbtide.autoscaler.scale_up import expansion_options, options, spread
from ebbtide.autoscaler.scheduling import largest_first, obstacle, pack, schedule
from ebbtide.autoscaler.snapshot import (
    ATOMIC,
    CHECK,
    QUEUED,
    ClusterSnapshot,
    Decision,
    Order,
    ProvisioningRequest,
    RequestCondition,
    unbooked,
)

_ACCEPTED_AT_ONCE: Final = RequestCondition(
    "Accepted", "Accepted", "ProvisioningRequest is accepted by ClusterAutoscaler"
)
_FOUND: Final = RequestCondition("Provisioned", "CapacityIsFound", "Capacity is found in the cluster")
_BROUGHT: Final = replace(_FOUND, reason="CapacityIsProvisioned")
_NOT_FOUND: Final = RequestCondition(
    "Provisioned",
    "CapacityIsNotFound",
    "Capacity is not found, CA will try to find it later.",
    status=False,
)
_NEVER: Final = RequestCondition("Failed", "CapacityIsNotFound", "CA could not find requested capacity")
_OVER: Final = RequestCondition(
    "BookingExpired", "CapacityReservationTimeExpired", "Capacity reservation time is expired"
)
_CLASSES: Final = {"gke": (QUEUED, CHECK, ATOMIC), "aks": (CHECK, ATOMIC)}
_ACCEPTED: Final = "Provisioning Request was successfully queued."
_PROVISIONED: Final = "Provisioning Request was successfully provisioned."
_EXPIRED: Final = (
    "Capacity booking for the Provisioning Request has expired and the nodes are now candidates for scale "
    "down when underutilized."
)
_REVOKED: Final = (
    "Capacity provisioned for the Provisioning Request was reclaimed and is no longer available in "
    "the cluster."
)


def _by_autoscaler(
    request: ProvisioningRequest,
    snapshot: ClusterSnapshot,
    since: float,
    backoff: Mapping[str, float],
    settings: NodeSettings,
) -> Decision:
    """Decide on a request of a class that the cluster autoscaler itself serves; arguments as for `decide`."""
    had = request.conditions
    if "Failed" in had or "BookingExpired" in had:
        return None
    if "Provisioned" in had:
        return _OVER if snapshot.now - since >= settings.booking_seconds else None
    if "Accepted" not in had:
        return _ACCEPTED_AT_ONCE
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


def decide(
    request: ProvisioningRequest,
    snapshot: ClusterSnapshot,
    since: float,
    backoff: Mapping[str, float],
    settings: NodeSettings,
) -> Decision:
    """Decide on a request.

    Args:
        since: time of its last condition, or of its first snapshot, in simulated seconds.
        backoff: ends of backoffs in simulated seconds, by node group.
    """
    had = request.conditions
    if request.kind not in {name for pool in snapshot.pools for name in _CLASSES[pool.cloud]}:
        return None
    if request.kind != QUEUED:
        return _by_autoscaler(request, snapshot, since, backoff, settings)
    if had & {"Failed", "CapacityRevoked"}:
        return None
    if "Provisioned" in had:
        return _booked(request, snapshot, since, settings)
    if "Accepted" not in had:
        return RequestCondition("Accepted", "SuccessfullyQueued", _ACCEPTED)
    return _provision(request, snapshot, since, settings)


def _booked(
    request: ProvisioningRequest, snapshot: ClusterSnapshot, since: float, settings: NodeSettings
) -> RequestCondition | None:
    """Decide on a provisioned request: its booking expires, and its capacity may be revoked."""
    if not nodes_of(request, snapshot.machines):
        return RequestCondition("CapacityRevoked", "CapacityRevoked", _REVOKED)
    if "BookingExpired" not in request.conditions and snapshot.now - since >= settings.booking_seconds:
        return RequestCondition("BookingExpired", "BookingExpired", _EXPIRED)
    return None


def _provision(
    request: ProvisioningRequest, snapshot: ClusterSnapshot, since: float, settings: NodeSettings
) -> Decision:
    machines = nodes_of(request, snapshot.machines)
    if machines:
        if not all(_is_ready(machine, snapshot) for machine in machines):
            return None
        details = {"ResizeRequestName": resize_request(request.id)}
        return RequestCondition("Provisioned", "Provisioned", _PROVISIONED, details=details)
    pools = [pool for pool in snapshot.pools if pool.capacity == "queued"]
    orders = [
        order for pool in pools for zone in pool.zones if (order := _order(request, pool, zone, snapshot))
    ]
    possible = [order for order in orders if len(order.zones) <= order.pool.maximum]
    if failure := _infeasible(request, pools, orders, possible, snapshot):
        return failure
    free = [
        order
        for order in possible
        if len(order.zones) <= order.pool.maximum - billed_count(snapshot.machines, order.pool)
    ]
    if snapshot.now - since < settings.dws_wait_seconds or not free:
        return None
    return min(
        free,
        key=lambda order: (
            math.inf if order.pool.hourly is None else len(order.zones) * order.pool.hourly,
            order.pool.name,
            order.zones,
        ),
    )


def _infeasible(
    request: ProvisioningRequest,
    pools: Sequence[NodePool],
    orders: Sequence[Order],
    possible: Sequence[Order],
    snapshot: ClusterSnapshot,
) -> RequestCondition | None:
    """Return the failure of a request that never fits a queued pool."""
    if not pools:
        nothing = "No nodepool with QueuedProvisioning enabled is available for scale up"
        return RequestCondition("Failed", "NoQueuedNodepoolAvailable", nothing)
    if not orders:
        return RequestCondition(
            "Failed", "ProvisioningRequestNotSchedulableInNodepool", _why_not(request, pools, snapshot)
        )
    # Flex-start supports accelerators and the series H4D (GKE docs, concepts/dws, 2026).
    if not any(order.pool.accelerator or order.pool.machine.startswith("h4d-") for order in orders):
        return RequestCondition(
            "Failed", "ResizeRequestFailed", "Resize requests without accelerators are not supported."
        )
    if not possible:
        names = ", ".join(sorted({order.pool.name for order in orders}))
        return RequestCondition(
            "Failed", "NodepoolSizeReached", f"Max nodepool size reached, affected nodepools: {names}"
        )
    return None


def _order(
    request: ProvisioningRequest, pool: NodePool, zone: str, snapshot: ClusterSnapshot
) -> Order | None:
    """Return the order for a request's nodes from a pool, all in one zone; None if a pod fits no node."""
    empty, pods = node_info(pool, zone, snapshot.daemons), request.pods
    if any(obstacle(pod_set.pod, empty) for pod_set in request.sets):
        return None
    used, _ = pack(largest_first(pods), empty, len(pods))
    return Order(pool, (zone,) * len(used))


def _why_not(request: ProvisioningRequest, pools: Sequence[NodePool], snapshot: ClusterSnapshot) -> str:
    obstacles = {
        pool.name: dict.fromkeys(
            text
            for pod_set in request.sets
            for zone in pool.zones
            if (text := obstacle(pod_set.pod, node_info(pool, zone, snapshot.daemons)))
        )
        for pool in pools
    }
    errors = ", ".join(f"{name} ({', '.join(texts)})" for name, texts in sorted(obstacles.items()))
    prefix = "Provisioning Request's pods cannot be scheduled in the nodepool"
    return f"{prefix}. Predicate checking errors: {errors}"


def nodes_of(request: ProvisioningRequest, machines: Sequence[Machine]) -> list[Machine]:
    """Return the machines that were ordered for a request and are not being removed."""
    return [machine for machine in machines if machine.request == request.id and not machine.is_leaving]


def _is_ready(machine: Machine, snapshot: ClusterSnapshot) -> bool:
    node, pool = snapshot.nodes.get(machine.name), snapshot.pool(machine)
    shown = node is not None and (
        pool is None or pool.accelerator is None or pool.accelerator_resource in node.allocatable
    )
    return node is not None and node.is_schedulable and shown


def run_seconds(request: ProvisioningRequest | None, pool: NodePool) -> float | None:
    """Return a node's maximum run duration in simulated seconds; None for no limit.

    A request may have a shorter duration than its pool (`maxRunDurationSeconds`).
    """
    limit = request.parameters.get("maxRunDurationSeconds") if request else None
    return min(float(limit), pool.max_run_seconds or float(limit)) if limit else pool.max_run_seconds
