"""Storage: encryption keys, teams' buckets and volumes, and their container registries."""

import re
from collections.abc import Iterator

from ebbtide.declaration.catalog.clouds import CLOUD_SPECS
from ebbtide.declaration.catalog.prices import find_price, lowest_price
from ebbtide.declaration.model.cloud import Aks
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool import DEFAULT_ACCOUNT
from ebbtide.declaration.model.rules.resources import has_bucket, has_registry
from ebbtide.declaration.model.rules.rule import (
    NO_CLUSTER,
    Severity,
    cluster_rule,
    dollars,
    pools_of,
    service_name,
    user_names,
)
from ebbtide.declaration.model.tenancy import Registry, Team
from ebbtide.text import and_list
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import value_at

# Parts of well-formed names; their syntax is in `catalog/data/syntax.csv`.
_KEY_LOCATION = re.compile(r"projects/[^/]+/locations/([^/]+)/keyRings/.+")
_KEY_VAULT = re.compile(r"https://([^/.]+)\.vault\.[^/]+/keys/.+", re.IGNORECASE)
_VAULT = re.compile(r"/.+/vaults/([^/]+)", re.IGNORECASE)
_GKE_KEYS = (
    "GKE docs, encrypting-secrets and using-cmek (2026); Cloud Storage docs, customer-managed-keys (2026); "
    "Artifact Registry docs, cmek (2026)"
)
_PREVENTED = {
    "secrets": NO_CLUSTER,
    "disks": "No node pool could be created.",
    "buckets": "No bucket could be created.",
    "registries": "No registry could be created.",
}
"""The consequence of a wrong key, by the data that it encrypts."""
_AKS_SECRETS = (
    "azure-aks-docs use-kms-etcd-encryption.md (2025-12-22); kms-data-encryption.md (2025-12-19): a key "
    "without a version is for a preview that azure-native 3.29.0 does not have"
)
_AKS_STORED = (
    "azure-docs customer-managed-keys-configure-new-account.md (2026); azure-container-registry docs, "
    "tutorial-enable-customer-managed-keys.md (2026)"
)
_AKS_DATA = ("buckets", "registries")
_FILESTORE = "cloud.google.com/filestore/docs/service-tiers (2026): Basic HDD, 1 TiB to 63.9 TiB, zonal"
_FILES = "learn.microsoft.com/azure/storage/files, scale targets (2026): premium, 100 GiB to 100 TiB"
LEAST_GIB = {"filestore": 1024, "azure-files": 100}
"""Minimum size of a file system in each cloud, GiB."""
_MOST_GIB = {"filestore": 65433, "azure-files": 102400}
_ITEM = {"filestore": "filestore-basic-hdd-gib", "azure-files": "azure-files-premium-gib"}
_ACR = "azure-container-registry docs, container-registry-skus.md (2026)"
_ACR_ROLES = "azure-container-registry docs, container-registry-rbac-built-in-roles-overview.md (2026)"
_PULLS = "Artifact Registry docs, integrate-gke (2026)"
_BASIC = "Basic"
_USD_PER_DAY = {_BASIC: 0.17, "Standard": 0.67, "Premium": 1.67}


