"""A future reservation in calendar mode, which a stack requests for a node pool.

Google Cloud approves a request within a minute and creates the reservation, empty until its begin, under the
name that the pool's nodes consume. At its end it deletes the reservation and its machines. A submitted
request can neither be changed, cancelled nor deleted, and is billed from its begin, used or not. Source:
Compute Engine docs, future-reservations-calendar-mode-overview and create-future-reservations-calendar-mode
(2026); cloud.google.com/products/dws/pricing (2026).
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import pulumi
from pulumi_gcp import compute

from ebbtide.declaration.model.base import rfc3339
from ebbtide.declaration.model.capacity import CALENDAR_LEAD, Reservation
from ebbtide.declaration.model.physical_names import FUTURE_RESERVATION, fitting
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.values import clock, durations
from ebbtide.values.paths import value_at

from ..replacement import hooks

_DECLARED: Final = {
    "timeWindow.startTime": "capacity.from",
    "timeWindow.endTime": "capacity.until",
    "specificSkuProperties.instanceProperties.machineType": "machine",
    "specificSkuProperties.totalCount": "nodes.max",
}
"""Fields of the pool that a request has, by its inputs."""


class ReservationError(Exception):
    """A reservation cannot be requested or changed as declared; the message has the alternative."""


def reservation_name(cluster: str, pool: str) -> str:
    """Return the name of the reservation of a cluster's pool."""
    return fitting(f"{cluster}-{pool}", FUTURE_RESERVATION)


def future_reservation(
    name: str, pool: ResolvedPool, cluster: str, project: str, opts: pulumi.ResourceOptions
) -> compute.FutureReservation | None:
    """Request the reservation of a pool; None for a pool that has no period.

    The stack forgets a request instead of deleting it, which Google Cloud refuses before its end.

    Args:
        name: name of the resource.
        pool: the pool.
        cluster: name of its cluster.
        project: project id of the cluster.
        opts: options of the resource.
    """
    capacity = pool.capacity
    if not isinstance(capacity, Reservation) or capacity.from_ is None or capacity.until is None:
        return None
    own = reservation_name(cluster, pool.name)
    return compute.FutureReservation(
        name,
        name=own,
        reservation_name=own,
        project=project,
        zone=pool.zones[0] if pool.zones else pool.site.location,
        planning_status="SUBMITTED",
        reservation_mode="CALENDAR",
        deployment_type="DENSE",
        specific_reservation_required=True,
        auto_delete_auto_created_reservations=True,
        time_window={"start_time": rfc3339(capacity.from_), "end_time": rfc3339(capacity.until)},
        specific_sku_properties={
            "instance_properties": {"machine_type": pool.machine_type},
            "total_count": str(pool.max_nodes),
        },
        opts=pulumi.ResourceOptions.merge(
            opts,
            pulumi.ResourceOptions(
                retain_on_delete=True,
                hooks=hooks("gke:reservations", before_create=check_lead, before_update=_refuse),
            ),
        ),
    )


def check_lead(args: pulumi.ResourceHookArgs) -> None:
    """Refuse a request that comes too late.

    Raises:
        ReservationError: the reservation begins too early.
    """
    inputs: Mapping[str, Any] = args.new_inputs or {}
    start = datetime.fromisoformat(inputs["timeWindow"]["startTime"])
    if start - (now := clock.now()) < CALENDAR_LEAD:
        raise ReservationError(
            f"The reservation {inputs['name']} begins at {clock.in_utc(start)}, and Google Cloud accepts a "
            f"request {durations.in_words(CALENDAR_LEAD)} before its begin at the latest. Write from: "
            f"{now + CALENDAR_LEAD:%Y-%m-%dT%H:%MZ} or later."
        )


def _refuse(args: pulumi.ResourceHookArgs) -> None:
    """Refuse a change of a request.

    Raises:
        ReservationError: with every change.
    """
    old, new = (args.old_inputs or {}, args.new_inputs or {})
    changes = list(_changes(old, new))
    if changes:
        raise ReservationError(
            f"Google Cloud can neither change nor cancel the requested reservation {new['name']}: "
            f"{', '.join(changes)}. Write the old values again, and for another reservation a pool with "
            "another name."
        )


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for path, field in _DECLARED.items():
        before, after = (value_at(inputs, path) for inputs in (old, new))
        if before != after:
            yield f"{field} from {before} to {after}"
