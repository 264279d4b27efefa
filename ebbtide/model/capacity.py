"""Capacity types of a pool, each a variant with its own fields."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ebbtide.model.base import Converted, Declared, Name, OptionalDuration, default


class OnDemand(Declared):
    """Machines at list price, without a time limit."""

    kind: Literal["on-demand"] = "on-demand"


class Spot(Declared):
    """Spare machines at a lower price, reclaimed with 30 seconds' notice."""

    kind: Literal["spot"] = "spot"
    eviction_policy: Literal["Delete", "Deallocate"] | None = None
    """AKS: what happens to an evicted machine. Default: Delete. A deallocated machine still counts against
    the quota and does not make the autoscaler back off (Azure/AKS#5589)."""
    max_price: float | None = None
    """AKS: maximum price of a machine, USD per hour with at most five decimals. Default: -1, which is up to
    the list price."""


class Preemptible(Declared):
    """GKE: the older form of spot, with a node lifetime of at most 24 hours."""

    kind: Literal["preemptible"] = "preemptible"


class FlexStart(Declared):
    """GKE: Dynamic Workload Scheduler flex-start; machines start when capacity is available and run without
    interruption."""

    kind: Literal["flex-start"] = "flex-start"
    max_run_duration: OptionalDuration = default(None)
    """Maximum lifetime of a node, up to `7d`."""


class Queued(Declared):
    """GKE: flex-start with queued provisioning; all nodes of a request are provisioned together, or the
    request waits."""

    kind: Literal["queued"] = "queued"
    max_run_duration: OptionalDuration = default(None)
    """Maximum lifetime of a node, up to `7d`."""


class Reservation(Declared):
    """Machines of an existing capacity reservation."""

    kind: Literal["reservation"] = "reservation"
    affinity: Literal["specific", "any", "any-then-fail"] = "specific"
    """GKE: `specific` for the reservation in `name`; `any` for any matching reservation, or on-demand
    machines if none is free; `any-then-fail` for matching reservations only."""
    name: Name | None = None
    """GKE: name of the reservation, or `projects/P/reservations/NAME` of a shared or future one; either may
    end in `/reservationBlocks/BLOCK` for one block. AKS: resource id of the capacity reservation group."""


def _from_word(value: object) -> object:
    return {"kind": value} if isinstance(value, str) else value


_Variant = Annotated[
    OnDemand | Spot | Preemptible | FlexStart | Queued | Reservation, Field(discriminator="kind")
]

_Word = Literal["on-demand", "spot", "preemptible", "flex-start", "queued"]

Capacity = Converted[
    Annotated[_Variant, BeforeValidator(_from_word, json_schema_input_type=_Word | _Variant)],
    _Word | OnDemand | Spot | Preemptible | FlexStart | Queued | Reservation,
]
"""A capacity type, written as a word (`spot`) or as an object with `kind`."""
