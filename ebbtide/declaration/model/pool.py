"""Node pools, from which queues, placement, quotas and cost are derived, and the metadata of their fields."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from ebbtide.declaration.catalog.gpu_direct import Strategy
from ebbtide.declaration.catalog.machines import spelled
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.declaration.model.base import (
    Change,
    Converted,
    Count,
    Declared,
    Inputs,
    Name,
    Names,
    NodesOrShare,
    OnlyOn,
    OptionalDuration,
    Overrides,
    Positive,
    Zone,
    aks,
    change_of,
    default,
    gke,
    only_aks,
    only_gke,
)
from ebbtide.declaration.model.capacity import Capacity, OnDemand
from ebbtide.declaration.model.shape.error_locations import models_in

DEFAULT_ACCOUNT: Final = "default"
"""Value of `serviceAccount` for the project's Compute Engine default account (GKE v1 API, NodeConfig)."""


class Role(StrEnum):
    """Role of a pool: `system` for the small pool of cluster components, `work` for any other."""

    SYSTEM = "system"
    WORK = "work"


class TaintEffect(StrEnum):
    """Effect of a taint, as spelled in Kubernetes."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Taint(Declared):
    """A taint on a pool's nodes, which repels pods without a matching toleration."""

    key: Name
    """Key, as in Kubernetes: `preemptible`, `example.com/team`."""
    value: str = ""
    """Value. Default: none; tolerations then use the operator `Exists`."""
    effect: Converted[TaintEffect, TaintEffect | Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]] = (
        default(TaintEffect.NO_SCHEDULE)
    )

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class GpuSharingConfig(Declared):
    """Sharing of one GPU by several containers, without memory isolation."""

    gpu_sharing_strategy: Literal["time-sharing", "mps"] = "time-sharing"
    """`time-sharing` switches between containers; `mps` (NVIDIA Multi-Process Service) runs them at once."""
    max_shared_clients_per_gpu: Annotated[int, Field(strict=True, ge=2, le=48)]
    """Containers that share a GPU, or one partition of it, from 2 to 48. Each requests 1 `nvidia.com/gpu`."""


class Accelerator(Declared):
    """The accelerators of one node."""

    type: Name
    """Type, as the cloud or the catalog names it: `nvidia-tesla-t4`, `nvidia-l4`."""
    count: Positive = 1
    """Number per node."""
    driver: Annotated[Literal["default", "latest", "none"] | None, aks("gpuProfile")] = None
    """Driver that the cloud installs: GKE has `default` and `latest`, AKS `default`; `none` leaves it to
    `addons.drivers`. Default: `default` if that is `managed`, else `none`."""
    gpu_sharing_config: Annotated[
        GpuSharingConfig | None,
        only_gke(
            "AKS has no time-sharing without the NVIDIA GPU Operator.",
            "Remove gpuSharingConfig, or write gpuInstanceProfile for an A100, H100 or H200.",
            "azure-aks-docs concepts-gpu-partitioning.md (2026-05-22)",
        ),
    ] = None
    """GKE: several containers on each GPU. Fixed when the pool is created."""
    gpu_partition_size: Annotated[
        Name | None,
        only_gke(
            "AKS partitions GPUs by instance profile.",
            "Write gpuInstanceProfile: MIG1g, for example.",
            "azure-aks-docs gpu-multi-instance.md (2026-05-22)",
        ),
    ] = None
    """GKE: NVIDIA Multi-Instance GPU partition that each GPU is divided into, such as `1g.5gb`. Fixed when
    the pool is created."""
    gpu_instance_profile: Annotated[
        Literal["MIG1g", "MIG2g", "MIG3g", "MIG4g", "MIG7g"] | None,
        aks("gpuInstanceProfile"),
        only_aks(
            "GKE partitions GPUs by partition size.",
            "Write gpuPartitionSize: 1g.5gb, for example.",
            "GKE docs, gpus-multi (2026)",
        ),
    ] = None
    """AKS: NVIDIA Multi-Instance GPU profile. Fixed when the pool is created."""


class MachineShape(Declared):
    """A machine type; for a type that the catalog does not have, also its resources."""

    type: Annotated[Name, AfterValidator(spelled)]
    """Machine type, as the cloud spells it; VM sizes of Azure in any case."""
    vcpus: Positive | None = None
    """Virtual CPUs, for a type that the catalog does not have."""
    memory_gib: Annotated[float, Field(gt=0)] | None = None
    """Memory in GiB, for a type that the catalog does not have."""
    accelerators: Accelerator | None = None
    """Accelerators that are part of the machine, for a type that the catalog does not have."""


