"""Refreshing prices: the current prices of a cloud's list beside the known ones."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from ebbtide.catalog import CloudKind
from ebbtide.catalog.prices import GLOBAL, Price, PriceKey, current_own_prices, find_price
from ebbtide.cloud_apis.interfaces import PriceSource


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A price before and after.

    Attributes:
        key: cloud, region and item.
        old: the known price; None if unknown.
        new: the list's price; None if the list has none, so that the old one stays.
        is_own: whether the old one is the user's own, from a contract, which stays.
    """

    key: PriceKey
    old: Price | None
    new: Price | None
    is_own: bool = False


def refresh(keys: Collection[PriceKey], open_source: Callable[[CloudKind], PriceSource]) -> list[Refreshed]:
    """Look prices up in the clouds' lists, each list opened if a key of a region needs it.

    Args:
        keys: cloud, region or `global`, and item of each price.
        open_source: returns a cloud's list.

    Raises:
        CloudApiError: a cloud refuses or does not answer.
    """
    refreshed: list[Refreshed] = []
    for cloud in sorted({cloud for cloud, _, _ in keys}):
        own_keys = sorted(key for key in keys if key[0] == cloud)
        regions = sorted({region for _, region, _ in own_keys if region != GLOBAL})
        source = open_source(CloudKind(cloud)) if regions else None
        for region in (*regions, GLOBAL):
            items = [item for _, place, item in own_keys if place == region]
            new = source.prices(region, items) if source and region != GLOBAL else dict[str, Price]()
            name = source.name if source else ""
            refreshed += (_refreshed((cloud, region, item), new.get(item), name) for item in items)
    return refreshed


def _refreshed(key: PriceKey, new: Price | None, source: str) -> Refreshed:
    cloud, region, item = key
    own = current_own_prices().get(key)
    is_own = own is not None and own.source != source
    return Refreshed(key, find_price(CloudKind(cloud), region, item), None if is_own else new, is_own)


def merged(refreshed: Iterable[Refreshed]) -> Mapping[PriceKey, Price]:
    """Return the user's own prices with the refreshed ones added or in their place."""
    return {**current_own_prices(), **{change.key: change.new for change in refreshed if change.new}}
