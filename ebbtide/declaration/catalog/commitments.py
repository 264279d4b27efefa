"""Commitments, and the parts of nodes that they pay for.

A commitment's price is paid whether it is used or not; what it covers costs nothing more.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ebbtide.declaration.catalog.amounts import Amount


@dataclass(frozen=True, slots=True)
class Use:
    """Use of a commitment by the nodes of a pool.

    Attributes:
        units: machines or accelerators of the commitment that a node uses.
        part: the part of a node that they are: `machine`, or `accelerators` that are attached.
        price: list price of that part, USD per hour.
        reserved: nodes of a reservation that is billed like them, used or not; 0 for a pool without one.
    """

    units: int
    part: str
    price: Amount
    reserved: int = 0


@dataclass(frozen=True, slots=True)
class Coverage:
    """A commitment on the pools that can use it.

    Attributes:
        kind: machine type or accelerator type.
        count: committed machines or accelerators.
        usd: price of one of them, USD per hour.
        uses: its use by each pool, in the order of the pools.
    """

    kind: str
    count: int
    usd: float
    uses: Mapping[str, Use]

    def document(self) -> dict[str, Any]:
        """Return it as plain data."""
        uses = {
            name: {"units": use.units, "part": use.part, "hourly": use.price.known}
            | ({"reserved": use.reserved} if use.reserved else {})
            for name, use in self.uses.items()
        }
        return {"kind": self.kind, "count": self.count, "hourly": self.usd, "uses": uses}

    @property
    def item(self) -> str:
        """Name of its charge."""
        return f"commitment of {self.count} {self.kind}"

    @property
    def amount(self) -> Amount:
        """Its charge, used or not."""
        return Amount(self.usd * self.count)

    @property
    def pays_above(self) -> float | None:
        """Share of use above which it costs less than the list price; None if no pool has a known one."""
        prices = ((use.units, use.price) for use in self.uses.values())
        shares = [
            self.usd * units / price.known for units, price in prices if price.known and not price.unknown
        ]
        return min(shares, default=None)


@dataclass(frozen=True, slots=True)
class Covered:
    """Effect of commitments at node counts.

    Attributes:
        used: used units of each commitment.
        wanted: units of each commitment that nodes could use, with those beyond its count.
        saved: USD per hour that each pool's nodes cost less.
        reserved: USD per hour that each pool's reservation costs less.
    """

    used: tuple[float, ...]
    wanted: tuple[float, ...]
    saved: Mapping[str, float]
    reserved: Mapping[str, float]

    def rest(self, pool: str, amount: Amount) -> Amount:
        """Return the part of a pool's amount that is left to pay."""
        return replace(amount, known=max(0.0, amount.known - self.saved.get(pool, 0.0)))


def covered(commitments: Iterable[Coverage], nodes: Mapping[str, float]) -> Covered:
    """Return the effect of commitments, each used by the nodes that no earlier one covers, first by reserved
    ones.

    Args:
        commitments: the commitments.
        nodes: node counts by pool.
    """
    taken, saved, of_reservations = Counter[tuple[str, str]](), Counter[str](), Counter[str]()
    used, wanted = list[float](), list[float]()
    for commitment in commitments:
        left, free = float(commitment.count), 0.0
        for name, use in sorted(commitment.uses.items(), key=lambda item: not item[1].reserved):
            others = (use.reserved or nodes.get(name, 0.0)) - taken[name, use.part]
            own = min(others, left / use.units)
            free += others * use.units
            taken[name, use.part] += own  # pyright: ignore[reportArgumentType] # a share of a node
            costs_less = of_reservations if use.reserved else saved
            costs_less[name] += own * use.price.known  # pyright: ignore[reportArgumentType]
            left -= own * use.units
        used.append(commitment.count - left)
        wanted.append(free)
    return Covered(tuple(used), tuple(wanted), saved, of_reservations)
