"""Rules of the API on node pools, a file for each concern."""

from typing import Final

from ebbtide_rehearsal.cloud.gcp.pool_rules import capacity, hardware, limits, marks, quotas, settings
from ebbtide_rehearsal.cloud.gcp.pool_rules.rule import CLUSTER_IS_THERE

RULES: Final = (
    CLUSTER_IS_THERE,
    *settings.RULES,
    *hardware.RULES,
    *capacity.RULES,
    *limits.RULES,
    *marks.RULES,
    *quotas.RULES,
)
"""In the order in which they are asked: the first that is broken is the answer."""
