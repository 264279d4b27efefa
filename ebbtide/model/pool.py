"""Node pools. Queues, placement, quotas and cost are derived from them."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from ebbtide.catalog import spelled
from ebbtide.model.base import (
    Converted,
    Count,
    Declared,
    Name,
    Names,
    OptionalDuration,
    Overrides,
    Positive,
    Zone,
    default,
)
from ebbtide.model.capacity import Capacity, OnDemand


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
    driver: Literal["default", "latest", "none"] | None = None
    """Driver that the cloud installs: GKE has `default` and `latest`, AKS `default`; `none` leaves it to
    `addons.drivers`. Default: `default` if that is `managed`, else `none`."""
    gpu_sharing_config: GpuSharingConfig | None = None
    """GKE: several containers on each GPU. Fixed when the pool is created."""
    gpu_partition_size: Name | None = None
    """GKE: NVIDIA Multi-Instance GPU partition that each GPU is divided into, such as `1g.5gb`. Fixed when
    the pool is created."""
    gpu_instance_profile: Literal["MIG1g", "MIG2g", "MIG3g", "MIG4g", "MIG7g"] | None = None
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

    size_gib: Positive | None = None
    """Size in GiB. Default: 100; for a system pool 30 on GKE and 64 on AKS."""
    type: Name | None = None
    """GKE: `pd-standard`, `pd-balanced`, `pd-ssd`, `hyperdisk-balanced`. AKS: `managed`, `ephemeral`.
    Default: `pd-balanced`, `managed`."""
    kubelet_disk_type: Literal["OS", "Temporary"] | None = None
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

    max_surge: Count | None = None
    """Maximum number of nodes added at a time."""
    max_unavailable: Count | None = None
    """Maximum number of nodes unavailable at a time."""


class Pool(Declared):
    """A node pool: machines of one type and one capacity type."""

    name: Name
    """Name in the cloud and in queues."""
    role: Converted[Role, Role | Literal["system", "work"]] = default(Role.WORK)
    machine: Converted[_Machine | None, MachineShape | str | None] = default(None)
    """Machine type, as its name or with its resources."""
    accelerator: Accelerator | None = None
    """Accelerators of a node. Omit it if they are part of the machine type."""
    capacity: Capacity = default(OnDemand())
    """Capacity type: its name, or an object with its fields."""
    nodes: Nodes = Nodes()
    zones: Converted[tuple[Zone, ...], list[str] | list[int] | tuple[str | int, ...]] = default(())
    """GKE: zones of the cluster's region (`us-central1-a`). AKS: zones by number (`1`). Default: the
    cluster's zones."""
    location_policy: Literal["balanced", "any"] | None = None
    """GKE: spread over the zones (`balanced`), or use any zone with stock (`any`). Default: `any`, but
    `balanced` for on-demand and reservation."""
    disk: Disk = Disk()
    ephemeral_storage_local_ssd_config: LocalSsdConfig | None = None
    """GKE: local SSDs for `emptyDir` volumes, container layers and images, in place of the boot disk. Fixed
    when the pool is created."""
    local_nvme_ssd_block_config: LocalSsdConfig | None = None
    """GKE: local SSDs as raw block devices. Fixed when the pool is created."""
    secondary_boot_disks: Converted[tuple[SecondaryBootDisk, ...], Sequence[SecondaryBootDisk]] = default(())
    """GKE: disks with container images or data, preloaded on each node. Fixed when the pool is created."""
    image_streaming: bool | None = None
    """GKE: start containers before their image is completely pulled. Default: true if a secondary boot disk
    has container images, which requires it."""
    image: Literal["cos", "ubuntu", "azure-linux"] | None = None
    """Node image. GKE: `cos` or `ubuntu`; AKS: `ubuntu` or `azure-linux`. Default: `cos`, `ubuntu`."""
    labels: dict[str, str] = Field(default_factory=dict[str, str])
    """Node labels besides the derived ones. A derived label can be given another value."""
    taints: Converted[tuple[Taint, ...] | None, Sequence[Taint] | None] = default(None)
    """Taints in place of the derived one. Taints that the cloud adds itself remain."""
    service_account: str | None = None
    """GKE: e-mail of the nodes' service account. Default: the cluster's own."""
    network_tags: Names = default(())
    """GKE: network tags of the nodes besides the cluster's (`cloud.networkTags`), for firewall rules and
    routes."""
    max_pods_per_node: Positive | None = None
    """Maximum number of pods on a node. Default: the cloud's own."""
    compact: bool = False
    """GKE: nodes close together in one zone, for traffic between them. Fixed when the pool is created: to
    change it, give the pool another name."""
    gvnic: bool | None = None
    """GKE: Google's virtual network interface. Default: true on the series that require it."""
    threads_per_core: Literal[1, 2] | None = None
    """GKE: threads of each core. `1` switches simultaneous multithreading off: a node has half as many CPUs,
    for the same price. Default: the machine's own, `2` on all but a few series. Fixed when the pool is
    created."""
    tpu_topology: Annotated[str, Field(strict=True, pattern=r"^[1-9]\d*x[1-9]\d*(x[1-9]\d*)?$")] | None = None
    """GKE: topology of a TPU slice, such as `4x4`. It determines the number of a slice's nodes, which are
    created and deleted together. Fixed when the pool is created."""
    shutdown_grace: OptionalDuration = default(None)
    """GKE: termination time for a spot node's pods on preemption: `0s`, `30s` or `120s`."""
    drain_timeout: OptionalDuration = default(None)
    """Time for work to finish before `ebbtide up` evicts its pods to replace the pool: `30m`, `24h`.
    Default: `24h`."""
    upgrade: Upgrade | None = None
    """Replacement of nodes during upgrades. Not for flex-start, queued, and spot on AKS."""
    auto_repair: bool | None = None
    """GKE: replace nodes that fail health checks. Default: true, but false for flex-start and queued, which
    do not support it."""
    auto_upgrade: bool | None = None
    """GKE: upgrade nodes to the cluster's version. Default: true, which a release channel requires; `false`
    is possible on an existing cluster without a channel."""
    overrides: Overrides = Field(default_factory=Overrides)
    """Inputs of `gcp.container.NodePool` (`nodeConfig: {fastSocket: {enabled: true}}`) or
    `azure-native.containerservice.AgentPool` that the declaration has no field for, applied last, with their
    names as in Pulumi YAML. Mappings are merged with the derived inputs; lists replace them."""

    @property
    def is_system(self) -> bool:
        """True for the system pool."""
        return self.role is Role.SYSTEM