@cluster_rule("key vault declared", f"{_AKS_SECRETS}; {_AKS_STORED}", CloudKind.AKS)
def _vault(cluster: Cluster) -> Iterator[Fault]:
    if not isinstance(cluster.cloud, Aks):
        return
    keys = cluster.cloud.keys
    stored = [data for data in _AKS_DATA if getattr(keys, data) is not None]
    if keys.secrets is not None and keys.vault is None and keys.grant:
        yield Fault(
            "cloud.keys.secrets",
            "The key's vault is not declared.",
            "The cluster's identity could not use the key, and the cluster could not be created.",
            "Write the vault's resource id under vault, or grant: false if the role is already granted.",
        )
    for data in stored if keys.vault is None and keys.grant else ():
        yield Fault(
            f"cloud.keys.{data}",
            "The key's vault is not declared.",
            f"No identity could use the key. {_PREVENTED[data]}",
            "Write the vault's resource id under vault.",
        )
    for data in stored if not keys.grant else ():
        yield Fault(
            f"cloud.keys.{data}",
            "The identity that uses this key is created by the stack, and grant is false.",
            f"The vault's owner could not grant it a role before. {_PREVENTED[data]}",
            f"Remove grant, or write identity and encryption, with an identity that has the role, under "
            f"cloud.resources.{'storageAccount' if data == 'buckets' else 'registry'}.",
        )
    if keys.vault is not None and keys.secrets is None and not stored:
        yield Fault(
            "cloud.keys.vault",
            "A vault is declared, and none of its keys.",
            "The setting would have no effect.",
            "Write its key under secrets, buckets or registries, or omit vault.",
        )
    vault = _VAULT.fullmatch(keys.vault or "")
    for data in ("secrets", *_AKS_DATA):
        key = _KEY_VAULT.fullmatch(getattr(keys, data) or "")
        if key and vault and key[1].lower() != vault[1].lower():
            yield Fault(
                "cloud.keys.vault",
                f"The key of {data} is in the vault {key[1]}, and the vault declared is {vault[1]}.",
                f"The role would be granted on the wrong vault. {_PREVENTED[data]}",
                f"Write the resource id of {key[1]}.",
            )


@cluster_rule(
    "Premium registry for a key",
    f"{_AKS_STORED}: the Premium tier alone has keys of its customers",
    CloudKind.AKS,
)
def _premium(cluster: Cluster) -> Iterator[Fault]:
    tier = _tier(cluster)
    if cluster.cloud.keys.registries is not None and tier != "Premium":
        yield Fault(
            "cloud.resources.registry.sku.name",
            f"Registries of the tier {tier} cannot have the key of cloud.keys.registries.",
            _PREVENTED["registries"],
            "Remove the override.",
        )


@cluster_rule("keys of created storage", _GKE_KEYS, severity=Severity.WARNED)
def _used(cluster: Cluster) -> Iterator[Fault]:
    for data, exists in (("buckets", has_bucket(cluster)), ("registries", has_registry(cluster))):
        if getattr(cluster.cloud.keys, data) is not None and not exists:
            yield Fault(
                f"cloud.keys.{data}",
                f"The declaration has no {'bucket' if data == 'buckets' else 'registry'}.",
                "The key encrypts nothing.",
                "Remove it.",
            )


@cluster_rule(
    "keys in cluster region", f"{_GKE_KEYS}: the key's location is the cluster's region", CloudKind.GKE
)
def _gke_location(cluster: Cluster) -> Iterator[Fault]:
    for data, consequence in _PREVENTED.items():
        match = _KEY_LOCATION.fullmatch(getattr(cluster.cloud.keys, data) or "")
        if match and match[1] != cluster.site.region:
            yield Fault(
                f"cloud.keys.{data}",
                f"The key is in {match[1]}, and the cluster in {cluster.site.region}.",
                consequence,
                f"Use a key in {cluster.site.region}.",
            )


@cluster_rule("supported volume kind", _FILESTORE)
def _of_the_cloud(cluster: Cluster) -> Iterator[Fault]:
    cloud = cluster.site.cloud
    for number, team in enumerate(cluster.teams):
        kind = team.volume.kind if team.volume else "bucket"
        if kind != "bucket" and kind != CLOUD_SPECS[cloud].shared_volume:
            yield Fault(
                f"teams[{number}].volume.kind",
                f"{service_name(cloud)} has no {kind}.",
                "The volume could not be created.",
                f"Write kind: {CLOUD_SPECS[cloud].shared_volume}, or omit kind for a mounted bucket.",
            )


