"""Disks that outlive a stack, as far as its cluster shows them."""

from collections.abc import Iterable
from dataclasses import dataclass

from ebbtide.kubernetes_api import Object
from ebbtide.kubernetes_api.parts import part, text
from ebbtide.operations.state import State


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume.

    Attributes:
        name: what it is called.
        disk: the disk's own name where the driver says one.
        size: as Kubernetes writes it.
        claim: namespace and name of the claim.
        retained: whether its disk stays when the claim goes.
    """

    name: str
    disk: str
    size: str
    claim: str
    retained: bool

    @property
    def namespace(self) -> str:
        """The claim's."""
        return self.claim.partition("/")[0]


def read(volume: Object) -> Volume:
    """A PersistentVolume."""
    claim = part(volume, "spec", "claimRef")
    return Volume(
        name=volume["metadata"]["name"],
        disk=text(volume, "spec", "csi", "volumeHandle").rpartition("/")[2],
        size=text(volume, "spec", "capacity", "storage"),
        claim=f"{text(claim, 'namespace')}/{text(claim, 'name')}" if claim else "",
        retained=text(volume, "spec", "persistentVolumeReclaimPolicy") == "Retain",
    )


def left(before: Iterable[Volume], after: Iterable[Volume] | None, state: State) -> list[Volume]:
    """The volumes whose disks stay.

    Args:
        before: those that there were.
        after: those that there are when the stack is gone; None where nobody can be asked.
        state: the stack's.

    Returns:
        On a cluster that stays, what is left of volumes in the namespaces that went. Of a cluster that went,
        those whose claims the stack did not delete, and those that are retained: a cloud deletes no disk with
        a cluster (GKE docs, deleting a cluster, 2026).
    """
    if state.owns_cluster:
        return [one for one in before if one.retained or one.namespace not in state.namespaces]
    still = {one.name for one in after} if after is not None else None
    return [
        one
        for one in before
        if one.namespace in state.namespaces and (one.retained if still is None else one.name in still)
    ]
