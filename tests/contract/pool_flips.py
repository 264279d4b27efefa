"""Flips of the fields of pools."""

from typing import Any

from tests.contract.flips import (
    AKS_CPU,
    AKS_SPOT,
    GKE_CPU,
    GKE_EXISTING,
    GKE_GPU,
    GKE_SPOT,
    GROUPS,
    SUBNETS,
    Flip,
    flip,
    with_value,
    work,
)
from tests.declarations import AKS, GKE, Declaration, changed, only

GKE_QUEUED = only(GKE, machine="a2-highgpu-1g", capacity="queued")
GKE_RDMA = only(GKE, machine="a3-ultragpu-8g", zones=["us-central1-a"], capacity="spot")
TIME = {"gpuSharingStrategy": "time-sharing"}
TWO = {"maxSharedClientsPerGpu": 2}
MPS = {"gpuSharingStrategy": "mps", **TWO}
SSD = {"localSsdCount": 1}
IMAGE = {"diskImage": "global/images/a"}
RESERVED = {"kind": "reservation"}
AKS_WITH_CACHE = only(AKS, machine="Standard_D8ds_v5")
GROUP = f"{GROUPS}/held/providers/Microsoft.Compute/capacityReservationGroups/ours"
PERIOD = {"from": "2026-12-01T08:00Z", "until": "2026-12-08T08:00Z"}
UNKNOWN = {"type": "n9-standard-8", "vcpus": 8, "memoryGib": 32.0}


def _unknown(**shape: Any) -> Declaration:
    return changed(only(GKE, machine=UNKNOWN | shape), addons={"kueue": {}})


