"""Hourly cost of recorded resources, at the list prices of catalog/data/prices.csv.

Usage-based charges are not included: traffic, stored objects and images, logs, metrics.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from ebbtide.catalog import CloudKind, Footprint, Price, find_machine, find_price, node_items
from ebbtide.catalog.clouds import is_gke_zone, region_of
from ebbtide.catalog.disks import premium_disk
from ebbtide.model.addons import ADD_ONS
from ebbtide.reading.aks import CLUSTER as AKS_CLUSTER
from ebbtide.reading.facts import ClusterFacts, PoolFacts
from ebbtide.reading.gke import CLUSTER as GKE_CLUSTER
from ebbtide.reading.inputs import Inputs
from ebbtide.recording.recording import Recording, Resource

_NAT: Final = "gcp:compute/routerNat:RouterNat"
CLOUD_NAT: Final = "Cloud NAT"
"""Item of the charge for GKE's NAT gateway, which depends on the number of nodes."""

_ADDRESS: Final = "gcp:compute/address:Address"
_OUTBOUND: Final[Mapping[str, tuple[str, ...]]] = {
    "loadBalancer": ("load balancer", "lb-rule", "public-ip"),
    "managedNATGateway": ("NAT gateway", "nat", "public-ip"),
}
"""Outbound types of AKS, each with its charge and items in the price table."""

_WITH_ADDRESS: Final = "traffic is extra"


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A charge, USD per hour.

    Attributes:
        item: billed item, such as `control plane`.
        pool: name of the pool; empty for the cluster.
        idle: charge without work.
        maximum: charge at the maximum node counts.
        on_demand: `maximum` at on-demand prices.
        note: condition, such as a free tier.
    """

    item: str
    pool: str = ""
    idle: Amount
    maximum: Amount
    on_demand: Amount
    note: str = ""


def total(amounts: Iterable[Amount]) -> Amount:
    """Add amounts."""
    return reduce(Amount.__add__, amounts, Amount())


def charges(
    recording: Recording, clusters: Sequence[ClusterFacts], pools: Sequence[PoolFacts]
) -> list[Charge]:
    """Return the charges of a recording: control planes, pools, network, disks of add-ons.

    Args:
        recording: the recording.
        clusters: its clusters.
        pools: its pools.
    """
    return [
        *_control_planes(recording),
        *map(_pool, pools),
        *_outbound(recording, pools),
        *(_flat("address", _item(CloudKind.GKE, "", "nat-ip")) for _ in _created(recording, _ADDRESS)),
        *(charge for cluster in clusters for charge in _volumes(recording, cluster)),
    ]


def gpu_hour(pool: PoolFacts) -> Amount | None:
    """Return the price of a pool's node per accelerator; None for a pool without accelerators."""
    if pool.accelerator is None:
        return None
    return node_price(pool) * (1 / pool.accelerator.count)


def node_price(pool: PoolFacts) -> Amount:
    """Return the amount for a node of a pool, with its accelerators and its boot disk."""
    return _node(pool, pool.capacity)


def cloud_nat(nodes: int) -> Amount:
    """Return the amount for a Cloud NAT gateway with one address, billed by node up to a maximum."""
    by_node = _item(CloudKind.GKE, "", "nat-per-vm", nodes)
    maximum = _item(CloudKind.GKE, "", "nat")
    return min(by_node, maximum, key=lambda amount: amount.known) + _item(CloudKind.GKE, "", "nat-ip")


def _created(recording: Recording, type_: str) -> Iterator[Resource]:
    """Yield the created resources of a type; existing ones are billed to another stack."""
    return (resource for resource in recording.of_type(type_) if not resource.read)


def _item(cloud: CloudKind, region: str, name: str, count: int = 1, capacity: str = "on-demand") -> Amount:
    """Return the amount for an item of the price table."""
    return _amount(name, find_price(cloud, region, name), count, capacity)


def _amount(name: str, price: Price | None, count: int, capacity: str) -> Amount:
    rate = price.of(capacity) if price else None
    if price is None or rate is None:
        return Amount(unknown=(name,))
    estimated = (name,) if price.is_estimated(capacity) else ()
    return Amount(rate * count, estimated=estimated, prices=frozenset({price}))


