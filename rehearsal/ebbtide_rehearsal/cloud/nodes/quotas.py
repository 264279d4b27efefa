"""Quotas of the fake clouds: usage by existing machines, limits set by faults.

Sources: catalog/data/quotas.csv; Compute Engine docs, allocation-quotas (2026), for `GPUS_ALL_REGIONS` and
`SSD_TOTAL_GB`; azure-aks-docs, quotas-skus-regions (2026), for `cores`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from ebbtide.declaration.catalog import CloudKind, find_machine, quota_names
from ebbtide_rehearsal.cloud.faults import QUOTA
from ebbtide_rehearsal.cloud.nodes.machines import Machine
from ebbtide_rehearsal.cloud.pools import NodePool, all_pools
from ebbtide_rehearsal.cloud.store import Store

GRANTED: Final = 100_000
"""Limit of a quota without a fault, high enough for everything."""

OF_PROJECT: Final = "GPUS_ALL_REGIONS"
"""Quota that counts over all regions."""

_CHEAPER: Final = ("spot", "preemptible", "flex-start", "queued")
"""Capacity kinds with separate quotas."""


def shares(pool: NodePool) -> dict[str, int]:
    """Return a node's share of each quota: vCPUs, accelerators, GB of SSD disks."""
    cloud = CloudKind(pool.cloud)
    machine = find_machine(cloud, pool.machine)
    if machine is None:
        return {}
    spot = pool.capacity in _CHEAPER
    cores = quota_names(cloud, machine.family, spot=spot)
    counts = dict.fromkeys(cores, machine.vcpus)
    if cloud is CloudKind.AKS:
        return counts if spot else {**counts, "cores": machine.vcpus}
    if pool.accelerator is not None:
        kind, number = pool.accelerator
        names = [name for name in quota_names(cloud, machine.family, kind, spot=spot) if name not in cores]
        counts |= dict.fromkeys(names, number)
        counts |= {OF_PROJECT: number} if "GPU" in "".join(names) else {}
    return {**counts, "SSD_TOTAL_GB": pool.ssd_gb} if pool.ssd_gb else counts


def usage(store: Store, cloud: CloudKind, region: str, machines: Iterable[Machine]) -> Mapping[str, int]:
    """Return the used amount of each quota of a region, and of the project's quotas.

    Args:
        store: the fake cloud's store, with the pools of the machines.
        cloud: the cloud.
        region: the region.
        machines: machines that count.
    """
    pools = {pool.id: pool for pool in all_pools(store) if pool.cloud == cloud}
    used: Counter[str] = Counter()
    for machine in machines:
        pool = pools.get(machine.pool_id)
        for name, amount in shares(pool).items() if pool else ():
            if pool and (pool.region == region or name == OF_PROJECT):
                used[name] += amount
    return used


def limit(store: Store, name: str) -> float:
    """Return the limit of a quota: the lowest that a fault sets."""
    limits = (float(fault.details["limit"]) for fault in store.faults(QUOTA).values() if fault.matches(name))
    return min(limits, default=GRANTED)
