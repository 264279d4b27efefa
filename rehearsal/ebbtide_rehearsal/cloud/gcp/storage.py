"""Buckets, what is in them, and file systems.

ForceNew and defaults are those of hashicorp/terraform-provider-google-beta 7.45 (google-beta/services/storage
and services/filestore, 2026-08).
"""

import re
from typing import Any, Final

from ebbtide_rehearsal.cloud.gcp.asked import (
    BAD_REQUEST,
    CLOUD,
    NOT_FOUND,
    Asked,
    World,
    api_error,
    last,
)
from ebbtide_rehearsal.cloud.gcp.identities import forget_grants
from ebbtide_rehearsal.cloud.gcp.kind import Kind, Refusal, one_of
from ebbtide_rehearsal.cloud.gcp.labels import bad_labels
from ebbtide_rehearsal.cloud.store import Resource, Store

_STORAGE: Final = "https://www.googleapis.com/storage/v1/b/"
_SCHEMA: Final = "hashicorp/terraform-provider-google-beta 7.45, services/storage and filestore (2026-08)"
_OBJECT: Final = "storage#object"


def put_object(store: Store, bucket: str, name: str) -> None:
    """Something is in a bucket, as a pipeline leaves it there: the bucket is no longer empty."""
    store.put(Resource(CLOUD, f"b/{bucket}/o/{name}", _OBJECT, state={"bucket": bucket, "name": name}))


def _objects(world: World, bucket: str) -> list[Resource]:
    return [item for item in world.of(_OBJECT) if item.state["bucket"] == bucket]


_BUCKET_NAME: Final = re.compile(r"^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$")


def _bad_bucket_name(asked: Asked) -> str | None:
    fits = _BUCKET_NAME.match(asked.name) and not asked.name.startswith("goog") and "google" not in asked.name
    if fits and ".." not in asked.name:
        return None
    return api_error(400, f"Invalid bucket name: '{asked.name}'", "invalid")


def _labels(asked: Asked) -> str | None:
    reason = bad_labels(asked.said.labels("labels"))
    return api_error(400, reason, BAD_REQUEST) if reason else None


def _bucket_taken(_identity: str) -> str:
    message = "Your previous request to create the named bucket succeeded and you already own it."
    return api_error(409, message, "conflict")


def _keeps_contents(world: World, bucket: Resource) -> str | None:
    if bucket.inputs.get("forceDestroy") or not _objects(world, bucket.id):
        return None
    return f"Error trying to delete bucket {bucket.id} without `force_destroy` set to true"


def _empty(world: World, bucket: Resource) -> None:
    for item in _objects(world, bucket.id):
        world.store.remove(CLOUD, item.id)
    forget_grants(world, bucket.id)


def _bucket_outputs(asked: Asked) -> dict[str, Any]:
    return {
        "project": asked.project,
        "url": f"gs://{asked.name}",
        "selfLink": f"{_STORAGE}{asked.name}",
        "location": asked.said.text("location").upper(),
    }


def _same_place(path: str, old: Any, new: Any) -> bool:
    """Cloud Storage writes locations in capitals, and the provider compares them so."""
    return path == "location" and str(old).upper() == str(new).upper()


BUCKET_KIND: Final = Kind(
    identity=lambda asked: asked.name,
    outputs=_bucket_outputs,
    autonamed="name",
    defaults={"forceDestroy": False, "storageClass": "STANDARD"},
    replaces=frozenset(
        {
            "name",
            "project",
            "location",
            "enableObjectRetention",
            "customPlacementConfig.dataLocations",
            "hierarchicalNamespace",
        }
    ),
    overlooked=_same_place,
    refusals=(
        Refusal("a bucket's name", "Cloud Storage docs, buckets#naming (2026)", _bad_bucket_name),
        Refusal("labels", "Resource Manager docs, creating-managing-labels (2026)", _labels),
    ),
    taken=_bucket_taken,
    leaving=_keeps_contents,
    gone=_empty,
)


def _filestore_id(asked: Asked) -> str:
    return f"projects/{asked.project}/locations/{asked.location}/instances/{asked.name}"


