"""Hourly cost of recorded resources, at the list prices of catalog/data/prices.csv, and prices of a stack.

Usage-based charges are not included: traffic, stored objects and images, logs, metrics.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, assert_never

from ebbtide.analysis.reading.aks import CLUSTER as AKS_CLUSTER
from ebbtide.analysis.reading.facts import ClusterFacts, Inputs
from ebbtide.analysis.reading.gke import CLUSTER as GKE_CLUSTER
from ebbtide.analysis.reading.pools import TOPOLOGIES, read_clusters, read_pools
from ebbtide.analysis.reading.state import recording_of
from ebbtide.analysis.recording.recording import Recording, Resource, stack_and_project
from ebbtide.declaration.catalog.amounts import Amount, Coverage, Covered, Use, covered, item_amount, total
from ebbtide.declaration.catalog.clouds import is_gke_zone, region_of
from ebbtide.declaration.catalog.resources import Footprint
from ebbtide.declaration.model.addons import ADD_ONS
from ebbtide.declaration.model.capacity import Reservation
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.values.cloud_kind import CloudKind, by_cloud

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
        reserves: pool whose machines it reserves; empty for other charges.
        committed: number of committed machines or accelerators; 0 for other charges.
        pays_above: for a commitment, the share of use above which it costs less than the list price; None if
            unknown, and for other charges.
        begins: begin of the period in which `maximum` is billed, used or not; None for no period.
    """

    item: str
    pool: str = ""
    idle: Amount
    maximum: Amount
    on_demand: Amount
    note: str = ""
    reserves: str = ""
    committed: int = 0
    pays_above: float | None = None
    begins: datetime | None = None
    ends: datetime | None = None

    @property
    def whole(self) -> Amount | None:
        """Charge for the whole period, USD; None for no period."""
        if self.begins is None or self.ends is None:
            return None
        return self.maximum * ((self.ends - self.begins).total_seconds() / 3600)

    def is_billed(self, now: datetime) -> bool:
        """Return whether it is billed at a time."""
        return self.begins is None or self.ends is None or self.begins <= now < self.ends


def charges(
    recording: Recording, clusters: Sequence[ClusterFacts], pools: Sequence[ResolvedPool]
) -> list[Charge]:
    """Return the charges of a recording: control planes, pools, reservations, commitments,
    network, disks of add-ons.
    """
    committed = coverages(recording, pools)
    idle = covered(committed, {pool.name: pool.idle_nodes for pool in pools})
    most = covered(committed, {pool.name: pool.max_nodes for pool in pools})
    return [
        *_control_planes(recording),
        *(_pool(pool, idle, most) for pool in pools),
        *_reservations(pools, most),
        *map(_commitment, committed, idle.used, most.used),
        *_outbound(recording, pools),
        *(flat("address", item_amount(CloudKind.GKE, "", "nat-ip")) for _ in _created(recording, _ADDRESS)),
        *(charge for cluster in clusters for charge in _volumes(recording, cluster)),
    ]


def gpu_hour(pool: ResolvedPool) -> Amount | None:
    """Return the price of a pool's node per accelerator; None for a pool without accelerators."""
    if pool.accelerator is None:
        return None
    return node_price(pool) * (1 / pool.accelerator.count)


def node_price(pool: ResolvedPool) -> Amount:
    """Return the amount for a node of a pool, with its accelerators and its boot disk."""
    return pool.priced_node.amount(pool.capacity.kind)


def cloud_nat(nodes: int) -> Amount:
    """Return the amount for a Cloud NAT gateway with one address, billed by node up to a maximum."""
    by_node = item_amount(CloudKind.GKE, "", "nat-per-vm", nodes)
    maximum = item_amount(CloudKind.GKE, "", "nat")
    return min(by_node, maximum, key=lambda amount: amount.known) + item_amount(CloudKind.GKE, "", "nat-ip")


def _created(recording: Recording, type_: str) -> Iterator[Resource]:
    """Yield the created resources of a type; existing ones are billed to another stack."""
    return (resource for resource in recording.of_type(type_) if not resource.read)


def flat(item: str, amount: Amount, note: str = "") -> Charge:
    """Return a charge that does not depend on the number of nodes."""
    return Charge(item=item, idle=amount, maximum=amount, on_demand=amount, note=note)


