"""Node pools, from which queues, placement, quotas and cost are derived, and the inputs of their fields."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from operator import attrgetter
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from ebbtide.declaration.catalog.gpu_direct import Strategy
from ebbtide.declaration.catalog.machines import spelled
from ebbtide.declaration.model.base import (
    Converted,
    Count,
    Declared,
    Name,
    Names,
    NodesOrShare,
    OptionalDuration,
    Overrides,
    Positive,
    Zone,
    aks,
    default,
    gke,
    only_aks,
    only_gke,
)
from ebbtide.declaration.model.capacity import Capacity, OnDemand
from ebbtide.declaration.model.forms import (
    CAPITALIZED,
    CONSTANT,
    COUNT_OR_SHARE,
    FLAG,
    LABELS,
    NUMBER,
    SECONDS,
    SIZE,
    TEXT,
    TEXTS,
    WHOLE,
    Form,
    number,
    parts,
    text,
    words,
)

DEFAULT_ACCOUNT: Final = "default"
"""Value of `serviceAccount` for the project's Compute Engine default account (GKE v1 API, NodeConfig)."""
_EFFECTS: Final = words(
    {"NoSchedule": "NO_SCHEDULE", "PreferNoSchedule": "PREFER_NO_SCHEDULE", "NoExecute": "NO_EXECUTE"}
)
_GPUS: Final = "nodeConfig.guestAccelerators[0]"
_Image = Annotated[
    Name, BeforeValidator(lambda value: value, json_schema_input_type=Literal["cos", "ubuntu", "azure-linux"])
]
"""A node image. The rule `known-node-image` refuses those of the other cloud."""


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


def _gke_taints(taints: Sequence[Taint]) -> list[dict[str, str]] | None:
    return [
        {"key": taint.key, "value": taint.value, "effect": _EFFECTS.write(taint.effect)} for taint in taints
    ] or None


def _read_gke_taint(written: Mapping[str, object]) -> Taint:
    key, value, effect = (text(written.get(name)) or "" for name in ("key", "value", "effect"))
    word = _EFFECTS.read(effect)
    return Taint.model_construct(key=key, value=value, effect=TaintEffect(word) if word else effect)


def _read_aks_taint(written: str) -> Taint:
    """Parse a taint as AKS spells it, `key=value:effect`."""
    taint, _, effect = written.rpartition(":")
    key, _, value = taint.partition("=")
    known = effect in [*TaintEffect]
    return Taint.model_construct(key=key, value=value, effect=TaintEffect(effect) if known else effect)


_GKE_TAINTS: Final = Form(_gke_taints, lambda value: tuple(map(_read_gke_taint, parts(value))))
_AKS_TAINTS: Final = Form(
    lambda taints: [str(taint) for taint in taints] or None,
    lambda value: tuple(map(_read_aks_taint, TEXTS.read(value))),
)


class GpuSharingConfig(Declared):
    """Sharing of one GPU by several containers, without memory isolation."""

    gpu_sharing_strategy: Annotated[
        Literal["time-sharing", "mps"], gke(at=f"{_GPUS}.gpuSharingConfig.gpuSharingStrategy", form=CONSTANT)
    ] = "time-sharing"
    """`time-sharing` switches between containers; `mps` (NVIDIA Multi-Process Service) runs them at once."""
    max_shared_clients_per_gpu: Annotated[
        int,
        Field(strict=True, ge=2, le=48),
        gke(at=f"{_GPUS}.gpuSharingConfig.maxSharedClientsPerGpu", form=NUMBER),
    ]
    """Containers that share a GPU, or one partition of it, from 2 to 48. Each requests 1 `nvidia.com/gpu`."""


class Accelerator(Declared):
    """The accelerators of one node."""

    type: Annotated[Name, gke(at=f"{_GPUS}.type", form=TEXT)]
    """Type, as the cloud or the catalog names it: `nvidia-tesla-t4`, `nvidia-l4`."""
    count: Annotated[Positive, gke(at=f"{_GPUS}.count", form=NUMBER)] = 1
    """Number per node."""
    driver: Annotated[
        Literal["default", "latest", "none"] | None,
        gke(
            at=f"{_GPUS}.gpuDriverInstallationConfig.gpuDriverVersion",
            form=words({"default": "DEFAULT", "latest": "LATEST", "none": "INSTALLATION_DISABLED"}),
        ),
        aks(
            "gpuProfile",
            at="gpuProfile.driver",
            form=words({"default": "Install", "latest": "Install", "none": "None"}),
        ),
    ] = None
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
        gke(at=f"{_GPUS}.gpuPartitionSize", form=TEXT),
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
        aks("gpuInstanceProfile", form=TEXT),
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