def _filestore_outputs(asked: Asked) -> dict[str, Any]:
    numbers = sum(_filestore_id(asked).encode())
    networks = [
        {
            "network": network.text("network"),
            "modes": list(network.texts("modes")),
            "connectMode": network.text("connectMode") or "DIRECT_PEERING",
            "ipAddresses": [f"10.{numbers // 250 % 250}.{numbers % 250}.2"],
        }
        for network in asked.said.parts("networks")
    ]
    return {"project": asked.project, "location": asked.location, "networks": networks}


# GiB of a file share, by tier (Filestore docs, service-tiers, 2026).
_CAPACITY: Final = {
    "STANDARD": (1024, 65434),
    "BASIC_HDD": (1024, 65434),
    "PREMIUM": (2560, 65434),
    "BASIC_SSD": (2560, 65434),
    "HIGH_SCALE_SSD": (10240, 102400),
    "ZONAL": (1024, 102400),
    "REGIONAL": (1024, 102400),
    "ENTERPRISE": (1024, 10240),
}


def _tier(asked: Asked) -> str | None:
    tier = asked.said.text("tier")
    if tier not in _CAPACITY:
        message = f"Invalid value at 'instance.tier' (Instance.Tier), \"{tier}\""
        return api_error(400, message, BAD_REQUEST)
    return None


def _capacity(asked: Asked) -> str | None:
    tier, size = asked.said.text("tier"), asked.said.number("fileShares.capacityGb") or 0
    least, most = _CAPACITY.get(tier, (size, size))
    if least <= size <= most:
        return None
    message = (
        f"Invalid file share capacity {size} GiB: it must be between {least} and {most} GiB for tier {tier}."
    )
    return api_error(400, message, BAD_REQUEST)


def _share_name(asked: Asked) -> str | None:
    name = asked.said.text("fileShares.name")
    if re.match(r"^[a-z][a-z0-9_]{0,15}$", name):
        return None
    return api_error(400, f"Invalid file share name '{name}'.", BAD_REQUEST)


def _network(asked: Asked) -> str | None:
    for network in asked.said.parts("networks"):
        name = last(network.text("network"))
        if name != "default" and asked.world.get(asked.network(network.text("network"))) is None:
            return api_error(404, f"network '{name}' does not exist.", NOT_FOUND)
    return None


def _filestore_taken(identity: str) -> str:
    error = api_error(409, f"Resource '{identity}' already exists", "alreadyExists")
    return f"Error creating Instance: {error}"


FILESTORE_KIND: Final = Kind(
    identity=_filestore_id,
    outputs=_filestore_outputs,
    autonamed="name",
    defaults={"protocol": "NFS_V3", "networks.connectMode": "DIRECT_PEERING", "desiredReplicaState": "READY"},
    replaces=frozenset(
        {
            "name",
            "location",
            "zone",
            "project",
            "fileShares.name",
            "fileShares.sourceBackup",
            "networks",
            "tier",
            "initialReplication",
            "kmsKeyName",
            "protocol",
            "tags",
        }
    ),
    same=frozenset({"networks.network"}),
    checks=(
        one_of(
            "networks.connectMode",
            "DIRECT_PEERING",
            "PRIVATE_SERVICE_ACCESS",
            "PRIVATE_SERVICE_CONNECT",
            source=_SCHEMA,
        ),
        one_of("protocol", "NFS_V3", "NFS_V4_1", source=_SCHEMA),
    ),
    refusals=(
        Refusal("a tier", "Filestore docs, service-tiers (2026)", _tier),
        Refusal("a capacity of the tier", "Filestore docs, service-tiers (2026)", _capacity),
        Refusal("a share's name", "Filestore API, FileShareConfig.name (2026)", _share_name),
        Refusal("a network that there is", "Filestore docs, creating-instances (2026)", _network),
        Refusal("labels", "Resource Manager docs, creating-managing-labels (2026)", _labels),
    ),
    failing="Error creating Instance",
    taken=_filestore_taken,
    events="file-store",
)
