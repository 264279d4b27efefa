"""Disks that outlive a stack, derived from its cluster's PersistentVolumes."""

from collections.abc import Iterable
from dataclasses import dataclass

from ebbtide.clients.kubernetes import Object
from ebbtide.clients.kubernetes.parts import part, text
from ebbtide.operations.state import State


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume.

    Attributes:
        name: its name.
        disk: the disk's name, if the driver reports it.
        size: its capacity as a Kubernetes quantity.
        claim: namespace and name of the claim.
        retained: true for reclaim policy Retain.
    """

    name: str
    disk: str
    size: str
    claim: str
    retained: bool

    @property
    def namespace(self) -> str:
        """The claim's namespace."""
        return self.claim.partition("/")[0]


def read(volume: Object) -> Volume:
    """Parse a PersistentVolume."""
    claim = part(volume, "spec", "claimRef")
    return Volume(
        name=volume["metadata"]["name"],
        disk=text(volume, "spec", "csi", "volumeHandle").rpartition("/")[2],
        size=text(volume, "spec", "capacity", "storage"),
        claim=f"{text(claim, 'namespace')}/{text(claim, 'name')}" if claim else "",
        retained=text(volume, "spec", "persistentVolumeReclaimPolicy") == "Retain",
    )


def remaining(before: Iterable[Volume], after: Iterable[Volume] | None, state: State) -> list[Volume]:
    """Return the volumes whose disks remain.

    Args:
        before: the volumes before the destroy.
        after: the volumes after the destroy; None if the cluster is unreachable.
        state: the stack's state.

    Returns:
        On an existing cluster, the remaining volumes of deleted namespaces. For a deleted cluster, retained
            volumes and those whose claims the stack did not delete: a cloud deletes no disk with a cluster
            (GKE docs, deleting a cluster, 2026).
    """
    if state.owns_cluster:
        return [volume for volume in before if volume.retained or volume.namespace not in state.namespaces]
    existing = {volume.name for volume in after} if after is not None else None
    return [
        volume
        for volume in before
        if volume.namespace in state.namespaces
        and (volume.retained if existing is None else volume.name in existing)
    ]
