"""Flips of the fields of a cluster, its cloud, queues, teams and add-ons, and of any on further clusters."""

from itertools import product
from typing import Any

from ebbtide.declaration.model.addons import ADD_ONS
from tests.contract.flips import (
    ADMINS,
    AKS_CPU,
    AKS_EXISTING,
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
from tests.contract.pool_flips import GROUP, PERIOD
from tests.declarations import AKS, GKE, changed, only

VPC = {"vpc": "theirs", "subnet": "theirs", "podsRange": "p", "servicesRange": "s"}
COMMITMENT = {"machines": "e2-standard-4", "count": 2, "usdPerHour": 0.1}
GKE_VPC = with_value(GKE, "cloud.network", VPC)
SUBNET = f"{SUBNETS}/nodes"
RING = "projects/acme-ml/locations/us-central1/keyRings/ml/cryptoKeys"
DISKS: dict[str, Any] = {"disks": f"{RING}/disks"}
PRIVATE: dict[str, Any] = {"private": True}
VAULT = f"{GROUPS}/keys/providers/Microsoft.KeyVault/vaults/ours"
SET = f"{GROUPS}/keys/providers/Microsoft.Compute/diskEncryptionSets/ours"
AKS_KEYS = {"secrets": "https://ours.vault.azure.net/keys/secrets/0123", "vault": VAULT}
MAINTENANCE = {
    "window": {"days": ["saturday"], "start": "02:00", "duration": "12h"},
    "exclusions": [{"name": "launch", "start": "2026-12-20", "end": "2027-01-04"}],
}

CLUSTER = [
    flip("Cluster.commitments", GKE, "commitments", [COMMITMENT]),
    *(
        flip(f"Commitment.{field}", GKE, "commitments", *([COMMITMENT | change] for change in changes))
        for field, *changes in (
            ("machines", {"machines": "n2-standard-8"}, {}),
            ("region", {"region": "us-central1"}, {}),
            ("count", {"count": 3}, {}),
            ("usd_per_hour", {"usdPerHour": 0.2}, {}),
        )
    ),
    flip(
        "Commitment.gpus",
        GKE,
        "commitments",
        *([{"gpus": gpu, "count": 1, "usdPerHour": 1.0}] for gpu in ("nvidia-tesla-t4", "nvidia-tesla-v100")),
    ),
    flip("Cluster.name", GKE, "name", "other"),
    flip("Cluster.owner", GKE, "owner", "another-team"),
    flip("Cluster.lifetime", GKE, "lifetime", {"hours": 8}),
    flip("Lifetime.hours", GKE, "lifetime", {"hours": 9}, {"hours": 8}),
    Flip("Cluster.pools", GKE, changed(GKE, pools=GKE["pools"][:2])),
    flip("Cluster.queues", GKE, "queues", [{"name": "all", "pools": ["cpu", "t4", "a100"]}]),
    flip("Cluster.teams", GKE, "teams", [{"name": "vision"}]),
    flip("Cluster.adopt", GKE, "adopt", "tests/contract/adopt.json"),
]
_STORED: list[dict[str, Any]] = [{"name": "vision", "bucket": {}, "registry": {}}]
_SHARED: list[dict[str, Any]] = [*_STORED, {"name": "audio", "volume": {"kind": "azure-files"}}]
_RESOURCES = f"{GROUPS}/net/providers/Microsoft.Network"

GKE_CLOUD = [
    Flip("Gke.kind", GKE, AKS),
    flip("Gke.project", GKE, "cloud.project", "acme-other"),
    flip("Gke.location", GKE, "cloud.location", "us-central1-b"),
    flip("Gke.release_channel", GKE, "cloud.releaseChannel", "rapid"),
    flip("Gke.kubernetes_version", GKE, "cloud.kubernetesVersion", "1.35.2-gke.1200000"),
    flip("GkeConsolidation.profile", GKE, "cloud.consolidation.profile", "balanced"),
    flip("Gke.access", GKE, "cloud.access", {"networks": ["203.0.113.0/24"]}),
    flip("GkeAccess.networks", GKE, "cloud.access.networks", ["203.0.113.0/24"], ["198.51.100.0/24"]),
    flip("GkeAccess.private", GKE, "cloud.access", {"private": True}),
    flip("GkeNetwork.nodes", GKE, "cloud.network.nodes", "10.32.0.0/20"),
    flip("GkeNetwork.pods", GKE, "cloud.network.pods", "10.36.0.0/14"),
    flip("GkeNetwork.services", GKE, "cloud.network.services", "10.40.0.0/20"),
    flip("GkeNetwork.vpc", GKE_VPC, "cloud.network.vpc", "other"),
    flip("GkeNetwork.subnet", GKE_VPC, "cloud.network.subnet", "other"),
    flip("GkeNetwork.pods_range", GKE_VPC, "cloud.network.podsRange", "other"),
    flip(
        "GkeNetwork.gpus",
        only(GKE, machine="a3-megagpu-8g", gpuDirect="tcpxo"),
        "cloud.network.gpus",
        "172.20.0.0/16",
    ),
    flip("GkeNetwork.services_range", GKE_VPC, "cloud.network.servicesRange", "other"),
    flip("GkeKeys.secrets", GKE, "cloud.keys", {"secrets": f"{RING}/secrets"}),
    flip("GkeKeys.disks", GKE, "cloud.keys", DISKS),
    *(
        flip(f"GkeKeys.{data}", with_value(GKE, "teams", _STORED), "cloud.keys", {data: f"{RING}/{data}"})
        for data in ("buckets", "registries")
    ),
    flip("GkeKeys.grant", GKE, "cloud.keys", DISKS | {"grant": False}, DISKS),
    flip("Gke.maintenance", GKE, "cloud.maintenance", MAINTENANCE),
    *(
        flip(field, with_value(GKE, "cloud.maintenance", MAINTENANCE), f"cloud.maintenance.{path}", value)
        for field, path, value in (
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
    *(
        flip(f"GkeResources.{field}", with_value(GKE, "teams", _STORED), f"cloud.resources.{path}", value)
        for field, path, value in (
            ("network", "network", {"routingMode": "GLOBAL"}),
            ("subnetwork", "subnetwork", {"logConfig": {"flowSampling": 0.5}}),
            ("router", "router", {"description": "of the nodes"}),
            ("router_nat", "routerNat", {"minPortsPerVm": 128}),
            ("bucket", "bucket", {"versioning": {"enabled": True}}),
            ("repository", "repository", {"cleanupPolicyDryRun": True}),
        )
    ),
    Flip("Gke.existing", GKE_SPOT, GKE_EXISTING),
    flip("Existing.name", GKE_EXISTING, "cloud.existing.name", "others"),
]
AKS_CLOUD = [
    Flip("Aks.kind", AKS, GKE),
    flip("Aks.subscription", AKS, "cloud.subscription", "00000000-0000-0000-0000-000000000002"),
    flip("Aks.resource_group", AKS, "cloud.resourceGroup", "ml"),
    flip("Aks.create_resource_group", AKS, "cloud.createResourceGroup", value=False),
    flip("Aks.location", AKS, "cloud.location", "westus2"),
    flip("Aks.tier", AKS, "cloud.tier", "standard"),
    flip("Aks.upgrade_channel", AKS, "cloud.upgradeChannel", "stable"),
    flip("Aks.kubernetes_version", AKS, "cloud.kubernetesVersion", "1.34.2"),
    flip("AksAccess.admins", AKS, "cloud.access.admins", ADMINS),
    flip("AksAccess.networks", AKS, "cloud.access.networks", ["203.0.113.0/24"]),
    flip("AksAccess.private", AKS, "cloud.access", {"private": True}),
    flip("AksAccess.private_dns_zone", AKS, "cloud.access", PRIVATE | {"privateDnsZone": "none"}, PRIVATE),
    flip("AksAccess.login", AKS, "cloud.access.login", "workloadidentity"),
    flip("AksNetwork.nodes", AKS, "cloud.network.nodes", "10.225.0.0/16"),
    flip("AksNetwork.pods", AKS, "cloud.network.pods", "10.246.0.0/16"),
    flip("AksNetwork.services", AKS, "cloud.network.services", "10.2.0.0/16"),
    flip("AksNetwork.subnet", AKS, "cloud.network.subnet", SUBNET),
    flip("AksNetwork.managed", AKS, "cloud.network", {"managed": True}),
    flip("AksKeys.secrets", AKS, "cloud.keys", AKS_KEYS),
    flip("AksKeys.vault", AKS, "cloud.keys", AKS_KEYS, {"secrets": AKS_KEYS["secrets"], "grant": False}),
    *(
        flip(
            f"AksKeys.{data}",
            with_value(AKS, "teams", _STORED),
            "cloud.keys",
            {data: f"https://ours.vault.azure.net/keys/{data}", "vault": VAULT},
        )
        for data in ("buckets", "registries")
    ),
    flip("AksKeys.disks", AKS, "cloud.keys", {"disks": SET}),
    flip("AksKeys.grant", AKS, "cloud.keys", {"disks": SET, "grant": False}, {"disks": SET}),
    flip("AksConsolidation.delay_minutes", AKS, "cloud.consolidation.delayMinutes", 3),
    flip("AksConsolidation.after_add_minutes", AKS, "cloud.consolidation.afterAddMinutes", 1),
    flip("Aks.maintenance", AKS, "cloud.maintenance", MAINTENANCE),
    *(
        flip(f"AksResources.{field}", with_value(AKS, "teams", _SHARED), f"cloud.resources.{path}", value)
        for field, path, value in (
            ("virtual_network", "virtualNetwork", {"enableVmProtection": True}),
            ("subnet", "subnet", {"networkSecurityGroup": {"id": f"{_RESOURCES}/nsg"}}),
            ("storage_account", "storageAccount", {"sku": {"name": "Standard_ZRS"}}),
            ("file_storage_account", "fileStorageAccount", {"sku": {"name": "Premium_ZRS"}}),
            ("blob_service", "blobService", {"deleteRetentionPolicy": {"enabled": True, "days": 7}}),
            ("management_policy", "managementPolicy", {"policy": dict[str, Any](rules=[])}),
            ("registry", "registry", {"sku": {"name": "Premium"}}),
        )
    ),
    flip("Aks.overrides", AKS, "cloud.overrides", {"nodeResourceGroup": "nodes"}),
    Flip("Aks.existing", AKS_SPOT, AKS_EXISTING),
    flip("Existing.name", AKS_EXISTING, "cloud.existing.name", "others"),
    flip("AksNetwork.subnet", AKS_EXISTING, "cloud.network.subnet", SUBNET),
]

TEAM = changed(GKE, queues=[{"name": "gpus", "pools": ["t4"]}], teams=[{"name": "vision"}])
T4 = next(at for at, pool in enumerate(GKE["pools"]) if pool["name"] == "t4")
AKS_TEAM = changed(AKS, teams=[{"name": "vision"}])
STEADY = changed(
    GKE,
    pools=[*GKE["pools"], {"name": "steady", "machine": "n2-standard-8", "nodes": {"max": 2}}],
    queues=[{"name": "cpus", "pools": ["cpu", "steady"]}],
)
AKS_STEADY = changed(AKS, queues=[{"name": "cpus", "pools": ["cpu", "steady"]}])
TWO_QUEUES = [{"name": "gpus", "pools": ["t4"]}, {"name": "cpus", "pools": ["cpu"]}]


def team(field: str, key: str, value: Any, before: Any = None) -> Flip:
    """Set a field of the one team, whose cluster has a queue over its T4 pool."""
    return flip(field, TEAM, f"teams.0.{key}", value, before)


ROOMY = with_value(changed(GKE, lifetime={"hours": 8}), "pools.0.machine", "e2-standard-8")
AKS_ROOMY = with_value(AKS, "pools.0.machine", "Standard_D8s_v5")
_DEFAULT = {"namespace": "default"}
TENANCY = [
    flip("Pool.resource_flavor", TEAM, f"pools.{T4}.resourceFlavor", "theirs"),
    flip("Queue.name", TEAM, "queues.0.name", "others"),
    flip("Queue.pools", TEAM, "queues.0.pools", ["t4", "a100"]),
    flip("Queue.local_queues", TEAM, "queues.0.localQueues", [{"namespace": "default"}]),
    *(
        flip(f"LocalQueue.{field}", TEAM, "queues.0.localQueues", [_DEFAULT | {field: value}], [_DEFAULT])
        for field, value in (("namespace", "lab"), ("name", "mine"))
    ),
    flip("Cohort.name", TEAM, "cohort.name", "research"),
    flip("Queue.borrowing_limit", TEAM, "queues.0.borrowingLimit", {"t4": 1}),
    flip("Cohort.preemption", TEAM, "cohort.preemption", {"withinClusterQueue": "Never"}),
    *(
        flip(f"{owner}.queueing_strategy", TEAM, f"{path}.queueingStrategy", "StrictFIFO")
        for owner, path in (("Queue", "queues.0"), ("Cohort", "cohort"))
    ),
    *(
        flip(f"Preemption.{field}", TEAM, f"queues.0.preemption.{key}", "Never")
        for field, key in (
            ("within_cluster_queue", "withinClusterQueue"),
            ("reclaim_within_cohort", "reclaimWithinCohort"),
        )
    ),
    flip("Queue.fallback", STEADY, "queues.0.fallback", True),  # noqa: FBT003 - a value of the declaration
    flip(
        "GkeConsolidation.delay_minutes",
        with_value(STEADY, "queues.0.fallback", True),  # noqa: FBT003 - a value of the declaration
        "cloud.consolidation.delayMinutes",
        2,
    ),
    flip("Queue.fallback", AKS_STEADY, "queues.0.fallback", True),  # noqa: FBT003 - a value of the declaration
    Flip(
        "Queue.together",
        *(
            changed(AKS, queues=[{"name": "gpus", "pools": ["t4"], "together": together}])
            for together in (False, True)
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
    team("Team.load_balancers", "loadBalancers", value=True),
    *(team(f"Limits.{name}", "limits", {name: 10}, {}) for name in ("jobs", "pods", "objects")),
    flip("Limits.experiments", changed(TEAM, addons={"katib": {}}), "teams.0.limits", {"experiments": 10}),
    team("Team.queues", "queues", [{"queue": "gpus", "as": "mine"}]),
    *(
        team(f"QueueUse.{field}", "queues", [{"queue": "gpus"} | use], [{"queue": "gpus"}])
        for field, use in (("as_", {"as": "mine"}), ("cluster_queue", {"clusterQueue": "research"}))
    ),
    Flip(
        "QueueUse.queue",
        *(
            with_value(
                changed(GKE, queues=TWO_QUEUES, teams=[{"name": "vision"}]),
                "teams.0.queues",
                [{"queue": queue}],
            )
            for queue in ("gpus", "cpus")
        ),
    ),
    team("Team.guarantee", "guarantee", {"t4": 1}),
    team("Team.borrowing_limit", "borrowingLimit", {"t4": 1}),
    flip(
        "Team.lending_limit",
        with_value(TEAM, "teams.0.guarantee", {"t4": 2}),
        "teams.0.lendingLimit",
        {"t4": 1},
    ),
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
    *(
        flip("Team.storage_name", changed(base, teams=teams), "teams.0.storageName", "sight")
        for base, teams in ((GKE, _STORED), (AKS, [{"name": "vision", "volume": {"kind": "azure-files"}}]))
    ),
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
    flip("Addons.drivers", with_value(GKE_GPU, "pools.1.image", "ubuntu"), "addons.drivers", "daemonset"),
    flip("Addons.drivers", AKS, "addons.drivers", "gpu-operator"),
    *(
        flip(f"Addons.{name}", AKS_ROOMY if name == "logs" else ROOMY, f"addons.{name}", {})
        for name in ADD_ONS
        if name != "kueue"
    ),
    flip("Addons.metrics", AKS_ROOMY, "addons.metrics", {}),
    flip("Addons.kueue", GKE_CPU, "addons.kueue", {}),
    flip("Kueue.replicas", ROOMY, "addons.kueue.replicas", 2),
    flip("Kueue.install", AKS_ROOMY, "addons.kueue", {"install": "managed"}, {}),
    flip("Kueue.frameworks", ROOMY, "addons.kueue.frameworks", ["ray.io/rayjob"]),
    *(
        Flip(
            f"{name}.{field}",
            *(with_value(ROOMY, f"addons.{name.lower()}", value) for value in (before, after)),
        )
        for name, digest in (
            ("Kueue", "sha256:" + "0" * 64),
            ("Trainer", "0" * 40),
            ("Katib", "0" * 40),
            ("Pipelines", "0" * 40),
        )
        for before in [{"version": "9.0.0", "digest": digest}]
        for field, after in (
            ("version", before | {"version": "9.0.1"}),
            ("digest", before | {"digest": digest[:-1] + "1"}),
        )
        if field == "digest" or name in ("Kueue", "Trainer")
    ),
    flip("Pipelines.retry", ROOMY, "addons.pipelines", {"retry": "any"}, {}),
    flip("Pipelines.existing", GKE_EXISTING, "addons.pipelines", {"existing": True}, {}),
    *(
        flip(f"{name}.existing", GKE_EXISTING, f"addons.{name.lower()}", {"existing": True}, {})
        for name in ("Kueue", "Trainer", "Katib")
    ),
    flip("Pipelines.existing", AKS_EXISTING, "addons.pipelines", {"existing": True}, {}),
    flip("Pipelines.artifacts", ROOMY, "addons.pipelines", {"artifacts": "bucket"}, {}),
    flip("Logs.retention_days", AKS_ROOMY, "addons.logs", {"retentionDays": 90}, {}),
    flip("Logs.daily_gib", AKS_ROOMY, "addons.logs", {"dailyGib": 1.0}, {}),
]
NEWER = {"name": "us-east7", "zones": ["us-east7-a"], "offers": ["n2", "e2-standard-4"]}
AKS_NEWER = {"name": "eastus3", "zones": ["1"], "offers": ["Standard_NC4as_T4_v3"]}
GKE_NEWER = with_value(with_value(GKE_CPU, "cloud.location", "us-east7-a"), "cloud.regions", [NEWER])
CHECKED = [
    flip("Gke.regions", with_value(GKE_CPU, "cloud.location", "us-east7-a"), "cloud.regions", [NEWER]),
    flip("Region.name", GKE_NEWER, "cloud.regions.0.name", "us-east9"),
    flip("Region.zones", GKE_NEWER, "cloud.regions.0.zones", ["us-east7-b"]),
    flip("Region.offers", GKE_NEWER, "cloud.regions.0.offers", []),
    flip("Aks.regions", with_value(AKS, "cloud.location", "eastus3"), "cloud.regions", [AKS_NEWER]),
    *(
        flip(
            f"{name}.version",
            with_value(ROOMY, f"addons.{name.lower()}", {"version": "9.0.0", "digest": "0" * 40}),
            f"addons.{name.lower()}.version",
            "9.0.1",
        )
        for name in ("Katib", "Pipelines")
    ),
]
"""Fields that reach the rules alone: they decide what is refused and what is warned of."""

_ZONE = f"{SUBNET.partition('/virtualNetworks/')[0]}/privateDnsZones/privatelink.eastus.azmk8s.io"
_AKS_SUBNET = with_value(AKS, "cloud.network", {"subnet": SUBNET})
_REGIONAL = with_value(GKE_CPU, "cloud.location", "us-central1")
_OVERNIGHT = {
    "window": {"days": ["sunday", "saturday"], "start": "22:00", "duration": "6h"},
    "exclusions": [{"name": "nodes", "start": "2026-12-20", "scope": "no-minor-or-node-upgrades"}],
}
_HELD = [
    {
        "name": name,
        "machine": "Standard_D8s_v5",
        "nodes": {"max": 2},
        "capacity": {"kind": "reservation", "name": GROUP + name},
    }
    for name in ("one", "two")
]
_THEIRS = {"name": "theirs", "create": False}
_STEPS = {"name": "vision", "namespace": {"name": "kubeflow", "create": False}, "volume": {}}
_WITH_PIPELINES = changed(GKE, addons={"pipelines": {"artifacts": "bucket"}})
_WITH_THEIR_PIPELINES = changed(GKE_EXISTING, addons={"pipelines": {"existing": True, "retry": "any"}})
_RESERVED = {"kind": "reservation"} | PERIOD

_GKE = [
    flip("Cluster.teams", GKE_EXISTING, "teams", [{"name": "vision"}]),
    flip("GkeAccess.private", GKE, "cloud.access", {"private": True, "networks": ["10.60.0.0/16"]}),
    *(
        flip("Gke.maintenance", GKE, "cloud.maintenance", maintenance)
        for maintenance in (_OVERNIGHT, {"window": {"start": "02:00", "duration": "4h"}})
    ),
    *(
        Flip("Pool.machine", GKE_CPU, only(GKE, machine=machine, capacity="spot"))
        for machine in ("c3-standard-8", "ct5lp-hightpu-1t")
    ),
    Flip(
        "Accelerator.driver",
        GKE_GPU,
        with_value(changed(GKE_GPU, addons={"drivers": "none"}), "pools.1.accelerator.driver", "none"),
    ),
    work("Pool.image", GKE_GPU, "image", "ubuntu"),
    work("Reservation.kind", only(GKE, machine="a3-megagpu-8g"), "capacity", _RESERVED),
    *(
        work("Nodes.min", with_value(_REGIONAL, "pools.1.zones", zones), "nodes", {"min": least, "max": most})
        for zones, least, most in (
            *(([], least, most) for least, most in ((3, 9), (4, 9), (1, 1))),
            (["us-central1-a", "us-central1-c"], 3, 9),
        )
    ),
    *(
        work(f"Pool.{field}", only(GKE, machine="a3-highgpu-8g"), key, {})
        for field, key in (
            ("ephemeral_storage_local_ssd_config", "ephemeralStorageLocalSsdConfig"),
            ("local_nvme_ssd_block_config", "localNvmeSsdBlockConfig"),
        )
    ),
    work("Pool.labels", GKE_CPU, "labels", {"cloud.google.com/gke-smt-disabled": "true"}),
    work(
        "Pool.network_tags",
        with_value(GKE_CPU, "cloud.networkTags", ["ml", "no-egress"]),
        "networkTags",
        ["allow-ssh", "ml"],
    ),
    work("Pool.gpu_direct", only(GKE, machine="a3-megagpu-8g", capacity="spot"), "gpuDirect", "tcpxo"),
    Flip("Pool.tpu_topology", GKE_CPU, only(GKE, machine="ct5lp-hightpu-4t", tpuTopology="2x2")),
    work("Pool.shutdown_grace", GKE_SPOT, "shutdownGrace", "0s"),
    work(
        "Pool.overrides",
        only(GKE, machine="c2-standard-8", compact=True),
        "overrides",
        {"placementPolicy": {"policyName": "nvl72"}},
    ),
]
_AKS = [
    flip("Aks.tier", AKS, "cloud.tier", "premium"),
    flip("Aks.upgrade_channel", AKS, "cloud.upgradeChannel", "none"),
    flip(
        "AksAccess.private_dns_zone",
        _AKS_SUBNET,
        "cloud.access",
        PRIVATE | {"privateDnsZone": _ZONE},
        PRIVATE,
    ),
    flip("AksNetwork.services", AKS, "cloud.network.services", "172.20.4.0/29"),
    Flip("Reservation.name", AKS_CPU, changed(AKS, pools=[AKS["pools"][0], *_HELD])),
    *(
        flip(
            f"AksKeys.{data}",
            changed(AKS, teams=[{"name": "vision", kind: {"keep": False}}]),
            "cloud.keys",
            {data: f"https://ours.vault.azure.net/keys/{data}/0123", "vault": VAULT},
        )
        for data, kind in (("buckets", "bucket"), ("registries", "registry"))
    ),
    flip("Cluster.pools", AKS_EXISTING, "pools", [AKS["pools"][0], *AKS_EXISTING["pools"]]),
    work("Pool.taints", AKS_SPOT, "taints", [{"key": "lab", "effect": "NoExecute"}]),
    flip("Addons.pipelines", AKS_ROOMY, "addons.pipelines", {}),
]
_TEAMS = [
    *(flip("Team.namespace", base, "teams", [_STEPS]) for base in (GKE, AKS, _WITH_PIPELINES)),
    *(
        flip("Team.namespace", TEAM, "teams", [{"name": "vision", "namespace": _THEIRS} | fields])
        for fields in ({}, {"requireQueue": True, "limits": {"jobs": 10}})
    ),
    flip("Cluster.queues", _WITH_THEIR_PIPELINES, "queues", [{"name": "work", "pools": ["work"]}]),
    *(
        flip("Team.volume", changed(base, teams=[{"name": "vision"}]), "teams.0.volume", {"kind": kind})
        for base, kind in (
            (GKE_EXISTING, "filestore"),
            (GKE_VPC, "filestore"),
            (_AKS_SUBNET, "azure-files"),
            (AKS, "azure-files"),
        )
    ),
    *(
        flip(
            "Team.bucket", base | {"lifetime": {"hours": 8}}, "teams", [{"name": "vision", "bucket": bucket}]
        )
        for base, bucket in product((GKE, AKS), ({}, {"keep": True}))
    ),
    flip("Team.bucket", AKS, "teams", [{"name": "vision", "bucket": {"keep": False}}]),
]
VARIANTS = [*_GKE, *_AKS, *_TEAMS]