@cluster_rule("supported volume size", f"{_FILESTORE}; {_FILES}")
def _size(cluster: Cluster) -> Iterator[Fault]:
    for number, team in enumerate(cluster.teams):
        volume = team.volume
        if volume is None or volume.size_gib is None:
            continue
        path = f"teams[{number}].volume.sizeGib"
        if volume.kind == "bucket":
            yield Fault(path, "A bucket has no size.", "The field would have no effect.", "Remove sizeGib.")
        elif not LEAST_GIB[volume.kind] <= volume.size_gib <= _MOST_GIB[volume.kind]:
            yield Fault(
                path,
                f"{volume.kind} supports {LEAST_GIB[volume.kind]} to {_MOST_GIB[volume.kind]} GiB, not "
                f"{volume.size_gib}.",
                "The volume could not be created.",
                f"Write sizeGib: {LEAST_GIB[volume.kind]}, or a bucket.",
            )


@cluster_rule("filestore zone", _FILESTORE, CloudKind.GKE)
def _has_a_zone(cluster: Cluster) -> Iterator[Fault]:
    if cluster.site.is_zonal or any(pool.zones for pool in cluster.pools):
        return
    for number, team in enumerate(cluster.teams):
        if team.volume is not None and team.volume.kind == "filestore":
            yield Fault(
                f"teams[{number}].volume.kind",
                f"A filestore is in one zone, and neither {cluster.cloud.location} nor a pool has a single "
                "zone.",
                "It could not be created, or would be far from the nodes that use it.",
                "Write zones for the pool that uses it most, or omit kind for a mounted bucket.",
            )


@cluster_rule(
    "volume cost while idle", "catalog/data/prices.csv, a source in each row", severity=Severity.WARNED
)
def _bills_while_idle(cluster: Cluster) -> Iterator[Fault]:
    site = cluster.site
    for number, team in enumerate(cluster.teams):
        volume = team.volume
        if volume is None or volume.kind == "bucket":
            continue
        size = volume.size_gib or LEAST_GIB[volume.kind]
        item = _ITEM[volume.kind]
        price = find_price(site.cloud, site.region, item) or lowest_price(site.cloud, item)
        cost = f"about {dollars(price.on_demand * size)} an hour" if price and price.on_demand else "by size"
        yield Fault(
            f"teams[{number}].volume",
            f"{size} GiB of {volume.kind} cost {cost}, even while idle.",
            "The idle cluster would cost that much more.",
            "Omit kind for a mounted bucket, which is billed by its content.",
        )


@cluster_rule(
    "bucket contents deleted", "pulumi-gcp 10.2.0, storage.Bucket forceDestroy", severity=Severity.WARNED
)
def _force_destroy(cluster: Cluster) -> Iterator[Fault]:
    for number, team in enumerate(cluster.teams):
        if team.bucket is not None and team.bucket.keep is False and not cluster.is_ephemeral:
            yield Fault(
                f"teams[{number}].bucket.keep",
                "The bucket of a permanent cluster is deleted with its contents.",
                "A destroy would delete every checkpoint.",
                "Omit keep, unless that is intended.",
            )


def _registries(cluster: Cluster) -> Iterator[tuple[str, Team, Registry]]:
    for number, team in enumerate(cluster.teams):
        if team.registry is not None:
            yield f"teams[{number}]", team, team.registry


def _tier(cluster: Cluster) -> str:
    """Return the tier of the teams' registries on AKS: that of the overrides, else what their key needs."""
    if not isinstance(cluster.cloud, Aks):
        return _BASIC
    own = value_at(cluster.cloud.resources.registry, "sku.name")
    return str(own or ("Premium" if cluster.cloud.keys.registries is not None else _BASIC))


def _untagged(cluster: Cluster) -> str:
    tier = _tier(cluster)
    return "the stack sets no policy for it" if tier == "Premium" else f"this one is {tier}"


