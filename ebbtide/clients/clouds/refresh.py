"""Refresh of prices: comparison of the known prices with a cloud's current list."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from ebbtide.clients.clouds.interfaces import PriceSource
from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.catalog.prices import GLOBAL, Price, PriceKey, current_own_prices, find_price


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A price before and after.

    Attributes:
        key: cloud, region and item.
        old: the known price; None if unknown.
        new: the list's price; None if the list has none, and the old price is kept.
        is_own: True if the old price is the user's own, for example from a contract, and is kept.
    """

    key: PriceKey
    old: Price | None
    new: Price | None
    is_own: bool = False


def refresh(keys: Collection[PriceKey], open_source: Callable[[CloudKind], PriceSource]) -> list[Refreshed]:
    """Look prices up in the clouds' lists, which are opened on demand.

    Args:
        keys: cloud, region or `global`, and item of each price.
        open_source: returns a cloud's list.

    Raises:
        CloudApiError: a cloud rejects a request or does not answer.
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
    """Return the user's own prices, updated with the refreshed ones."""
    return {**current_own_prices(), **{change.key: change.new for change in refreshed if change.new}}
