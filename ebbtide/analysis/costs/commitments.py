"""Commitments of a recorded stack.

A commitment applies to machines on demand and in reservations that are billed like these, not to spot,
flex-start or calendar mode, which have discounts of their own (Compute Engine docs,
signing-up-committed-use-discounts, 2026; Azure docs, prepay-reserved-vm-instances, 2026).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.catalog.commitments import Coverage, Use
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.declaration.model.resolved_pool import ResolvedPool

_TOPOLOGIES: Final = tuple(f"ebbtide:{cloud}:Topology" for cloud in CloudKind)


def coverages(recording: Recording, pools: Sequence[ResolvedPool]) -> tuple[Coverage, ...]:
    """Return the commitments of a recorded stack in the region of its pools."""
    regions = {pool.site.region for pool in pools}
    declared = (
        item
        for type_ in _TOPOLOGIES
        for resource in recording.of_type(type_)
        for item in Inputs(resource.inputs).parts("commitments")
    )
    return tuple(
        Coverage(
            kind=item.text("machines") or item.text("gpus"),
            count=item.number("count") or 0,
            usd=item.amount("usdPerHour") or 0.0,
            uses=dict(_uses(item, pools)),
        )
        for item in declared
        if not item.has("region") or item.text("region") in regions
    )


def _uses(commitment: Inputs, pools: Iterable[ResolvedPool]) -> Iterator[tuple[str, Use]]:
    for pool in pools:
        accelerator = pool.accelerator
        if not pool.is_billed_as_on_demand:
            continue
        machine, *attached = pool.priced_node.parts("on-demand")
        if commitment.text("machines") == pool.machine_type:
            yield pool.name, Use(1, "machine", machine)
        elif accelerator is not None and commitment.text("gpus") == accelerator.type:
            part = ("accelerators", attached[0]) if attached else ("machine", machine)
            yield pool.name, Use(accelerator.count, *part)
