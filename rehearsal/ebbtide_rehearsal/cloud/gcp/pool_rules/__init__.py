"""API rules for node pools, one file per concern."""

from typing import Final

from ebbtide_rehearsal.cloud.gcp.pool_rules import (
    capacity,
    hardware,
    labels_and_taints,
    limits,
    quotas,
    settings,
)
from ebbtide_rehearsal.cloud.gcp.pool_rules.rule import CLUSTER_IS_THERE

RULES: Final = (
    CLUSTER_IS_THERE,
    *settings.RULES,
    *hardware.RULES,
    *capacity.RULES,
    *limits.RULES,
    *labels_and_taints.RULES,
    *quotas.RULES,
)
"""Rules in the order of their check; the first broken one determines the response."""
