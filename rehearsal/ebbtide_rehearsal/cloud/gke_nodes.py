"""Nodes of a GKE node pool: labels, taints and resources, for the controllers of nodes.

Labels and taints are independent of `ebbtide.placement`, whose assumptions about GKE are tested against them.
Sources: GKE docs, spot-vms, preemptible-vms, provisioningrequest, dws-flex-start-training, gpus, tpus,
prepare-arm-workloads (2026); kubernetes.io/docs/reference/labels-annotations-taints (2026);
GoogleCloudPlatform/container-engine-accelerators@992db812 for the label of the driver's version.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from ebbtide.analysis.reading.facts import Inputs, RecordedPool
from ebbtide.analysis.reading.gke import read_period, read_pool
from ebbtide.autoscaler.nodes import NodePool
from ebbtide.declaration.catalog.accelerators import is_tpu, one_host_topology, resource_name
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.declaration.catalog.disks import LOCAL_SSD_GIB, local_ssds
from ebbtide.declaration.catalog.machines import ARCHITECTURE, ARM64, Machine, architecture
from ebbtide.declaration.model.capacity import CapacityKind
from ebbtide.placement import NodeTaint
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.ids import FUTURE_RESERVATION, GCP
from ebbtide_rehearsal.cloud.pools import machine_of, machines, node_pool
from ebbtide_rehearsal.cloud.store import Resource, Store

_PREFIX: Final = "cloud.google.com/"
_EFFECTS: Final = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}
_API_EFFECTS: Final = {effect: api for api, effect in _EFFECTS.items()}
_STANDARD: Final = "standard"
PROVISIONING: Final[dict[CapacityKind, str]] = {
    "on-demand": _STANDARD,
    "reservation": _STANDARD,
    "spot": "spot",
    "preemptible": "preemptible",
    "flex-start": "flex-start",
    "queued": "flex-start",
}
"""Provisioning models of purchase options, as in node labels."""
_SSD: Final = {"pd-balanced", "pd-ssd"}
"""Disk types that count towards `SSD_TOTAL_GB` (Compute Engine docs, allocation-quotas, 2026)."""
_SYSTEM_OF_SSDS: Final = {1: 50, 2: 75}
_PODS: Final = 110  # GKE docs, flexible-pod-cidr (2026)
_WEEK: Final = 7 * 24 * 3600
_LONGEST: Final = {"flex-start": _WEEK, "queued": _WEEK}
"""Default maximum run durations in seconds (GKE docs, dws-flex-start-training)."""


def added_labels(
    fields: Inputs,
    machine: Machine,
    capacity: CapacityKind,
    accelerator: tuple[str, int] | None,
    zones: tuple[str, ...],
) -> dict[str, str]:
    """Return the labels that GKE adds to a pool's nodes, without those of a single node and its zone."""
    labels = {
        f"{_PREFIX}gke-nodepool": fields.text("name"),
        f"{_PREFIX}gke-provisioning": PROVISIONING[capacity],
        f"{_PREFIX}gke-boot-disk": fields.text("nodeConfig.diskType") or "pd-balanced",
        f"{_PREFIX}gke-container-runtime": "containerd",
        f"{_PREFIX}gke-os-distribution": _distribution(fields),
        f"{_PREFIX}machine-family": machine.name.partition("-")[0],
        ARCHITECTURE: architecture(CloudKind.GKE, machine.name),
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": machine.name,
        "topology.kubernetes.io/region": region_of(zones[0]),
    }
    if (model := PROVISIONING[capacity]) != _STANDARD:
        labels[f"{_PREFIX}gke-{model}"] = "true"
    if fields.number("nodeConfig.ephemeralStorageLocalSsdConfig.localSsdCount"):
        labels[f"{_PREFIX}gke-ephemeral-storage-local-ssd"] = "true"
    if fields.number("nodeConfig.localNvmeSsdBlockConfig.localSsdCount"):
        labels[f"{_PREFIX}gke-local-nvme-ssd"] = "true"
    if accelerator is not None:
        labels |= _of_accelerator(fields, *accelerator)
    return labels


