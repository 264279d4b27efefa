"""An on-demand capacity reservation, which a stack creates for a node pool.

A group has one reservation of the pool's machine type for each of its zones, or a single one without zones.
Azure bills the machines from the creation of a reservation to its deletion at the price of machines on
demand, used or not, and counts them against the quota. The number can be changed in place, machine type and
zones cannot. A machine beyond it, such as a surge node of an upgrade, needs free capacity and quota of its
own. Azure deletes a reservation that no machine uses, and a group without reservations; the deletion of a
node pool or cluster dissociates its machines. For some seconds, a group still lists a deleted reservation,
and cannot be deleted (Azure/azure-rest-api-specs#18767): the next destroy deletes it.

Sources: azure-compute-docs, capacity-reservation-overview.md (2026-02-17) and capacity-reservation-modify.md
(2022-11); azure-aks-docs, use-capacity-reservation-groups.md (2026-05-29).
"""

from dataclasses import dataclass

import pulumi
from pulumi_azure_native import compute

from ebbtide.declaration.model.physical_names import CAPACITY_RESERVATION_GROUP, fitting
from ebbtide.declaration.model.resolved_pool import ResolvedPool

from ..labels_and_kubeconfig import Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityReservationArgs:
    """Arguments of a pool's capacity reservation.

    Attributes:
        pool: the pool, whose maximum number of machines is reserved.
        cluster: name of its cluster.
        resource_group: name of the resource group of the capacity reservation group.
        location: region of the cluster.
        labels: billing labels, which Azure calls tags.
    """

    pool: ResolvedPool
    cluster: str
    resource_group: pulumi.Input[str]
    location: str
    labels: Labels


class CapacityReservation(pulumi.ComponentResource):
    """A capacity reservation group, and the reservations in it."""

    group: pulumi.Output[str]
    """Resource id of the group."""
    reservations: tuple[compute.CapacityReservation, ...]
    """Prerequisites of the node pool: AKS ignores a group without a reservation."""

    def __init__(
        self, name: str, args: CapacityReservationArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("ebbtide:aks:CapacityReservation", name, {}, opts)
        pool, inside = args.pool, pulumi.ResourceOptions(parent=self)
        own = fitting(f"{args.cluster}-{pool.name}", CAPACITY_RESERVATION_GROUP)
        group = compute.CapacityReservationGroup(
            name,
            capacity_reservation_group_name=own,
            resource_group_name=args.resource_group,
            location=args.location,
            zones=list(pool.zones) or None,
            tags=args.labels,
            opts=inside,
        )
        zones = pool.zones or ("",)
        self.reservations = tuple(
            compute.CapacityReservation(
                f"{name}-{zone}" if zone else f"{name}-machines",
                capacity_reservation_name=f"zone-{zone}" if zone else "machines",
                capacity_reservation_group_name=group.name,
                resource_group_name=args.resource_group,
                location=args.location,
                sku={"name": pool.machine_type, "capacity": pool.max_nodes // len(zones)},
                zones=[zone] if zone else None,
                tags=args.labels,
                opts=inside,
            )
            for zone in zones
        )
        self.group = group.id
        self.register_outputs({"group": self.group})


def group_id(subscription: str, resource_group: str, cluster: str, pool: str) -> str:
    """Return the resource id of the group of a cluster's pool, which is known before it is created, so that a
    preview refuses another one for an existing pool."""
    return (
        f"/subscriptions/{subscription}/resourceGroups/{resource_group}/providers/Microsoft.Compute/"
        f"capacityReservationGroups/{fitting(f'{cluster}-{pool}', CAPACITY_RESERVATION_GROUP)}"
    )
