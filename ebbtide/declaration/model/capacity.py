"""Capacity types of a pool, each a variant with its own fields."""

from datetime import timedelta
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from ebbtide.declaration.model.base import (
    Converted,
    Declared,
    Name,
    OnlyOn,
    OptionalDuration,
    OptionalMoment,
    aks,
    default,
    gke,
    only_aks,
    only_gke,
)
from ebbtide.declaration.model.forms import DURATION, TEXT, Form, words

CALENDAR_LEAD: Final = timedelta(hours=87)
"""Time between a request for a reservation in calendar mode, of GPUs or H4D machines, and its earliest begin
(Compute Engine docs, create-future-reservations-calendar-mode, 2026)."""


_PRICE: Final = Form(
    float, lambda value: float(value) if isinstance(value, int | float) and value >= 0 else None
)
"""A price, of which a negative one means up to the list price."""
_AFFINITIES: Final = words(
    {
        "specific": "SPECIFIC_RESERVATION",
        "any": "ANY_RESERVATION",
        "any-then-fail": "ANY_RESERVATION_THEN_FAIL",
    }
)
CapacityKind: TypeAlias = Literal["on-demand", "spot", "preemptible", "flex-start", "queued", "reservation"]
"""The name of a capacity type."""
_RunDuration = Annotated[OptionalDuration, gke("nodeConfig.maxRunDuration", form=DURATION)]
_Word = Literal["on-demand", "spot", "preemptible", "flex-start", "queued"]


class OnDemand(Declared):
    """Machines at list price, without a time limit."""

    kind: Literal["on-demand"] = "on-demand"


class Spot(Declared):
    """Spare machines at a lower price, reclaimed with 30 seconds' notice."""

    kind: Literal["spot"] = "spot"
    eviction_policy: Annotated[
        Literal["Delete", "Deallocate"] | None,
        aks("scaleSetEvictionPolicy", form=TEXT),
        only_aks(
            "GKE always deletes a preempted spot node.",
            "Write capacity: spot, without evictionPolicy.",
            "GKE docs, spot-vms (2026-08)",
        ),
    ] = None
    """AKS: what happens to an evicted machine. Default: Delete. A deallocated machine still counts against
    the quota and does not make the autoscaler back off (Azure/AKS#5589)."""
    max_price: Annotated[
        float | None,
        aks("spotMaxPrice", form=_PRICE),
        only_aks(
            "Google Cloud has a single spot price, without bids.",
            "Write capacity: spot, without maxPrice.",
            "Compute docs, spot pricing (cloud.google.com/spot-vms/pricing, 2026)",
        ),
    ] = None
    """AKS: maximum price of a machine, USD per hour with at most five decimals. Default: -1, which is up to
    the list price."""


class Preemptible(Declared):
    """GKE: the older form of spot, with a node lifetime of at most 24 hours."""

    kind: Annotated[
        Literal["preemptible"],
        only_gke(
            "The pool could not be created.",
            "Write capacity: spot.",
            "azure-native 3.29.0, AgentPool.scaleSetPriority is Regular or Spot",
            what="capacity kind preemptible",
        ),
    ] = "preemptible"


class FlexStart(Declared):
    """GKE: Dynamic Workload Scheduler flex-start; machines start when capacity is available and run without
    interruption."""

    kind: Annotated[
        Literal["flex-start"],
        only_gke(
            "The pool could not be created.",
            "Write capacity: spot, or omit it for on-demand.",
            "GKE docs, dws-flex-start-training (2026-06-09)",
            what="capacity kind flex-start",
        ),
    ] = "flex-start"
    max_run_duration: _RunDuration = default(None)
    """Maximum lifetime of a node, up to `7d`."""


class Queued(Declared):
    """GKE: flex-start with queued provisioning; all nodes of a request are provisioned together, or the
    request waits."""

    kind: Annotated[
        Literal["queued"],
        only_gke(
            "The pool could not be created.",
            "Write capacity: spot, or omit it for on-demand, and put the pool in a queue.",
            "GKE docs, provisioningrequest (2026-04-08); azure-aks-docs "
            "configure-kueue-with-cluster-autoscaler.md",
            what="capacity kind queued",
        ),
    ] = "queued"
    max_run_duration: _RunDuration = default(None)
    """Maximum lifetime of a node, up to `7d`."""


def _of_period(part: str) -> OnlyOn:
    return only_gke(
        "Azure reserves a period as a block capacity reservation, since Compute API 2025-04-01; the stack "
        "uses 2024-11-01, which reserves machines from creation to deletion.",
        "Remove from and until for that, or write the resource id of an existing group under name.",
        "azure-mgmt-compute 39.0.0, ScheduleProfile; pulumi-azure-native 3.29.0, CapacityReservation",
        what=f"the {part} of a reservation",
    )


class Reservation(Declared):
    """Machines of a capacity reservation: of an existing one, or of one that the stack makes for the pool: on
    GKE a future reservation in calendar mode, on AKS an on-demand capacity reservation."""

    kind: Literal["reservation"] = "reservation"
    affinity: Annotated[
        Literal["specific", "any", "any-then-fail"],
        gke(at="nodeConfig.reservationAffinity.consumeReservationType", form=_AFFINITIES),
        only_gke(
            "A pool on AKS uses only its own capacity reservation group.",
            "Remove affinity.",
            "azure-aks-docs use-capacity-reservation-groups.md (2026-05-29)",
            what="reservation affinity other than specific",
        ),
    ] = "specific"
    """GKE: `specific` for the reservation in `name`; `any` for any matching reservation, or on-demand
    machines if none is free; `any-then-fail` for matching reservations only."""
    name: Annotated[Name | None, aks("capacityReservationGroupID")] = None
    """GKE: name of the reservation, or `projects/P/reservations/NAME` of a shared or future one; either may
    end in `/reservationBlocks/BLOCK` for one block. AKS: resource id of a capacity reservation group;
    default: the stack reserves `nodes.max` machines, billed until the pool is removed, used or not."""
    from_: Annotated[OptionalMoment, _of_period("begin")] = default(None)
    """GKE: begin of a reservation in calendar mode, such as `2026-12-01T08:00Z`. The stack requests
    `nodes.max` machines; a request can neither be changed nor cancelled, and is billed in its period, used or
    not."""
    until: Annotated[OptionalMoment, _of_period("end")] = default(None)
    """GKE: end of that reservation, 1 to 90 days after `from`. Google Cloud then ends its machines."""

    @property
    def period(self) -> timedelta | None:
        """Length of the reservation that the stack requests; None for an existing one."""
        return self.until - self.from_ if self.from_ and self.until else None


def _from_word(value: object) -> object:
    return {"kind": value} if isinstance(value, str) else value


AnyCapacity: TypeAlias = OnDemand | Spot | Preemptible | FlexStart | Queued | Reservation

_Variant = Annotated[AnyCapacity, Field(discriminator="kind")]


Capacity = Converted[
    Annotated[_Variant, BeforeValidator(_from_word, json_schema_input_type=_Word | _Variant)],
    _Word | AnyCapacity,
]
"""A capacity type, written as a word (`spot`) or as an object with `kind`."""
