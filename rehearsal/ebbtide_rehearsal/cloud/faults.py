"""Injected faults: stock-outs, exceeded quotas, reclaims, API errors, latency."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

NO_STOCK: Final = "no-stock"
"""The cloud has no machine for a node pool: nodes that it requests do not come. Target: the pool, or the pool
and a zone of it, as `pool/zone`."""

QUOTA: Final = "quota"
"""A quota is exceeded: what needs it is refused with the cloud's message. Target: the quota's name, as the
cloud has it. Details: `limit`."""

RECLAIM: Final = "reclaim"
"""The cloud takes nodes back. Target: the pool. Details: `share` of its nodes from 0 to 1 or their `count`,
and `graceful`, whether the kubelet gets notice. Struck once for all pools that match."""

API_ERROR: Final = "api-error"
"""A call of a cloud's API fails. Target: the operation and the type, such as
`create gcp:container/nodePool:NodePool`. Details: `message`."""

SLOW: Final = "slow"
"""A call of a cloud's API takes longer. Target: as of an API error. Details: `seconds`, of the wall clock."""


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """An injected fault.

    Attributes:
        kind: one of the above.
        target: a pattern of targets; `*` and `?` match any characters and any one.
        times: the number of times that it strikes; None until it is lifted.
        details: the kind's own parameters, JSON.
    """

    kind: str
    target: str = "*"
    times: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def strikes(self, target: str) -> bool:
        """Return whether the fault's pattern matches a target."""
        return fnmatchcase(target, self.target)