def _shape_from_name(value: object) -> object:
    return {"type": value} if isinstance(value, str) else value


_Image = Annotated[
    Name,
    BeforeValidator(lambda value: value, json_schema_input_type=Literal["cos", "ubuntu", "azure-linux"]),
]
"""A node image. The rule `known-node-image` refuses those of the other cloud."""

_Machine = Annotated[
    MachineShape, BeforeValidator(_shape_from_name, json_schema_input_type=str | MachineShape)
]


class Nodes(Declared):
    """Node counts, in total over the pool's zones."""

    min: Count | None = None
    """Minimum. Default: 0 for a work pool; 1 for a system pool on GKE, 2 on AKS."""
    max: Positive | None = None
    """Maximum of the autoscaler."""
    count: Positive | None = None
    """A fixed count without autoscaling, instead of `min` and `max`. Changing it resizes the pool."""


class Disk(Declared):
    """The boot disk of each node."""

    size_gib: Annotated[
        Positive | None,
        gke("nodeConfig.diskSizeGb", "nodeConfig.bootDisk.sizeGb"),
        aks("osDiskSizeGB"),
    ] = None
    """Size in GiB. Default: 100; for a system pool 30 on GKE and 64 on AKS."""
    type: Annotated[
        Name | None,
        gke("nodeConfig.diskType", "nodeConfig.bootDisk.diskType"),
        aks("osDiskType"),
    ] = None
    """GKE: `pd-standard`, `pd-balanced`, `pd-ssd`, `hyperdisk-balanced`. AKS: `managed`, `ephemeral`.
    Default: `pd-balanced`, or `hyperdisk-balanced` for a machine that boots from it alone; `managed`."""
    kubelet_disk_type: Annotated[
        Literal["OS", "Temporary"] | None,
        aks("kubeletDiskType"),
        only_aks(
            "GKE stores ephemeral data on the boot disk or on local SSDs.",
            "Write ephemeralStorageLocalSsdConfig instead.",
            "GKE docs, local-ssd (2026)",
        ),
    ] = None
    """AKS: disk for `emptyDir` volumes, images and logs: the boot disk, or the machine's temporary disk.
    Default: `OS`. Fixed when the pool is created."""


class LocalSsdConfig(Declared):
    """Local SSDs of each node. Their data is lost with the node."""

    local_ssd_count: Positive | None = None
    """Number of disks. Default: the number that the machine type always has."""


class SecondaryBootDisk(Declared):
    """A disk created for each node from a disk image."""

    disk_image: Name
    """`global/images/NAME` of the cluster's project, or `projects/P/global/images/NAME`."""
    mode: Literal["CONTAINER_IMAGE_CACHE"] | None = None
    """`CONTAINER_IMAGE_CACHE` for container images, from which containers then start. Default: data, which
    pods mount from the node."""


class Upgrade(Declared):
    """Replacement of nodes during upgrades."""

    max_surge: NodesOrShare | None = None
    """Maximum number of nodes added at a time; on AKS also a share of the pool's nodes: `33%`."""
    max_unavailable: NodesOrShare | None = None
    """Maximum number of nodes unavailable at a time; on AKS also a share."""


