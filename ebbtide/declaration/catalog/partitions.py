"""Partitions that a GPU can be divided into (NVIDIA Multi-Instance GPU)."""

from collections.abc import Mapping
from functools import cache

from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.cloud_kind import CloudKind


@cache
def partitions(cloud: CloudKind, accelerator: str) -> Mapping[str, int]:
    """Return the number of instances of a divided GPU, by the cloud's name of the partition; empty if it
    cannot be divided."""
    return {
        row["partition"]: int(row["instances"])
        for row in rows("partitions")
        if (row["cloud"], row["accelerator"]) == (cloud.value, accelerator)
    }