def _distribution(fields: Inputs) -> str:
    return "ubuntu" if fields.text("nodeConfig.imageType").upper().startswith("UBUNTU") else "cos"


def _of_accelerator(fields: Inputs, kind: str, count: int) -> dict[str, str]:
    if is_tpu(kind):
        labels = {f"{_PREFIX}gke-tpu-accelerator": kind, f"{_PREFIX}gke-accelerator-count": str(count)}
        topology = fields.text("placementPolicy.tpuTopology") or one_host_topology(kind, count)
        return labels | ({f"{_PREFIX}gke-tpu-topology": topology} if topology else {})
    labels = {f"{_PREFIX}gke-accelerator": kind}
    for attached in fields.parts("nodeConfig.guestAccelerators"):
        version = attached.text("gpuDriverInstallationConfig.gpuDriverVersion") or "DEFAULT"
        # The driver's DaemonSet does not run on nodes with this label.
        if version != "INSTALLATION_DISABLED":
            labels[f"{_PREFIX}gke-gpu-driver-version"] = version.lower()
        if size := attached.text("gpuPartitionSize"):
            labels[f"{_PREFIX}gke-gpu-partition-size"] = size
        if strategy := attached.text("gpuSharingConfig.gpuSharingStrategy"):
            clients = attached.number("gpuSharingConfig.maxSharedClientsPerGpu")
            labels[f"{_PREFIX}gke-gpu-sharing-strategy"] = strategy.lower().replace("_", "-")
            labels[f"{_PREFIX}gke-max-shared-clients-per-gpu"] = str(clients)
    return labels


def declared_taints(fields: Inputs) -> tuple[NodeTaint, ...]:
    """Return the requested taints, with effects as spelled in Kubernetes."""
    return tuple(
        NodeTaint(taint.text("key"), taint.text("value"), _EFFECTS[taint.text("effect")])
        for taint in fields.parts("nodeConfig.taints")
    )


def added_taints(
    fields: Inputs, machine: Machine, capacity: CapacityKind, accelerator: tuple[str, int] | None
) -> tuple[NodeTaint, ...]:
    """Return the taints that GKE adds unless requested: on queued nodes, on nodes with accelerators, and on
    Arm nodes. Spot nodes of a manually created pool get none."""
    request = {(taint.key, taint.effect) for taint in declared_taints(fields)}
    return tuple(
        taint for taint in _added(machine, capacity, accelerator) if (taint.key, taint.effect) not in request
    )


def _added(
    machine: Machine, capacity: CapacityKind, accelerator: tuple[str, int] | None
) -> Iterator[NodeTaint]:
    if capacity == "queued":
        yield NodeTaint(f"{_PREFIX}gke-queued", "true", "NoSchedule")
    if accelerator is not None:
        yield NodeTaint(resource_name(accelerator[0]), "present", "NoSchedule")
    if (processors := architecture(CloudKind.GKE, machine.name)) == ARM64:
        yield NodeTaint(ARCHITECTURE, processors, "NoSchedule")


def in_api_words(taint: NodeTaint) -> dict[str, str]:
    """Return a taint in the form of the API and the provider."""
    return {"key": taint.key, "value": taint.value, "effect": _API_EFFECTS[taint.effect]}