def _flat(item: str, amount: Amount, note: str = "") -> Charge:
    """Return a charge that does not depend on the number of nodes."""
    return Charge(item=item, idle=amount, maximum=amount, on_demand=amount, note=note)


def _control_planes(recording: Recording) -> Iterator[Charge]:
    for resource in _created(recording, GKE_CLUSTER):
        is_zonal = is_gke_zone(Inputs(resource.inputs).text("location"))
        note = "one zonal cluster may be free" if is_zonal else ""
        yield _flat("control plane", _item(CloudKind.GKE, "", "control-plane:gke-standard"), note)
    for resource in _created(recording, AKS_CLUSTER):
        tier = Inputs(resource.inputs).text("sku.tier").lower() or "free"
        note = "free tier" if tier == "free" else ""
        yield _flat("control plane", _item(CloudKind.AKS, "", f"control-plane:aks-{tier}"), note)


def _pool(pool: PoolFacts) -> Charge:
    node = node_price(pool)
    return Charge(
        item=f"pool {pool.name}",
        pool=pool.name,
        idle=node * pool.nodes.idle,
        maximum=node * pool.nodes.most,
        on_demand=_node(pool, "on-demand") * pool.nodes.most,
        note="billed while reserved, used or not" if pool.capacity == "reservation" else "",
    )


def _node(pool: PoolFacts, capacity: str) -> Amount:
    """Return the amount for a node with its accelerators and its boot disk."""
    region, machine, accelerator = (
        region_of(pool.location),
        find_machine(pool.cloud, pool.machine),
        pool.accelerator,
    )
    attached = (
        (accelerator.type, accelerator.count) if accelerator and machine and machine.attachable else ("", 0)
    )
    items = node_items(pool.cloud, region, pool.machine, *attached)
    parts = (_amount(f"{name} ({capacity})", price, count, capacity) for name, price, count in items)
    return total((*parts, _disk(pool, region)))


def _disk(pool: PoolFacts, region: str) -> Amount:
    """Return the amount for a node's boot disk; an ephemeral disk on AKS is part of the machine."""
    if pool.disk.type == "ephemeral":
        return Amount()
    size = pool.disk.size_gib
    if pool.cloud is CloudKind.GKE:
        return _item(pool.cloud, region, f"{pool.disk.type}-gib", size or 0)
    item = premium_disk(size) if size else None
    return _item(pool.cloud, region, item) if item else Amount(unknown=("boot disk",))


def _outbound(recording: Recording, pools: Sequence[PoolFacts]) -> Iterator[Charge]:
    """Yield the charges for egress to the internet: by node on GKE, by gateway or rule on AKS."""
    idle, most = (sum(getattr(pool.nodes, name) for pool in pools) for name in ("idle", "most"))
    for _ in _created(recording, _NAT):
        maximum = cloud_nat(most)
        yield Charge(
            item=CLOUD_NAT, idle=cloud_nat(idle), maximum=maximum, on_demand=maximum, note=_WITH_ADDRESS
        )
    for resource in _created(recording, AKS_CLUSTER):
        inputs = Inputs(resource.inputs)
        item, *names = _OUTBOUND.get(inputs.text("networkProfile.outboundType"), ("",))
        if item:
            amounts = (_item(CloudKind.AKS, inputs.text("location"), name) for name in names)
            yield _flat(item, total(amounts), _WITH_ADDRESS)


def footprints_with_disks() -> dict[str, Footprint]:
    """Return the footprints of the add-ons that claim disks, by the types of their components."""
    footprints = {f"ebbtide:addons:{add_on.__name__}": add_on.spec.footprint for add_on in ADD_ONS.values()}
    return {type_: item for type_, item in footprints.items() if item.volumes_gib}


def _volumes(recording: Recording, cluster: ClusterFacts) -> Iterator[Charge]:
    """Yield the charges for the disks of add-ons, which are not among the recorded resources."""
    for type_, item in footprints_with_disks().items():
        if not recording.of_type(type_):
            continue
        size = sum(item.volumes_gib)
        name = f"disks of {item.item}, {size} GiB"
        if cluster.cloud is CloudKind.GKE:
            yield _flat(name, _item(cluster.cloud, region_of(cluster.location), "pd-balanced-gib", size))
        else:
            yield _flat(name, Amount(unknown=(name,)))
