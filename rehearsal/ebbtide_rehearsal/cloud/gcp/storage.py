"""Buckets with their objects, file systems, and container registries."""

import re
from typing import Any, Final

from ebbtide_rehearsal.cloud.gcp.identities import forget_grants, member_kind
from ebbtide_rehearsal.cloud.gcp.request import (
    BUCKET,
    CLOUD,
    FILESTORE,
    NOT_FOUND,
    REPOSITORY,
    REPOSITORY_MEMBER,
    GoogleCloud,
    Request,
    ResourceKind,
    Rule,
    api_error,
    last,
    outputs_of,
)
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


def _network(request: Request) -> str | None:
    for network in request.fields.parts("networks"):
        name = last(network.text("network"))
        if name != "default" and request.cloud.get(request.network(network.text("network"))) is None:
            return api_error(404, f"network '{name}' does not exist.", NOT_FOUND)
    return None


def _filestore_taken(identity: str) -> str:
    error = api_error(409, f"Resource '{identity}' already exists", "alreadyExists")
    return f"Error creating Instance: {error}"


def _taken(_identity: str) -> str:
    return f"Error creating Repository: {api_error(409, 'the repository already exists', 'alreadyExists')}"


def _of_member(request: Request) -> str:
    name = last(request.fields.text("repository"))
    return f"projects/{request.project}/locations/{request.location}/repositories/{name}"


def _no_such_repository(request: Request) -> str | None:
    if request.cloud.get(_of_member(request)) is not None:
        return None
    return api_error(404, "Requested entity was not found.", NOT_FOUND)


KINDS: Final = (
    ResourceKind(
        type=BUCKET,
        outputs=lambda request: {
            **outputs_of(request),
            "project": request.project,
        },
        autonamed="name",
        rules=(Rule("bucket name", "Cloud Storage docs, buckets#naming (2026)", _bad_bucket_name),),
        already_exists=_bucket_taken,
        before_delete=_keeps_contents,
        after_delete=_empty,
    ),
    ResourceKind(
        type=FILESTORE,
        outputs=_filestore_outputs,
        autonamed="name",
        rules=(Rule("existing network", "Filestore docs, creating-instances (2026)", _network),),
        failing="Error creating Instance",
        already_exists=_filestore_taken,
        events="file-store",
    ),
    ResourceKind(
        type=REPOSITORY,
        outputs=lambda request: {
            **outputs_of(request),
            "location": request.location,
            # A domain-scoped project is below its domain.
            "registryUri": outputs_of(request)["registryUri"].replace(":", "/"),
        },
        failing="Error creating Repository",
        already_exists=_taken,
        after_delete=forget_grants,
        events="repository",
    ),
    member_kind(
        REPOSITORY_MEMBER,
        "artifactregistry repository",
        Rule(
            "existing repository",
            "Artifact Registry API, repositories.setIamPolicy (2026)",
            _no_such_repository,
        ),
    ),
)
