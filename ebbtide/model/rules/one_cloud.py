"""Fields that only one cloud has: one row each, and a common check."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ebbtide.catalog import CloudKind
from ebbtide.model.capacity import FlexStart, Preemptible, Queued, Reservation, Spot
from ebbtide.model.faults import Fault
from ebbtide.model.pool import Pool
from ebbtide.model.rules.rule import PoolIn, PoolRule
from ebbtide.model.rules.words import service_name

_GKE, _AKS = CloudKind.GKE, CloudKind.AKS


@dataclass(frozen=True, slots=True)
class OnlyOn:
    """A field that only one of the clouds has.

    Attributes:
        cloud: cloud that has it.
        field: the field.
        is_written: returns whether a pool has it.
        reason: equivalent on the other cloud.
        fix: what to write there.
        source: source of the restriction.
        what: name in messages; the field by default.
    """

    cloud: CloudKind
    field: str
    is_written: Callable[[Pool], bool]
    reason: str
    fix: str
    source: str
    what: str = ""

    @property
    def called(self) -> str:
        """Name in messages."""
        return self.what or self.field.rpartition(".")[2]

    def check(self, pool: PoolIn) -> Iterator[Fault]:
        """Return a fault if a pool of the other cloud has the field."""
        if self.is_written(pool.pool):
            problem = (
                f"{service_name(pool.site.cloud)} does not support {self.called}, which only "
                f"{service_name(self.cloud)} has."
            )
            yield Fault(pool.at(self.field), problem, self.reason, self.fix)


ROWS = (
    OnlyOn(
        _GKE,
        "serviceAccount",
        lambda pool: pool.service_account is not None,
        "Nodes on AKS use the cluster's kubelet identity.",
        "Remove serviceAccount.",
        "azure-native 3.29.0, AgentPool; azure-aks-docs use-managed-identity.md (2026)",
    ),
    OnlyOn(
        _GKE,
        "networkTags",
        lambda pool: bool(pool.network_tags),
        "Azure firewall rules apply to subnets, not to tags.",
        "Remove networkTags.",
        "azure-native 3.29.0, AgentPool; learn.microsoft.com, network-security-groups-overview (2026)",
    ),
    OnlyOn(
        _GKE,
        "locationPolicy",
        lambda pool: pool.location_policy is not None,
        "AKS always balances a pool over its zones.",
        "Remove locationPolicy.",
        "azure-native 3.29.0, AgentPool",
    ),
    OnlyOn(
        _GKE,
        "compact",
        lambda pool: pool.compact,
        "The field would have no effect on AKS.",
        "Remove compact.",
        "azure-native 3.29.0, AgentPool",
    ),
    OnlyOn(
        _GKE,
        "secondaryBootDisks",
        lambda pool: bool(pool.secondary_boot_disks),
        "AKS does not support secondary boot disks.",
        "Remove secondaryBootDisks.",
        "azure-native 3.29.0, AgentPool",
    ),
    OnlyOn(
        _GKE,
        "imageStreaming",
        lambda pool: pool.image_streaming is not None,
        "AKS streams images of Azure Container Registry with artifact streaming, which Ebbtide does not "
        "configure.",
        "Remove imageStreaming.",
        "azure-native 3.29.0, AgentPool; azure-aks-docs artifact-streaming.md (2026)",
    ),
    OnlyOn(
        _GKE,
        "threadsPerCore",
        lambda pool: pool.threads_per_core is not None,
        "AKS has no such setting.",
        "Remove threadsPerCore.",
        "azure-native 3.29.0, AgentPool",
    ),
    OnlyOn(
        _GKE,
        "gvnic",
        lambda pool: pool.gvnic is not None,
        "AKS enables accelerated networking on every machine that supports it.",
        "Remove gvnic.",
        "azure-native 3.29.0, AgentPool",
    ),
    OnlyOn(
        _GKE,
        "tpuTopology",
        lambda pool: pool.tpu_topology is not None,
        "AKS has no TPUs.",
        "Remove tpuTopology.",
        "azure-native 3.29.0, AgentPool",
    ),
    OnlyOn(
        _GKE,
        "shutdownGrace",
        lambda pool: pool.shutdown_grace is not None,
        "AKS has no setting for how long an evicted node keeps running.",
        "Remove shutdownGrace.",
        "azure-aks-docs spot-node-pool.md (2025-04-06)",
    ),
    OnlyOn(
        _GKE,
        "autoRepair",
        lambda pool: pool.auto_repair is not None,
        "AKS always repairs nodes, without a setting.",
        "Remove autoRepair.",
        "azure-aks-docs node-auto-repair.md (2026)",
    ),
    OnlyOn(
        _GKE,
        "autoUpgrade",
        lambda pool: pool.auto_upgrade is not None,
        "AKS has one upgrade channel for all pools of a cluster.",
        "Remove autoUpgrade, or write upgradeChannel under cloud.",
        "azure-aks-docs auto-upgrade-cluster.md (2026)",
    ),
    OnlyOn(
        _GKE,
        "capacity",
        lambda pool: isinstance(pool.capacity, Preemptible),
        "The pool could not be created.",
        "Write capacity: spot.",
        "azure-native 3.29.0, AgentPool.scaleSetPriority is Regular or Spot",
        what="capacity kind preemptible",
    ),
    OnlyOn(
        _GKE,
        "capacity",
        lambda pool: isinstance(pool.capacity, FlexStart),
        "The pool could not be created.",
        "Write capacity: spot, or omit it for on-demand.",
        "GKE docs, dws-flex-start-training (2026-06-09)",
        what="capacity kind flex-start",
    ),
    OnlyOn(
        _GKE,
        "capacity",
        lambda pool: isinstance(pool.capacity, Queued),
        "The pool could not be created.",
        "Write capacity: spot, or omit it for on-demand, and put the pool in a queue.",
        "GKE docs, provisioningrequest (2026-04-08); azure-aks-docs "
        "configure-kueue-with-cluster-autoscaler.md",
        what="capacity kind queued",
    ),
    OnlyOn(
        _GKE,
        "capacity.affinity",
        lambda pool: isinstance(pool.capacity, Reservation) and pool.capacity.affinity != "specific",
        "A pool on AKS uses only the capacity reservation group that it names.",
        "Remove affinity, and write the group's resource id under name.",
        "azure-aks-docs use-capacity-reservation-groups.md (2026-05)",
        what="reservation affinity other than specific",
    ),
    OnlyOn(
        _GKE,
        "ephemeralStorageLocalSsdConfig",
        lambda pool: pool.ephemeral_storage_local_ssd_config is not None,
        "AKS has no setting for local SSDs: machines have their own disks.",
        "Write disk: {kubeletDiskType: Temporary} for the machine's temporary disk.",
        "azure-native 3.29.0, AgentPool",
    ),
    OnlyOn(
        _GKE,
        "localNvmeSsdBlockConfig",
        lambda pool: pool.local_nvme_ssd_block_config is not None,
        "AKS attaches the NVMe disks of a machine without a setting.",
        "Remove localNvmeSsdBlockConfig.",
        "azure-aks-docs use-nvme.md (2026)",
    ),
    OnlyOn(
        _AKS,
        "disk.kubeletDiskType",
        lambda pool: pool.disk.kubelet_disk_type is not None,
        "GKE stores ephemeral data on the boot disk or on local SSDs.",
        "Write ephemeralStorageLocalSsdConfig instead.",
        "GKE docs, local-ssd (2026)",
    ),
    OnlyOn(
        _GKE,
        "accelerator.gpuPartitionSize",
        lambda pool: pool.accelerator is not None and pool.accelerator.gpu_partition_size is not None,
        "AKS partitions GPUs by instance profile.",
        "Write gpuInstanceProfile: MIG1g, for example.",
        "azure-aks-docs gpu-multi-instance.md (2026-05)",
    ),
    OnlyOn(
        _GKE,
        "accelerator.gpuSharingConfig",
        lambda pool: pool.accelerator is not None and pool.accelerator.gpu_sharing_config is not None,
        "AKS has no time-sharing without the NVIDIA GPU Operator.",
        "Remove gpuSharingConfig, or write gpuInstanceProfile for an A100, H100 or H200.",
        "azure-aks-docs concepts-gpu-partitioning.md (2026)",
    ),
    OnlyOn(
        _AKS,
        "accelerator.gpuInstanceProfile",
        lambda pool: pool.accelerator is not None and pool.accelerator.gpu_instance_profile is not None,
        "GKE partitions GPUs by partition size.",
        "Write gpuPartitionSize: 1g.5gb, for example.",
        "GKE docs, gpus-multi (2026)",
    ),
    OnlyOn(
        _AKS,
        "capacity.evictionPolicy",
        lambda pool: isinstance(pool.capacity, Spot) and pool.capacity.eviction_policy is not None,
        "GKE always deletes a preempted spot node.",
        "Write capacity: spot, without evictionPolicy.",
        "GKE docs, spot-vms (2026-08)",
    ),
    OnlyOn(
        _AKS,
        "capacity.maxPrice",
        lambda pool: isinstance(pool.capacity, Spot) and pool.capacity.max_price is not None,
        "Google Cloud has a single spot price, without bids.",
        "Write capacity: spot, without maxPrice.",
        "Compute docs, spot pricing (cloud.google.com/spot-vms/pricing, 2026)",
    ),
)

_OTHER = {_GKE: _AKS, _AKS: _GKE}

RULES: tuple[PoolRule, ...] = tuple(
    PoolRule(f"{row.called} only on {service_name(row.cloud)}", row.source, row.check, _OTHER[row.cloud])
    for row in ROWS
)
