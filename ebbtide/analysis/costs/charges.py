"""Hourly cost of recorded resources, at the list prices of catalog/data/prices.csv.

Usage-based charges are not included: traffic, stored objects and images, logs, metrics.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ebbtide.analysis.reading.aks import CLUSTER as AKS_CLUSTER
from ebbtide.analysis.reading.facts import ClusterFacts
from ebbtide.analysis.reading.gke import CLUSTER as GKE_CLUSTER
from ebbtide.analysis.reading.inputs import Inputs
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.declaration.catalog import CloudKind, Footprint
from ebbtide.declaration.catalog.amounts import Amount, item_amount, total
from ebbtide.declaration.catalog.clouds import is_gke_zone, region_of
from ebbtide.declaration.model.addons import ADD_ONS
from ebbtide.declaration.model.resolved_pool import ResolvedPool

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
    """

    item: str
    pool: str = ""
    idle: Amount
    maximum: Amount
    on_demand: Amount
    note: str = ""


def charges(
    recording: Recording, clusters: Sequence[ClusterFacts], pools: Sequence[ResolvedPool]
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
        *(_flat("address", item_amount(CloudKind.GKE, "", "nat-ip")) for _ in _created(recording, _ADDRESS)),
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


def _flat(item: str, amount: Amount, note: str = "") -> Charge:
    """Return a charge that does not depend on the number of nodes."""
    return Charge(item=item, idle=amount, maximum=amount, on_demand=amount, note=note)


def _control_planes(recording: Recording) -> Iterator[Charge]:
    for resource in _created(recording, GKE_CLUSTER):
        is_zonal = is_gke_zone(Inputs(resource.inputs).text("location"))
        note = "one zonal cluster may be free" if is_zonal else ""
        yield _flat("control plane", item_amount(CloudKind.GKE, "", "control-plane:gke-standard"), note)
    for resource in _created(recording, AKS_CLUSTER):
        tier = Inputs(resource.inputs).text("sku.tier").lower() or "free"
        note = "free tier" if tier == "free" else ""
        yield _flat("control plane", item_amount(CloudKind.AKS, "", f"control-plane:aks-{tier}"), note)


def _pool(pool: ResolvedPool) -> Charge:
    node = node_price(pool)
    return Charge(
        item=f"pool {pool.name}",
        pool=pool.name,
        idle=node * pool.idle_nodes,
        maximum=node * pool.max_nodes,
        on_demand=pool.priced_node.amount("on-demand") * pool.max_nodes,
        note="billed while reserved, used or not" if pool.capacity.kind == "reservation" else "",
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
            yield _flat(
                name, item_amount(cluster.cloud, region_of(cluster.location), "pd-balanced-gib", size)
            )
        else:
            yield _flat(name, Amount(unknown=(name,)))
