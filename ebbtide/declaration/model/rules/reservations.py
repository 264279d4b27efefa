"""Rules for reservations: a named one, or any that matches."""

from collections.abc import Iterator

from ebbtide.declaration.catalog import CLOUD_SPECS, CloudKind
from ebbtide.declaration.model.capacity import Reservation
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import PoolIn, Severity, cluster_rule, pool_rule

_DOCS = "GKE docs, consuming-reservations (cloud.google.com, 2026)"


@pool_rule(
    "specific reservation has name", f"{_DOCS}; azure-native 3.29.0, AgentPool.capacityReservationGroupID"
)
def _named(pool: PoolIn) -> Iterator[Fault]:
    capacity = pool.pool.capacity
    if isinstance(capacity, Reservation) and capacity.affinity == "specific" and capacity.name is None:
        cloud = pool.site.cloud
        alone = ", or affinity: any for any matching reservation" if cloud is CloudKind.GKE else ""
        yield Fault(
            pool.at("capacity"),
            "The name of the reservation is missing.",
            "No reserved machine would be used.",
            f"Write capacity: {{kind: reservation, {CLOUD_SPECS[cloud].reservation_example}}}{alone}.",
        )


@pool_rule(
    "any reservation has no name",
    "GKE v1 API, ReservationAffinity: key and values are for SPECIFIC_RESERVATION (2026)",
    CloudKind.GKE,
)
def _any_has_no_name(pool: PoolIn) -> Iterator[Fault]:
    capacity = pool.pool.capacity
    if isinstance(capacity, Reservation) and capacity.affinity != "specific" and capacity.name is not None:
        yield Fault(
            pool.at("capacity.name"),
            f"The affinity is {capacity.affinity}, and the reservation has the name {capacity.name}.",
            "GKE refuses to create the node pool.",
            "Omit affinity for that reservation, or omit name for any matching one.",
        )


@cluster_rule(
    "affinity any before other pools",
    f"{_DOCS}; pulumi-gcp 10.2.0, reservationAffinity.consumeReservationType: ANY_RESERVATION falls back "
    "to on-demand",
    CloudKind.GKE,
    Severity.WARNED,
)
def _any_before_others(cluster: Cluster) -> Iterator[Fault]:
    by_name = {pool.name: (number, pool) for number, pool in enumerate(cluster.pools)}
    for queue in cluster.fallback_queues:
        for index, name in enumerate(queue.pools[:-1]):
            number, pool = by_name.get(name, (0, None))
            capacity = pool.capacity if pool else None
            if isinstance(capacity, Reservation) and capacity.affinity == "any":
                yield Fault(
                    f"pools[{number}].capacity.affinity",
                    f"The pool {name} uses on-demand machines when no reservation has capacity.",
                    f"The pools after it in the queue {queue.name}, {', '.join(queue.pools[index + 1 :])}, "
                    "are tried only when on-demand machines are out of stock.",
                    "Write affinity: any-then-fail, so that the next pool is tried instead.",
                )
