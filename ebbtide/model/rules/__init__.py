"""The rules that a declaration must keep, as data: each with its name, its source and what it checks.

A rule sees the declaration as it was written, so that a fault speaks of the user's words; `declare`
runs them all and
reports every fault at once. Rules that only warn are told apart by their severity.
"""

from ebbtide.model.rules.registry import RULES, cluster_faults, pool_faults
from ebbtide.model.rules.rule import ClusterRule, PoolIn, PoolRule, Severity

__all__ = ["RULES", "ClusterRule", "PoolIn", "PoolRule", "Severity", "cluster_faults", "pool_faults"]