def machine_pool(
    store: Store, fields: Inputs, cluster: str, cluster_zones: tuple[str, ...], count: int
) -> NodePool:
    """Return the node pool for the controllers of nodes.

    Args:
        fields: inputs of the node pool.
        cluster_zones: default zones for nodes of the cluster's pools.
        count: number of its first nodes in each zone.

    Raises:
        LookupError: its machine type is unknown.
    """
    find = partial(machine_of, store, CloudKind.GKE)
    pool = read_pool(fields, region_of(cluster_zones[0]), default_zones=cluster_zones, find=find)
    machine, kind = pool.hardware, pool.capacity.kind
    has = pool.allocatable
    if machine is None or has is None:
        raise LookupError(pool.machine_type)
    zones = pool.zones or cluster_zones
    upgrade: Any = pool.upgrade  # whole numbers on GKE
    reserved = period_of(store, fields.text("nodeConfig.reservationAffinity.values[0]"))
    accelerator = (pool.accelerator.type, pool.accelerator.count) if pool.accelerator else None
    return node_pool(
        pool,
        cluster=cluster,
        region=region_of(zones[0]),
        zones=zones,
        initial=count * len(zones),
        labels={**added_labels(fields, machine, kind, accelerator, zones), **pool.labels},
        taints=(*declared_taints(fields), *added_taints(fields, machine, kind, accelerator)),
        allocatable={
            "cpu": f"{int(has.cpu_m)}m",
            "memory": f"{int(has.memory_mib)}Mi",
            "pods": str(pool.max_pods_per_node or _PODS),
            "ephemeral-storage": f"{ephemeral_gib(pool)}Gi",
        },
        # By default from 1.32.2-gke.1297000 (GKE docs, gpus).
        driver_installed=pool.has_cloud_driver,
        # The stack's reservation bills its machines.
        hourly=pool.priced_node.disk_amount().known if reserved else pool.priced_node.hourly(kind),
        default_run_seconds=_LONGEST.get(kind),
        ssd_gb=(pool.disk.size_gib or 0) if pool.disk.type in _SSD else 0,
        reserved=reserved,
        surge=max(
            1, pool.slice_nodes, (upgrade.max_surge or 0) + (upgrade.max_unavailable or 0) if upgrade else 0
        ),
    )


def ephemeral_gib(pool: RecordedPool) -> int:
    """Return the allocatable ephemeral storage of a node, GiB: its boot disk or local SSDs, less the eviction
    threshold and the system's reservation (GKE docs, plan-node-sizes, 2026)."""
    config = pool.ephemeral_storage_local_ssd_config
    if config is not None and config.local_ssd_count:
        known = local_ssds(pool.machine.type) if pool.machine else None
        size = float(config.local_ssd_count * (known.gib if known else LOCAL_SSD_GIB))
        system = float(_SYSTEM_OF_SSDS.get(config.local_ssd_count, 100))
    else:
        size = float(pool.disk.size_gib or 0)
        system = min(0.5 * size, 6 + 0.35 * size, 100)
    return max(0, int(0.9 * size - system))


def period_of(store: Store, name: str) -> tuple[float, float] | None:
    """Return begin and end of a requested reservation, in simulated seconds; None for another one."""
    for resource in store.resources(GCP, FUTURE_RESERVATION):
        own, period = read_period(Inputs(resource.inputs))
        if own == name:
            begin, end = (time.timestamp() - store.clock.started for time in period)
            return begin, end
    return None


def node_count(store: Store, fields: Inputs, old: Resource | None) -> int:
    """Return the number of nodes in each zone of a new or changed pool.

    The provider resizes a pool only if the count differs from its state (`nodePoolUpdate`).
    """
    count = fields.number("nodeCount")
    if old is None:
        return (fields.number("initialNodeCount") if count is None else count) or 0
    if count is None or count == old.state.get("nodeCount"):
        return current_count(store, old)
    return count


def current_count(store: Store, pool: Resource) -> int:
    """Return the number of nodes in each zone of an existing pool, the average of an autoscaled one
    (`flattenNodePool`)."""
    if "autoscaling" not in pool.inputs:
        return pool.state.get("nodeCount", 0)
    cluster, _, name = pool.id.rpartition("/nodePools/")
    nodes = sum(machine.pool == name and not machine.is_leaving for machine in machines(store, cluster))
    return nodes // max(1, len(pool.state["nodeLocations"]))
