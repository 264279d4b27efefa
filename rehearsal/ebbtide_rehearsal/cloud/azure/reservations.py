"""Capacity reservation groups and their reservations, of machines that are available at once.

Source: azure-compute-docs, capacity-reservation-overview.md (2026-02-17) and capacity-reservation-modify.md
(2022-11): only the number of machines changes; a reservation is deleted once no machine uses it, and a group
once it has no reservation.
"""

from typing import Final

from ebbtide.analysis.reading.aks import CAPACITY_RESERVATION
from ebbtide.analysis.reading.facts import Inputs
from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.arm import CONFLICT, Arm, Request, ResourceKind, Rule, fixed, refused
from ebbtide_rehearsal.cloud.azure.networks import AGENT_POOL
from ebbtide_rehearsal.cloud.store import Resource

GROUP: Final = "azure-native:compute:CapacityReservationGroup"


def _number_alone(request: Request) -> str | None:
    old = Inputs(request.old.state if request.old is not None else request.inputs)
    new = Inputs(request.inputs)
    if old.text("sku.name") != new.text("sku.name"):
        return fixed("sku.name")
    return fixed("zones") if old.texts("zones") != new.texts("zones") else None


_FIXED: Final = Rule(
    "fixed machine type and zones", "azure-compute-docs, capacity-reservation-overview.md", _number_alone
)


def _in_use(arm: Arm, reservation: Resource) -> str | None:
    group = reservation.id.rpartition("/capacityReservations/")[0]
    for pool in arm.store.resources("azure-native", AGENT_POOL):
        if ids.same(str(pool.state.get("capacityReservationGroupID") or ""), group):
            return refused(
                "OperationNotAllowed",
                f"Capacity Reservation '{reservation.id}' cannot be deleted since virtual machines of "
                f"'{pool.id}' are associated with it.",
                status=CONFLICT,
            )
    return None


def _with_reservations(arm: Arm, group: Resource) -> str | None:
    if not arm.below(group.id, CAPACITY_RESERVATION):
        return None
    return refused(
        "OperationNotAllowed",
        f"Capacity Reservation Group '{group.id}' cannot be deleted since it has Capacity Reservations.",
        status=CONFLICT,
    )


KINDS: Final = (
    ResourceKind(
        type=GROUP,
        api_version="2024-11-01",
        rules=(_FIXED,),
        before_delete=_with_reservations,
    ),
    ResourceKind(
        type=CAPACITY_RESERVATION,
        api_version="2024-11-01",
        parent=GROUP,
        rules=(_FIXED,),
        before_delete=_in_use,
    ),
)
