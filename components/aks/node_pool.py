"""A node pool: its component, its inputs, also of the cluster's inline system pool, those that never change,
and the capacity reserved for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, assert_never

import pulumi
from pulumi_azure_native import compute, containerservice

from ebbtide.declaration.model.capacity import FlexStart, OnDemand, Preemptible, Queued, Reservation, Spot
from ebbtide.declaration.model.physical_names import CAPACITY_RESERVATION_GROUP, fitting
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.pool_inputs import inputs_of
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.values.cloud_kind import CloudKind

from ..inputs import overridden, without_none
from ..replacement import NEEDS_NEW_NAME, NEW_POOL_BESIDE, ImmutableInputs, PoolArgs, all_but
from ..topology import Labels

_TYPE: Final = "azure-native:containerservice:AgentPool"
_LIMITS: Final = ("min_count", "max_count")

POOLS: Final = ImmutableInputs(
    cloud=CloudKind.AKS,
    name="agentPoolName",
    own={"osType": "", "type": "", "enableNodePublicIP": ""},
    unset={
        "scaleSetPriority": "Regular",
        "scaleSetEvictionPolicy": "Delete",
        "spotMaxPrice": -1,
        "kubeletDiskType": "OS",
        "gpuProfile": {"driver": "Install"},
        "osType": "Linux",
        "type": "VirtualMachineScaleSets",
        "enableNodePublicIP": False,
        "enableEncryptionAtHost": False,
        "enableUltraSSD": False,
    },
    # Properties of a pool that exist only for spot.
    implied=((("scaleSetPriority",), ("scaleSetEvictionPolicy", "spotMaxPrice")),),
    work_fix=NEW_POOL_BESIDE,
    system_fix="Create a second system pool with the new settings (`az aks nodepool add --mode System --name "
    "NEW ...`: AKS cannot add one through the cluster), declare the system pool as NEW, and after the "
    "update remove the old one (`az aks nodepool delete --name {name} ...`).",
)
"""Immutable inputs of a node pool. In azure-native 3.29 a change of the machine is a replacement, which
deletes the pool first; it sends any other change, and AKS responds with PropertyChangeNotAllowed
(`provider/pkg/gen/replacement.go`, `provider.go`; pulumi-azure-native#959).

Sources: azure-aks-docs `resize-node-pool` (2025-08), `use-system-pools` (2026-04), `spot-node-pool`,
`use-capacity-reservation-groups` (2026-05); the properties whose change makes terraform-provider-azurerm
replace a pool (`kubernetes_cluster_node_pool_resource.go`, 2026-08) and that cluster-api-provider-azure
rejects (`azuremanagedmachinepool_webhook.go`). Changing the machine, the reservation or the zones in place is
in preview for some pools, with API versions that azure-native 3.29 does not use."""


def without_aliases(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    """Remove a resource's aliases; for a component, those of every Azure resource below it.

    For `ResourceOptions.transformations`, which run after the SDK has put the aliases into the options, and
    before it applies them.
    """
    if not args.type_.startswith("azure-native:"):
        return None
    args.opts.aliases = None
    return pulumi.ResourceTransformationResult(args.props, args.opts)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePoolArgs(PoolArgs):
    """Arguments of a node pool: those of either cloud (`PoolArgs`), and AKS'.

    Attributes:
        resource_group: name of the cluster's resource group.
        subnet: resource id of the nodes' subnet. Default: the cluster's.
        reservation: resource id of the capacity reservation group that the program creates for the pool
            (`CapacityReservation`); a pool that names one has none.
    """

    resource_group: pulumi.Input[str]
    subnet: pulumi.Input[str] | None = None
    reservation: str | None = None


class NodePool(pulumi.ComponentResource):
    """An AKS agent pool of any capacity type, usable on its own.

    Its spot label and taint are declared, although AKS adds them: otherwise the next preview would remove
    them. There is no count while the autoscaler sets it. A property that AKS cannot change on an existing
    pool is also an input of this component, so that the preview refuses a change of it (see
    `immutable_inputs`); a new name creates a new pool before the old one is deleted.
    """

    resource: containerservice.AgentPool
    """The escape hatch: the provider's resource."""
    pool_name: pulumi.Output[str]

    def __init__(self, name: str, args: NodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        pool = args.resolved
        inputs = pool_inputs(pool, subnet=args.subnet, reservation=args.reservation, labels=args.labels)
        inputs = overridden(_TYPE, inputs, pool.overrides)
        ignored = ["agentPoolName"]
        own: Mapping[str, Any] = {
            **POOLS.of_component(pool, inputs),
            **({NEEDS_NEW_NAME: True} if pool.reserves_machines else {}),
        }
        if args.replaced_by is not None:
            inputs = {key: value for key, value in inputs.items() if key not in _LIMITS}
            inputs |= {"enable_auto_scaling": False, "count": args.replaced_by.nodes}
            ignored = all_but(_TYPE, frozenset({"enableAutoScaling", "count", "minCount", "maxCount"}))
            own = args.replaced_by.inputs
        super().__init__(
            "ebbtide:aks:NodePool",
            name,
            own,
            pulumi.ResourceOptions.merge(
                opts, pulumi.ResourceOptions(hooks=POOLS.refusing(), transformations=[without_aliases])
            ),
        )
        self.resource = containerservice.AgentPool(
            name,
            agent_pool_name=args.cloud_name or pool.name,
            resource_name_=args.cluster,
            resource_group_name=args.resource_group,
            **inputs,
            opts=pulumi.ResourceOptions(
                parent=self,
                protect=args.protect or None,
                deleted_with=args.deleted_with,
                depends_on=args.depends_on,
                # The provider would delete the old pool first. If the new one is created first, one of the
                # same name is refused, and nothing is lost.
                delete_before_replace=False,
                # A pool that `ebbtide up` has replaced keeps its replacement's name.
                ignore_changes=ignored,
            ),
        )
        self.pool_name = self.resource.name
        self.register_outputs({"pool_name": self.pool_name})


def pool_inputs(
    pool: ResolvedPool, *, subnet: pulumi.Input[str] | None, reservation: str | None, labels: Labels
) -> dict[str, Any]:
    """Return the inputs that `AgentPool` and the cluster's inline pools share, under the SDK's names: those
    of the pool's fields (`inputs_of`), and those that follow from several.

    Never limits for the autoscaler and a count: an update is a PUT of the whole pool, and would remove the
    nodes that the autoscaler has added. Without a count, AKS keeps the current one and starts with the
    minimum, also for inline pools (Azure/AKS#1627, 2020-05; Azure/ARO-HCP#3659, 2025-12, removes it from an
    inline system pool). azurerm always sends a count because an earlier client required it
    (terraform-provider-azurerm#6094).

    Args:
        subnet: resource id of the subnet of pools without their own; None for AKS's own.
        reservation: resource id of the capacity reservation group that the program creates for it, if any.
        labels: billing labels, which Azure calls tags.
    """
    own = inputs_of(pool)
    # A deallocated machine still counts against the quota, and the autoscaler does not fall back from its
    # pool to another (Azure/AKS#5589).
    spot = {"scale_set_priority": "Spot", "scale_set_eviction_policy": "Delete", "spot_max_price": -1}
    is_spot = isinstance(pool.capacity, Spot)
    return without_none(
        {
            "mode": "System" if pool.is_system else "User",
            # Without it, AKS requires a count when autoscaling is switched on later
            # (pulumi-azure-native#2943).
            "type": "VirtualMachineScaleSets",
            "os_type": "Linux",
            **(spot if is_spot else {}),
            **own,
            "enable_auto_scaling": pool.nodes.count is None,
            "count": pool.nodes.count,
            "scale_down_mode": "Delete",
            "capacity_reservation_group_id": _reservation(pool, reservation),
            "enable_node_public_ip": False,
            "vnet_subnet_id": pool.subnet or subnet,
            "orchestrator_version": pool.site.kubernetes_version,
            # Spot has no surge: a declared one would appear as a change in every preview
            # (terraform-provider-azurerm#29318).
            "upgrade_settings": own.get("upgrade_settings", {}) if pool.upgrade and not is_spot else None,
            "tags": dict(labels),
        }
    )


def _reservation(pool: Pool, group: str | None) -> str | None:
    """Return the resource id of the capacity reservation group of a pool.

    Raises:
        pulumi.RunError: the pool has a reservation without a group.
        ValueError: the capacity type exists only on GKE; the rules reject it earlier.
    """
    match pool.capacity:
        case OnDemand() | Spot():
            return None
        case Reservation(name=name):
            if name is None and group is None:
                raise pulumi.RunError(
                    f"The pool {pool.name} has a reservation without a group. Create it with "
                    "ebbtide.components.aks.CapacityReservation, and pass its resource id as reservation."
                )
            return name or group
        case Preemptible() | FlexStart() | Queued():
            raise ValueError(f"AKS has no {pool.capacity.kind} capacity.")
        case _:
            assert_never(pool.capacity)


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
    """An on-demand capacity reservation, which a stack creates for a node pool.

    A group has one reservation of the pool's machine type for each of its zones, or a single one without
    zones. Azure bills the machines from the creation of a reservation to its deletion at the price of
    machines on demand, used or not, and counts them against the quota. The number can be changed in place,
    machine type and zones cannot. A machine beyond it, such as a surge node of an upgrade, needs free
    capacity and quota of its own. Azure deletes a reservation that no machine uses, and a group without
    reservations; the deletion of a node pool or cluster dissociates its machines. For some seconds, a group
    still lists a deleted reservation, and cannot be deleted (Azure/azure-rest-api-specs#18767): the next
    destroy deletes it.

    Sources: azure-compute-docs, capacity-reservation-overview.md (2026-02-17) and
    capacity-reservation-modify.md (2022-11); azure-aks-docs, use-capacity-reservation-groups.md (2026-05-29).
    """

    group: pulumi.Output[str]
    """Resource id of the group."""
    reservations: tuple[compute.CapacityReservation, ...]
    """Prerequisites of the node pool: AKS ignores a group without a reservation."""

    def __init__(
        self, name: str, args: CapacityReservationArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("ebbtide:aks:CapacityReservation", name, {}, opts)
        pool, inside = args.pool, pulumi.ResourceOptions(parent=self)
        group = compute.CapacityReservationGroup(
            name,
            capacity_reservation_group_name=_group_name(args.cluster, pool.name),
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


def _group_name(cluster: str, pool: str) -> str:
    return fitting(f"{cluster}-{pool}", CAPACITY_RESERVATION_GROUP)


def group_id(subscription: str, resource_group: str, cluster: str, pool: str) -> str:
    """Return the resource id of the group of a cluster's pool, which is known before it is created, so that a
    preview refuses another one for an existing pool."""
    return (
        f"/subscriptions/{subscription}/resourceGroups/{resource_group}/providers/Microsoft.Compute/"
        f"capacityReservationGroups/{_group_name(cluster, pool)}"
    )
