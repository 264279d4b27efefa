"""Footprints of the cloud's system pods and of each add-on: requests, disks, load balancers, webhooks.

A preview sees a chart or a kustomization as one resource; this table has its content.
"""

from dataclasses import dataclass
from functools import cache

from ebbtide.catalog.allocatable import Resources
from ebbtide.catalog.tables import rows


@dataclass(frozen=True, slots=True)
class Footprint:
    """Everything that an item runs on the system pool, or on each node, and what the cloud bills besides.

    Attributes:
        item: `gke`, `aks` (the cloud's own system pods), the name of an add-on, or with `-node` what it runs
            on each node.
        requests: summed requests.
        most: the most of each that a single pod of it requests; nothing for what runs on each node, where all
            of it has to fit.
        pods: how many it runs all the time; None where that was not counted.
        volumes_gib: sizes of the disks that it claims, GiB, one for each.
        load_balancers: services that the cloud makes a load balancer for.
        webhooks: webhook configurations, which stand between the API server and what they cover.
        verified: whether all of it was read from a manifest or a measurement, and not estimated.
        as_of: year and month of the source.
        source: where it was read.
    """

    item: str
    requests: Resources
    most: Resources
    pods: int | None
    volumes_gib: tuple[int, ...]
    load_balancers: int
    webhooks: int
    verified: bool
    as_of: str
    source: str


@cache
def _footprints() -> dict[str, Footprint]:
    return {
        row["item"]: Footprint(
            item=row["item"],
            requests=Resources(float(row["cpu_m"]), float(row["memory_mib"])),
            most=Resources(float(row["most_cpu_m"] or 0), float(row["most_memory_mib"] or 0)),
            pods=int(row["pods"]) if row["pods"] else None,
            volumes_gib=tuple(int(size) for size in row["volumes_gib"].split()),
            load_balancers=int(row["load_balancers"] or 0),
            webhooks=int(row["webhooks"] or 0),
            verified=row["verified"] == "yes",
            as_of=row["as_of"],
            source=row["source"],
        )
        for row in rows("footprints")
    }


def footprint(item: str) -> Footprint:
    """Return the footprint of the cloud's system pods or of an add-on.

    Raises:
        KeyError: the catalog has no such item.
    """
    return _footprints()[item]


def has_footprint(item: str) -> bool:
    """Check that the catalog has an item's footprint."""
    return item in _footprints()
