"""Fields that require a minimum GKE version: one row each, and a common check."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ebbtide.declaration.catalog import PINS, CloudKind
from ebbtide.declaration.model.capacity import FlexStart, Queued
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import PoolIn, PoolRule


@dataclass(frozen=True, slots=True)
class Needed:
    """A feature with a minimum GKE version.

    Attributes:
        what: name of the feature in messages.
        field: field that requests it.
        is_requested: returns whether a pool requests it.
        pin: name of the version in the catalog's `PINS`.
    """

    what: str
    field: str
    is_requested: Callable[[PoolIn], bool]
    pin: str

    def check(self, pool: PoolIn) -> Iterator[Fault]:
        """Return a fault if the pool uses the feature and its version is pinned to an earlier one."""
        pinned, least = pool.site.kubernetes_version, PINS[self.pin].version
        if pinned is not None and self.is_requested(pool) and is_earlier(pinned, least):
            yield Fault(
                pool.at(self.field),
                f"GKE has {self.what} since {least}, and kubernetesVersion is {pinned}.",
                "GKE refuses to create the node pool.",
                f"Write kubernetesVersion: {least} or later, or omit it.",
            )


def is_earlier(pinned: str, least: str) -> bool:
    """Return whether a version is earlier than another; a shorter version means the newest with that prefix
    (GKE docs, versioning)."""
    have, need = ([int(part) for part in re.findall(r"\d+", text)] for text in (pinned, least))
    return have < need[: len(have)]


def _scheduled(pool: PoolIn) -> bool:
    return isinstance(pool.pool.capacity, FlexStart | Queued)


NEEDED = (
    Needed(
        what="queued provisioning and flex-start",
        field="capacity",
        is_requested=lambda pool: _scheduled(pool) and not pool.resolved.has_tpus,
        pin="gke-queued-provisioning",
    ),
    Needed(
        what="queued provisioning and flex-start for TPUs",
        field="capacity",
        is_requested=lambda pool: _scheduled(pool) and pool.resolved.has_tpus,
        pin="gke-tpu-flex-start",
    ),
    Needed(
        what="extended shutdown grace for spot nodes",
        field="shutdownGrace",
        is_requested=lambda pool: pool.pool.shutdown_grace is not None,
        pin="gke-shutdown-grace",
    ),
)

RULES: tuple[PoolRule, ...] = tuple(
    PoolRule(
        f"GKE version for {row.what}",
        f"{PINS[row.pin].source} ({PINS[row.pin].as_of})",
        row.check,
        CloudKind.GKE,
    )
    for row in NEEDED
)
