"""Resource types of Google Cloud without nodes: by their templates, and what protects two of them.

Source of reservations: Compute Engine docs, future-reservations-calendar-mode-overview and
create-future-reservations-calendar-mode (2026): a submitted request cannot be changed, cancelled or deleted.
"""

from typing import Final

from ebbtide.analysis.reading.gke import read_period
from ebbtide_rehearsal.cloud.gcp.request import (
    BAD_REQUEST,
    BUCKET,
    CLOUD,
    FUTURE_RESERVATION,
    GoogleCloud,
    Request,
    ResourceKind,
    Rule,
    api_error,
    inputs_of,
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


def _keeps_contents(cloud: GoogleCloud, bucket: Resource) -> str | None:
    if bucket.inputs.get("forceDestroy") or not objects(cloud.store, bucket.id):
        return None
    return f"Error trying to delete bucket {bucket.id} without `force_destroy` set to true"


def _empty(cloud: GoogleCloud, bucket: Resource) -> None:
    for item in objects(cloud.store, bucket.id):
        cloud.store.remove(CLOUD, item.id)


def period_of(cloud: GoogleCloud, name: str) -> tuple[float, float] | None:
    """Return begin and end of a requested reservation, in simulated seconds; None for another one."""
    for resource in cloud.of(FUTURE_RESERVATION):
        own, period = read_period(inputs_of(resource))
        if own == name:
            begin, end = (time.timestamp() - cloud.store.clock.started for time in period)
            return begin, end
    return None


def _submitted(request: Request) -> str | None:
    if request.old is None:
        return None
    message = f"The future reservation {request.name} is submitted and cannot be updated in calendar mode."
    return api_error(400, message, BAD_REQUEST)


def _before_its_end(cloud: GoogleCloud, reservation: Resource) -> str | None:
    _, (_, end) = read_period(inputs_of(reservation))
    if cloud.store.clock.started + cloud.store.clock.now() >= end.timestamp():
        return None
    message = f"The future reservation {reservation.id} cannot be deleted before its end in calendar mode."
    return f"Error when reading or editing FutureReservation: {api_error(400, message, BAD_REQUEST)}"


_TYPES: Final = (
    *("gcp:compute/network:Network", "gcp:compute/subnetwork:Subnetwork", "gcp:compute/firewall:Firewall"),
    *("gcp:compute/router:Router", "gcp:compute/routerNat:RouterNat", "gcp:filestore/instance:Instance"),
    *("gcp:serviceaccount/account:Account", "gcp:serviceaccount/iAMMember:IAMMember"),
    *("gcp:projects/iAMMember:IAMMember", "gcp:projects/serviceIdentity:ServiceIdentity"),
    *("gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember", "gcp:storage/bucketIAMMember:BucketIAMMember"),
    "gcp:artifactregistry/repository:Repository",
    "gcp:artifactregistry/repositoryIamMember:RepositoryIamMember",
)
_EVENTS: Final = {
    "gcp:filestore/instance:Instance": "file-store",
    "gcp:artifactregistry/repository:Repository": "repository",
}

KINDS: Final = (
    *(ResourceKind(type=token, events=_EVENTS.get(token, "")) for token in _TYPES),
    ResourceKind(type=BUCKET, before_delete=_keeps_contents, after_delete=_empty),
    ResourceKind(
        type=FUTURE_RESERVATION,
        rules=(
            Rule(
                "submitted request",
                "Compute Engine docs, future-reservations-calendar-mode-overview (2026)",
                _submitted,
            ),
        ),
        before_delete=_before_its_end,
    ),
)
"""Resource types."""
