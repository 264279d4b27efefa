"""Deletion of users' load balancers and volumes before their cluster, and of their finalizers if that hangs.

A deleted controller never removes its finalizer. A controller is considered deleted if it no longer renews
its lease (Kubernetes docs, leases); the fixed names of leases are those of GKE and AKS clusters.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from ebbtide.clients.kubernetes import Api, Object
from ebbtide.clients.kubernetes.parts import text, words
from ebbtide.operations import user_objects
from ebbtide.operations.user_objects import UserObject
from ebbtide.values import clock

_TIMEOUT = 600.0  # seconds; a load balancer takes a few minutes
_STEP = 1.0
_LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
_STALE: Final = timedelta(minutes=2)
"""Leases are renewed every few seconds, and expire after 15 (client-go, leaderelection)."""

_SERVICE: Final = ("cloud-controller-manager", "kube-controller-manager")
_GLBC: Final = ("ingress-gce-lock", "ingress-gce-neg-lock")
_STORAGE: Final = (
    "pd-csi-storage-gke-io",
    "disk-csi-azure-com",
    "file-csi-azure-com",
    "filestore-csi-storage-gke-io",
)
_CONTROLLERS: Final[Mapping[str, tuple[str, ...]]] = {
    "service.kubernetes.io/load-balancer-cleanup": ("cloud-controller-manager",),
    "gke.networking.io/l4-ilb-v1": _SERVICE,
    "gke.networking.io/l4-ilb-v2": _GLBC,
    "gke.networking.io/l4-netlb-v1": _SERVICE,
    "gke.networking.io/l4-netlb-v2": _GLBC,
    "gke.networking.io/l4-netlb-v3": _GLBC,
    "networking.gke.io/ingress-finalizer": _GLBC,
    "networking.gke.io/ingress-finalizer-V2": _GLBC,
    "external-provisioner.volume.kubernetes.io/finalizer": _STORAGE,
}
"""Finalizers that may be removed, with the leases of their controllers."""


def clean_up(api: Api, objects: Sequence[UserObject], log: Callable[[str], None]) -> list[str]:
    """Delete objects and wait for their controllers.

    Args:
        api: the cluster.
        objects: the objects, in order of deletion.
        log: called with messages for the user.

    Returns:
        The objects that still exist, each with its finalizers; empty if all are deleted.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    volumes = user_objects.volumes_of(api, objects)
    user_objects.delete(api, objects)
    remaining = _wait(api, objects, volumes)
    if not remaining:
        return []
    renewed = _renewed(api)
    for item, current in remaining:
        for line in _release(api, item, current, renewed):
            log(line)
    return [
        f"{item}: {', '.join(words(current, 'metadata', 'finalizers')) or 'it is not deleted yet'}"
        for item, current in user_objects.remaining(api, objects, volumes)
    ]


def _wait(
    api: Api, objects: Sequence[UserObject], volumes: frozenset[str]
) -> list[tuple[UserObject, Object]]:
    end = time.monotonic() + _TIMEOUT
    while remaining := user_objects.remaining(api, objects, volumes):
        if time.monotonic() > end:
            break
        time.sleep(_STEP)
    return remaining


def _renewed(api: Api) -> set[str]:
    """Return the recently renewed leases, whose controllers run."""
    now = clock.now()
    leases = (api.find(_LEASES) or {}).get("items") or ()
    return {
        lease["metadata"]["name"]
        for lease in leases
        if (moment := text(lease, "spec", "renewTime")) and now - datetime.fromisoformat(moment) < _STALE
    }


def _release(api: Api, item: UserObject, current: Object, renewed: set[str]) -> list[str]:
    """Remove the finalizers of deleted controllers; return descriptions of the removals."""
    finalizers = words(current, "metadata", "finalizers")
    orphaned = [name for name in finalizers if name in _CONTROLLERS and not renewed & {*_CONTROLLERS[name]}]
    if not orphaned or not text(current, "metadata", "deletionTimestamp"):
        return []
    remaining = [name for name in finalizers if name not in orphaned]
    api.patch(item.path, {"metadata": {"finalizers": remaining}})
    done = f"{item}: its finalizer {', '.join(orphaned)} is removed, because its controller no longer runs."
    return [f"{done} Cloud resources that it would have deleted may remain."]
