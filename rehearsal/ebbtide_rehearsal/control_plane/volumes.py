"""A fake storage driver, which creates disks for claims and deletes them, and the mounts of a container.

The real controller binds volumes and the real scheduler selects nodes; this module replaces the driver's
provisioner (kubernetes-csi/external-provisioner). A disk is a file, which outlives the API server: disks
that remain after their cluster is deleted would still cost money in a cloud. Mounts are below a directory
that serves as the container's root.
"""

import base64
import http
import json
import shutil
import tempfile
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
_DATA = "..data"
SERVICE_ACCOUNTS = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True, slots=True)
class PersistentDisk:
    """A disk of the cloud.

    Attributes:
        name: name of the disk and its volume.
        size: a quantity, such as `20Gi`.
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


class NotMountedError(Exception):
    """A mounted object does not exist (yet). The message is the kubelet's."""


def inside(root: Path, path: str) -> Path:
    """Return the local path of a container's path."""
    return root / path.lstrip("/")


def mount(api: Api, pod: Object, root: Path) -> None:
    """Write ConfigMaps, Secrets and empty directories to the mount paths of the pod's only container;
    repeated calls update them. Of a service account only the namespace is written: for the token see
    `account_token`.

    Raises:
        NotMountedError: a required object does not exist.
    """
    namespace = pod["metadata"]["namespace"]
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
    (container,) = pod["spec"]["containers"]
    for volume_mount in container.get("volumeMounts", []):
        target = inside(root, volume_mount["mountPath"])
        if volume_mount["mountPath"] == SERVICE_ACCOUNTS:
            _write(target / "namespace", namespace.encode())
            continue
        files = _files(api, namespace, volumes[volume_mount["name"]])
        if part := volume_mount.get("subPath"):
            _write(target, files[part])
        else:
            _publish(target, files)


def account_token(api: Api, pod: Object, target: Path) -> None:
    """Request a token of the pod's service account, so that the pod's program has the permissions of its
    roles.
    """
    namespace = pod["metadata"]["namespace"]
    account = pod["spec"].get("serviceAccountName", "default")
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 24 * 60 * 60},
    }
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.touch(mode=0o600)
    target.write_text(api.create(path, request)["status"]["token"])


def _write(target: Path, content: bytes) -> None:
    """Write a single file, which never changes in a container (Kubernetes docs, volumes, subPath)."""
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _publish(target: Path, files: Mapping[str, bytes]) -> None:
    """Publish a directory atomically, as a kubelet does, so that a certificate always matches its key. The
    files are symlinks through a second symlink, which is replaced.
    """
    target.mkdir(parents=True, exist_ok=True)
    current = target / _DATA
    before = current.resolve()
    existing = (
        {str(file.relative_to(before)): file.read_bytes() for file in before.rglob("*") if file.is_file()}
        if current.is_symlink()
        else {}
    )
    if existing == files:
        return
    new = Path(tempfile.mkdtemp(prefix="..", dir=target))
    for name, content in files.items():
        (new / name).parent.mkdir(parents=True, exist_ok=True)
        (new / name).write_bytes(content)
    link = target / f"{_DATA}_new"
    link.symlink_to(new.name)
    link.replace(current)
    linked, entries = _entries(existing), _entries(files)
    for name in linked - entries:
        (target / name).unlink()
    for name in entries - linked:
        (target / name).symlink_to(Path(_DATA) / name)
    if before != current:
        shutil.rmtree(before)


def _entries(files: Mapping[str, bytes]) -> set[str]:
    """Return the files and directories at the top of a volume."""
    return {Path(name).parts[0] for name in files}


def _files(api: Api, namespace: str, volume: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files of a volume by path."""
    if "emptyDir" in volume:
        return {}
    if "configMap" in volume:
        source = volume["configMap"]
        existing = _existing(api, namespace, "configmaps", source["name"], source)
        data: Mapping[str, str] = existing.get("data") or {}
        texts = {key: text.encode() for key, text in data.items()}
        return _chosen(texts | _decoded(existing.get("binaryData")), source)
    if "secret" in volume:
        source = volume["secret"]
        existing = _existing(api, namespace, "secrets", source["secretName"], source)
        return _chosen(_decoded(existing.get("data")), source)
    raise NotMountedError(f"volume {volume['name']}: a rehearsal cannot mount its kind")


def _decoded(data: Mapping[str, str] | None) -> dict[str, bytes]:
    return {key: base64.b64decode(text) for key, text in (data or {}).items()}


def _existing(api: Api, namespace: str, kind: str, name: str, source: Mapping[str, Any]) -> Object:
    existing = api.find(f"/api/v1/namespaces/{namespace}/{kind}/{name}")
    if existing is None and not source.get("optional"):
        raise NotMountedError(f"{kind.removesuffix('s')} {name!r} not found")
    return existing or {}


def _chosen(data: Mapping[str, bytes], source: Mapping[str, Any]) -> dict[str, bytes]:
    """Select everything, or the volume's listed items under their paths."""
    if "items" not in source:
        return dict(data)
    return {item["path"]: data[item["key"]] for item in source["items"] if item["key"] in data}
