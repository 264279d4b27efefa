"""Amounts of money, USD per hour: known, a lower bound, an estimate or unknown; the amount for a node; and
commitments, whose price is paid whether they are used or not, and whose nodes cost nothing more."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.declaration.catalog.disks import premium_disk
from ebbtide.declaration.catalog.machines import find_machine
from ebbtide.declaration.catalog.prices import Price, find_price, node_items
from ebbtide.text import bound
from ebbtide.values.cloud_kind import CloudKind

HOURS_PER_MONTH: Final = 730
"""Hours of a month in which a cloud bills by the hour."""

_CENT: Final = 0.005
_SMALL: Final = 0.1
_CENTS_BELOW: Final = 10
"""Minimum amount in USD that is shown without cents."""


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount, USD per hour.

    Attributes:
        known: sum of the known prices.
        unknown: items without a known price; the sum is then a lower bound.
        estimated: items whose price is an estimate; the sum is then one, too.
        prices: prices of the items.
    """

    known: float = 0.0
    unknown: tuple[str, ...] = ()
    estimated: tuple[str, ...] = ()
    prices: frozenset[Price] = frozenset()

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(
            self.known + other.known,
            tuple(dict.fromkeys((*self.unknown, *other.unknown))),
            tuple(dict.fromkeys((*self.estimated, *other.estimated))),
            self.prices | other.prices,
        )

    def __mul__(self, count: float) -> "Amount":
        return replace(self, known=self.known * count) if count else Amount()

    @property
    def is_unknown(self) -> bool:
        """True if no item has a price but free ones, such as a control plane of AKS's free tier."""
        return bool(self.unknown) and not self.known

    def marked(self, *, monthly: bool = False) -> str:
        """Format for a table, per hour or month: `0.12`, `~0.12` for an estimate, `>0.12` for a lower bound,
        `?` if unknown."""
        if self.is_unknown:
            return "?"
        return f"{'>' if self.unknown else ''}{'~' if self.estimated else ''}{_digits(self.known, monthly)}"

    def words(self, *, monthly: bool = False, unknown: str = "unknown") -> str:
        """Format for a sentence, per hour or month: `$0.12`, `about $0.12` for an estimate, `at least $0.12`
        for a lower bound, or the words for an unknown one."""
        if self.is_unknown:
            return unknown
        return f"{bound(self.unknown, self.estimated)}${_digits(self.known, monthly)}"

    def change_from(self, before: "Amount", *, monthly: bool = False) -> str:
        """Format the change per hour or month: `+$1.20`; empty if it is less than a cent.

        An item that one of both knows no price of makes it a bound: `at least +$1.20`, `more by an unknown
        amount`.
        """
        usd = self.known - before.known
        sign = "+" if usd > 0 else "−"  # noqa: RUF001 - a minus sign, in text for people
        known = f"{sign}${month_words(abs(usd)) if monthly else f'{abs(usd):.2f}'}"
        if abs(usd) * (HOURS_PER_MONTH if monthly else 1) < _CENT:
            known = ""
        added, gone = set(self.unknown) - set(before.unknown), set(before.unknown) - set(self.unknown)
        if added and gone:
            return "an unknown change"
        if added or gone:
            least = f"at {'least' if added else 'most'} {known}"
            return least if known else f"{'more' if added else 'less'} by an unknown amount"
        return known


def _digits(usd: float, monthly: bool) -> str:  # noqa: FBT001 - of two functions here
    return month_words(usd) if monthly else f"{usd:.{3 if 0 < usd < _SMALL else 2}f}"


def month_words(usd: float) -> str:
    """Format USD per hour as USD per month: `88`, `19,075`, `1.02`."""
    month = usd * HOURS_PER_MONTH
    return f"{month:,.0f}" if abs(month) >= _CENTS_BELOW else f"{month:.2f}"


def total(amounts: Iterable[Amount]) -> Amount:
    """Add amounts."""
    return reduce(Amount.__add__, amounts, Amount())


def item_amount(cloud: CloudKind, region: str, name: str, count: int = 1) -> Amount:
    """Return the amount for an item of the price table."""
    return _amount(name, find_price(cloud, region, name), count, "on-demand")


def _amount(name: str, price: Price | None, count: int, capacity: str) -> Amount:
    rate = price.of(capacity) if price else None
    if price is None or rate is None:
        return Amount(unknown=(name,))
    estimated = (name,) if price.is_estimated(capacity) else ()
    return Amount(rate * count, estimated=estimated, prices=frozenset({price}))


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedNode:
    """Properties of a node that determine its price.

    Attributes:
        location: its region or zone.
        machine: machine type.
        accelerator: type of its accelerators; empty for none.
        accelerators: count of them.
        disk_type: type of its boot disk, as the cloud names it; None for the cloud's default.
        disk_gib: size of its boot disk; None for the cloud's default.
    """

    cloud: CloudKind
    location: str
    machine: str
    accelerator: str = ""
    accelerators: int = 0
    disk_type: str | None = None
    disk_gib: int | None = None

    def amount(self, capacity: str) -> Amount:
        """Return the amount for the node with its accelerators and its boot disk, at a capacity type."""
        return self.machine_amount(capacity) + self.disk_amount()

    def hourly(self, capacity: str) -> float | None:
        """Return the price of the node, a lower bound if that of its disk is unknown; None if that of its
        machine is."""
        return None if self.machine_amount(capacity).unknown else self.amount(capacity).known

    def machine_amount(self, capacity: str) -> Amount:
        """Return the amount for the machine and its accelerators."""
        return total(self.parts(capacity))

    def parts(self, capacity: str) -> list[Amount]:
        """Return the amount for the machine with its built-in accelerators, and that for attached ones."""
        machine = find_machine(self.cloud, self.machine)
        attached = (self.accelerator, self.accelerators) if machine and machine.attachable else ("", 0)
        items = node_items(self.cloud, region_of(self.location), self.machine, *attached)
        return [_amount(f"{name} ({capacity})", price, count, capacity) for name, price, count in items]

    def disk_amount(self) -> Amount:
        """Return the amount for the boot disk; an ephemeral disk on AKS is part of the machine."""
        if self.disk_type == "ephemeral":
            return Amount()
        region = region_of(self.location)
        match self.cloud:
            case CloudKind.GKE:
                return item_amount(self.cloud, region, f"{self.disk_type}-gib", self.disk_gib or 0)
            case CloudKind.AKS:
                item = premium_disk(self.disk_gib) if self.disk_gib else None
                return item_amount(self.cloud, region, item) if item else Amount(unknown=("boot disk",))


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
