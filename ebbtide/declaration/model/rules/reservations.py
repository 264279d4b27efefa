"""Reservations of machines, existing ones and those that a stack makes, and commitments."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from ebbtide.declaration.catalog.clouds import CLOUD_SPECS
from ebbtide.declaration.catalog.machine_offers import accelerator_types
from ebbtide.declaration.catalog.machines import machine_names
from ebbtide.declaration.model.capacity import CALENDAR_LEAD, AnyCapacity, Reservation
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import NO_GKE_POOL, PoolIn, Severity, cluster_rule, pool_rule
from ebbtide.text import and_list, did_you_mean, several
from ebbtide.values import clock, durations
from ebbtide.values.cloud_kind import CloudKind

_RESERVATIONS = "GKE docs, consuming-reservations (cloud.google.com, 2026)"
_CALENDAR: Final = (
    "Compute Engine docs, future-reservations-calendar-mode-overview and "
    "create-future-reservations-calendar-mode (2026)"
)
_REFUSED: Final = "Google Cloud refuses the request for the reservation."
_SHORTEST, _LONGEST = timedelta(days=1), timedelta(days=90)
_SERIES: Final = {"a3": 80, "a4": 80, "h4d": 256}
"""Machine series, with the most machines of a request. Calendar mode reserves TPUs too, by chips."""
_ON_DEMAND: Final = "azure-compute-docs, capacity-reservation-overview.md (2026-02-17)"
_UNSUPPORTED: Final = re.compile(r"Standard_(ND|NC\d+adi?s_H100_|H[BCX])", re.IGNORECASE)
"""Machine types without on-demand capacity reservations: ND-series, NCads H100 v5, HB- and HC-series."""
_COMMITTED: Final = (
    "Compute Engine docs, signing-up-committed-use-discounts (2026); Azure docs, "
    "prepay-reserved-vm-instances (2026)"
)
_UNUSED: Final = "Its price would be added to the cost, and no node would use it."
_KINDS: Final = {"machines": "machine type", "gpus": "accelerator type", "region": "region"}


@pool_rule("specific reservation has name", _RESERVATIONS, CloudKind.GKE)
def _named(pool: PoolIn) -> Iterator[Fault]:
    capacity = pool.pool.capacity
    if not isinstance(capacity, Reservation) or capacity.affinity != "specific":
        return
    if capacity.name is None and _requested(pool) is None:
        yield Fault(
            pool.at("capacity"),
            "The name of the reservation is missing.",
            "No reserved machine would be used.",
            "Write capacity: {kind: reservation, name: a100-reservation}; affinity: any for any matching "
            "reservation; or from and until for a new one.",
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
            NO_GKE_POOL,
            "Omit affinity for that reservation, or omit name for any matching one.",
        )


@cluster_rule(
    "affinity any before other pools",
    f"{_RESERVATIONS}; pulumi-gcp 10.2.0, reservationAffinity.consumeReservationType: ANY_RESERVATION falls "
    "back to on-demand",
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


def _requested(pool: PoolIn) -> Reservation | None:
    """Return the reservation that the stack would request for a pool; None for any other pool."""
    capacity = pool.pool.capacity
    return capacity if isinstance(capacity, Reservation) and (capacity.from_ or capacity.until) else None


@pool_rule("reservation has begin and end", _CALENDAR, CloudKind.GKE)
def _whole_period(pool: PoolIn) -> Iterator[Fault]:
    if (capacity := _requested(pool)) is None or capacity.period is not None:
        return
    missing = "until" if capacity.until is None else "from"
    yield Fault(
        pool.at("capacity"),
        f"The reservation has no {missing}.",
        _REFUSED,
        f"Write {missing}, such as 2026-12-01T08:00Z, or for an existing reservation its name alone.",
    )


@pool_rule("requested reservation has no name", _CALENDAR, CloudKind.GKE)
def _period_or_name(pool: PoolIn) -> Iterator[Fault]:
    capacity = _requested(pool)
    if capacity is None:
        return
    if capacity.name is not None:
        yield Fault(
            pool.at("capacity.name"),
            f"The reservation {capacity.name} has a period.",
            "An existing reservation has its own period, and the stack would request another one.",
            "Omit from and until for that reservation, or omit name for a new one.",
        )
    if capacity.affinity != "specific":
        yield Fault(
            pool.at("capacity.affinity"),
            f"The affinity is {capacity.affinity}, and the reservation has a period.",
            "The pool would use other reservations before the one that is requested for it.",
            "Omit affinity.",
        )


@pool_rule("reservation of 1 to 90 days", _CALENDAR, CloudKind.GKE)
def _length(pool: PoolIn) -> Iterator[Fault]:
    capacity = _requested(pool)
    period = capacity.period if capacity else None
    if period is None or _SHORTEST <= period <= _LONGEST:
        return
    is_forward = period > timedelta()
    problem = f"lasts {durations.in_words(period)}" if is_forward else "ends before it begins"
    fix = "Write a time 1 to 90 days after from."
    yield Fault(pool.at("capacity.until"), f"The reservation {problem}.", _REFUSED, fix)


@pool_rule("reservation requested ahead", _CALENDAR, CloudKind.GKE, Severity.WARNED)
def _ahead(pool: PoolIn) -> Iterator[Fault]:
    """Warn only: the stack may have made the request in time, which its program checks."""
    capacity, now = _requested(pool), clock.now()
    if capacity is None or capacity.from_ is None or capacity.from_ >= now + CALENDAR_LEAD:
        return
    if capacity.until is not None and capacity.until <= now:
        yield Fault(
            pool.at("capacity.until"),
            f"The reservation ended at {clock.in_utc(capacity.until)}.",
            "The pool has no machines.",
            "Remove the pool, or declare another one with a later period.",
        )
        return
    yield Fault(
        pool.at("capacity.from"),
        f"The reservation begins at {clock.in_utc(capacity.from_)}, and Google Cloud needs the request "
        f"{durations.in_words(CALENDAR_LEAD)} before.",
        "It is refused, unless the stack has already requested it.",
        f"Write from: {now + CALENDAR_LEAD:%Y-%m-%dT%H:%MZ} or later in a new pool, or for an existing "
        "reservation its name alone.",
    )


@pool_rule("machine series of calendar mode", _CALENDAR, CloudKind.GKE)
def _reservable(pool: PoolIn) -> Iterator[Fault]:
    machine = pool.pool.machine
    if _requested(pool) is None or machine is None:
        return
    series = pool.resolved.series.name if pool.resolved.series else ""
    if series not in _SERIES:
        yield Fault(
            pool.at("machine"),
            f"Calendar mode reserves machines of {and_list([*_SERIES])}, not {machine.type}.",
            _REFUSED,
            "Write another machine type, or reserve it with `gcloud compute future-reservations create` and "
            "write the reservation's name instead of from and until.",
        )
    elif (nodes := pool.resolved.max_nodes) > _SERIES[series]:
        yield Fault(
            pool.at("nodes.max"),
            f"The reservation is for {nodes} machines, and a request for {series} has at most "
            f"{_SERIES[series]}.",
            _REFUSED,
            f"Write max: {_SERIES[series]}, and another pool for more.",
        )


@pool_rule("requested reservation in one zone", _CALENDAR, CloudKind.GKE)
def _one_zone(pool: PoolIn) -> Iterator[Fault]:
    if _requested(pool) is not None and pool.resolved.zone_count > 1:
        yield Fault(
            pool.at("zones"),
            f"The pool has {pool.resolved.zone_count} zones, and a reservation has one.",
            "Nodes in the other zones would never start.",
            "Write one zone, such as zones: [us-central1-a].",
        )


@pool_rule("requested reservation for an autoscaled pool", _CALENDAR, CloudKind.GKE)
def _from_zero(pool: PoolIn) -> Iterator[Fault]:
    nodes = pool.pool.nodes
    if _requested(pool) is None or (nodes.count is None and not nodes.min):
        return
    field = "count" if nodes.count is not None else "min"
    yield Fault(
        pool.at(f"nodes.{field}"),
        f"The pool always has {several(nodes.count or nodes.min or 0, 'node')}, and no machines before and "
        "after its reservation.",
        "GKE would try in vain to create them, and a new pool would be in an error state.",
        "Write nodes: {max: N} with the number of machines to reserve.",
    )


def _is_created(capacity: AnyCapacity) -> bool:
    """Return whether the stack would create the capacity reservation of a pool on AKS."""
    return isinstance(capacity, Reservation) and capacity.name is None and capacity.from_ is None


@pool_rule("machine type with capacity reservations", _ON_DEMAND, CloudKind.AKS)
def _can_be_reserved(pool: PoolIn) -> Iterator[Fault]:
    machine = pool.pool.machine
    if machine is not None and _is_created(pool.pool.capacity) and _UNSUPPORTED.match(machine.type):
        yield Fault(
            pool.at("machine"),
            f"Azure has no on-demand capacity reservations of {machine.type}.",
            "The reservation could not be created.",
            "Write another machine type, or under capacity.name the resource id of a group with a block "
            "capacity reservation.",
        )


@pool_rule("reserved machines in equal zones", _ON_DEMAND, CloudKind.AKS)
def _evenly(pool: PoolIn) -> Iterator[Fault]:
    zones, nodes = pool.resolved.zone_count, pool.resolved.max_nodes
    if _is_created(pool.pool.capacity) and nodes % zones:
        yield Fault(
            pool.at("nodes.max" if pool.pool.nodes.count is None else "nodes.count"),
            f"{nodes} machines cannot be reserved evenly in {zones} zones.",
            "AKS chooses the zone of each node; one without a reserved machine in its zone may not start.",
            f"Write a multiple of {zones}, such as {nodes + zones - nodes % zones}, or one zone.",
        )


@cluster_rule(
    "identity for capacity reservations",
    "azure-aks-docs use-capacity-reservation-groups.md (2026-05-29): a user-assigned identity with a role",
    CloudKind.AKS,
)
def _granted(cluster: Cluster) -> Iterator[Fault]:
    cloud = cluster.cloud
    if not cloud.existing and "type" not in (cloud.overrides.get("identity") or {}):
        return
    for index, pool in enumerate(cluster.pools):
        if _is_created(pool.capacity):
            yield Fault(
                f"pools[{index}].capacity",
                f"The pool {pool.name} has no capacity reservation group, and the stack does not create the "
                "cluster's identity.",
                "The identity would have no role on a group that the stack creates.",
                "Create the group, grant the identity the role Contributor on it, and write its resource id "
                "under name.",
            )


@cluster_rule("commitment of machines or accelerators", _COMMITTED)
def _of_one_kind(cluster: Cluster) -> Iterator[Fault]:
    for index, commitment in enumerate(cluster.commitments):
        if (commitment.machines is None) == (commitment.gpus is None):
            has = "neither machines nor gpus" if commitment.machines is None else "both machines and gpus"
            yield Fault(
                f"commitments[{index}]",
                f"The commitment has {has}.",
                "Its use would be unknown.",
                f"Write machines: {CLOUD_SPECS[cluster.site.cloud].machine_example} or gpus: "
                "nvidia-h100-80gb, for example.",
            )


@cluster_rule(
    "commitment of known types", "catalog/data/machines.csv and locations.csv, a source in each row"
)
def _of_known_types(cluster: Cluster) -> Iterator[Fault]:
    site = cluster.site
    own = {name for pool in cluster.resolved_pools for name in (pool.machine_type, pool.accelerator_type)}
    for index, commitment in enumerate(cluster.commitments):
        for field, name, known in (
            ("machines", commitment.machines, machine_names(site.cloud)),
            ("gpus", commitment.gpus, accelerator_types(site.cloud)),
            ("region", commitment.region, site.locations.regions()),
        ):
            if name is not None and name not in {*known, *own}:
                yield Fault(
                    f"commitments[{index}].{field}",
                    f"No {_KINDS[field]} {name} is known{did_you_mean(name, known)}",
                    _UNUSED,
                    f"Write a known {_KINDS[field]}.",
                )


@cluster_rule("commitment with a pool", _COMMITTED, severity=Severity.WARNED)
def _usable(cluster: Cluster) -> Iterator[Fault]:
    billed = [pool for pool in cluster.resolved_pools if pool.is_billed_as_on_demand]
    kinds = {name for pool in billed for name in (pool.machine_type, pool.accelerator_type)}
    for index, commitment in enumerate(cluster.commitments):
        kind = commitment.machines or commitment.gpus
        if kind not in kinds and commitment.region in (None, cluster.site.region):
            yield Fault(
                f"commitments[{index}]",
                f"No pool on demand has {kind}.",
                "The commitment is part of the cost, and unused: spot, flex-start and calendar mode have "
                "prices of their own.",
                "Remove it here if only other stacks use it.",
            )
