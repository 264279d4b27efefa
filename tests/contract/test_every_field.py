"""Every public field of the declaration reaches a resource: change it, and the graph changes."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast, get_args

import pytest
from pydantic import BaseModel

from ebbtide.model import Cluster, DeclarationError, advice, declare
from ebbtide.model.addons import ADD_ONS
from ebbtide.recording.recording import Recording, Secret
from tests.declarations import AKS, GKE, Declaration, changed, only
from tests.synth import synth


@dataclass(frozen=True)
class Flip:
    """Two declarations that differ in one field alone."""

    field: str
    before: Declaration
    after: Declaration


def _with(base: Declaration, path: str, value: Any) -> Declaration:
    """A copy with another value at a dotted path; what is missing on the way is made."""
    after = copy.deepcopy(base)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    at: Any = after
    for part in way:
        if part not in at and not isinstance(part, int):
            at[part] = {}
        at = at[part]
    at[last] = value
    return after


def flip(field: str, base: Declaration, path: str, value: Any, before: Any = None) -> Flip:
    """A field set, where it was left out or had the value `before`."""
    return Flip(field, base if before is None else _with(base, path, before), _with(base, path, value))


def work(field: str, base: Declaration, key: str, value: Any, before: Any = None) -> Flip:
    """The same for a field of the one work pool."""
    return flip(field, base, f"pools.1.{key}", value, before)


GKE_CPU = only(GKE, machine="n2-standard-8")
GKE_SPOT = only(GKE, machine="n2-standard-8", capacity="spot")
GKE_GPU = only(GKE, machine="n1-standard-8", accelerator={"type": "nvidia-tesla-t4"})
GKE_QUEUED = only(GKE, machine="a2-highgpu-1g", capacity="queued")
AKS_CPU = only(AKS, machine="Standard_D8s_v5")
AKS_SPOT = only(AKS, machine="Standard_D8s_v5", capacity="spot")

TIME = {"gpuSharingStrategy": "time-sharing"}
MPS = {"gpuSharingStrategy": "mps", "maxSharedClientsPerGpu": 2}
VPC = {"vpc": "theirs", "subnet": "theirs", "podsRange": "p", "servicesRange": "s"}
GKE_VPC = _with(GKE, "cloud.network", VPC)
GKE_EXISTING = changed(_with(GKE_SPOT, "cloud.existing", {"name": "theirs"}), pools=GKE_SPOT["pools"][1:])
AKS_EXISTING = changed(_with(AKS_SPOT, "cloud.existing", {"name": "theirs"}), pools=AKS_SPOT["pools"][1:])
TEAM = changed(GKE, queues=[{"name": "gpus", "pools": ["t4"]}], teams=[{"name": "vision"}])
AKS_TEAM = changed(AKS, teams=[{"name": "vision"}])
STEADY = changed(
    GKE,
    pools=[*GKE["pools"], {"name": "steady", "machine": "n2-standard-8", "nodes": {"max": 2}}],
    queues=[{"name": "cpus", "pools": ["cpu", "steady"]}],
)
AKS_STEADY = changed(AKS, queues=[{"name": "cpus", "pools": ["cpu", "steady"]}])
TWO_QUEUES = [{"name": "gpus", "pools": ["t4"]}, {"name": "cpus", "pools": ["cpu"]}]

SUBNET = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/net/providers"
    "/Microsoft.Network/virtualNetworks/theirs/subnets/nodes"
)
GROUP = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/held/providers"
    "/Microsoft.Compute/capacityReservationGroups/ours"
)
RING = "projects/acme-ml/locations/us-central1/keyRings/ml/cryptoKeys"
VAULT = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/keys/providers"
    "/Microsoft.KeyVault/vaults/ours"
)
SET = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/keys/providers"
    "/Microsoft.Compute/diskEncryptionSets/ours"
)
AKS_KEYS = {"secrets": "https://ours.vault.azure.net/keys/secrets/0123", "vault": VAULT}
MAINTENANCE = {
    "window": {"days": ["saturday"], "start": "02:00", "duration": "12h"},
    "exclusions": [{"name": "launch", "start": "2026-12-20", "end": "2027-01-04"}],
}
ADMINS = ["11111111-1111-1111-1111-111111111111"]
UNKNOWN = {"type": "n9-standard-8", "vcpus": 8, "memoryGib": 32.0}


def _unknown(**shape: Any) -> Declaration:
    return changed(only(GKE, machine=UNKNOWN | shape), addons={"kueue": {}})


CLUSTER = [
    flip("Cluster.name", GKE, "name", "other"),
    flip("Cluster.owner", GKE, "owner", "another-team"),
    flip("Cluster.cloud", GKE, "cloud.project", "acme-other"),
    flip("Cluster.lifetime", GKE, "lifetime", {"hours": 8}),
    flip("Lifetime.hours", GKE, "lifetime", {"hours": 9}, {"hours": 8}),
    Flip("Cluster.pools", GKE, changed(GKE, pools=GKE["pools"][:2])),
    flip("Cluster.queues", GKE, "queues", [{"name": "all", "pools": ["cpu", "t4", "a100"]}]),
    flip("Cluster.teams", GKE, "teams", [{"name": "vision"}]),
    flip("Cluster.addons", GKE, "addons", {"trainer": {}}),
]
GKE_CLOUD = [
    Flip("Gke.kind", GKE, AKS),
    flip("Gke.project", GKE, "cloud.project", "acme-other"),
    flip("Gke.location", GKE, "cloud.location", "us-central1-b"),
    flip("Gke.release_channel", GKE, "cloud.releaseChannel", "rapid"),
    flip("Gke.kubernetes_version", GKE, "cloud.kubernetesVersion", "1.35.2-gke.1200000"),
    flip("Gke.access", GKE, "cloud.access", {"networks": ["203.0.113.0/24"]}),
    flip("GkeAccess.networks", GKE, "cloud.access.networks", ["203.0.113.0/24"], ["198.51.100.0/24"]),
    flip("GkeAccess.private", GKE, "cloud.access", {"private": True}),
    flip("Gke.network", GKE, "cloud.network", {"nodes": "10.32.0.0/20"}),
    flip("GkeNetwork.nodes", GKE, "cloud.network.nodes", "10.32.0.0/20"),
    flip("GkeNetwork.pods", GKE, "cloud.network.pods", "10.36.0.0/14"),
    flip("GkeNetwork.services", GKE, "cloud.network.services", "10.40.0.0/20"),
    flip("GkeNetwork.vpc", GKE_VPC, "cloud.network.vpc", "other"),
    flip("GkeNetwork.subnet", GKE_VPC, "cloud.network.subnet", "other"),
    flip("GkeNetwork.pods_range", GKE_VPC, "cloud.network.podsRange", "other"),
    flip("GkeNetwork.services_range", GKE_VPC, "cloud.network.servicesRange", "other"),
    flip("Gke.keys", GKE, "cloud.keys", {"secrets": f"{RING}/secrets"}),
    flip("GkeKeys.secrets", GKE, "cloud.keys", {"secrets": f"{RING}/secrets"}),
    flip("GkeKeys.disks", GKE, "cloud.keys", {"disks": f"{RING}/disks"}),
    flip(
        "GkeKeys.grant",
        GKE,
        "cloud.keys",
        {"disks": f"{RING}/disks", "grant": False},
        {"disks": f"{RING}/disks"},
    ),
    flip("Gke.maintenance", GKE, "cloud.maintenance", MAINTENANCE),
    *(
        flip(field, _with(GKE, "cloud.maintenance", MAINTENANCE), f"cloud.maintenance.{path}", value)
        for field, path, value in (
            ("Maintenance.window", "window.start", "04:00"),
            ("MaintenanceWindow.days", "window.days", ["sunday"]),
            ("MaintenanceWindow.start", "window.start", "04:00"),
            ("MaintenanceWindow.duration", "window.duration", "14h"),
            ("Maintenance.exclusions", "exclusions", []),
            ("MaintenanceExclusion.name", "exclusions.0.name", "holidays"),
            ("MaintenanceExclusion.start", "exclusions.0.start", "2026-12-21"),
            ("MaintenanceExclusion.end", "exclusions.0.end", "2027-01-03"),
            ("MaintenanceExclusion.scope", "exclusions.0.scope", "no-minor-upgrades"),
        )
    ),
    flip("Gke.network_tags", GKE, "cloud.networkTags", ["allow-ssh"]),
    flip("Gke.overrides", GKE, "cloud.overrides", {"enableIntranodeVisibility": True}),
    Flip("Gke.existing", GKE_SPOT, GKE_EXISTING),
    flip("Existing.name", GKE_EXISTING, "cloud.existing.name", "others"),
]
AKS_CLOUD = [
    Flip("Aks.kind", AKS, GKE),
    flip("Aks.subscription", AKS, "cloud.subscription", "00000000-0000-0000-0000-000000000002"),
    flip("Aks.resource_group", AKS, "cloud.resourceGroup", "ml"),
    flip("Aks.location", AKS, "cloud.location", "westus2"),
    flip("Aks.tier", AKS, "cloud.tier", "standard"),
    flip("Aks.upgrade_channel", AKS, "cloud.upgradeChannel", "stable"),
    flip("Aks.kubernetes_version", AKS, "cloud.kubernetesVersion", "1.34.2"),
    flip("Aks.access", AKS, "cloud.access", {"admins": ADMINS}),
    flip("AksAccess.admins", AKS, "cloud.access.admins", ADMINS),
    flip("AksAccess.networks", AKS, "cloud.access.networks", ["203.0.113.0/24"]),
    flip("AksAccess.private", AKS, "cloud.access", {"private": True}),
    flip(
        "AksAccess.private_dns_zone",
        AKS,
        "cloud.access",
        {"private": True, "privateDnsZone": "none"},
        {"private": True},
    ),
    flip("AksAccess.login", AKS, "cloud.access.login", "workloadidentity"),
    flip("Aks.network", AKS, "cloud.network", {"nodes": "10.225.0.0/16"}),
    flip("AksNetwork.nodes", AKS, "cloud.network.nodes", "10.225.0.0/16"),
    flip("AksNetwork.pods", AKS, "cloud.network.pods", "10.246.0.0/16"),
    flip("AksNetwork.services", AKS, "cloud.network.services", "10.2.0.0/16"),
    flip("AksNetwork.subnet", AKS, "cloud.network.subnet", SUBNET),
    flip("Aks.keys", AKS, "cloud.keys", AKS_KEYS),
    flip("AksKeys.secrets", AKS, "cloud.keys", AKS_KEYS),
    flip("AksKeys.vault", AKS, "cloud.keys", AKS_KEYS, {"secrets": AKS_KEYS["secrets"], "grant": False}),
    flip("AksKeys.disks", AKS, "cloud.keys", {"disks": SET}),
    flip("AksKeys.grant", AKS, "cloud.keys", {"disks": SET, "grant": False}, {"disks": SET}),
    flip("Aks.maintenance", AKS, "cloud.maintenance", MAINTENANCE),
    flip("Aks.overrides", AKS, "cloud.overrides", {"supportPlan": "AKSLongTermSupport"}),
    Flip("Aks.existing", AKS_SPOT, AKS_EXISTING),
    flip("Existing.name", AKS_EXISTING, "cloud.existing.name", "others"),
    flip("AksNetwork.subnet", AKS_EXISTING, "cloud.network.subnet", SUBNET),
]
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
    work(
        "Accelerator.gpu_sharing_config",
        GKE_GPU,
        "accelerator.gpuSharingConfig",
        {"maxSharedClientsPerGpu": 2},
    ),
    work(
        "GpuSharingConfig.gpu_sharing_strategy", GKE_GPU, "accelerator.gpuSharingConfig", MPS, {**MPS, **TIME}
    ),
    work(
        "GpuSharingConfig.max_shared_clients_per_gpu",
        GKE_GPU,
        "accelerator.gpuSharingConfig",
        *({"maxSharedClientsPerGpu": clients} for clients in (3, 2)),
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
    work(
        "FlexStart.max_run_duration",
        GKE_QUEUED,
        "capacity",
        *({"kind": "flex-start", "maxRunDuration": run} for run in ("2h", "1h")),
    ),
    work(
        "Queued.max_run_duration",
        GKE_QUEUED,
        "capacity",
        *({"kind": "queued", "maxRunDuration": run} for run in ("2h", "1h")),
    ),
    work(
        "Reservation.name",
        GKE_CPU,
        "capacity",
        *({"kind": "reservation", "name": name} for name in ("one", "two")),
    ),
    work(
        "Reservation.affinity",
        GKE_CPU,
        "capacity",
        *({"kind": "reservation", "affinity": affinity} for affinity in ("any-then-fail", "any")),
    ),
    work("Pool.nodes", GKE_CPU, "nodes", {"count": 1}),
    work("Nodes.min", GKE_CPU, "nodes.min", 1),
    work("Nodes.max", GKE_CPU, "nodes.max", 7),
    work("Nodes.count", GKE_CPU, "nodes", {"count": 2}, {"count": 1}),
    work("Pool.zones", GKE_CPU, "zones", ["us-central1-b"]),
    work("Pool.location_policy", GKE_SPOT, "locationPolicy", "balanced"),
    work("Pool.disk", GKE_CPU, "disk", {"sizeGib": 50}),
    work("Disk.size_gib", GKE_CPU, "disk.sizeGib", 50),
    work("Disk.type", GKE_CPU, "disk.type", "pd-ssd"),
    work(
        "Pool.ephemeral_storage_local_ssd_config",
        GKE_CPU,
        "ephemeralStorageLocalSsdConfig",
        {"localSsdCount": 1},
    ),
    work("Pool.local_nvme_ssd_block_config", GKE_CPU, "localNvmeSsdBlockConfig", {"localSsdCount": 1}),
    work(
        "LocalSsdConfig.local_ssd_count",
        GKE_CPU,
        "localNvmeSsdBlockConfig",
        *({"localSsdCount": count} for count in (2, 1)),
    ),
    work("Pool.image", GKE_CPU, "image", "ubuntu"),
    work("Pool.labels", GKE_CPU, "labels", {"tier": "gold"}),
    work("Pool.taints", GKE_CPU, "taints", [{"key": "lab"}]),
    work("Taint.key", GKE_CPU, "taints", [{"key": "lab"}], [{"key": "other"}]),
    work("Taint.value", GKE_CPU, "taints", [{"key": "lab", "value": "x"}], [{"key": "lab"}]),
    work("Taint.effect", GKE_CPU, "taints", [{"key": "lab", "effect": "NoExecute"}], [{"key": "lab"}]),
    work("Pool.service_account", GKE_CPU, "serviceAccount", "nodes@acme-ml.iam.gserviceaccount.com"),
    work("Pool.network_tags", GKE_CPU, "networkTags", ["allow-ssh"]),
    work("Pool.max_pods_per_node", GKE_CPU, "maxPodsPerNode", 32),
    work("Pool.compact", GKE_CPU, "compact", True),  # noqa: FBT003 - a value of the declaration
    work("Pool.image_streaming", GKE_CPU, "imageStreaming", True),  # noqa: FBT003 - a value of the declaration
    work("Pool.secondary_boot_disks", GKE_CPU, "secondaryBootDisks", [{"diskImage": "global/images/a"}]),
    work(
        "SecondaryBootDisk.disk_image",
        GKE_CPU,
        "secondaryBootDisks",
        *([{"diskImage": f"global/images/{name}"}] for name in ("a", "b")),
    ),
    work(
        "SecondaryBootDisk.mode",
        GKE_CPU,
        "secondaryBootDisks",
        [{"diskImage": "global/images/a", "mode": "CONTAINER_IMAGE_CACHE"}],
        [{"diskImage": "global/images/a"}],
    ),
    work("Pool.gvnic", GKE_CPU, "gvnic", True),  # noqa: FBT003 - a value of the declaration
    work("Pool.tpu_topology", only(GKE, machine="ct5lp-hightpu-4t", nodes={}), "tpuTopology", "4x4", "2x4"),
    work("Pool.shutdown_grace", GKE_SPOT, "shutdownGrace", "120s"),
    work("Pool.upgrade", GKE_CPU, "upgrade", {"maxSurge": 2}),
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
    work("Reservation.name", AKS_CPU, "capacity", {"kind": "reservation", "name": GROUP}),
    work("Nodes.min", AKS_CPU, "nodes.min", 1),
    work("Nodes.max", AKS_CPU, "nodes.max", 7),
    work("Nodes.count", AKS_CPU, "nodes", {"count": 2}, {"count": 1}),
    work("Pool.zones", AKS_CPU, "zones", ["1"]),
    work("Disk.size_gib", AKS_CPU, "disk.sizeGib", 64),
    work("Disk.type", only(AKS, machine="Standard_D8ds_v5"), "disk.type", "ephemeral"),
    work(
        "Disk.kubelet_disk_type",
        only(AKS, machine="Standard_D8ds_v5"),
        "disk",
        {"kubeletDiskType": "Temporary"},
    ),
    work("Pool.image", AKS_CPU, "image", "azure-linux"),
    work("Pool.labels", AKS_CPU, "labels", {"tier": "gold"}),
    work("Pool.taints", AKS_CPU, "taints", [{"key": "lab"}]),
    work("Pool.max_pods_per_node", AKS_CPU, "maxPodsPerNode", 32),
    work("Pool.overrides", AKS_CPU, "overrides", {"enableFIPS": True}),
    work("Upgrade.max_surge", AKS_CPU, "upgrade", {"maxSurge": 2}),
    work("Upgrade.max_unavailable", AKS_CPU, "upgrade", {"maxUnavailable": 2}),
]


def team(field: str, key: str, value: Any, before: Any = None) -> Flip:
    """A field of the one team, whose cluster has a queue over its T4 pool."""
    return flip(field, TEAM, f"teams.0.{key}", value, before)


ROOMY = _with(changed(GKE, lifetime={"hours": 8}), "pools.0.machine", "e2-standard-8")
AKS_ROOMY = _with(AKS, "pools.0.machine", "Standard_D8s_v5")
TENANCY = [
    flip("Queue.name", TEAM, "queues.0.name", "others"),
    flip("Queue.pools", TEAM, "queues.0.pools", ["t4", "a100"]),
    flip("Queue.local_queues", TEAM, "queues.0.localQueues", [{"namespace": "default"}]),
    flip(
        "LocalQueue.namespace",
        TEAM,
        "queues.0.localQueues",
        [{"namespace": "lab"}],
        [{"namespace": "default"}],
    ),
    flip(
        "LocalQueue.name",
        TEAM,
        "queues.0.localQueues",
        [{"namespace": "default", "name": "mine"}],
        [{"namespace": "default"}],
    ),
    flip("Queue.fallback", STEADY, "queues.0.fallback", True),  # noqa: FBT003 - a value of the declaration
    flip("Queue.fallback", AKS_STEADY, "queues.0.fallback", True),  # noqa: FBT003 - a value of the declaration
    Flip(
        "Queue.together",
        *(
            changed(AKS, queues=[{"name": "gpus", "pools": ["t4"], "together": asked}])
            for asked in (False, True)
        ),
    ),
    team("Team.name", "name", "robots"),
    team("Team.members", "members", ["vision@acme.example"]),
    flip("Team.members", AKS_TEAM, "teams.0.members", ADMINS),
    team("Team.namespace", "namespace", {"name": "eyes"}),
    team("Namespace.name", "namespace", {"name": "eyes"}, {"name": "ears"}),
    team("Namespace.create", "namespace", {"name": "eyes", "create": False}, {"name": "eyes"}),
    team(
        "Namespace.pod_security", "namespace", {"name": "eyes", "podSecurity": "restricted"}, {"name": "eyes"}
    ),
    team("Team.require_queue", "requireQueue", value=False),
    flip(
        "Team.interactive",
        changed(TEAM, teams=[{"name": "vision", "members": ["vision@acme.example"]}]),
        "teams.0.interactive",
        value=True,
    ),
    team("Team.queues", "queues", [{"queue": "gpus", "as": "mine"}]),
    team("QueueUse.as_", "queues", [{"queue": "gpus", "as": "mine"}], [{"queue": "gpus"}]),
    Flip(
        "QueueUse.queue",
        *(
            _with(
                changed(GKE, queues=TWO_QUEUES, teams=[{"name": "vision"}]),
                "teams.0.queues",
                [{"queue": queue}],
            )
            for queue in ("gpus", "cpus")
        ),
    ),
    team("Team.guarantee", "guarantee", {"t4": 1}),
    team("Team.weight", "weight", 3),
    team("Team.bucket", "bucket", {}),
    team("Bucket.keep", "bucket", {"keep": False}, {}),
    team("Team.registry", "registry", {}),
    flip("Team.registry", AKS_TEAM, "teams.0.registry", {}),
    team("Registry.keep", "registry", {"keep": False}, {}),
    flip("Registry.keep", AKS_TEAM, "teams.0.registry", {"keep": False}, {}),
    team("Registry.immutable_tags", "registry", {"immutableTags": True}, {}),
    team("Registry.delete_untagged_days", "registry", {"deleteUntaggedDays": 30}, {}),
    team("Team.volume", "volume", {}),
    team("Volume.kind", "volume", {"kind": "filestore"}, {}),
    team("Volume.size_gib", "volume", {"kind": "filestore", "sizeGib": 2048}, {"kind": "filestore"}),
    Flip(
        "Volume.size_gib",
        *(
            changed(AKS, teams=[{"name": "vision", "volume": {"kind": "azure-files", "sizeGib": size}}])
            for size in (100, 200)
        ),
    ),
]
ADDONS = [
    flip("Addons.drivers", _with(GKE_GPU, "pools.1.image", "ubuntu"), "addons.drivers", "daemonset"),
    flip("Addons.drivers", AKS, "addons.drivers", "gpu-operator"),
    *(
        flip(f"Addons.{name}", AKS_ROOMY if name == "logs" else ROOMY, f"addons.{name}", {})
        for name in ADD_ONS
        if name != "kueue"
    ),
    flip("Addons.kueue", GKE_CPU, "addons.kueue", {}),
    flip("Kueue.replicas", ROOMY, "addons.kueue.replicas", 2),
    flip("Kueue.frameworks", ROOMY, "addons.kueue.frameworks", ["ray.io/rayjob"]),
    flip("Pipelines.retry", ROOMY, "addons.pipelines", {"retry": "any"}, {}),
    flip("Pipelines.existing", GKE_EXISTING, "addons.pipelines", {"existing": True}, {}),
    flip("Pipelines.existing", AKS_EXISTING, "addons.pipelines", {"existing": True}, {}),
    flip("Pipelines.artifacts", ROOMY, "addons.pipelines", {"artifacts": "bucket"}, {}),
    flip("Logs.retention_days", AKS_ROOMY, "addons.logs", {"retentionDays": 90}, {}),
    flip("Logs.daily_gib", AKS_ROOMY, "addons.logs", {"dailyGib": 1.0}, {}),
]
NEWER = {"name": "us-east7", "zones": ["us-east7-a"], "offers": ["n2", "e2-standard-4"]}
AKS_NEWER = {"name": "eastus3", "zones": ["1"], "offers": ["Standard_NC4as_T4_v3"]}
GKE_NEWER = _with(_with(GKE_CPU, "cloud.location", "us-east7-a"), "cloud.regions", [NEWER])
CHECKED = [
    flip("Gke.regions", _with(GKE_CPU, "cloud.location", "us-east7-a"), "cloud.regions", [NEWER]),
    flip("Region.name", GKE_NEWER, "cloud.regions.0.name", "us-east9"),
    flip("Region.zones", GKE_NEWER, "cloud.regions.0.zones", ["us-east7-b"]),
    flip("Region.offers", GKE_NEWER, "cloud.regions.0.offers", []),
    flip("Aks.regions", _with(AKS, "cloud.location", "eastus3"), "cloud.regions", [AKS_NEWER]),
]
"""Fields that reach the rules alone: they decide what is refused and what is warned of."""

FLIPS = [*CLUSTER, *GKE_CLOUD, *AKS_CLOUD, *GKE_POOL, *AKS_POOL, *TENANCY, *ADDONS]


def _graph(recording: Recording) -> list[tuple[Any, ...]]:
    """Return the resources' inputs and the kubeconfig, without the profile, which repeats the declaration."""
    kubeconfig = cast("Secret", recording.outputs["kubeconfig"])
    graph = [
        (
            item.urn,
            repr(item.inputs),
            item.provider,
            item.protect,
            item.deleted_with,
            item.retain_on_delete,
            item.dependencies,
        )
        for item in recording
    ]
    return [*graph, ("kubeconfig", kubeconfig.value)]


