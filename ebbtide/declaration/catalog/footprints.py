"""Footprints of the cloud's system pods and of each add-on: requests, disks, load balancers, webhooks.

A preview treats a chart or a kustomization as one resource; this table has its content.
"""

from dataclasses import dataclass
from functools import cache

from ebbtide.declaration.catalog.allocatable import Resources
from ebbtide.declaration.catalog.tables import rows


@dataclass(frozen=True, slots=True)
class Footprint:
    """Resources that an item uses on the system pool or on each node, and other billed resources.

    Attributes:
        item: `gke`, `aks` (the cloud's own system pods), or the name of an add-on; with `-node` for the pods
            on each node.
        requests: total requests.
        most: largest requests of a single pod, by resource; zero for pods on each node, where all must fit.
        pods: number of permanent pods; None if unknown.
        volumes_gib: size of each disk that it claims, GiB.
        load_balancers: number of services of type LoadBalancer.
        webhooks: number of webhook configurations.
        verified: True if all values were read from a manifest or measured, and none is an estimate.
        as_of: year and month of the source.
        source: source of the values.
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
    """Return whether the catalog has an item's footprint."""
    return item in _footprints()
