"""Cloud quotas that a stack needs at its maximum node counts.

The names are the clouds' own (catalog/data/quotas.csv). Further sources: Compute Engine docs,
allocation-quotas (2026), for `GPUS_ALL_REGIONS`, which is 0 in a new project, and `SSD_TOTAL_GB`;
azure-aks-docs, quotas-skus-regions (2026), for `cores`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from ebbtide.catalog import CloudKind, find_machine, quota_names
from ebbtide.catalog.clouds import region_of
from ebbtide.reading.facts import PoolFacts

GLOBAL: Final = "global"
"""Region of a global quota."""

_SHARED: Final = {"spot", "preemptible", "flex-start", "queued"}
"""Capacity types with separate quotas."""

_SSD: Final = {"pd-balanced", "pd-ssd"}
_COUNTS_ACCELERATORS: Final = ("GPU", "TPU")


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota and the amount that the stack needs.

    Attributes:
        cloud: the cloud.
        region: the region, or `global`.
        name: name in the cloud.
        amount: vCPUs, accelerators, or GB of disks.
        pools: pools that count towards it.
    """

    cloud: CloudKind
    region: str
    name: str
    amount: int
    pools: tuple[str, ...]


def quotas(pools: Iterable[PoolFacts]) -> list[Quota]:
    """Return the quotas that pools need at their maximum node counts, in the order of first use."""
    needs: dict[tuple[CloudKind, str, str], dict[str, int]] = {}
    for pool in pools:
        for region, name, amount in _of_pool(pool):
            if amount:
                needs.setdefault((pool.cloud, region, name), {})[pool.name] = amount
    return [Quota(*key, sum(by_pool.values()), tuple(by_pool)) for key, by_pool in needs.items()]


def without_quota(pools: Iterable[PoolFacts]) -> tuple[str, ...]:
    """Return the machine types whose quotas are unknown, since the catalog does not have them."""
    types = (
        pool.machine
        for pool in pools
        if pool.capacity != "reservation" and find_machine(pool.cloud, pool.machine) is None
    )
    return tuple(dict.fromkeys(types))


def _of_pool(pool: PoolFacts) -> Iterator[tuple[str, str, int]]:
    """Yield region, name and amount of a pool's quotas; none for reserved machines, which are already
    counted.
    """
    machine, accelerator = find_machine(pool.cloud, pool.machine), pool.accelerator
    if machine is None or pool.capacity == "reservation":
        return
    region, nodes, shared = region_of(pool.location), pool.nodes.most, pool.capacity in _SHARED
    accelerators = accelerator.count if accelerator else 0
    family_names = quota_names(
        pool.cloud, machine.family, accelerator.type if accelerator else "", spot=shared
    )
    for name in family_names:
        counted = accelerators if any(word in name for word in _COUNTS_ACCELERATORS) else machine.vcpus
        yield region, name, counted * nodes
    if pool.cloud is CloudKind.AKS:
        if not shared:
            yield region, "cores", machine.vcpus * nodes
        return
    if accelerator and "GPU" in "".join(family_names):
        yield GLOBAL, "GPUS_ALL_REGIONS", accelerators * nodes
    if pool.disk.type in _SSD:
        yield region, "SSD_TOTAL_GB", (pool.disk.size_gib or 0) * nodes
