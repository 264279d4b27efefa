"""Rules for customer-managed keys: names, and locations that the cluster can use."""

import re
from collections.abc import Iterator

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model.cloud import Aks, Gke
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import cluster_rule

_CRYPTO_KEY = re.compile(r"projects/[^/]+/locations/(?P<location>[^/]+)/keyRings/[^/]+/cryptoKeys/[^/]+")
_KEY_ID = re.compile(r"https://(?P<vault>[^/.]+)\.vault\.[^/]+/keys/[^/]+/[^/]+")
_ANY = r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/"
_VAULT = re.compile(rf"{_ANY}Microsoft\.KeyVault/vaults/(?P<name>[^/]+)", re.IGNORECASE)
_SET = re.compile(rf"{_ANY}Microsoft\.Compute/diskEncryptionSets/[^/]+", re.IGNORECASE)
_GKE_KEYS = "GKE docs, encrypting-secrets and using-cmek (2026)"
_AKS_SECRETS = (
    "azure-aks-docs use-kms-etcd-encryption.md (2025-12-22); kms-data-encryption.md (2025-12-19): a key "
    "without a version is for a preview that azure-native 3.29.0 does not have"
)
_AKS_DISKS = "azure-aks-docs azure-disk-customer-managed-keys.md (2024-02-01)"
_NO_CLUSTER = "The cluster could not be created."


@cluster_rule("Cloud KMS key name", _GKE_KEYS, CloudKind.GKE)
def _gke_names(cluster: Cluster) -> Iterator[Fault]:
    if not isinstance(cluster.cloud, Gke):
        return
    for field in ("secrets", "disks"):
        key = getattr(cluster.cloud.keys, field)
        if key is not None and not _CRYPTO_KEY.fullmatch(key):
            yield Fault(
                f"cloud.keys.{field}",
                f"{key} is not the name of a Cloud KMS key.",
                _NO_CLUSTER if field == "secrets" else "No node pool could be created.",
                f"Write projects/{cluster.cloud.project}/locations/{cluster.site.region}/keyRings/RING/"
                "cryptoKeys/KEY.",
            )


@cluster_rule("Azure key identifier", f"{_AKS_SECRETS}; {_AKS_DISKS}", CloudKind.AKS)
def _aks_names(cluster: Cluster) -> Iterator[Fault]:
    if not isinstance(cluster.cloud, Aks):
        return
    keys = cluster.cloud.keys
    if keys.secrets is not None and not _KEY_ID.fullmatch(keys.secrets):
        yield Fault(
            "cloud.keys.secrets",
            f"{keys.secrets} is not a versioned key identifier.",
            _NO_CLUSTER,
            "Write https://NAME.vault.azure.net/keys/KEY/VERSION, the output of `az keyvault key show "
            "--query key.kid`.",
        )
    if keys.vault is not None and not _VAULT.fullmatch(keys.vault):
        yield Fault(
            "cloud.keys.vault",
            f"{keys.vault} is not the resource id of a key vault.",
            _NO_CLUSTER,
            "Write the output of `az keyvault show --query id`.",
        )
    if keys.disks is not None and not _SET.fullmatch(keys.disks):
        yield Fault(
            "cloud.keys.disks",
            f"{keys.disks} is not the resource id of a disk encryption set.",
            _NO_CLUSTER,
            "Write the output of `az disk-encryption-set show --query id`.",
        )


@cluster_rule("key vault declared", _AKS_SECRETS, CloudKind.AKS)
def _vault(cluster: Cluster) -> Iterator[Fault]:
    if not isinstance(cluster.cloud, Aks):
        return
    keys = cluster.cloud.keys
    if keys.secrets is not None and keys.vault is None and keys.grant:
        yield Fault(
            "cloud.keys.secrets",
            "The key's vault is not declared.",
            "The cluster's identity could not use the key, and the cluster could not be created.",
            "Write the vault's resource id under vault, or grant: false if the role is already granted.",
        )
    if keys.vault is not None and keys.secrets is None:
        yield Fault(
            "cloud.keys.vault",
            "A vault is declared, and none of its keys.",
            "The setting would have no effect.",
            "Write the key under secrets, or omit vault.",
        )
    key, vault = _KEY_ID.fullmatch(keys.secrets or ""), _VAULT.fullmatch(keys.vault or "")
    if key and vault and key["vault"].lower() != vault["name"].lower():
        yield Fault(
            "cloud.keys.vault",
            f"The key is in the vault {key['vault']}, and the vault declared is {vault['name']}.",
            "The role would be granted on the wrong vault, and the cluster could not be created.",
            f"Write the resource id of {key['vault']}.",
        )


@cluster_rule(
    "keys in cluster region", f"{_GKE_KEYS}: the key's location is the cluster's region", CloudKind.GKE
)
def _gke_location(cluster: Cluster) -> Iterator[Fault]:
    if not isinstance(cluster.cloud, Gke):
        return
    for field in ("secrets", "disks"):
        match = _CRYPTO_KEY.fullmatch(getattr(cluster.cloud.keys, field) or "")
        if match and match["location"] != cluster.site.region:
            yield Fault(
                f"cloud.keys.{field}",
                f"The key is in {match['location']}, and the cluster in {cluster.site.region}.",
                _NO_CLUSTER if field == "secrets" else "No node pool could be created.",
                f"Use a key in {cluster.site.region}.",
            )
