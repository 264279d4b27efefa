"""Comparison of needed quotas with a cloud's limits, and the limits to request."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from ebbtide.cloud_apis.interfaces import QuotaLimit
from ebbtide.review.quotas import Quota

Limits: TypeAlias = Mapping[str, Mapping[str, QuotaLimit]]
"""Limits by region or `global`, and by name of the quota."""

Verdict: TypeAlias = Literal["enough", "in use", "too low", "unknown"]

_NOT_GRANTED: Final = {"PREEMPTIBLE_CPUS": "CPUS"}
"""Quotas of spot machines that Compute Engine ignores until they are granted, and the quotas that it uses
instead (Compute Engine docs, preemptible, 2026; catalog/data/quotas.csv)."""


@dataclass(frozen=True, slots=True)
class QuotaCheck:
    """A needed quota and its limit.

    Attributes:
        quota: the quota and the needed amount.
        limit: its limit and usage.
    """

    quota: Quota
    limit: QuotaLimit

    @property
    def verdict(self) -> Verdict:
        """Compare the limit with the need: `too low` for the stack alone, `in use` with the current usage.

        The usage may be the stack's own; an unknown usage is not counted.
        """
        if self.limit.limit is None:
            return "unknown"
        if self.limit.limit < self.quota.amount:
            return "too low"
        free = self.limit.limit - (self.limit.usage or 0)
        return "in use" if free < self.quota.amount else "enough"

    @property
    def request(self) -> int | None:
        """Limit that suffices with the current usage; None if the present limit suffices or is unknown."""
        if self.verdict in ("unknown", "enough"):
            return None
        return math.ceil(self.quota.amount + (self.limit.usage or 0))


def check_quotas(needs: Sequence[Quota], limits: Limits) -> list[QuotaCheck]:
    """Compare needs with limits.

    Args:
        needs: needed quotas of one cloud.
        limits: limits for each region of the needs.
    """
    return [
        QuotaCheck(quota, limits.get(quota.region, {}).get(quota.name, QuotaLimit()))
        for quota in _granted(needs, limits)
    ]


def _granted(needs: Iterable[Quota], limits: Limits) -> Iterable[Quota]:
    """Add the needs of quotas that are not granted to the quotas that replace them."""
    granted: dict[tuple[str, str], Quota] = {}
    for quota in needs:
        limit = limits.get(quota.region, {}).get(quota.name)
        name = _NOT_GRANTED.get(quota.name, "") if limit is not None and limit.limit == 0 else ""
        actual = replace(quota, name=name or quota.name)
        key = (actual.region, actual.name)
        if earlier := granted.get(key):
            pools = tuple(dict.fromkeys((*earlier.pools, *actual.pools)))
            actual = replace(earlier, amount=earlier.amount + actual.amount, pools=pools)
        granted[key] = actual
    return granted.values()