_TYPE: Final = Form(
    attrgetter("type"),
    lambda value: MachineShape.model_construct(type=spelled(value)) if text(value) else None,
)


def _shape_from_name(value: object) -> object:
    return {"type": value} if isinstance(value, str) else value


_Machine = Annotated[
    MachineShape, BeforeValidator(_shape_from_name, json_schema_input_type=str | MachineShape)
]


class Nodes(Declared):
    """Node counts, in total over the pool's zones."""

    min: Annotated[
        Count | None, gke(at="autoscaling.totalMinNodeCount", form=NUMBER), aks(at="minCount", form=NUMBER)
    ] = None
    """Minimum. Default: 0 for a work pool; 1 for a system pool on GKE, 2 on AKS."""
    max: Annotated[
        Positive | None, gke(at="autoscaling.totalMaxNodeCount", form=NUMBER), aks(at="maxCount", form=NUMBER)
    ] = None
    """Maximum of the autoscaler."""
    count: Positive | None = None
    """A fixed count without autoscaling, instead of `min` and `max`. Changing it resizes the pool."""


class Disk(Declared):
    """The boot disk of each node."""

    size_gib: Annotated[
        Positive | None,
        gke("nodeConfig.diskSizeGb", "nodeConfig.bootDisk.sizeGb", form=SIZE),
        aks("osDiskSizeGB", form=SIZE),
    ] = None
    """Size in GiB. Default: 100; for a system pool 30 on GKE and 64 on AKS."""
    type: Annotated[
        Name | None,
        gke("nodeConfig.diskType", "nodeConfig.bootDisk.diskType", form=TEXT),
        aks("osDiskType", form=CAPITALIZED),
    ] = None
    """GKE: `pd-standard`, `pd-balanced`, `pd-ssd`, `hyperdisk-balanced`. AKS: `managed`, `ephemeral`.
    Default: `pd-balanced`, or `hyperdisk-balanced` for a machine that boots from it alone; `managed`."""
    kubelet_disk_type: Annotated[
        Literal["OS", "Temporary"] | None,
        aks("kubeletDiskType", form=TEXT),
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


_SSDS: Final = Form(
    attrgetter("local_ssd_count"),
    lambda value: LocalSsdConfig.model_construct(local_ssd_count=count) if (count := number(value)) else None,
)


class SecondaryBootDisk(Declared):
    """A disk created for each node from a disk image."""

    disk_image: Name
    """`global/images/NAME` of the cluster's project, or `projects/P/global/images/NAME`."""
    mode: Literal["CONTAINER_IMAGE_CACHE"] | None = None
    """`CONTAINER_IMAGE_CACHE` for container images, from which containers then start. Default: data, which
    pods mount from the node."""


def _secondary_disks(disks: Sequence[SecondaryBootDisk]) -> list[dict[str, str]] | None:
    return [disk.model_dump(exclude_none=True) for disk in disks] or None


def _read_secondary_disks(value: object) -> tuple[SecondaryBootDisk, ...]:
    return tuple(
        SecondaryBootDisk.model_construct(
            disk_image=text(item.get("diskImage")) or "", mode=text(item.get("mode"))
        )
        for item in parts(value)
    )


_SECONDARY_DISKS: Final = Form(_secondary_disks, _read_secondary_disks)


class Upgrade(Declared):
    """Replacement of nodes during upgrades."""

    max_surge: Annotated[
        NodesOrShare | None,
        gke(at="upgradeSettings.maxSurge", form=WHOLE),
        aks(at="upgradeSettings.maxSurge", form=COUNT_OR_SHARE),
    ] = None
    """Maximum number of nodes added at a time; on AKS also a share of the pool's nodes: `33%`."""
    max_unavailable: Annotated[
        NodesOrShare | None,
        gke(at="upgradeSettings.maxUnavailable", form=WHOLE),
        aks(at="upgradeSettings.maxUnavailable", form=COUNT_OR_SHARE),
    ] = None
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
        gke("nodeConfig.machineType", form=_TYPE),
        aks("vmSize", form=_TYPE),
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
        gke("nodeLocations", form=TEXTS),
        aks("availabilityZones", form=TEXTS),
    ] = default(())
    """GKE: zones of the cluster's region (`us-central1-a`). AKS: zones by number (`1`). Default: the
    cluster's zones."""
    location_policy: Annotated[
        Literal["balanced", "any"] | None,
        gke(at="autoscaling.locationPolicy", form=CONSTANT),
        only_gke("AKS always balances a pool over its zones."),
    ] = None
    """GKE: the autoscaler spreads nodes over the zones (`balanced`), or uses any zone with stock (`any`).
    Default: `any`, but `balanced` for on-demand and reservation."""
    disk: Disk = Disk()
    ephemeral_storage_local_ssd_config: Annotated[
        LocalSsdConfig | None,
        gke(
            "nodeConfig.ephemeralStorageLocalSsdConfig",
            "nodeConfig.localSsdCount",
            at="nodeConfig.ephemeralStorageLocalSsdConfig.localSsdCount",
            form=_SSDS,
        ),
        only_gke(
            "AKS has no setting for local SSDs: machines have their own disks.",
            "Write disk: {kubeletDiskType: Temporary} for the machine's temporary disk.",
        ),
    ] = None
    """GKE: local SSDs for `emptyDir` volumes, container layers and images, instead of the boot disk. Fixed
    when the pool is created."""
    local_nvme_ssd_block_config: Annotated[
        LocalSsdConfig | None,
        gke(
            "nodeConfig.localNvmeSsdBlockConfig",
            at="nodeConfig.localNvmeSsdBlockConfig.localSsdCount",
            form=_SSDS,
        ),
        only_gke(
            "AKS attaches the NVMe disks of a machine without a setting.",
            source="azure-aks-docs best-practices-storage-nvme.md (2025-10-17)",
        ),
    ] = None
    """GKE: local SSDs as raw block devices. Fixed when the pool is created."""
    secondary_boot_disks: Annotated[
        Converted[tuple[SecondaryBootDisk, ...], Sequence[SecondaryBootDisk]],
        gke("nodeConfig.secondaryBootDisks", form=_SECONDARY_DISKS),
        only_gke("AKS does not support secondary boot disks."),
    ] = default(())
    """GKE: disks with container images or data, preloaded on each node. Fixed when the pool is created."""
    image_streaming: Annotated[
        bool | None,
        gke("nodeConfig.gcfsConfig", at="nodeConfig.gcfsConfig.enabled", form=FLAG),
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
        gke("nodeConfig.imageType", form=words({"cos": "COS_CONTAINERD", "ubuntu": "UBUNTU_CONTAINERD"})),
        aks("osType", "osSKU", at="osSKU", form=words({"ubuntu": "Ubuntu", "azure-linux": "AzureLinux"})),
    ] = None
    """Node image. GKE: `cos` or `ubuntu`; AKS: `ubuntu` or `azure-linux`. Default: `cos`, `ubuntu`."""
    labels: Annotated[
        dict[str, str], gke("nodeConfig.labels", form=LABELS), aks("nodeLabels", form=LABELS)
    ] = Field(default_factory=dict[str, str])
    """Node labels besides the derived ones. A derived label can be given another value."""
    taints: Annotated[
        Converted[tuple[Taint, ...] | None, Sequence[Taint] | None],
        gke("nodeConfig.taints", "nodeConfig.effectiveTaints", "nodeConfig.taintConfig", form=_GKE_TAINTS),
        aks("nodeTaints", "nodeInitializationTaints", form=_AKS_TAINTS),
    ] = default(None)
    """Taints instead of the derived one. Taints that the cloud adds itself remain. On a system pool, `[]`
    also admits steps of Kubeflow Pipelines that select no pool."""
    service_account: Annotated[
        str | None,
        gke("nodeConfig.serviceAccount", form=TEXT),
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
        gke("nodeConfig.tags", form=TEXTS),
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
    max_pods_per_node: Annotated[
        Positive | None, gke("maxPodsPerNode", form=NUMBER), aks("maxPods", form=NUMBER)
    ] = None
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
        gke("nodeConfig.gvnic", at="nodeConfig.gvnic.enabled", form=FLAG),
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
        gke("nodeConfig.advancedMachineFeatures.threadsPerCore", form=NUMBER),
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
        gke("nodeConfig.kubeletConfig.shutdownGracePeriodSeconds", form=SECONDS),
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
        gke("management.autoRepair", form=FLAG),
        only_gke(
            "AKS always repairs nodes, without a setting.",
            source="azure-aks-docs node-auto-repair.md (2026-07-01)",
        ),
    ] = None
    """GKE: replace nodes that fail health checks. Default: true, but false for flex-start and queued, which
    do not support it."""
    auto_upgrade: Annotated[
        bool | None,
        gke("management.autoUpgrade", form=FLAG),
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