GKE_POOL = [
    work("Pool.name", GKE_SPOT, "name", "other"),
    flip("Pool.role", GKE_EXISTING, "pools.0.role", "system"),
    work("Pool.machine", GKE_CPU, "machine", "n2-standard-16"),
    work("MachineShape.type", GKE_CPU, "machine", UNKNOWN),
    Flip("MachineShape.vcpus", _unknown(), _unknown(vcpus=16)),
    Flip("MachineShape.memory_gib", _unknown(), _unknown(memoryGib=64.0)),
    Flip("MachineShape.accelerators", _unknown(), _unknown(accelerators={"type": "nvidia-b300", "count": 8})),
    Flip("Pool.accelerator", only(GKE, machine="n1-standard-8"), GKE_GPU),
    work("Accelerator.type", GKE_GPU, "accelerator.type", "nvidia-tesla-v100"),
    work("Accelerator.count", GKE_GPU, "accelerator.count", 2),
    work("Accelerator.driver", GKE_GPU, "accelerator.driver", "latest"),
    *(
        work(field, GKE_GPU, "accelerator.gpuSharingConfig", *values)
        for field, *values in (
            ("Accelerator.gpu_sharing_config", TWO),
            ("GpuSharingConfig.gpu_sharing_strategy", MPS, {**MPS, **TIME}),
            ("GpuSharingConfig.max_shared_clients_per_gpu", {"maxSharedClientsPerGpu": 3}, TWO),
        )
    ),
    work(
        "Accelerator.gpu_partition_size",
        only(GKE, machine="a2-highgpu-1g"),
        "accelerator",
        *({"type": "nvidia-tesla-a100", "gpuPartitionSize": size} for size in ("1g.5gb", "2g.10gb")),
    ),
    work("Pool.capacity", GKE_CPU, "capacity", "preemptible"),
    Flip("OnDemand.kind", GKE_CPU, GKE_SPOT),
    Flip("Spot.kind", GKE_SPOT, GKE_CPU),
    work("Preemptible.kind", GKE_SPOT, "capacity", "preemptible"),
    work("FlexStart.kind", GKE_QUEUED, "capacity", "flex-start"),
    work("Queued.kind", GKE_GPU, "capacity", "queued"),
    work("Reservation.kind", GKE_CPU, "capacity", {"kind": "reservation", "name": "held"}),
    *(
        work(field, base, "capacity", *({"kind": kind, key: value} for value in values))
        for field, base, kind, key, values in (
            ("FlexStart.max_run_duration", GKE_QUEUED, "flex-start", "maxRunDuration", ("2h", "1h")),
            ("Queued.max_run_duration", GKE_QUEUED, "queued", "maxRunDuration", ("2h", "1h")),
            ("Reservation.name", GKE_CPU, "reservation", "name", ("one", "two")),
            ("Reservation.affinity", GKE_CPU, "reservation", "affinity", ("any-then-fail", "any")),
        )
    ),
    *(
        work(
            f"Reservation.{field}",
            only(GKE, machine="a3-megagpu-8g", zones=["us-central1-a"]),
            "capacity",
            *({"kind": "reservation"} | PERIOD | {name: f"2026-12-0{day}T08:00Z"} for day in days),
        )
        for field, name, days in (("from_", "from", (2, 1)), ("until", "until", (8, 9)))
    ),
    work("Pool.nodes", GKE_CPU, "nodes", {"count": 1}),
    work("Nodes.min", GKE_CPU, "nodes.min", 1),
    work("Nodes.max", GKE_CPU, "nodes.max", 7),
    work("Nodes.count", GKE_CPU, "nodes", {"count": 2}, {"count": 1}),
    work("Pool.zones", GKE_CPU, "zones", ["us-central1-b"]),
    work("Pool.location_policy", GKE_SPOT, "locationPolicy", "balanced"),
    work("Disk.size_gib", GKE_CPU, "disk.sizeGib", 50),
    work("Disk.type", GKE_CPU, "disk.type", "pd-ssd"),
    work("Pool.ephemeral_storage_local_ssd_config", GKE_CPU, "ephemeralStorageLocalSsdConfig", SSD),
    work("Pool.local_nvme_ssd_block_config", GKE_CPU, "localNvmeSsdBlockConfig", SSD),
    work("LocalSsdConfig.local_ssd_count", GKE_CPU, "localNvmeSsdBlockConfig", {"localSsdCount": 2}, SSD),
    work("Pool.image", GKE_CPU, "image", "ubuntu"),
    work("Pool.drain_timeout", GKE_CPU, "drainTimeout", "30m"),
    work("Pool.protect", GKE_CPU, "protect", True),  # noqa: FBT003 - a value of the declaration
    work("Pool.labels", GKE_CPU, "labels", {"tier": "gold"}),
    work("Pool.taints", GKE_CPU, "taints", [{"key": "lab"}]),
    work("Taint.key", GKE_CPU, "taints", [{"key": "lab"}], [{"key": "other"}]),
    work("Taint.value", GKE_CPU, "taints", [{"key": "lab", "value": "x"}], [{"key": "lab"}]),
    work("Taint.effect", GKE_CPU, "taints", [{"key": "lab", "effect": "NoExecute"}], [{"key": "lab"}]),
    work("Pool.service_account", GKE_CPU, "serviceAccount", "gpu-nodes@acme-ml.iam.gserviceaccount.com"),
    work("Pool.network_tags", GKE_CPU, "networkTags", ["allow-ssh"]),
    work("Pool.max_pods_per_node", GKE_CPU, "maxPodsPerNode", 32),
    work("Pool.compact", GKE_CPU, "compact", True),  # noqa: FBT003 - a value of the declaration
    work("Pool.image_streaming", GKE_CPU, "imageStreaming", True),  # noqa: FBT003 - a value of the declaration
    *(
        work(field, GKE_CPU, "secondaryBootDisks", *([disk] for disk in disks))
        for field, *disks in (
            ("Pool.secondary_boot_disks", IMAGE),
            ("SecondaryBootDisk.disk_image", IMAGE, {"diskImage": "global/images/b"}),
            ("SecondaryBootDisk.mode", IMAGE | {"mode": "CONTAINER_IMAGE_CACHE"}, IMAGE),
        )
    ),
    work("Pool.gvnic", GKE_CPU, "gvnic", True),  # noqa: FBT003 - a value of the declaration
    work("Pool.gpu_direct", GKE_RDMA, "gpuDirect", "rdma"),
    work("Pool.threads_per_core", GKE_CPU, "threadsPerCore", 1),
    work("Pool.tpu_topology", only(GKE, machine="ct5lp-hightpu-4t", nodes={}), "tpuTopology", "4x4", "2x4"),
    work("Pool.shutdown_grace", GKE_SPOT, "shutdownGrace", "120s"),
    work("Upgrade.max_surge", GKE_CPU, "upgrade", {"maxSurge": 2}, {"maxSurge": 1}),
    work("Upgrade.max_unavailable", GKE_CPU, "upgrade", {"maxUnavailable": 2}, {"maxUnavailable": 1}),
    work("Pool.overrides", GKE_CPU, "overrides", {"nodeConfig": {"minCpuPlatform": "Intel Ice Lake"}}),
    work("Pool.auto_repair", GKE_CPU, "autoRepair", False),  # noqa: FBT003 - a value of the declaration
    flip("Pool.auto_upgrade", GKE_EXISTING, "pools.0.autoUpgrade", False),  # noqa: FBT003 - a value of the declaration
]
AKS_POOL = [
    work("Pool.name", AKS_SPOT, "name", "other"),
    work("Pool.machine", AKS_CPU, "machine", "Standard_D16s_v5"),
    work(
        "Accelerator.driver",
        changed(only(AKS, machine="Standard_NC4as_T4_v3"), addons={"drivers": "none"}),
        "accelerator",
        {"type": "nvidia-t4", "driver": "none"},
        {"type": "nvidia-t4", "driver": "default"},
    ),
    work("Pool.capacity", AKS_CPU, "capacity", "spot"),
    work(
        "Accelerator.gpu_instance_profile",
        only(AKS, machine="Standard_NC24ads_A100_v4"),
        "accelerator",
        *({"type": "nvidia-a100-80gb", "gpuInstanceProfile": profile} for profile in ("MIG1g", "MIG2g")),
    ),
    work("Spot.eviction_policy", AKS_SPOT, "capacity", {"kind": "spot", "evictionPolicy": "Deallocate"}),
    work("Spot.max_price", AKS_SPOT, "capacity", {"kind": "spot", "maxPrice": 0.25}),
    work("Reservation.name", AKS_CPU, "capacity", RESERVED | {"name": GROUP}, RESERVED),
    work("Nodes.min", AKS_CPU, "nodes.min", 1),
    work("Nodes.max", AKS_CPU, "nodes.max", 7),
    work("Nodes.count", AKS_CPU, "nodes", {"count": 2}, {"count": 1}),
    work("Pool.zones", AKS_CPU, "zones", ["1"]),
    work("Disk.size_gib", AKS_CPU, "disk.sizeGib", 64),
    work("Disk.type", AKS_WITH_CACHE, "disk.type", "ephemeral"),
    work("Disk.kubelet_disk_type", AKS_WITH_CACHE, "disk", {"kubeletDiskType": "Temporary"}),
    work("Pool.image", AKS_CPU, "image", "azure-linux"),
    work("Pool.labels", AKS_CPU, "labels", {"tier": "gold"}),
    work("Pool.taints", AKS_CPU, "taints", [{"key": "lab"}]),
    work("Pool.max_pods_per_node", AKS_CPU, "maxPodsPerNode", 32),
    work(
        "Pool.subnet",
        with_value(AKS_CPU, "cloud.network", {"subnet": f"{SUBNETS}/nodes"}),
        "subnet",
        f"{SUBNETS}/gpus",
    ),
    work("Pool.overrides", AKS_CPU, "overrides", {"enableFIPS": True}),
    work("Upgrade.max_surge", AKS_CPU, "upgrade", {"maxSurge": "33%"}),
    work("Upgrade.max_unavailable", AKS_CPU, "upgrade", {"maxUnavailable": "50%"}),
]
