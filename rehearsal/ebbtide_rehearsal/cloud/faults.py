"""Injected faults: stock-outs, exceeded quotas, reclaims, API errors, latency."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final

NO_STOCK: Final = "no-stock"
"""The cloud has no machines for a node pool, so requested nodes do not start. Target: the pool, or a zone of
the pool, as `pool/zone`."""

QUOTA: Final = "quota"
"""A quota is exceeded: requests that need it are rejected with the cloud's message. Target: the cloud's name
of the quota. Details: `limit`."""

RECLAIM: Final = "reclaim"
"""The cloud reclaims nodes. Target: the pool. Details: `share` of its nodes from 0 to 1 or their `count`, and
`graceful`, whether the kubelet gets notice. Applied once for all pools that match."""

API_ERROR: Final = "api-error"
"""A call of a cloud's API fails. Target: the operation and the type, such as
`create gcp:container/nodePool:NodePool`. Details: `message`."""

SLOW: Final = "slow"
"""A call of a cloud's API is delayed. Target: as for an API error. Details: `seconds`, wall clock."""


@dataclass(frozen=True, slots=True)
class InjectedFault:
    """An injected fault.

    Attributes:
        kind: one of the kinds above.
        target: pattern of targets; `*` matches any characters, `?` a single one.
        times: number of times that it strikes; None until it is lifted.
        details: parameters of the kind, JSON.
    """

    kind: str
    target: str = "*"
    times: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def matches(self, target: str) -> bool:
        """Return whether the fault's pattern matches a target."""
        return fnmatchcase(target, self.target)
