"""Interfaces of the clients, the same for every cloud."""

from collections.abc import Callable, Collection, Mapping
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


class ClusterPower(Protocol):
    """The machines of a cluster, which can be stopped and started together."""

    def refusal(self) -> str:
        """Return the reason for which the cluster can never be stopped, a sentence; empty if it can.

        Raises:
            CloudApiError: the cloud refuses or does not answer.
        """
        ...

    def is_stopped(self) -> bool:
        """Return whether the cluster is stopped.

        Raises:
            CloudApiError: the cloud refuses or does not answer.
        """
        ...

    def stop(self, say: Callable[[str], None]) -> None:
        """Stop the machines, and return once that is done. What is stopped already stays so.

        Args:
            say: is called with each step, a few words.

        Raises:
            CloudApiError: the cloud refuses or does not answer.
        """
        ...

    def start(self, say: Callable[[str], None]) -> None:
        """Start the machines, and return once the cloud has done so. What runs already stays so.

        Args:
            say: is called with each step, a few words.

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
