"""Buckets with their objects, and file systems."""

import re
from typing import Any, Final

from ebbtide_rehearsal.cloud.gcp.answers import outputs_of
from ebbtide_rehearsal.cloud.gcp.identities import forget_grants
from ebbtide_rehearsal.cloud.gcp.labels import bad_labels
from ebbtide_rehearsal.cloud.gcp.request import (
    BAD_REQUEST,
    BUCKET,
    CLOUD,
    FILESTORE,
    NOT_FOUND,
    GoogleCloud,
    Request,
    api_error,
    last,
)
from ebbtide_rehearsal.cloud.gcp.resource_kind import ResourceKind, Rule
from ebbtide_rehearsal.cloud.store import Resource, Store

_OBJECT: Final = "storage#object"


def put_object(store: Store, bucket: str, name: str, size: int = 0) -> None:
    """Put an object of `size` bytes into a bucket, as a pipeline does, so that the bucket is not empty."""
    state = {"bucket": bucket, "name": name, "size": str(size)}
    store.put(Resource(CLOUD, f"b/{bucket}/o/{name}", _OBJECT, state=state))


def objects(store: Store, bucket: str) -> list[Resource]:
    """Return the objects of a bucket."""
    return [item for item in store.resources(CLOUD, _OBJECT) if item.state["bucket"] == bucket]


_BUCKET_NAME: Final = re.compile(r"^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$")


def _bad_bucket_name(request: Request) -> str | None:
    fits = (
        _BUCKET_NAME.match(request.name)
        and not request.name.startswith("goog")
        and "google" not in request.name
    )
    if fits and ".." not in request.name:
        return None
    return api_error(400, f"Invalid bucket name: '{request.name}'", "invalid")


def _labels(request: Request) -> str | None:
    reason = bad_labels(request.fields.labels("labels"))
    return api_error(400, reason, BAD_REQUEST) if reason else None


def _bucket_taken(_identity: str) -> str:
    message = "Your previous request to create the named bucket succeeded and you already own it."
    return api_error(409, message, "conflict")


def _keeps_contents(cloud: GoogleCloud, bucket: Resource) -> str | None:
    if bucket.inputs.get("forceDestroy") or not objects(cloud.store, bucket.id):
        return None
    return f"Error trying to delete bucket {bucket.id} without `force_destroy` set to true"


def _empty(cloud: GoogleCloud, bucket: Resource) -> None:
    for item in objects(cloud.store, bucket.id):
        cloud.store.remove(CLOUD, item.id)
    forget_grants(cloud, bucket)


def _filestore_outputs(request: Request) -> dict[str, Any]:
    numbers = sum(request.id.encode())
    networks = [
        {
            "network": network.text("network"),
            "modes": list(network.texts("modes")),
            "connectMode": network.text("connectMode") or "DIRECT_PEERING",
            "ipAddresses": [f"10.{numbers // 250 % 250}.{numbers % 250}.2"],
        }
        for network in request.fields.parts("networks")
    ]
    return {
        **outputs_of(request),
        "project": request.project,
        "location": request.location,
        "networks": networks,
    }


# Minimum and maximum capacity by tier, GiB (Filestore docs, service-tiers, 2026).
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


def _tier(request: Request) -> str | None:
    tier = request.fields.text("tier")
    if tier not in _CAPACITY:
        message = f"Invalid value at 'instance.tier' (Instance.Tier), \"{tier}\""
        return api_error(400, message, BAD_REQUEST)
    return None


def _capacity(request: Request) -> str | None:
    tier, size = request.fields.text("tier"), request.fields.number("fileShares.capacityGb") or 0
    least, most = _CAPACITY.get(tier, (size, size))
    if least <= size <= most:
        return None
    message = (
        f"Invalid file share capacity {size} GiB: it must be between {least} and {most} GiB for tier {tier}."
    )
    return api_error(400, message, BAD_REQUEST)


def _share_name(request: Request) -> str | None:
    name = request.fields.text("fileShares.name")
    if re.match(r"^[a-z][a-z0-9_]{0,15}$", name):
        return None
    return api_error(400, f"Invalid file share name '{name}'.", BAD_REQUEST)


def _network(request: Request) -> str | None:
    for network in request.fields.parts("networks"):
        name = last(network.text("network"))
        if name != "default" and request.cloud.get(request.network(network.text("network"))) is None:
            return api_error(404, f"network '{name}' does not exist.", NOT_FOUND)
    return None


def _filestore_taken(identity: str) -> str:
    error = api_error(409, f"Resource '{identity}' already exists", "alreadyExists")
    return f"Error creating Instance: {error}"


KINDS: Final = (
    ResourceKind(
        type=BUCKET,
        outputs=lambda request: {
            **outputs_of(request),
            "project": request.project,
        },
        autonamed="name",
        rules=(
            Rule("a bucket's name", "Cloud Storage docs, buckets#naming (2026)", _bad_bucket_name),
            Rule("labels", "Resource Manager docs, creating-managing-labels (2026)", _labels),
        ),
        already_exists=_bucket_taken,
        before_delete=_keeps_contents,
        after_delete=_empty,
    ),
    ResourceKind(
        type=FILESTORE,
        outputs=_filestore_outputs,
        autonamed="name",
        rules=(
            Rule("a tier", "Filestore docs, service-tiers (2026)", _tier),
            Rule("a capacity of the tier", "Filestore docs, service-tiers (2026)", _capacity),
            Rule("a share's name", "Filestore API, FileShareConfig.name (2026)", _share_name),
            Rule("a network that there is", "Filestore docs, creating-instances (2026)", _network),
            Rule("labels", "Resource Manager docs, creating-managing-labels (2026)", _labels),
        ),
        failing="Error creating Instance",
        already_exists=_filestore_taken,
        events="file-store",
    ),
)
