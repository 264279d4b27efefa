"""What may go wrong on request."""

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
and `graceful`, whether kubelet is told beforehand. Struck once for all pools that match."""

API_ERROR: Final = "api-error"
"""A call of a cloud's API fails. Target: the operation and the type, such as
`create gcp:container/nodePool:NodePool`. Details: `message`."""

SLOW: Final = "slow"
"""A call of a cloud's API takes longer. Target: as of an API error. Details: `seconds`, of the wall clock."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is to go wrong.

    Attributes:
        kind: one of those above.
        target: what it strikes; `*` and `?` stand for any characters and for any one.
        times: how often; None for as long as it is not lifted.
        details: what the kind needs beside, JSON.
    """

    kind: str
    target: str = "*"
    times: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def strikes(self, target: str) -> bool:
        """Whether the fault is meant for this one."""
        return fnmatchcase(target, self.target)
