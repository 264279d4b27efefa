"""AKS rules for node counts."""

from typing import Final

from ebbtide_rehearsal.cloud.azure.aks.pool_request import PoolRequest, PoolRule
from ebbtide_rehearsal.cloud.azure.errors import invalid, missing, refused

_MOST: Final = 1000
_AUTOSCALER: Final = "azure-aks-docs, cluster-autoscaler (2026)"


def _limits_are_set(pool: PoolRequest) -> str | None:
    if pool.is_autoscaled:
        for name in ("minCount", "maxCount"):
            if pool.given.get(name) is None:
                return missing(f"properties.{name}")
    return None


def _limits_only_for_the_autoscaler(pool: PoolRequest) -> str | None:
    if not pool.is_autoscaled:
        for name in ("minCount", "maxCount"):
            if pool.given.get(name):
                details = "it can only be set when enableAutoScaling is true"
                return invalid(f"agentPoolProfile.{name}", details)
    return None


def _limits_are_in_order(pool: PoolRequest) -> str | None:
    if not pool.is_autoscaled:
        return None
    least, most = int(pool.given["minCount"]), int(pool.given["maxCount"])
    if least < 0 or least > most:
        return invalid("agentPoolProfile.minCount", "minCount must be between 0 and maxCount")
    if not 1 <= most <= _MOST:
        return invalid("agentPoolProfile.maxCount", f"maxCount must be between 1 and {_MOST}")
    return None


def _system_pool_never_empty(pool: PoolRequest) -> str | None:
    if pool.is_system and pool.is_autoscaled and int(pool.given["minCount"]) < 1:
        return invalid("agentPoolProfile.minCount")
    return None


def _count_is_set(pool: PoolRequest) -> str | None:
    """Reject a pool without a count, unless the autoscaler sets it (Azure/AKS#1627, Azure/ARO-HCP#3659). A
    pool whose autoscaler is enabled by this change and whose type is omitted needs a count."""
    if pool.given.get("count") is not None:
        return None
    if pool.is_autoscaled:
        is_new_to_it = pool.old is not None and not pool.old.state.get("enableAutoScaling")
        is_asked_for = is_new_to_it and pool.given.get("type") is None
    else:
        is_asked_for = pool.old is None or pool.old.state.get("count") is None
    return missing("properties.count") if is_asked_for else None


def _count_is_within(pool: PoolRequest) -> str | None:
    count = pool.given.get("count")
    if count is None:
        return None
    lowest = 1 if pool.is_system else 0
    least, most = (
        (int(pool.given["minCount"]), int(pool.given["maxCount"])) if pool.is_autoscaled else (lowest, _MOST)
    )
    if least <= int(count) <= most:
        return None
    return refused(
        "InvalidParameter",
        f"agentPoolProfile.count was {int(count)}. It must be greater or equal to minCount:{least} and "
        "less than "
        f"or equal to maxCount:{most}. If allowedMinCount was expected to be 0 but is {lowest}: 1) The "
        "nodepool is "
        "a VMAS pool. 2) api Version is less than 2020-03-01. 3) The node is a system pool.",
        target="agentPoolProfile.count",
    )


RULES: Final = (
    PoolRule("limits for the autoscaler", _AUTOSCALER, _limits_are_set),
    PoolRule("no limits without it", "ksctl/ksctl#629", _limits_only_for_the_autoscaler),
    PoolRule("limits in order", f"{_AUTOSCALER}; Azure/azure-cli#22442", _limits_are_in_order),
    PoolRule("a system pool is never empty", "Azure/azure-cli#22442", _system_pool_never_empty),
    PoolRule("a count where AKS wants one", "pulumi/pulumi-azure-native#2943", _count_is_set),
    PoolRule(
        "a count within the limits", "kubernetes-sigs/cluster-api-provider-azure#5947", _count_is_within
    ),
)
