"""Flips of the fields of a cluster and of its cloud."""

from typing import Any

from tests.contract.flips import (
    ADMINS,
    AKS_EXISTING,
    AKS_SPOT,
    GKE_EXISTING,
    GKE_SPOT,
    Flip,
    flip,
    with_value,
)
from tests.declarations import AKS, GKE, changed, only

VPC = {"vpc": "theirs", "subnet": "theirs", "podsRange": "p", "servicesRange": "s"}
COMMITMENT = {"machines": "e2-standard-4", "count": 2, "usdPerHour": 0.1}
GKE_VPC = with_value(GKE, "cloud.network", VPC)
SUBNET = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/net/providers"
    "/Microsoft.Network/virtualNetworks/theirs/subnets/nodes"
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

CLUSTER = [
    flip("Cluster.commitments", GKE, "commitments", [COMMITMENT]),
    *(
        flip(
            f"Commitment.{field}",
            GKE,
            "commitments",
            *([COMMITMENT | change] for change in changes),
        )
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
_RESOURCES = (
    "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/net/providers/Microsoft.Network"
)

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
    flip("GkeKeys.disks", GKE, "cloud.keys", {"disks": f"{RING}/disks"}),
    *(
        flip(f"GkeKeys.{data}", with_value(GKE, "teams", _STORED), "cloud.keys", {data: f"{RING}/{data}"})
        for data in ("buckets", "registries")
    ),
    flip(
        "GkeKeys.grant",
        GKE,
        "cloud.keys",
        {"disks": f"{RING}/disks", "grant": False},
        {"disks": f"{RING}/disks"},
    ),
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
    flip(
        "AksAccess.private_dns_zone",
        AKS,
        "cloud.access",
        {"private": True, "privateDnsZone": "none"},
        {"private": True},
    ),
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
