"""Interfaces of the clients, the same for every cloud."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from ebbtide.catalog.prices import Price


@dataclass(frozen=True, slots=True)
class QuotaLimit:
    """A quota's limit in a region.

    Attributes:
        limit: the limit.
        usage: the part of it that is in use, by anything in the project or subscription.
    """

    limit: float
    usage: float


class QuotaSource(Protocol):
    """Quotas of a project or subscription."""

    def limits(self, region: str) -> Mapping[str, QuotaLimit]:
        """Return the limits of a region, or of the whole project for `global`, by the cloud's name of the
        quota.

        Raises:
            CloudApiError: the cloud refuses or does not answer.
        """
        ...


class PriceSource(Protocol):
    """A cloud's price list."""

    @property
    def name(self) -> str:
        """The name of the list, as the source of its prices."""
        ...

    def prices(self, region: str, items: Collection[str]) -> Mapping[str, Price]:
        """Return the prices of items in a region, as of today.

        Items are named as in `catalog/data/prices.csv`. An item without a price, or with several that differ,
        is omitted; a rate that is not known is None.

        Raises:
            CloudApiError: the cloud refuses or does not answer.
        """
        ...
