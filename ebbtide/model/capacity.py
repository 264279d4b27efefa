"""Capacity types of a pool, a variant each with the fields of that type alone."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ebbtide.model.base import Converted, Declared, Name, OptionalDuration, default


class OnDemand(Declared):
    """Machines at list price for as long as they are wanted."""

    kind: Literal["on-demand"] = "on-demand"


class Spot(Declared):
    """Spare machines at a lower price, taken back with 30 seconds' notice."""

    kind: Literal["spot"] = "spot"
    eviction_policy: Literal["Delete", "Deallocate"] | None = None
    """AKS: what becomes of a machine that is taken back. Default: Delete. A deallocated one still counts
    against the quota and does not make the autoscaler back off (Azure/AKS#5589)."""
    max_price: float | None = None
    """AKS: the most to pay for a machine, USD per hour with at most five decimals; -1, or left out, for up
    to the list price."""


class Preemptible(Declared):
    """GKE: the older kind of spot; a node lives 24 hours at most."""

    kind: Literal["preemptible"] = "preemptible"


class FlexStart(Declared):
    """GKE: Dynamic Workload Scheduler flex-start; machines start when there is stock and run without
    interruption."""

    kind: Literal["flex-start"] = "flex-start"
    max_run_duration: OptionalDuration = default(None)
    """Maximum lifetime of a node, up to `7d`."""


class Queued(Declared):
    """GKE: flex-start with queued provisioning; all nodes of a request come together, or the request
    waits."""

    kind: Literal["queued"] = "queued"
    max_run_duration: OptionalDuration = default(None)
    """Maximum lifetime of a node, up to `7d`."""


class Reservation(Declared):
    """Machines of a capacity reservation that is there already."""

    kind: Literal["reservation"] = "reservation"
    affinity: Literal["specific", "any", "any-then-fail"] = "specific"
    """GKE: `specific` for the one that is named; `any` for whichever matches the machine, and on-demand
    machines where none is free; `any-then-fail` for whichever matches, and nothing else."""
    name: Name | None = None
    """GKE: name of the reservation, or `projects/P/reservations/NAME` of a shared or future one; either with
    `/reservationBlocks/BLOCK` for one block. AKS: resource id of the capacity reservation group."""


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
"""A capacity kind, written as a word (`spot`) or as an object with `kind`."""