@pytest.mark.parametrize("case", FLIPS, ids=[f"{at}-{case.field}" for at, case in enumerate(FLIPS)])
def test_a_changed_field_changes_the_graph(case: Flip) -> None:
    """No field is accepted and then ignored."""
    assert _graph(synth(case.before)) != _graph(synth(case.after))


def _messages(written: Declaration) -> set[str]:
    try:
        return {str(warning) for warning in advice(declare(written))}
    except DeclarationError as refused:
        return {str(fault) for fault in refused.faults}


@pytest.mark.parametrize("case", CHECKED, ids=[case.field for case in CHECKED])
def test_a_changed_field_changes_what_is_messages(case: Flip) -> None:
    """No field that only the rules read is ignored by them."""
    assert _messages(case.before) != _messages(case.after)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _fields(model: type[BaseModel], seen: set[type[BaseModel]]) -> Iterator[str]:
    if model in seen:
        return
    seen.add(model)
    for name, field in model.model_fields.items():
        yield f"{model.__name__}.{name}"
        for part in _models(field.annotation):
            yield from _fields(part, seen)


def test_no_field_is_left_out() -> None:
    """A field that is added to the declaration is added here too, or this fails."""
    assert set(_fields(Cluster, set())) == {case.field for case in (*FLIPS, *CHECKED)}
