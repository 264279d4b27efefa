"""A fake storage driver: creates disks for claims and deletes them.

The real controller binds volumes and the real scheduler selects nodes; this module replaces the driver's
provisioner (kubernetes-csi/external-provisioner). A disk is a file, which outlives the API server: disks that
remain after their cluster is deleted would still cost money in a cloud.
"""

import http
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ebbtide.clients.kubernetes import Api, ApiError, Object

_CLAIMS = "/api/v1/persistentvolumeclaims"
_VOLUMES = "/api/v1/persistentvolumes"
_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_FINALIZER = "external-provisioner.volume.kubernetes.io/finalizer"


@dataclass(frozen=True, slots=True)
class PersistentDisk:
    """A disk of the cloud.

    Attributes:
        name: name of the disk and its volume.
        size: a quantity, such as `20Gi`.
        storage_class: its storage class.
        driver: its storage driver.
        claim: namespace and name of its claim.
    """

    name: str
    size: str
    storage_class: str
    driver: str
    claim: str


class Volumes:
    """Create volumes for claims and delete released ones, on each reconciliation."""

    def __init__(self, api: Api, directory: Path) -> None:
        """Store the disks of a cluster in a directory."""
        self._api, self._directory = api, directory
        directory.mkdir(parents=True, exist_ok=True)

    def reconcile(self) -> None:
        """Reconcile all claims and volumes once."""
        waiting = list(filter(_waits, self._api.items(_CLAIMS)))
        if waiting:
            classes = {item["metadata"]["name"]: item for item in self._api.items(_CLASSES)}
            for claim in waiting:
                storage = classes.get(claim["spec"].get("storageClassName", ""))
                if storage is not None:
                    self._provision(claim, storage)
        for volume in self._api.items(_VOLUMES):
            if _done_with(volume):
                self._delete(volume["metadata"]["name"])

    def disks(self) -> tuple[PersistentDisk, ...]:
        """List all disks."""
        return tuple(left_disks(self._directory))

    def _provision(self, claim: Object, storage: Object) -> None:
        metadata, spec = claim["metadata"], claim["spec"]
        name, driver = f"pvc-{metadata['uid']}", storage["provisioner"]
        size = spec["resources"]["requests"]["storage"]
        claim_name = f"{metadata['namespace']}/{metadata['name']}"
        disk = PersistentDisk(name, size, storage["metadata"]["name"], driver, claim_name)
        (self._directory / f"{name}.json").write_text(json.dumps(asdict(disk), indent=2))
        try:
            self._api.create(_VOLUMES, _volume(claim, storage, disk))
        except ApiError as error:
            if error.status != http.HTTPStatus.CONFLICT:  # it exists, and is not bound yet
                raise

    def _delete(self, name: str) -> None:
        path = f"{_VOLUMES}/{name}"
        (self._directory / f"{name}.json").unlink(missing_ok=True)
        self._api.delete(path)
        volume = self._api.find(path)
        if volume is not None:
            claims = [item for item in volume["metadata"].get("finalizers", ()) if item != _FINALIZER]
            self._api.patch(path, {"metadata": {"finalizers": claims}})


def left_disks(directory: Path) -> Iterator[PersistentDisk]:
    """List the disks in a directory, which may outlive their cluster."""
    for file in sorted(directory.glob("*.json")):
        yield PersistentDisk(**json.loads(file.read_text()))


def _waits(claim: Object) -> bool:
    """Check if the controller requests a volume of a driver: with a node if the class waits for a
    consumer.
    """
    metadata = claim["metadata"]
    annotations: Mapping[str, str] = metadata.get("annotations") or {}
    return (
        claim.get("status", {}).get("phase") == "Pending"
        and "deletionTimestamp" not in metadata
        and _PROVISIONER in annotations
        and not claim["spec"].get("volumeName")
    )


def _done_with(volume: Object) -> bool:
    """Check if a volume of this driver is to be deleted: released with policy Delete, or deleted by a
    client.
    """
    if _PROVISIONED_BY not in (volume["metadata"].get("annotations") or {}):
        return False
    deletes = volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
    return deletes and volume.get("status", {}).get("phase") == "Released"


def _volume(claim: Object, storage: Object, disk: PersistentDisk) -> dict[str, Any]:
    metadata, spec = claim["metadata"], claim["spec"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {
            "name": disk.name,
            "annotations": {_PROVISIONED_BY: disk.driver},
            "finalizers": [_FINALIZER],
        },
        "spec": {
            "capacity": {"storage": disk.size},
            "accessModes": spec["accessModes"],
            "volumeMode": spec.get("volumeMode", "Filesystem"),
            "storageClassName": disk.storage_class,
            "persistentVolumeReclaimPolicy": storage["reclaimPolicy"],
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
            "csi": {"driver": disk.driver, "volumeHandle": disk.name},
        },
    }