@cluster_rule("registry settings only on GKE", _ACR, CloudKind.AKS)
def _only_on_gke(cluster: Cluster) -> Iterator[Fault]:
    for path, _, registry in _registries(cluster):
        if registry.immutable_tags:
            yield Fault(
                f"{path}.registry.immutableTags",
                "AKS does not support immutableTags: a container registry locks individual images.",
                "Tags could still be overwritten.",
                "Omit immutableTags, and refer to images by digest.",
            )
        if registry.delete_untagged_days is not None:
            yield Fault(
                f"{path}.registry.deleteUntaggedDays",
                "AKS does not support deleteUntaggedDays: only a container registry of the Premium tier "
                f"deletes untagged images, and {_untagged(cluster)}.",
                "Untagged images would stay.",
                "Omit deleteUntaggedDays, and run `acr purge` with `az acr run` regularly.",
            )


@cluster_rule("registry has members", f"{_PULLS}; {_ACR_ROLES}", severity=Severity.WARNED)
def _without_members(cluster: Cluster) -> Iterator[Fault]:
    for path, team, _ in _registries(cluster):
        if not team.members:
            yield Fault(
                f"{path}.registry",
                f"Team {team.name} has a registry and no members.",
                "Only administrators of the cloud could push images.",
                "Write members.",
            )


@cluster_rule(
    "registry push needs object id",
    f"{_ACR_ROLES}; azure-native 3.29.0, RoleAssignment.principalId",
    CloudKind.AKS,
    Severity.WARNED,
)
def _user_names(cluster: Cluster) -> Iterator[Fault]:
    members = (
        (f"{path}.members[{index}]", member)
        for path, team, _ in _registries(cluster)
        for index, member in enumerate(team.members)
    )
    yield from user_names(members, "cannot push images to the team's registry.", "")


@cluster_rule("registry pull by default account", _PULLS, CloudKind.GKE, Severity.WARNED)
def _default_account(cluster: Cluster) -> Iterator[Fault]:
    if not any(_registries(cluster)):
        return
    for pool in pools_of(cluster):
        account = pool.pool.service_account or (DEFAULT_ACCOUNT if cluster.cloud.existing else None)
        if account == DEFAULT_ACCOUNT:
            yield Fault(
                pool.at("serviceAccount"),
                "Nodes of this pool use the project's default service account, which has no access to the "
                "teams' registries.",
                "Pods with a team's image fail with ImagePullBackOff, unless that account already has "
                "access.",
                "Write the e-mail of another account.",
            )


@cluster_rule(
    "registry cost while empty",
    "azure.microsoft.com/pricing/details/container-registry (2026)",
    CloudKind.AKS,
    Severity.WARNED,
)
def _bills_while_empty(cluster: Cluster) -> Iterator[Fault]:
    tier = _tier(cluster)
    costs = f"costs about {_USD_PER_DAY.get(tier, _USD_PER_DAY[_BASIC])} USD a day, even while empty"
    registries = [(path, team.name) for path, team, _ in _registries(cluster)]
    if registries:
        teams = and_list(name for _, name in registries)
        of = f": {teams} have one each" if len(registries) > 1 else ""
        yield Fault(
            f"{registries[0][0]}.registry",
            f"A container registry of the {tier} tier {costs}{of}.",
            "The idle cluster would cost that much more.",
            "Declare a registry for only one team, if the others can use its images.",
        )


@cluster_rule(
    "registry images deleted",
    "Artifact Registry docs, repositories/delete-repo (2026)",
    severity=Severity.WARNED,
)
def _goes_with_images(cluster: Cluster) -> Iterator[Fault]:
    for path, _, registry in _registries(cluster):
        if registry.keep is False and not cluster.is_ephemeral:
            yield Fault(
                f"{path}.registry.keep",
                "The registry of a permanent cluster is deleted with all of its images.",
                "A destroy would delete images that exist nowhere else.",
                "Omit keep, unless that is intended.",
            )
