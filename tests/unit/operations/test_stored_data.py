"""People's data that a destroy deletes, as it is listed before the question."""

from typing import Any

from ebbtide.clients.clouds.interfaces import Account, CloudApiError, Contents, StoredData
from ebbtide.declaration.catalog import CloudKind
from ebbtide.operations import inspection
from ebbtide.operations.access import Clouds

_PROJECT = Account(CloudKind.GKE, "acme-ml")
_SUBSCRIPTION = Account(CloudKind.AKS, "1-2")
_GROUP = "/subscriptions/1-2/resourceGroups/train/providers"


def _resource(type_: str, id_: str, inputs: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"urn": f"urn:pulumi:dev::shop::{type_}::x", "type": type_, "id": id_, "inputs": inputs, **more}


_BUCKET = _resource("gcp:storage/bucket:Bucket", "data", {"name": "data", "project": "acme-ml"})
_FILES = _resource(
    "gcp:filestore/instance:Instance",
    "projects/acme-ml/locations/us-central1-a/instances/files",
    {"name": "files", "project": "acme-ml", "fileShares": {"capacityGb": 1024, "name": "shared"}},
)
_IMAGES = _resource(
    "azure-native:containerregistry:Registry",
    f"{_GROUP}/Microsoft.ContainerRegistry/registries/images",
    {"registryName": "images"},
)
_SHARE = _resource(
    "azure-native:storage:StorageAccount",
    f"{_GROUP}/Microsoft.Storage/storageAccounts/share",
    {"accountName": "share", "kind": "FileStorage"},
)
_CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"
_DISK = {
    "metadata": {"name": "mysql", "namespace": "katib"},
    "spec": {"resources": {"requests": {"storage": "10Gi"}}},
}
_SHARED = {**_DISK, "spec": {**_DISK["spec"], "volumeName": "data"}}
_STATE = {
    "resources": [
        _BUCKET,
        {**_BUCKET, "retainOnDelete": True},
        _FILES,
        _IMAGES,
        _SHARE,
        _resource(_CLAIM, "katib/mysql", _DISK),
        _resource(_CLAIM, "vision/shared", _SHARED),
        _resource("gcp:container/cluster:Cluster", "c", {"name": "train"}),
    ]
}


class _Inventory:
    """A project or subscription with these contents, by name."""

    def __init__(self, contents: dict[str, Contents | CloudApiError | None]) -> None:
        self._contents = contents

    def contents(self, data: StoredData) -> Contents | None:
        """Return the contents, or fail."""
        contents = self._contents[data.name]
        if isinstance(contents, CloudApiError):
            raise contents
        return contents


def _lines(**contents: Contents | CloudApiError | None) -> list[str]:
    google: Any = _Inventory(contents)
    reached = Clouds({_PROJECT: google}, {_SUBSCRIPTION: "Log in with `az login`."})
    return list(inspection.stored_lines(inspection.of_state(_STATE), reached))


def test_each_is_named_with_its_contents() -> None:
    """The count of the cloud, or why there is none; not what is kept, and the data of a claim once."""
    assert _lines(data=Contents(5_600_000_000, 1234), files=None) == [
        "Deleted with everything in it:",
        "  bucket data: 1,234 objects, 5.6 GB",
        "  file share files, 1024 GiB: its contents cannot be read",
        "  registry images: its contents cannot be read. Log in with `az login`.",
        "  file share share: its contents cannot be read. Log in with `az login`.",
        "  disk of claim mysql in katib, 10Gi: its contents cannot be read",
    ]


def test_large_empty_and_closed() -> None:
    """A bucket that was not counted to its end, an empty one, and one whose objects the user may not list."""
    assert _lines(data=Contents(9000, 10_000, is_partial=True), files=None)[1] == (
        "  bucket data: at least 10,000 objects, 9.0 kB"
    )
    assert _lines(data=Contents(0, 0), files=None)[1] == "  bucket data: empty"
    denied = CloudApiError("storage.googleapis.com returned status 403.", 403)
    assert _lines(data=denied, files=None)[1] == (
        "  bucket data: its contents cannot be read. storage.googleapis.com returned status 403."
    )


def test_names_in_a_question() -> None:
    """The first three, and the number of the others."""
    data = inspection.of_state(_STATE)
    assert inspection.named(data) == "bucket data, file share files, registry images and 2 more"
    assert inspection.named(data[:1]) == "bucket data"
    assert inspection.named([]) == ""
