"""The pools that existing ResourceFlavors select, and amounts of quota as nodes of these pools."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Final, TypeAlias

from ebbtide.analysis.adopting.kueue_objects import specs
from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.placement.queueing import CPU, MEMORY, Offer, flavor
from ebbtide.values.kueue_api import Manifest, of_kind

Amounts: TypeAlias = dict[str, Decimal]
"""Amounts by resource: CPUs, bytes, accelerators."""

_UNITS: Final = {CPU: Decimal("0.001"), MEMORY: Decimal(1024**2)}
_MOST_COMBINATIONS: Final = 100_000


@dataclass(frozen=True, slots=True)
class FlavorPools:
    """The pools of a ResourceFlavor.

    Attributes:
        name: the flavor's name.
        offers: the pools with their nodes, the preferred one first.
        fallback: the fallback queue of the pools; empty for none.
    """

    name: str
    offers: tuple[Offer, ...]
    fallback: str = ""

    @property
    def pools(self) -> tuple[str, ...]:
        """Names of the pools."""
        return tuple(offer.pool for offer in self.offers)

    def nodes(
        self, amounts: Amounts, most: Mapping[str, int] | None = None, free: Mapping[str, int] | None = None
    ) -> dict[str, int]:
        """Return the nodes that amounts of quota are, by pool: exactly if that is possible, else the most
        whole nodes that they hold, of the preferred pools.

        Args:
            amounts: the amounts.
            most: the most nodes of each pool. Default: the pools' maximum.
            free: nodes of each pool that no other quota has, which are preferred.
        """
        limits = [(most or {}).get(offer.pool, 0 if most else offer.nodes) for offer in self.offers]
        unused = self._exactly(amounts, [free.get(pool, 0) for pool in self.pools]) if free else None
        return unused or self._exactly(amounts, limits) or dict(self._whole(amounts, limits))

    def _exactly(self, amounts: Amounts, limits: Sequence[int]) -> dict[str, int] | None:
        combinations = 1
        for limit in limits[1:]:
            combinations *= limit + 1
        if combinations > _MOST_COMBINATIONS:
            return None
        first, *others = self.offers
        for counts in product(*(range(limit + 1) for limit in limits[1:])):
            rest = dict(amounts)
            for offer, count in zip(others, counts, strict=True):
                rest = {name: rest[name] - count * _of(offer, name) for name in rest}
            for resource, amount in rest.items():
                if one := _of(first, resource):
                    count, over = divmod(amount, one)
                    if over or not 0 <= count <= limits[0]:
                        break
                    if all(rest[name] == count * _of(first, name) for name in rest):
                        return {first.pool: int(count), **dict(zip(self.pools[1:], counts, strict=True))}
                    break
        return None

    def _whole(self, amounts: Amounts, limits: Sequence[int]) -> Iterator[tuple[str, int]]:
        for offer, limit in zip(self.offers, limits, strict=True):
            accelerators = [name for name in offer.node if name not in _UNITS and name in amounts]
            counted = accelerators or [name for name in _UNITS if name in amounts]
            counts = [int(amounts[name] // one) for name in counted if (one := _of(offer, name))]
            nodes = max(0, min([*counts, limit]))
            amounts = {name: amount - nodes * _of(offer, name) for name, amount in amounts.items()}
            yield offer.pool, nodes


def _of(offer: Offer, resource: str) -> Decimal:
    return offer.node.get(resource, 0) * _UNITS.get(resource, Decimal(1))


def flavor_pools(
    objects: Sequence[Manifest], pools: Sequence[ResolvedPool], fallbacks: Mapping[str, str], key: str
) -> dict[str, FlavorPools]:
    """Return the flavors that select pools by their node labels.

    A flavor without labels selects the only pool of a cluster. Labels that no pool has are the cloud's.

    Args:
        objects: Kueue's objects, and the ComputeClasses with the order of fallback pools if there are any.
        pools: the work pools, without fallback.
        fallbacks: the fallback queues by pool, as node labels name them.
        key: key of that label.
    """
    labelled = {
        pool.name: pool.labels_and_taints.all_labels
        | ({key: fallbacks[pool.name]} if pool.name in fallbacks else {})
        for pool in pools
    }
    known = {label for labels in labelled.values() for label in labels}
    by_name = {pool.name: pool for pool in pools}
    found: dict[str, FlavorPools] = {}
    for name, spec in specs(objects, "ResourceFlavor"):
        labels = {label: str(value) for label, value in part(spec, "nodeLabels").items() if label in known}
        selected = [
            pool
            for pool, own in labelled.items()
            if all(own.get(label) == value for label, value in labels.items())
            and (labels or (len(pools) == 1 and not part(spec, "nodeLabels")))
        ]
        fallback = labels.get(key, "")
        if fallback:
            order = _order_of(objects, fallback)
            selected.sort(key=lambda pool: order.index(pool) if pool in order else len(order))
        if selected:
            offers = tuple(flavor(by_name[pool]).offers[0] for pool in selected)
            found[name] = FlavorPools(name, offers, fallback if len(offers) > 1 else "")
    return found


def _order_of(objects: Sequence[Manifest], fallback: str) -> list[str]:
    """Return the pools of a ComputeClass in order; empty if it is not among the objects."""
    return [
        str(pool)
        for item in of_kind(objects, "ComputeClass")
        if text(item, "metadata", "name") == fallback
        for rule in parts(item, "spec", "priorities")
        for pool in rule.get("nodepools") or ()
    ]
