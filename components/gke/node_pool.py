"""A node pool: its component, its inputs, those that never change, and the reservation requested for it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, assert_never, cast

import pulumi
from pulumi_gcp import compute, container

from ebbtide.declaration.model.base import rfc3339
from ebbtide.declaration.model.capacity import (
    CALENDAR_LEAD,
    FlexStart,
    OnDemand,
    Preemptible,
    Queued,
    Reservation,
    Spot,
)
from ebbtide.declaration.model.physical_names import FUTURE_RESERVATION, fitting
from ebbtide.declaration.model.pool import Accelerator, Pool
from ebbtide.declaration.model.pool_inputs import inputs_of
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.values import clock, durations
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import value_at

from ..inputs import overridden, without_none
from ..replacement import NEW_NAME, NEW_POOL_BESIDE, ImmutableInputs, PoolArgs, all_but, hooks
from .network import Interface

_TYPE: Final = "gcp:container/nodePool:NodePool"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_KUBELET = {"cpu_cfs_quota": True, "insecure_kubelet_readonly_port_enabled": "FALSE"}
"""A kubelet configuration without `cpu_cfs_quota` has disabled CPU limits
(GoogleCloudPlatform/k8s-config-connector#12658). The read-only port serves pod specs to any client that
reaches the node (CIS GKE Benchmark, 4.2.4)."""

POOLS: Final = ImmutableInputs(
    cloud=CloudKind.GKE,
    name="name",
    own={
        "nodeConfig.bootDiskKmsKey": "cloud.keys.disks",
        **{
            f"nodeConfig.{wire}": f"overrides.nodeConfig.{wire}"
            for wire in ("shieldedInstanceConfig.enableSecureBoot", "oauthScopes", "metadata")
        },
    },
    exceptions={
        **dict.fromkeys(("cluster", "location", "project"), "A pool belongs to one cluster."),
        **dict.fromkeys(("name", "namePrefix"), "A pool with another name is a new pool."),
        "initialNodeCount": "Changes are ignored.",
        **dict.fromkeys(("nodeConfig", "nodeConfig.shieldedInstanceConfig"), "Every pool has one."),
    },
    constants={"nodeConfig.shieldedInstanceConfig.enableIntegrityMonitoring": True},
    unset=dict.fromkeys(("nodeConfig.spot", "nodeConfig.preemptible", "nodeConfig.flexStart"), False),
    implied=(
        (("guestAccelerators",), ("enableSecureBoot",)),
        (
            ("spot", "preemptible", "flexStart", "queuedProvisioning"),
            ("reservationAffinity", "maxRunDuration"),
        ),
    ),
    work_fix=NEW_POOL_BESIDE,
    system_fix=NEW_NAME,
)
"""Immutable inputs of a node pool: those whose change makes terraform-provider-google-beta 7.45 replace a
pool (ebbtide/declaration/providers/schemas/gcp.csv), since the provider would delete it before it creates the
new one.

Those of a pool's fields follow from the same table (`field_by_input`); overrides are compared at all others.
For changes of the machine type, the disk's size and type, labels, taints, network tags, zones, limits, image,
version, repair and upgrade settings and gVNIC, GKE keeps the pool, and recreates its nodes if need be."""

_DECLARED: Final = {
    "timeWindow.startTime": "capacity.from",
    "timeWindow.endTime": "capacity.until",
    "specificSkuProperties.instanceProperties.machineType": "machine",
    "specificSkuProperties.totalCount": "nodes.max",
}
"""Fields of the pool that a request has, by its inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePoolArgs(PoolArgs):
    """Arguments of a node pool: those of either cloud (`PoolArgs`), and GKE's.

    Attributes:
        project: project id of the cluster.
        service_account: e-mail of the nodes' service account; a pool's own overrides it. Default: the
            project's default account, which usually has far more permissions than a node needs.
        disk_key: name of the Cloud KMS key that encrypts boot disks. Default: Google's key.
        network_tags: network tags of all nodes of the cluster; the pool's are added.
        reservation: name of the reservation that the stack requests for the pool (`future_reservation`); a
            pool of a period needs it.
        interfaces: additional network interfaces of its nodes (`GpuNetworks.interfaces_of`); a pool with
            GPUDirect needs them.
        metadata_server: whether its nodes run GKE's metadata server, which gives each pod its own identity;
            None to let GKE decide, which runs it on a cluster with Workload Identity and refuses it on
            another (GKE docs, workload-identity, 2026).
    """

    project: pulumi.Input[str]
    service_account: pulumi.Input[str] | None = None
    disk_key: str | None = None
    network_tags: tuple[str, ...] = ()
    reservation: str | None = None
    interfaces: tuple[Interface, ...] = ()
    metadata_server: Literal[True] | None = True


class NodePool(pulumi.ComponentResource):
    """A GKE node pool of any capacity type, usable on its own.

    A fixed count is `nodeCount`, per zone; changing it resizes the pool. An autoscaled pool has none, since
    it would compete with the autoscaler: it has the initial node count, per zone, whose change would replace
    the pool and is ignored. Both are computed if omitted, so a pool can switch between the two, and a pool
    whose fixed count was created as an initial node count stays unchanged (pulumi-gcp 10.2.0,
    container.NodePool; terraform-provider-google-beta, resource_container_node_pool.go, 2026-08).

    A property that GKE cannot change on an existing pool is also an input of this component, so that the
    preview refuses a change of it (see `node_pools`); a new name creates a new pool before the old one
    is deleted.
    """

    resource: container.NodePool
    """The escape hatch: the provider's resource."""
    pool_name: pulumi.Output[str]

    def __init__(self, name: str, args: NodePoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        pool = args.resolved
        inputs = _inputs(pool, args)
        ignored, implied = _ignored(pool), _implied(pool)
        inputs = overridden(_TYPE, inputs, pool.overrides)
        own: Mapping[str, Any] = POOLS.of_component(pool, inputs, ignored)
        if args.replaced_by is not None:
            inputs.pop("autoscaling", None)
            own, ignored, implied = args.replaced_by.inputs, all_but(_TYPE, frozenset({"autoscaling"})), []
        super().__init__(
            "ebbtide:gke:NodePool",
            name,
            own,
            pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(hooks=POOLS.refusing())),
        )
        self.resource = container.NodePool(
            name,
            **inputs,
            opts=pulumi.ResourceOptions(
                parent=self,
                ignore_changes=[*ignored, *implied],
                protect=args.protect or None,
                deleted_with=args.deleted_with,
                depends_on=args.depends_on,
            ),
        )
        self.pool_name = self.resource.name
        self.register_outputs({"pool_name": self.pool_name})


def _inputs(pool: ResolvedPool, args: NodePoolArgs) -> dict[str, Any]:
    """Return the inputs of a pool: its fields' own (`inputs_of`), and those that follow from several."""
    own = inputs_of(pool)
    return without_none(
        {
            **own,
            "name": args.cloud_name or pool.name,
            "cluster": args.cluster,
            "project": args.project,
            "location": args.site.location,
            "node_count": _node_count(pool),
            "initial_node_count": _initial_node_count(pool),
            # Total limits: those per zone are silently multiplied by the number of zones.
            "autoscaling": own["autoscaling"] if pool.nodes.count is None else None,
            # A flex-start or queued pool has none: its strategy is available only in the API.
            "upgrade_settings": {"strategy": "SURGE", **own.get("upgrade_settings", {})}
            if pool.upgrade
            else None,
            "placement_policy": _placement(pool),
            "queued_provisioning": {"enabled": True} if isinstance(pool.capacity, Queued) else None,
            "network_config": _network(pool, args.interfaces),
            "node_config": _node_config(pool, args, own["node_config"]),
        }
    )


def _network(
    pool: ResolvedPool, interfaces: tuple[Interface, ...]
) -> container.NodePoolNetworkConfigArgsDict | None:
    """Return the additional network interfaces of a pool with GPUDirect.

    Raises:
        pulumi.RunError: the networks are not created.
    """
    if pool.gpu_direct is None:
        return None
    if not interfaces:
        raise pulumi.RunError(
            f"The pool {pool.name} has gpuDirect, and no network interfaces. Create the networks with "
            "ebbtide.components.gke.GpuNetworks, and pass its interfaces_of(…) as interfaces."
        )
    configs = [{"network": item.network, "subnetwork": item.subnetwork} for item in interfaces]
    return cast("container.NodePoolNetworkConfigArgsDict", {"additional_node_network_configs": configs})


def _node_count(pool: ResolvedPool) -> int | None:
    """Return the nodes per zone of a fixed-size pool; None for an autoscaled pool."""
    return None if pool.nodes.count is None else pool.nodes.count // pool.zone_count


def _initial_node_count(pool: ResolvedPool) -> int | None:
    """Return the nodes per zone at the creation of an autoscaled pool: the minimum, rounded up, but within
    the maximum.

    A pool of one node in three zones is created empty, and the autoscaler adds the node: from GKE 1.24.6, it
    maintains the minimum (GKE docs, cluster-autoscaler, 2026).
    """
    if pool.nodes.count is not None:
        return None
    return min(-(-(pool.nodes.min or 0) // pool.zone_count), (pool.nodes.max or 0) // pool.zone_count)


def _placement(pool: ResolvedPool) -> container.NodePoolPlacementPolicyArgsDict | None:
    """Return the placement policy. GKE accepts a topology only for multi-node slices."""
    if pool.slice_nodes > 1 and pool.tpu_topology:
        return {"type": "COMPACT", "tpu_topology": pool.tpu_topology}
    return {"type": "COMPACT"} if pool.compact else None


def _ignored(pool: ResolvedPool) -> list[str]:
    """Return the properties whose later values are ignored.

    For a fixed count, ignoring the initial count would restore that of an older stack, and the provider
    creates no pool with both. GKE does not return the type of a named placement policy
    (hashicorp/terraform-provider-google#25388): after a refresh, the pool would be replaced. On a series that
    supports only gVNIC, an older pool uses it without declaring it, and would also be replaced. A pool that
    `ebbtide up` has replaced keeps its replacement's name.
    """
    count = ["initialNodeCount"] if pool.nodes.count is None else []
    gvnic = ["nodeConfig.gvnic"] if pool.series and pool.series.gvnic_only else []
    return ["name", *count, *gvnic, *(["placementPolicy.type"] if _placement(pool) else [])]


def _implied(pool: ResolvedPool) -> list[str]:
    """Return the properties that the pool's other properties imply.

    Spot, flex-start and queued nodes use no reservation, and queued nodes are flex-start. A pool that another
    tool created may not say so, and would be replaced when it is adopted; nor may it name the GPU driver,
    which GKE's version then decides (GKE docs, gpus, 2026). A declared change of the driver is the
    component's.
    """
    unreserved = isinstance(pool.capacity, Spot | FlexStart | Queued)
    implied = ["nodeConfig.reservationAffinity"] if unreserved else []
    driver = ["nodeConfig.guestAccelerators[0].gpuDriverInstallationConfig"] if pool.has_gpus else []
    return [*implied, *(["nodeConfig.flexStart"] if isinstance(pool.capacity, Queued) else []), *driver]


def _node_config(pool: ResolvedPool, args: NodePoolArgs, own: Mapping[str, Any]) -> dict[str, Any]:
    capacity = pool.capacity
    # TPUs are part of their machine type, not guest accelerators.
    gpus = pool.accelerator if pool.has_gpus else None
    return without_none(
        {
            "service_account": args.service_account,
            **own,
            "guest_accelerators": own["guest_accelerators"] if gpus else None,
            "spot": True if isinstance(capacity, Spot) else None,
            "preemptible": True if isinstance(capacity, Preemptible) else None,
            "flex_start": True if isinstance(capacity, FlexStart | Queued) else None,
            "reservation_affinity": _reservation(pool, args.reservation, own),
            "boot_disk_kms_key": args.disk_key,
            # A node's permissions are its account's grants; narrower scopes only hide which grant is missing.
            "oauth_scopes": [_SCOPE],
            "tags": list(dict.fromkeys((*args.network_tags, *pool.network_tags))) or None,
            "kubelet_config": {**_KUBELET, **own.get("kubelet_config", {})},
            "workload_metadata_config": {"mode": "GKE_METADATA"} if args.metadata_server else None,
            "shielded_instance_config": {
                "enable_secure_boot": gpus is None or _has_signed_driver(pool, gpus),
                "enable_integrity_monitoring": True,
            },
            "metadata": {"disable-legacy-endpoints": "true"},
            "resource_labels": dict(args.labels),
        }
    )


def _has_signed_driver(pool: Pool, gpus: Accelerator) -> bool:
    """Return whether the driver of a pool is signed; secure boot refuses one that is built on the node.

    Google signs the drivers that GKE installs on Container-Optimized OS
    (cos.googlesource.com/cos/tools@a19a377b, cos-gpu-installer, signature.go), and Google's toolkit enables
    secure boot with them (GoogleCloudPlatform/cluster-toolkit@01df6b26, gke-node-pool). On Ubuntu, or if
    something else installs the driver, it may be built on the node.
    """
    return pool.image == "cos" and gpus.driver != "none"


def _reservation(
    pool: ResolvedPool, requested: str | None, own: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    """Return the reservation affinity of a node.

    Spot, flex-start and queued nodes must not use a reservation (GKE docs, provisioningrequest;
    cluster-toolkit's preconditions, 2026).

    Raises:
        pulumi.RunError: the pool has a period, and its reservation is not requested.
    """
    match pool.capacity:
        case Spot() | FlexStart() | Queued():
            return {"consume_reservation_type": "NO_RESERVATION"}
        case Reservation(affinity="specific", name=name):
            name = name or requested
            if name is None:
                raise pulumi.RunError(
                    f"The pool {pool.name} has a reservation with a period. Request it with "
                    "ebbtide.components.gke.future_reservation, and pass its name as reservation."
                )
            key = "compute.googleapis.com/reservation-name"
            return {**own["reservation_affinity"], "key": key, "values": [name]}
        case Reservation() | OnDemand() | Preemptible():
            return own.get("reservation_affinity")
        case _:
            assert_never(pool.capacity)


class ReservationError(Exception):
    """A reservation cannot be requested or changed as declared; the message has the alternative."""


def reservation_name(cluster: str, pool: str) -> str:
    """Return the name of the reservation of a cluster's pool."""
    return fitting(f"{cluster}-{pool}", FUTURE_RESERVATION)


def future_reservation(
    name: str, pool: ResolvedPool, cluster: str, project: str, opts: pulumi.ResourceOptions
) -> compute.FutureReservation | None:
    """Request the reservation of a pool, in calendar mode; None for a pool that has no period.

    Google Cloud approves a request within a minute and creates the reservation, empty until its begin, under
    the name that the pool's nodes consume. At its end it deletes the reservation and its machines. A
    submitted request can neither be changed, cancelled nor deleted, and is billed from its begin, used or
    not: the stack forgets it instead of deleting it. Source: Compute Engine docs,
    future-reservations-calendar-mode-overview and create-future-reservations-calendar-mode (2026);
    cloud.google.com/products/dws/pricing (2026).

    Args:
        name: name of the resource.
        pool: the pool.
        cluster: name of its cluster.
        project: project id of the cluster.
        opts: options of the resource.
    """
    capacity = pool.capacity
    if not isinstance(capacity, Reservation) or capacity.from_ is None or capacity.until is None:
        return None
    own = reservation_name(cluster, pool.name)
    return compute.FutureReservation(
        name,
        name=own,
        reservation_name=own,
        project=project,
        zone=pool.zones[0] if pool.zones else pool.site.location,
        planning_status="SUBMITTED",
        reservation_mode="CALENDAR",
        deployment_type="DENSE",
        specific_reservation_required=True,
        auto_delete_auto_created_reservations=True,
        time_window={"start_time": rfc3339(capacity.from_), "end_time": rfc3339(capacity.until)},
        specific_sku_properties={
            "instance_properties": {"machine_type": pool.machine_type},
            "total_count": str(pool.max_nodes),
        },
        opts=pulumi.ResourceOptions.merge(
            opts,
            pulumi.ResourceOptions(
                retain_on_delete=True,
                hooks=hooks("gke:reservations", before_create=check_lead, before_update=_refuse),
            ),
        ),
    )


def check_lead(args: pulumi.ResourceHookArgs) -> None:
    """Refuse a request that comes too late.

    Raises:
        ReservationError: the reservation begins too early.
    """
    inputs: Mapping[str, Any] = args.new_inputs or {}
    start = datetime.fromisoformat(inputs["timeWindow"]["startTime"])
    if start - (now := clock.now()) < CALENDAR_LEAD:
        raise ReservationError(
            f"The reservation {inputs['name']} begins at {clock.in_utc(start)}, and Google Cloud accepts a "
            f"request {durations.in_words(CALENDAR_LEAD)} before its begin at the latest. Write from: "
            f"{now + CALENDAR_LEAD:%Y-%m-%dT%H:%MZ} or later."
        )


def _refuse(args: pulumi.ResourceHookArgs) -> None:
    """Refuse a change of a request.

    Raises:
        ReservationError: with every change.
    """
    old, new = (args.old_inputs or {}, args.new_inputs or {})
    changes = list(_changes(old, new))
    if changes:
        raise ReservationError(
            f"Google Cloud can neither change nor cancel the requested reservation {new['name']}: "
            f"{', '.join(changes)}. Write the old values again, and for another reservation a pool with "
            "another name."
        )


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for path, declared in _DECLARED.items():
        before, after = (value_at(inputs, path) for inputs in (old, new))
        if before != after:
            yield f"{declared} from {before} to {after}"
