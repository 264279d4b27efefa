"""What AKS prescribes for spot pools and for upgrades."""

from collections.abc import Iterator
from decimal import Decimal

from ebbtide.catalog import CloudKind
from ebbtide.model.capacity import Spot
from ebbtide.model.faults import Fault
from ebbtide.model.rules.rule import PoolIn, PoolRule, Severity

_SPOT_DOCS = "azure-aks-docs spot-node-pool.md (2025-04-06)"
_UPGRADE_DOCS = "azure-aks-docs upgrade-aks-node-pools-rolling.md (2026-05-29)"
_DECIMALS = 5


def _spot_is_no_system_pool(pool: PoolIn) -> Iterator[Fault]:
    if pool.pool.is_system and isinstance(pool.pool.capacity, Spot):
        yield Fault(
            pool.at("capacity"),
            "The system pool cannot be spot on AKS.",
            "The cluster could not be created.",
            "Leave capacity out for on-demand.",
        )


def _max_price(pool: PoolIn) -> Iterator[Fault]:
    capacity = pool.pool.capacity
    price = capacity.max_price if isinstance(capacity, Spot) else None
    if price is None or price == -1:
        return
    exponent = Decimal(repr(price)).normalize().as_tuple().exponent
    if price > 0 and isinstance(exponent, int) and exponent >= -_DECIMALS:
        return
    wrong = "has more than five decimals" if price > 0 else "is neither -1 nor more than 0"
    yield Fault(
        pool.at("capacity.maxPrice"),
        f"maxPrice {price:.10f}".rstrip("0").rstrip(".") + f" {wrong}.",
        "The node pool could not be created.",
        "Write dollars an hour with at most five decimals, as 0.98765, or -1 for up to the list price.",
    )


def _no_upgrade_on_spot(pool: PoolIn) -> Iterator[Fault]:
    if isinstance(pool.pool.capacity, Spot) and pool.pool.upgrade is not None:
        yield Fault(
            pool.at("upgrade"),
            "A spot pool on AKS has no upgrade settings.",
            "AKS upgrades spot nodes without surge and without draining them, and later previews would "
            "want a change.",
            "Leave upgrade out.",
        )


def _upgrade_takes_a_node_at_a_time(pool: PoolIn) -> Iterator[Fault]:
    upgrade = pool.pool.upgrade
    if upgrade is not None and upgrade.max_surge == 0 and not upgrade.max_unavailable:
        yield Fault(
            pool.at("upgrade.maxSurge"),
            "No node may be added and none may be missing during an upgrade.",
            "The upgrade could not begin, and the cloud refuses the settings.",
            "Write maxSurge: 1 or more.",
        )


def _nothing_missing_from_the_system_pool(pool: PoolIn) -> Iterator[Fault]:
    upgrade = pool.pool.upgrade
    if pool.pool.is_system and upgrade is not None and upgrade.max_unavailable:
        yield Fault(
            pool.at("upgrade.maxUnavailable"),
            "No node of the system pool may be missing during an upgrade on AKS.",
            "The cluster could not be created.",
            "Leave maxUnavailable out, and write maxSurge: 1 or more.",
        )


def _deallocate(pool: PoolIn) -> Iterator[Fault]:
    capacity = pool.pool.capacity
    if isinstance(capacity, Spot) and capacity.eviction_policy == "Deallocate":
        yield Fault(
            pool.at("capacity.evictionPolicy"),
            "Nodes that are taken back are deallocated, not deleted.",
            "They still count against the quota, and the autoscaler waits for them where it could try "
            "another pool.",
            "Write evictionPolicy: Delete, or leave it out.",
        )


RULES: tuple[PoolRule, ...] = (
    PoolRule(
        "spot is no system pool",
        f"{_SPOT_DOCS}; use-system-pools.md (2026-04-30)",
        _spot_is_no_system_pool,
        CloudKind.AKS,
    ),
    PoolRule("maximum price -1 or at most five decimals", _SPOT_DOCS, _max_price, CloudKind.AKS),
    PoolRule(
        "no upgrade settings on spot",
        f"{_SPOT_DOCS}; hashicorp/terraform-provider-azurerm#29318",
        _no_upgrade_on_spot,
        CloudKind.AKS,
    ),
    PoolRule(
        "an upgrade has a node to take",
        f"{_UPGRADE_DOCS}; cluster-toolkit modules/compute/gke-node-pool/main.tf@01a7a3ed, preconditions",
        _upgrade_takes_a_node_at_a_time,
    ),
    PoolRule(
        "no system node missing in an upgrade",
        _UPGRADE_DOCS,
        _nothing_missing_from_the_system_pool,
        CloudKind.AKS,
    ),
    PoolRule(
        "spot nodes are deleted", f"{_SPOT_DOCS}; Azure/AKS#5589", _deallocate, CloudKind.AKS, Severity.WARNED
    ),
)