class Pool(Declared):
    """A node pool: machines of one type and one capacity type."""

    name: Annotated[
        Name,
        gke("name", "namePrefix", "nodeConfig.resourceLabels.ebbtide-pool"),
        aks("agentPoolName", "name", "tags.ebbtide-pool"),
    ]
    """Name in the cloud and in queues."""
    role: Annotated[Converted[Role, Role | Literal["system", "work"]], aks("mode")] = default(Role.WORK)
    machine: Annotated[
        Converted[_Machine | None, MachineShape | str | None],
        gke("nodeConfig.machineType"),
        aks("vmSize"),
        aks("virtualMachinesProfile", "virtualMachineNodesStatus", "type"),
    ] = default(None)
    """Machine type, as its name or with its resources."""
    accelerator: Annotated[Accelerator | None, gke("nodeConfig.guestAccelerators")] = None
    """Accelerators of a node. Omit it if they are part of the machine type."""
    capacity: Annotated[
        Capacity,
        gke("nodeConfig.spot", "nodeConfig.preemptible", "nodeConfig.flexStart"),
        gke("queuedProvisioning", "nodeConfig.reservationAffinity"),
        gke("bestEffortProvisioning"),
        aks("scaleSetPriority"),
    ] = default(OnDemand())
    """Capacity type: its name, or an object with its fields."""
    nodes: Annotated[
        Nodes,
        gke("nodeCount", "initialNodeCount", "autoscaling", "ignoreNodeCountChanges"),
        aks("count", "minCount", "maxCount", "enableAutoScaling"),
    ] = Nodes()
    zones: Annotated[
        Converted[tuple[Zone, ...], list[str] | list[int] | tuple[str | int, ...]],
        gke("nodeLocations"),
        aks("availabilityZones"),
    ] = default(())
    """GKE: zones of the cluster's region (`us-central1-a`). AKS: zones by number (`1`). Default: the
    cluster's zones."""
    location_policy: Annotated[
        Literal["balanced", "any"] | None, only_gke("AKS always balances a pool over its zones.")
    ] = None
    """GKE: the autoscaler spreads nodes over the zones (`balanced`), or uses any zone with stock (`any`).
    Default: `any`, but `balanced` for on-demand and reservation."""
    disk: Disk = Disk()
    ephemeral_storage_local_ssd_config: Annotated[
        LocalSsdConfig | None,
        gke("nodeConfig.ephemeralStorageLocalSsdConfig", "nodeConfig.localSsdCount"),
        only_gke(
            "AKS has no setting for local SSDs: machines have their own disks.",
            "Write disk: {kubeletDiskType: Temporary} for the machine's temporary disk.",
        ),
    ] = None
    """GKE: local SSDs for `emptyDir` volumes, container layers and images, instead of the boot disk. Fixed
    when the pool is created."""
    local_nvme_ssd_block_config: Annotated[
        LocalSsdConfig | None,
        gke("nodeConfig.localNvmeSsdBlockConfig"),
        only_gke(
            "AKS attaches the NVMe disks of a machine without a setting.",
            source="azure-aks-docs best-practices-storage-nvme.md (2025-10-17)",
        ),
    ] = None
    """GKE: local SSDs as raw block devices. Fixed when the pool is created."""
    secondary_boot_disks: Annotated[
        Converted[tuple[SecondaryBootDisk, ...], Sequence[SecondaryBootDisk]],
        gke("nodeConfig.secondaryBootDisks"),
        only_gke("AKS does not support secondary boot disks."),
    ] = default(())
    """GKE: disks with container images or data, preloaded on each node. Fixed when the pool is created."""
    image_streaming: Annotated[
        bool | None,
        gke("nodeConfig.gcfsConfig"),
        only_gke(
            "AKS streams images of Azure Container Registry with artifact streaming, which Ebbtide does not "
            "configure.",
            source="azure-native 3.29.0, AgentPool; azure-aks-docs artifact-streaming.md (2026-05-05)",
        ),
    ] = None
    """GKE: start containers before their image is completely pulled. Default: true if a secondary boot disk
    has container images, which requires it."""
    image: Annotated[
        _Image | None,
        gke("nodeConfig.imageType"),
        aks("osType", "osSKU"),
    ] = None
    """Node image. GKE: `cos` or `ubuntu`; AKS: `ubuntu` or `azure-linux`. Default: `cos`, `ubuntu`."""
    labels: Annotated[dict[str, str], gke("nodeConfig.labels"), aks("nodeLabels")] = Field(
        default_factory=dict[str, str]
    )
    """Node labels besides the derived ones. A derived label can be given another value."""
    taints: Annotated[
        Converted[tuple[Taint, ...] | None, Sequence[Taint] | None],
        gke("nodeConfig.taints", "nodeConfig.effectiveTaints", "nodeConfig.taintConfig"),
        aks("nodeTaints", "nodeInitializationTaints"),
    ] = default(None)
    """Taints instead of the derived one. Taints that the cloud adds itself remain. On a system pool, `[]`
    also admits steps of Kubeflow Pipelines that select no pool."""
    service_account: Annotated[
        str | None,
        gke("nodeConfig.serviceAccount"),
        only_gke(
            "Nodes on AKS use the cluster's kubelet identity.",
            source="azure-native 3.29.0, AgentPool; azure-aks-docs pre-created-kubelet-managed-identity.md "
            "(2024-06-07)",
        ),
    ] = None
    """GKE: e-mail of the nodes' service account, or `default` for the project's Compute Engine default
    service account. Default: the cluster's own."""
    network_tags: Annotated[
        Names,
        gke("nodeConfig.tags"),
        only_gke(
            "Azure firewall rules apply to subnets, not to tags.",
            source="azure-native 3.29.0, AgentPool; learn.microsoft.com, network-security-groups-overview "
            "(2026)",
        ),
    ] = default(())
    """GKE: network tags of the nodes besides the cluster's (`cloud.networkTags`), for firewall rules and
    routes."""
    subnet: Annotated[
        Name | None,
        aks("vnetSubnetID"),
        only_aks(
            "Pools of a GKE cluster share its subnet, unless it has additional ones.",
            "Remove subnet, or write an additional one under overrides: {networkConfig: {subnetwork: …}}.",
            "GKE docs, multi-subnet-clusters (2026)",
        ),
    ] = None
    """AKS: resource id of an existing subnet for the pool's nodes, in the network of `cloud.network.subnet`.
    Default: that subnet. Fixed when the pool is created."""
    max_pods_per_node: Annotated[Positive | None, gke("maxPodsPerNode"), aks("maxPods")] = None
    """Maximum number of pods on a node. Default: the cloud's own."""
    compact: Annotated[
        bool,
        gke("placementPolicy"),
        only_gke("The field would have no effect on AKS."),
    ] = False
    """GKE: nodes close together in one zone, for traffic between them. Fixed when the pool is created: to
    change it, give the pool another name. `overrides: {placementPolicy: {policyName: …}}` names a compact or
    workload policy that exists."""
    gvnic: Annotated[
        bool | None,
        gke("nodeConfig.gvnic"),
        only_gke("AKS enables accelerated networking on every machine that supports it."),
    ] = None
    """GKE: Google's virtual network interface. Default: true on the series that require it."""
    gpu_direct: Annotated[
        Strategy | None,
        gke("networkConfig.additionalNodeNetworkConfigs"),
        only_gke(
            "RDMA over InfiniBand on AKS' ND sizes needs NVIDIA's network operator, which Ebbtide does not "
            "install.",
            "Remove gpuDirect, install the operator yourself, and request its resource in your manifests.",
            "Azure/AKS, website/blog, infiniband-on-aks (2025-04-11)",
        ),
    ] = None
    """GKE: a network for each GPU's NIC, with NCCL's plugin, for traffic between nodes: `tcpxo` on A3 Mega,
    `rdma` on A3 Ultra and A4. Work that requests all GPUs of a node uses it. Fixed when the pool is
    created."""
    threads_per_core: Annotated[
        Literal[1, 2] | None,
        gke("nodeConfig.advancedMachineFeatures.threadsPerCore"),
        only_gke("AKS has no such setting."),
    ] = None
    """GKE: threads of each core. `1` switches simultaneous multithreading off: a node has half as many CPUs,
    for the same price. Default: the machine's own, `2` on all but a few series. Fixed when the pool is
    created."""
    tpu_topology: Annotated[
        Annotated[str, Field(strict=True, pattern=r"^[1-9]\d*x[1-9]\d*(x[1-9]\d*)?$")] | None,
        only_gke("AKS has no TPUs."),
    ] = None
    """GKE: topology of a TPU slice, such as `4x4`. It determines the number of a slice's nodes, which are
    created and deleted together. Fixed when the pool is created."""
    shutdown_grace: Annotated[
        OptionalDuration,
        gke("nodeConfig.kubeletConfig.shutdownGracePeriodSeconds"),
        only_gke(
            "AKS has no setting for how long an evicted node keeps running.",
            source="azure-aks-docs spot-node-pool.md (2025-04-06)",
        ),
    ] = default(None)
    """GKE: termination time for a spot node's pods on preemption: `0s`, `30s` or `120s`."""
    drain_timeout: OptionalDuration = default(None)
    """Time for work to finish before `ebbtide up` evicts its pods to replace the pool: `30m`, `24h`.
    Default: `24h`."""
    protect: bool = False
    """Protection from deletion, in a stack without `lifetime`: to remove the pool from the declaration,
    update it with `false` first. `ebbtide adopt --pools-only` writes it."""
    resource_flavor: Name | None = None
    """Name of the pool's ResourceFlavor in Kueue, for example that of one which exists: admitted work refers
    to it. Default: the pool's name. `ebbtide adopt` writes it."""
    upgrade: Annotated[
        Upgrade | None,
        gke("upgradeSettings.maxSurge", "upgradeSettings.maxUnavailable"),
        aks("upgradeSettings.maxSurge", "upgradeSettings.maxUnavailable"),
    ] = None
    """Replacement of nodes during upgrades. Not for flex-start, queued, and spot on AKS."""
    auto_repair: Annotated[
        bool | None,
        gke("management.autoRepair"),
        only_gke(
            "AKS always repairs nodes, without a setting.",
            source="azure-aks-docs node-auto-repair.md (2026-07-01)",
        ),
    ] = None
    """GKE: replace nodes that fail health checks. Default: true, but false for flex-start and queued, which
    do not support it."""
    auto_upgrade: Annotated[
        bool | None,
        gke("management.autoUpgrade"),
        only_gke(
            "AKS has one upgrade channel for all pools of a cluster.",
            "Remove autoUpgrade, or write upgradeChannel under cloud.",
            "azure-aks-docs auto-upgrade-cluster.md (2026-06-26)",
        ),
    ] = None
    """GKE: upgrade nodes to the cluster's version. Default: true, which a release channel requires; `false`
    is possible on an existing cluster without a channel."""
    overrides: Overrides = Field(default_factory=Overrides)
    """Inputs of `gcp.container.NodePool` (`nodeConfig: {fastSocket: {enabled: true}}`) or
    `azure-native.containerservice.AgentPool` that the declaration has no field for, applied last, with their
    names as in Pulumi YAML. Mappings are merged with the derived inputs; lists replace them."""

    @property
    def flavor_name(self) -> str:
        """Name of the ResourceFlavor of its nodes."""
        return self.resource_flavor or self.name

    @property
    def is_system(self) -> bool:
        """True for the system pool."""
        return self.role is Role.SYSTEM


