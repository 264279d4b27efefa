"""Quotas, which only exist if an injected fault sets one.

When a pool is created, GKE checks the quotas for its first nodes; later nodes are refused to the autoscaler.
"""

from typing import Final

from ebbtide.declaration.catalog import CloudKind, quota_names
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide_rehearsal.cloud import faults
from ebbtide_rehearsal.cloud.gcp.pool_rules.rule import PoolRequest, pool_rule


def _needs(pool: PoolRequest) -> dict[str, int]:
    """Return the amount of each quota for the first nodes."""
    machine = pool.machine
    nodes = (pool.fields.number("nodeCount") or pool.fields.number("initialNodeCount") or 0) * len(pool.zones)
    if machine is None:
        return {}
    accelerator = pool.pool.accelerator
    shared = pool.capacity in ("spot", "preemptible", "flex-start", "queued")
    names = quota_names(CloudKind.GKE, machine.family, pool.pool.accelerator_type, spot=shared)
    count = accelerator.count if accelerator else 0
    return {name: nodes * (count if "GPU" in name or "TPU" in name else machine.vcpus) for name in names}


def _exceeded(pool: PoolRequest) -> str | None:
    if pool.request.old is not None:
        return None
    store = pool.request.cloud.store
    for name, needed in _needs(pool).items():
        limits = [
            float(fault.details["limit"])
            for fault in store.faults(faults.QUOTA).values()
            if fault.matches(name) and needed > float(fault.details["limit"])
        ]
        if limits and store.strike(faults.QUOTA, name) is not None:
            return _message(pool, name, needed, limits[0])
    return None


def _message(pool: PoolRequest, name: str, needed: int, limit: float) -> str:
    region = region_of(pool.zones[0])
    text = f"Pool {pool.request.name} needs {needed} of quota {name} in {region}, and there are {limit:g}."
    pool.request.cloud.store.log_event(
        "quota-exceeded", text, pool=pool.request.name, quota=name, limit=limit
    )
    return (
        f'Insufficient regional quota to satisfy request: resource "{name}": request requires '
        f"'{float(needed)}' and is short '{needed - limit}'. project has a quota of '{limit}' with "
        f"'{limit}' available. View and manage quotas at "
        f"https://console.cloud.google.com/iam-admin/quotas?usage=USED&project={pool.request.project}."
    )


RULES: Final = (
    pool_rule("enough quota", "m-lab/etl#798; GoogleCloudPlatform/cloud-ops-sandbox#44", _exceeded, code=403),
)
