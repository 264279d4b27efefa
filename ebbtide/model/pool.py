"""A node pool, declared once; everything that has to agree with it is derived from it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ebbtide.model.base import Converted, Count, Declared, Name, Names, OptionalDuration, Overrides, default
from ebbtide.model.capacity import Capacity, OnDemand


class Role(StrEnum):
    """Role of a pool: `system` is the cheap admin pool, `work` any other."""

    SYSTEM = "system"
    WORK = "work"


class TaintEffect(StrEnum):
    """Effect of a taint, in Kubernetes' spelling."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Taint(Declared):
    """A mark on the nodes of a pool that keeps away pods without a matching toleration."""

    key: Name
    """As Kubernetes spells it: `preemptible`, `example.com/team`."""
    value: str = ""
    """Default: none; a toleration then asks whether the key exists."""
    effect: Converted[TaintEffect, TaintEffect | Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]] = (
        default(TaintEffect.NO_SCHEDULE)
    )

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class GpuSharingConfig(Declared):
    """Several containers on one GPU, without memory of their own."""

    gpu_sharing_strategy: Literal["time-sharing", "mps"] = "time-sharing"
    """`time-sharing` switches between containers; `mps` (NVIDIA Multi-Process Service) runs them at once."""
    max_shared_clients_per_gpu: Annotated[int, Field(strict=True, ge=2, le=48)]
    """Containers that share a GPU, or one partition of it, from 2 to 48. Each requests 1 `nvidia.com/gpu`."""


class Accelerator(Declared):
    """The accelerators of one node."""

    type: Name
    """As the cloud or the catalog names it: `nvidia-tesla-t4`, `nvidia-l4`."""
    count: Annotated[int, Field(strict=True, ge=1)] = 1
    """Number per node."""
    driver: Literal["default", "latest", "none"] | None = None
    """Driver that the cloud installs: GKE has `default` and `latest`, AKS `default`; `none` leaves it to
    `addons.drivers`. Default: `default` where that is `managed`, else `none`."""
    gpu_sharing_config: GpuSharingConfig | None = None
    """GKE: several containers on each GPU. It is fixed when the pool is created."""
    gpu_partition_size: Name | None = None
    """GKE: partition of NVIDIA Multi-Instance GPU that each GPU is divided into, such as `1g.5gb`. It is
    fixed when the pool is created."""
    gpu_instance_profile: Literal["MIG1g", "MIG2g", "MIG3g", "MIG4g", "MIG7g"] | None = None
    """AKS: the same, by its profile. It is fixed when the pool is created."""


class MachineShape(Declared):
    """A machine type; one that the catalog does not have is declared with what it offers."""

    type: Name
    """As the cloud spells it."""
    vcpus: Annotated[int, Field(strict=True, ge=1)] | None = None
    """Virtual CPUs, for a type that the catalog does not have."""
    memory_gib: Annotated[float, Field(gt=0)] | None = None
    """Memory in GiB, for a type that the catalog does not have."""
    accelerators: Accelerator | None = None
    """The accelerators that are part of the machine, for a type that the catalog does not have."""


def _shape_from_name(value: object) -> object:
    return {"type": value} if isinstance(value, str) else value


_Machine = Annotated[
    MachineShape, BeforeValidator(_shape_from_name, json_schema_input_type=str | MachineShape)
]


class Nodes(Declared):
    """Node counts, in total over the zones of the pool."""

    min: Count | None = None
    """The fewest. Default: 0 for a work pool; 1 for a system pool on GKE, 2 on AKS."""
    max: Annotated[int, Field(strict=True, ge=1)] | None = None
    """The most that the autoscaler goes to."""
    count: Annotated[int, Field(strict=True, ge=1)] | None = None
    """A fixed number, without autoscaling; instead of `min` and `max`. Changing it resizes the pool."""


class Disk(Declared):
    """The boot disk of each node."""

    size_gib: Annotated[int, Field(strict=True, ge=1)] | None = None
    """GiB. Default: 100; for a system pool 30 on GKE and 64 on AKS."""
    type: Name | None = None
    """GKE: `pd-standard`, `pd-balanced`, `pd-ssd`, `hyperdisk-balanced`. AKS: `managed`, `ephemeral`. Left
    out: `pd-balanced`, `managed`."""
    kubelet_disk_type: Literal["OS", "Temporary"] | None = None
    """AKS: disk for `emptyDir` volumes, images and logs: the boot disk, or the machine's temporary one. Left
    out: `OS`. It is fixed when the pool is created."""


class LocalSsdConfig(Declared):
    """Local SSDs of each node. What is on them ends with the node."""

    local_ssd_count: Annotated[int, Field(strict=True, ge=1)] | None = None
    """Number of disks. Default: as many as the machine type always has."""


class SecondaryBootDisk(Declared):
    """A disk that each node gets, filled from a disk image."""

    disk_image: Name
    """`global/images/NAME` of the cluster's project, or `projects/P/global/images/NAME`."""
    mode: Literal["CONTAINER_IMAGE_CACHE"] | None = None
    """`CONTAINER_IMAGE_CACHE` for container images, which containers then start from. Default: data, which
    pods mount from the node."""


