"""Quotas of vCPUs per family and region.

AKS rejects the creation or change of a pool that exceeds them. Nodes that the autoscaler orders later do not
start."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ebbtide.declaration.catalog import CloudKind, Machine, quota_names
from ebbtide_rehearsal.cloud import faults
from ebbtide_rehearsal.cloud.azure import ids
from ebbtide_rehearsal.cloud.azure.aks.machines import machine
from ebbtide_rehearsal.cloud.azure.aks.pool_request import PoolRequest, PoolRule
from ebbtide_rehearsal.cloud.azure.arm import CLOUD
from ebbtide_rehearsal.cloud.azure.errors import refused
from ebbtide_rehearsal.cloud.azure.network import AGENT_POOL
from ebbtide_rehearsal.cloud.faults import InjectedFault
from ebbtide_rehearsal.cloud.store import Store

REGIONAL: Final = "cores"
"""Total Regional vCPUs; spot counts towards `lowPriorityCores` only."""


def _names(machine_type: Machine, *, spot: bool) -> tuple[str, ...]:
    own = quota_names(CloudKind.AKS, machine_type.family, machine_type.accelerator, spot=spot)
    return own if spot else (*own, REGIONAL)


def _used(pool: PoolRequest, name: str) -> int:
    """Return the vCPUs used by other pools."""
    return sum(_vcpus(pool.cloud.store, other.state, name) for other in _others(pool))


def _others(pool: PoolRequest) -> Iterator[Any]:
    own = f"{pool.cluster}/agentPools/{pool.name}"
    for other in pool.cloud.store.resources(CLOUD, AGENT_POOL):
        if not ids.same(other.id, own):
            yield other


def _vcpus(store: Store, state: Mapping[str, Any], name: str) -> int:
    machine_type = machine(store, str(state["vmSize"]))
    if machine_type is None or name not in _names(machine_type, spot=state.get("scaleSetPriority") == "Spot"):
        return 0
    return machine_type.vcpus * int(state.get("count") or 0)


def _within(pool: PoolRequest) -> str | None:
    needed = pool.machine.vcpus * pool.nodes
    quotas = pool.cloud.store.faults(faults.QUOTA).values()
    for name in _names(pool.machine, spot=pool.is_spot) if needed and pool.old is None else ():
        fault = next((other for other in quotas if other.matches(name)), None)
        if fault is None:
            continue
        remaining = max(int(fault.details["limit"]) - _used(pool, name), 0)
        if needed > remaining:
            pool.cloud.store.strike(faults.QUOTA, name)
            return _exceeded(pool, fault, name, needed, remaining)
    return None


def _exceeded(pool: PoolRequest, fault: InjectedFault, name: str, needed: int, remaining: int) -> str:
    pool.cloud.store.log_event(
        "quota-exceeded",
        f"Node pool {pool.name} wants {needed} vCPUs, and the quota {name} has {remaining} left of "
        f"{fault.details['limit']}.",
        pool=pool.name,
        quota=name,
    )
    if name == REGIONAL:
        return refused(
            "ErrCode_InsufficientVCPUQuota",
            f"Insufficient regional vcpu quota left for location {pool.location}. left regional vcpu "
            f"quota {remaining}, "
            f"requested quota {needed}. If you want to increase the quota, please follow this instruction: "
            "https://learn.microsoft.com/azure/quotas/view-quotas. Surge nodes would also consume vcpu "
            "quota, "
            "please consider use smaller maxSurge or use maxUnavailable to proceed upgrade without surge "
            "nodes.",
        )
    return refused(
        "ErrCode_InsufficientVCPUQuota",
        f"Insufficient vcpu quota requested {needed}, remaining {remaining} for family {name} for region "
        f"{pool.location}. Surge nodes would also consume vcpu quota.",
    )


RULES: Final = (
    PoolRule(
        "vCPUs within the quota",
        "1ChristianAlex/motordesk#14; azure-aks-docs, quotas-skus-regions (2026)",
        _within,
    ),
)