_PARTS = ("accelerator", "capacity", "disk")
"""Fields whose own fields have metadata."""


@dataclass(frozen=True, slots=True)
class PoolField:
    """A field of a pool, or of a part of it.

    Attributes:
        path: path in the declaration, below the pool; for the `kind` of a part, the part's.
        names: its names in Python, from the pool on.
        inputs: its inputs on each cloud.
        only: the only cloud that has it; None for both.
    """

    path: str
    names: tuple[str, ...]
    owner: type[BaseModel]
    inputs: tuple[Inputs, ...]
    only: OnlyOn | None

    def is_written(self, pool: Pool) -> bool:
        """Return whether a pool has another value than the default."""
        part: Any = pool
        *parents, name = self.names
        for parent in parents:
            part = getattr(part, parent)
        if not isinstance(part, self.owner):
            return False
        default = self.owner.model_fields[name].get_default(call_default_factory=True)
        return name == "kind" or getattr(part, name) != default


@cache
def pool_fields() -> tuple[PoolField, ...]:
    """Return every field of a pool, in the order of the declaration."""
    return tuple(_fields(Pool, "", ()))


def _fields(owner: type[BaseModel], path: str, parents: tuple[str, ...]) -> Iterator[PoolField]:
    for name, field in owner.model_fields.items():
        below = path if name == "kind" else f"{path}.{field.alias}".removeprefix(".")
        inputs = tuple(item for item in field.metadata if isinstance(item, Inputs))
        only = next((item for item in field.metadata if isinstance(item, OnlyOn)), None)
        yield PoolField(below, (*parents, name), owner, inputs, only)
        for part in models_in(field.annotation) if name in _PARTS else ():
            yield from _fields(part, below, (*parents, name))


def field_by_input(cloud: CloudKind, change: Change | None = None) -> dict[str, str]:
    """Return the path of a pool's field by each of its inputs.

    Args:
        change: effect of a change of the inputs; None for all inputs.
    """
    return {
        path: field.path
        for field in pool_fields()
        for inputs in field.inputs
        if inputs.cloud is cloud
        for path in inputs.paths
        if change is None or change == change_of(cloud, path)
    }