class Upgrade(Declared):
    """Replacement of nodes during upgrades."""

    max_surge: Count | None = None
    """Nodes added at a time."""
    max_unavailable: Count | None = None
    """Nodes missing at a time."""


class Pool(Declared):
    """A node pool: machines of one shape, bought in one way, for one kind of work."""

    name: Name
    """Name, in the cloud and in queues."""
    role: Converted[Role, Role | Literal["system", "work"]] = default(Role.WORK)
    machine: Converted[_Machine | None, MachineShape | str | None] = default(None)
    """Machine type, by its name or with its shape."""
    accelerator: Accelerator | None = None
    """Accelerators of a node. Left out where they are part of the machine type."""
    capacity: Capacity = default(OnDemand())
    """Capacity type: its name, or an object with its fields."""
    nodes: Nodes = Nodes()
    zones: Names = default(())
    """GKE: zones of the cluster's region (`us-central1-a`). AKS: zones by number (`"1"`). Default: where
    the cluster is."""
    location_policy: Literal["balanced", "any"] | None = None
    """GKE: spread over the zones, or wherever there is stock. Default: `any`, but `balanced` for on-demand
    and reservation."""
    disk: Disk = Disk()
    ephemeral_storage_local_ssd_config: LocalSsdConfig | None = None
    """GKE: local SSDs for `emptyDir` volumes, container layers and images, in place of the boot disk. It is
    fixed when the pool is created."""
    local_nvme_ssd_block_config: LocalSsdConfig | None = None
    """GKE: local SSDs as raw block devices. It is fixed when the pool is created."""
    secondary_boot_disks: Converted[tuple[SecondaryBootDisk, ...], Sequence[SecondaryBootDisk]] = default(())
    """GKE: disks with container images or data that nodes begin with. They are fixed when the pool is
    created."""
    image_streaming: bool | None = None
    """GKE: containers start before all of their image is there. Default: where a secondary boot disk has
    container images, which needs it."""
    image: Literal["cos", "ubuntu", "azure-linux"] | None = None
    """Node image. GKE: `cos` or `ubuntu`; AKS: `ubuntu` or `azure-linux`. Default: `cos`, `ubuntu`."""
    labels: dict[str, str] = Field(default_factory=dict[str, str])
    """Node labels, besides those that are derived; a derived one can be given another value."""
    taints: Converted[tuple[Taint, ...] | None, Sequence[Taint] | None] = default(None)
    """Taints in place of the derived one. Those that the cloud adds by itself stay."""
    service_account: str | None = None
    """GKE: e-mail of the nodes' service account, in place of the cluster's own."""
    network_tags: Names = default(())
    """GKE: network tags of the nodes, besides those of the cluster (`cloud.networkTags`), for firewall rules
    and routes."""
    max_pods_per_node: Annotated[int, Field(strict=True, ge=1)] | None = None
    """The most pods on a node. Default: the cloud's own number."""
    compact: bool = False
    """GKE: nodes close together in one zone, for traffic between them. It is fixed when the pool is created:
    to change it, give the pool another name."""
    gvnic: bool | None = None
    """GKE: Google's virtual network interface. Default: on the series that have no other."""
    tpu_topology: Annotated[str, Field(strict=True, pattern=r"^[1-9]\d*x[1-9]\d*(x[1-9]\d*)?$")] | None = None
    """GKE: arrangement of the TPU chips of a slice, such as `4x4`. A slice of several nodes has as many as
    its chips need, and they come and go together. It is fixed when the pool is created."""
    shutdown_grace: OptionalDuration = default(None)
    """GKE: time that a spot node's pods have to end when it is preempted: `0s`, `30s` or `120s`."""
    drain_timeout: OptionalDuration = default(None)
    """Time for work to finish when `ebbtide up` replaces the pool, before its pods are evicted: `30m`, `24h`.
    Default: `24h`."""
    upgrade: Upgrade | None = None
    """Replacement of nodes during upgrades. Flex-start, queued, and spot on AKS have no such settings."""
    auto_repair: bool | None = None
    """GKE: replace nodes that fail health checks. Default: yes, but no for flex-start and queued, which
    cannot."""
    auto_upgrade: bool | None = None
    """GKE: follow the cluster's version. Default: yes, which a release channel requires; on an existing
    cluster without one, `false` is possible."""
    overrides: Overrides = Field(default_factory=Overrides)
    """Inputs of the provider's resource that nothing here declares, applied last, as Pulumi's YAML has them:
    of `gcp.container.NodePool` (`nodeConfig: {fastSocket: {enabled: true}}`) or
    `azure-native.containerservice.AgentPool`. Mappings are merged with what is derived; lists replace it."""

    @property
    def is_system(self) -> bool:
        """True for the admin pool."""
        return self.role is Role.SYSTEM