def _control_planes(recording: Recording) -> Iterator[Charge]:
    types = by_cloud(gke=GKE_CLUSTER, aks=AKS_CLUSTER)
    created = ((kind, item) for kind, type_ in types.items() for item in _created(recording, type_))
    for cloud, resource in created:
        inputs = Inputs(resource.inputs)
        match cloud:
            case CloudKind.GKE:
                plan, is_zonal = "gke-standard", is_gke_zone(inputs.text("location"))
                note = "one zonal cluster may be free" if is_zonal else ""
            case CloudKind.AKS:
                tier = inputs.text("sku.tier").lower() or "free"
                plan, note = f"aks-{tier}", "free tier" if tier == "free" else ""
            case _:
                assert_never(cloud)
        yield flat("control plane", item_amount(cloud, "", f"control-plane:{plan}"), note)


def _pool(pool: ResolvedPool, idle: Covered, most: Covered) -> Charge:
    node = _billed_node(pool)
    is_reserved = pool.capacity.kind == "reservation"
    on_demand = node if is_reserved else pool.priced_node.amount("on-demand")
    note = "billed while reserved, used or not" if is_reserved else ""
    return Charge(
        item=f"pool {pool.name}",
        pool=pool.name,
        idle=idle.rest(pool.name, node * pool.idle_nodes),
        maximum=most.rest(pool.name, node * pool.max_nodes),
        on_demand=on_demand * pool.max_nodes,
        note="disks; machines are billed by the reservation" if pool.reserves_machines else note,
    )


def _period(pool: ResolvedPool) -> tuple[datetime, datetime] | None:
    """Return begin and end of the reservation that the stack requests for a pool; None for any other pool."""
    capacity = pool.capacity
    if isinstance(capacity, Reservation) and capacity.from_ and capacity.until:
        return capacity.from_, capacity.until
    return None


def _billed_node(pool: ResolvedPool) -> Amount:
    """Return the amount for a node, without a machine that a reservation of the stack bills."""
    return pool.priced_node.disk_amount() if pool.reserves_machines else node_price(pool)


def _reservations(pools: Sequence[ResolvedPool], most: Covered) -> Iterator[Charge]:
    """Yield the charges for the reservations that the stack makes: for a period on GKE, for as long as it has
    the pool on AKS, where commitments cover reserved machines, used or not (azure-compute-docs,
    capacity-reservation-overview.md, 2026-02-17)."""
    for pool in pools:
        if pool.reserves_machines and pool.site.cloud is CloudKind.AKS:
            listed = pool.priced_node.machine_amount("on-demand") * pool.max_nodes
            amount = replace(listed, known=max(0.0, listed.known - most.reserved.get(pool.name, 0.0)))
            yield Charge(
                item=f"reservation of pool {pool.name}",
                idle=amount,
                maximum=amount,
                on_demand=listed,
                note="until the pool is removed, used or not",
                reserves=pool.name,
            )
        elif (period := _period(pool)) is not None:
            calendar, on_demand = map(pool.priced_node.machine_amount, ("calendar", "on-demand"))
            yield Charge(
                item=f"reservation of pool {pool.name}",
                idle=Amount(),
                maximum=calendar * pool.max_nodes,
                on_demand=on_demand * pool.max_nodes,
                note="in its period, used or not",
                reserves=pool.name,
                begins=period[0],
                ends=period[1],
            )


def _commitment(commitment: Coverage, idle: float, most: float) -> Charge:
    """Return the charge for a commitment, which nodes at on-demand prices do without."""
    share = commitment.pays_above
    pays = "" if share is None else f"; it pays above {share * 100:.0f} % use"
    unused = f", and {commitment.count - most:g} never" if most < commitment.count else ""
    amount = commitment.amount
    return Charge(
        item=commitment.item,
        idle=amount,
        maximum=amount,
        on_demand=Amount(),
        note=f"{idle:g} used idle, {most:g} at most{unused}{pays}",
        committed=commitment.count,
        pays_above=share,
    )


def _outbound(recording: Recording, pools: Sequence[ResolvedPool]) -> Iterator[Charge]:
    """Yield the charges for egress to the internet: by node on GKE, by gateway or rule on AKS."""
    idle, most = sum(pool.idle_nodes for pool in pools), sum(pool.max_nodes for pool in pools)
    for _ in _created(recording, _NAT):
        maximum = cloud_nat(most)
        yield Charge(
            item=CLOUD_NAT, idle=cloud_nat(idle), maximum=maximum, on_demand=maximum, note=_WITH_ADDRESS
        )
    for resource in _created(recording, AKS_CLUSTER):
        inputs = Inputs(resource.inputs)
        item, *names = _OUTBOUND.get(inputs.text("networkProfile.outboundType"), ("",))
        if item:
            amounts = (item_amount(CloudKind.AKS, inputs.text("location"), name) for name in names)
            yield flat(item, total(amounts), _WITH_ADDRESS)


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
        match cluster.cloud:
            case CloudKind.GKE:
                region = region_of(cluster.location)
                yield flat(name, item_amount(cluster.cloud, region, "pd-balanced-gib", size))
            case CloudKind.AKS:
                yield flat(name, Amount(unknown=(name,)))
            case _:
                assert_never(cluster.cloud)


@dataclass(frozen=True, slots=True)
class Rates:
    """Prices of a stack, USD per hour.

    Attributes:
        idle: amount without work.
        idle_of_nodes: part of `idle` for nodes.
        items: charges independent of nodes: control plane, reservations, addresses, gateways, disks of
            add-ons.
        has_nat: True if the stack created a Cloud NAT gateway, which is billed by node.
        nodes: amount for a node, by the pool's name in the cloud.
        commitments: the commitments, whose charges are among `items`.
    """

    idle: Amount
    idle_of_nodes: Amount
    items: tuple[Charge, ...]
    has_nat: bool
    nodes: Mapping[str, Amount]
    commitments: tuple[Coverage, ...] = ()

    def billed(self, now: datetime) -> list[Charge]:
        """Return the items that are billed at a time."""
        return [item for item in self.items if item.is_billed(now)]

    def at(self, counts: Mapping[str, int], now: datetime) -> Amount:
        """Return the total amount at node counts, by the pools' names in the cloud, and at a time."""
        gateway = cloud_nat(sum(counts.values())) if self.has_nat else Amount()
        fixed = total(item.maximum for item in self.billed(now))
        return fixed + self.of_nodes(counts) + gateway

    def of_nodes(self, counts: Mapping[str, int]) -> Amount:
        """Return the amount for the nodes only, without the parts that commitments cover."""
        effect = covered(self.commitments, counts)
        return total(
            effect.rest(name, self.nodes.get(name, Amount(unknown=(f"pool {name}",))) * count)
            for name, count in counts.items()
        )


def rates(exported: Mapping[str, Any]) -> Rates:
    """Return the prices of a stack, from the document of `pulumi stack export`.

    Raises:
        StateError: the document is not an exported state.
    """
    return rates_of(deployed(exported))


def deployed(exported: Mapping[str, Any]) -> Recording:
    """Return the recording of a stack, from the document of `pulumi stack export`.

    Raises:
        StateError: the document is not an exported state.
    """
    stack, project = stack_and_project(exported["deployment"]["resources"][0]["urn"])
    return recording_of(json.dumps(exported), project=project, stack=stack, file="The state")


def rates_of(recording: Recording) -> Rates:
    """Return the prices of a recorded stack."""
    pools = read_pools(recording)
    items = charges(recording, read_clusters(recording), pools)
    return Rates(
        idle=total(charge.idle for charge in items),
        idle_of_nodes=total(charge.idle for charge in items if charge.pool),
        items=tuple(charge for charge in items if not charge.pool and charge.item != CLOUD_NAT),
        has_nat=any(charge.item == CLOUD_NAT for charge in items),
        nodes={pool.name: _billed_node(pool) for pool in pools},
        commitments=coverages(recording, pools),
    )


def coverages(recording: Recording, pools: Sequence[ResolvedPool]) -> tuple[Coverage, ...]:
    """Return the commitments of a recorded stack in the region of its pools.

    A commitment applies to machines on demand and in reservations that are billed like these, not to spot,
    flex-start or calendar mode, which have discounts of their own (Compute Engine docs,
    signing-up-committed-use-discounts, 2026; Azure docs, prepay-reserved-vm-instances, 2026).
    """
    regions = {pool.site.region for pool in pools}
    declared = (
        item
        for type_ in TOPOLOGIES.values()
        for resource in recording.of_type(type_)
        for item in Inputs(resource.inputs).parts("commitments")
    )
    return tuple(
        Coverage(
            kind=item.text("machines") or item.text("gpus"),
            count=item.number("count") or 0,
            usd=item.amount("usdPerHour") or 0.0,
            uses=dict(_uses(item, pools)),
        )
        for item in declared
        if not item.has("region") or item.text("region") in regions
    )


def _uses(commitment: Inputs, pools: Iterable[ResolvedPool]) -> Iterator[tuple[str, Use]]:
    for pool in pools:
        accelerator = pool.accelerator
        if not pool.is_billed_as_on_demand:
            continue
        machine, *attached = pool.priced_node.parts("on-demand")
        reserved = pool.max_nodes if pool.reserves_machines else 0
        if commitment.text("machines") == pool.machine_type:
            yield pool.name, Use(1, "machine", machine, reserved)
        elif accelerator is not None and commitment.text("gpus") == accelerator.type:
            part = ("accelerators", attached[0]) if attached else ("machine", machine)
            yield pool.name, Use(accelerator.count, *part, reserved)
