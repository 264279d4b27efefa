"""Users' Kubernetes objects that own cloud resources which would outlive the cluster: load balancers and
volumes. Their controllers delete the cloud resources while the cluster still runs.

A deleted controller never removes its finalizer, and then it is removed here. A controller is considered
deleted if it no longer renews its lease (Kubernetes docs, leases); the fixed names of leases are those of GKE
and AKS clusters. Finalizers that keep the namespaces of removed teams from ending are named.

Every function that takes the cluster raises `ApiError` if its API server does not answer or denies access.

Sources: GKE docs, deleting-a-cluster (2026): load balancers may be left; Kubernetes docs, persistent-volumes,
and finalizers of Services (KEP 980); kubernetes/ingress-gce, pkg/utils/common/finalizer.go.
"""

import json
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from ebbtide.clients.kubernetes import METADATA, Api, ApiError, Object
from ebbtide.clients.kubernetes.objects import items_of, part, parts, text, words
from ebbtide.operations import access
from ebbtide.operations.engine.failures import OperationError
from ebbtide.operations.engine.state import ObjectReference, State
from ebbtide.text import and_list
from ebbtide.values import clock
from ebbtide.values.cloud_kind import CloudKind, by_cloud
from ebbtide.values.given_command import given_command

_GATEWAYS: Final = "/apis/gateway.networking.k8s.io/v1/gateways"
_INGRESSES: Final = "/apis/networking.k8s.io/v1/ingresses"
_SERVICES: Final = "/api/v1/services"
_CLAIMS: Final = "/api/v1/persistentvolumeclaims"
_VOLUMES: Final = "/api/v1/persistentvolumes"
_CONTENTS: Final = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents"
_LISTS: Final = {
    "Gateway": _GATEWAYS,
    "Ingress": _INGRESSES,
    "Service": _SERVICES,
    "PersistentVolumeClaim": _CLAIMS,
    "PersistentVolume": _VOLUMES,
}
"""In order of deletion: a Gateway's controller creates Services, and deleting a claim deletes its volume."""

_INGRESS_CLASSES: Final = by_cloud(
    gke={"", "gce", "gce-internal"},
    aks={"azure-application-gateway", "azure-alb-external", "webapprouting.kubernetes.azure.com"},
)
"""Classes whose controllers create cloud resources; GKE's controllers also serve an Ingress with no class."""

_LOAD_BALANCER_NAME: Final = 32
_RESOURCE_ANNOTATION: Final = re.compile(
    r"service\.kubernetes\.io/(backend-service|firewall-rule|firewall-rule-for-hc|healthcheck|"
    r"(tcp|udp|l3)-forwarding-rule)(-ipv6)?"
    r"|ingress\.kubernetes\.io/(https-)?(forwarding-rule|target-proxy)|ingress\.kubernetes\.io/url-map"
)
"""Annotations with the name of a cloud resource (kubernetes/ingress-gce, pkg/annotations)."""
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
_WAITED: Final = "timed out waiting for the condition"
"""Error of the engine whose deletion of a namespace took longer than its limit (pulumi-kubernetes 4.34,
provider/pkg/await)."""
_REMAINING: Final = "NamespaceContentRemaining"
_KIND: Final = re.compile(r"([a-z0-9-]+)\.([a-z0-9.-]*) has \d+ resource instances")
"""Resource and group in the condition of a terminating namespace (Kubernetes 1.36,
pkg/controller/namespace/deletion/status_condition_utils.go)."""
_SHOWN: Final = 10
_TEAMS: Final = "ebbtide.dev/team"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserObject:
    """An object that owns a cloud resource.

    Attributes:
        kind: kind, such as `Service`.
        namespace: its namespace; empty for a PersistentVolume.
        size: capacity of a volume or claim, as a Kubernetes quantity.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    size: str = ""

    @property
    def path(self) -> str:
        """Path in the API."""
        group, _, plural = _LISTS[self.kind].rpartition("/")
        place = f"namespaces/{self.namespace}/" if self.namespace else ""
        return f"{group}/{place}{plural}/{self.name}"

    @property
    def is_volume(self) -> bool:
        """True for claims and volumes, which contain data."""
        return self.kind.startswith("PersistentVolume")

    def __str__(self) -> str:
        place = f" in {self.namespace}" if self.namespace else ""
        size = f", {self.size}" if self.size else ""
        return f"{self.kind} {self.name}{place}{size}"


@dataclass(frozen=True, slots=True)
class CloudNames:
    """Names and ids that identify a cluster's cloud resources.

    Attributes:
        namespace_uid: UID of the namespace kube-system.
        load_balancers: names of the components of load balancers.
        handles: ids of disks and snapshots.
        retained: ids of disks and snapshots that are kept because of their reclaim policy.
    """

    namespace_uid: str = ""
    load_balancers: frozenset[str] = frozenset()
    handles: frozenset[str] = frozenset()
    retained: frozenset[str] = frozenset()


def list_objects(api: Api, cloud: CloudKind, state: State) -> list[UserObject]:
    """List users' objects that own cloud resources and would end with the stack, in order of deletion.

    The engine deletes the stack's own objects, and add-ons' objects are deleted with their namespace.
    """
    volumes = {item["metadata"]["name"]: item for item in items_of(api.find(_VOLUMES))}

    def owns(kind: str, item: Object) -> bool:
        match kind:
            case "Service":
                return text(item, "spec", "type") == "LoadBalancer"
            case "Ingress":
                return _class_of(item) in _INGRESS_CLASSES[cloud]
            case "PersistentVolumeClaim":
                return _is_deleted(volumes.get(text(item, "spec", "volumeName"), {}))
            case "PersistentVolume":
                return _is_deleted(item) and text(item, "status", "phase") in {"Released", "Failed"}
            case _:
                return True

    return [
        UserObject(
            kind=kind,
            namespace=text(item, "metadata", "namespace"),
            name=item["metadata"]["name"],
            uid=item["metadata"]["uid"],
            size=text(item, "spec", "resources", "requests", "storage")
            or text(item, "spec", "capacity", "storage"),
        )
        for kind, path in _LISTS.items()
        for item in (volumes.values() if kind == "PersistentVolume" else items_of(api.find(path)))
        if owns(kind, item) and _is_users(kind, item, state)
    ]


def cloud_names(api: Api) -> CloudNames:
    """Return the names and ids that identify a cluster's cloud resources."""
    names: set[str] = set()
    for item in (*items_of(api.find(_SERVICES)), *items_of(api.find(_INGRESSES))):
        if text(item, "spec", "type") == "LoadBalancer":
            names.add(f"a{item['metadata']['uid'].replace('-', '')}"[:_LOAD_BALANCER_NAME])
        annotations = part(item, "metadata", "annotations")
        names |= {str(value) for key, value in annotations.items() if _RESOURCE_ANNOTATION.fullmatch(key)}
        names |= set(_backends(text(item, "metadata", "annotations", "ingress.kubernetes.io/backends")))
    volumes = items_of(api.find(_VOLUMES))
    handles = {text(item, "spec", "csi", "volumeHandle"): _is_deleted(item) for item in volumes}
    for item in items_of(api.find(_CONTENTS)):
        policy = text(item, "spec", "deletionPolicy")
        handles[text(item, "status", "snapshotHandle")] = policy == "Delete"
    handles.pop("", None)
    return CloudNames(
        namespace_uid=text(api.find("/api/v1/namespaces/kube-system") or {}, "metadata", "uid"),
        load_balancers=frozenset(names),
        handles=frozenset(handles),
        retained=frozenset(handle for handle, is_deleted in handles.items() if not is_deleted),
    )


def retain(api: Api, objects: Iterable[UserObject]) -> None:
    """Set the reclaim policy of claims' volumes to Retain, so that they outlive the claims."""
    claims = {(item.namespace, item.name) for item in objects if item.kind == "PersistentVolumeClaim"}
    volumes = {item.name for item in objects if item.kind == "PersistentVolume"}
    for item in items_of(api.find(_VOLUMES)):
        claim = part(item, "spec", "claimRef")
        name = item["metadata"]["name"]
        if name in volumes or (text(claim, "namespace"), text(claim, "name")) in claims:
            api.patch(f"{_VOLUMES}/{name}", {"spec": {"persistentVolumeReclaimPolicy": "Retain"}})


def delete(api: Api, objects: Sequence[UserObject]) -> None:
    """Delete objects, and pods that use their volumes together with the pods' controllers."""
    for item in objects:
        if not item.is_volume:
            given_command().happens(f"{item} is deleted")
            api.delete(item.path, uid=item.uid, propagationPolicy="Background")
    claims = {(item.namespace, item.name) for item in objects if item.kind == "PersistentVolumeClaim"}
    # A StatefulSet would recreate its claims, and a running pod keeps its claims (finalizer
    # kubernetes.io/pvc-protection).
    for pod in items_of(api.find("/api/v1/pods")) if claims else ():
        namespace = pod["metadata"]["namespace"]
        mounted = {
            text(volume, "persistentVolumeClaim", "claimName") for volume in parts(pod, "spec", "volumes")
        }
        if any((namespace, name) in claims for name in mounted):
            for path, uid in _with_owners(api, pod):
                given_command().happens(f"{path.rpartition('/')[2]} in {namespace} is deleted")
                api.delete(path, uid=uid, propagationPolicy="Background")
    for item in objects:
        if item.is_volume:
            given_command().happens(f"{item} is deleted")
            api.delete(item.path, uid=item.uid)


def remaining(
    api: Api, objects: Iterable[UserObject], volumes: frozenset[str]
) -> list[tuple[UserObject, Object]]:
    """Return the objects that still exist, with their current content.

    Args:
        objects: deleted objects.
        volumes: names of the PersistentVolumes of deleted claims.
    """
    existing = [(item, current) for item in objects if (current := api.find(item.path)) is not None]
    left = [(item, current) for item, current in existing if current["metadata"]["uid"] == item.uid]
    for name in sorted(volumes):
        volume = api.find(f"{_VOLUMES}/{name}")
        if volume is not None and _is_deleted(volume):
            item = UserObject(kind="PersistentVolume", namespace="", name=name, uid=volume["metadata"]["uid"])
            left.append((item, volume))
    return left


def volumes_of(api: Api, objects: Iterable[UserObject]) -> frozenset[str]:
    """Return the names of the PersistentVolumes of claims."""
    claims = {item.uid for item in objects if item.kind == "PersistentVolumeClaim"}
    return frozenset(
        item["metadata"]["name"]
        for item in items_of(api.find(_VOLUMES))
        if text(item, "spec", "claimRef", "uid") in claims
    )


def _with_owners(api: Api, pod: Object) -> Iterator[tuple[str, str]]:
    """Yield path and UID of a pod's topmost controller, and of the pod."""
    namespace, item = pod["metadata"]["namespace"], pod
    top = ""
    while owner := next((o for o in parts(item, "metadata", "ownerReferences") if o.get("controller")), None):
        path = _path_of(api, owner, namespace)
        owning = api.find(path) if path else None
        if owning is None:
            break
        top, item = path, owning
    if top:
        yield top, item["metadata"]["uid"]
    yield f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}", pod["metadata"]["uid"]


def _path_of(api: Api, owner: Any, namespace: str) -> str:
    """Return the path of an owner in a namespace; empty for a cluster-scoped owner, such as a node."""
    version = str(owner["apiVersion"])
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    for resource in parts(api.find(group) or {}, "resources"):
        if resource["kind"] == owner["kind"] and resource.get("namespaced") and "/" not in resource["name"]:
            return f"{group}/namespaces/{namespace}/{resource['name']}/{owner['name']}"
    return ""


def _is_users(kind: str, item: Object, state: State) -> bool:
    """Return whether an object ends with the stack, and is neither the stack's nor an add-on's."""
    namespace = text(item, "metadata", "namespace") or text(item, "spec", "claimRef", "namespace")
    is_own = (
        ObjectReference(kind, text(item, "metadata", "namespace"), item["metadata"]["name"]) in state.objects
    )
    addons = state.namespaces - state.teams
    return not is_own and namespace not in addons and (state.owns_cluster or namespace in state.namespaces)


def _is_deleted(volume: Object) -> bool:
    return text(volume, "spec", "persistentVolumeReclaimPolicy") == "Delete"


def _class_of(ingress: Object) -> str:
    annotations = part(ingress, "metadata", "annotations")
    return str(
        annotations.get("kubernetes.io/ingress.class") or part(ingress, "spec").get("ingressClassName") or ""
    )


def _backends(annotation: str) -> Iterable[str]:
    """Return the names of backend services, which are the keys of a JSON object."""
    try:
        return dict(json.loads(annotation or "{}"))
    except ValueError:
        return ()


def clean_up(api: Api, objects: Sequence[UserObject], log: Callable[[str], None]) -> list[str]:
    """Delete objects and wait for their controllers.

    Args:
        objects: the objects, in order of deletion.
        log: called with messages for the user.

    Returns:
        The objects that still exist, each with its finalizers; empty if all are deleted.
    """
    volumes = volumes_of(api, objects)
    delete(api, objects)
    left = _wait(api, objects, volumes)
    if not left:
        return []
    renewed = _renewed(api)
    for item, current in left:
        for line in _release(api, item, current, renewed):
            log(line)
    return [
        f"{item}: {', '.join(words(current, 'metadata', 'finalizers')) or 'it is not deleted yet'}"
        for item, current in remaining(api, objects, volumes)
    ]


def _wait(
    api: Api, objects: Sequence[UserObject], volumes: frozenset[str]
) -> list[tuple[UserObject, Object]]:
    end = time.monotonic() + _TIMEOUT
    while left := remaining(api, objects, volumes):
        if time.monotonic() > end:
            break
        time.sleep(_STEP)
    return left


def _renewed(api: Api) -> set[str]:
    """Return the recently renewed leases, whose controllers run."""
    now = clock.now()
    leases = items_of(api.find(_LEASES))
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
    kept = [name for name in finalizers if name not in orphaned]
    try:
        api.patch(item.path, {"metadata": {"uid": item.uid, "finalizers": kept}})
    except ApiError as error:
        # Deleted by now, also by an earlier try of which the answer was lost.
        if not error.not_found and not error.conflict:
            raise
    done = f"{item}: its finalizer {', '.join(orphaned)} is removed, because its controller no longer runs."
    return [f"{done} Cloud resources that it would have deleted may remain."]


def advice(outputs: Callable[[], Mapping[str, Any]], errors: Iterable[str]) -> Iterator[str]:
    """Yield lines about what keeps namespaces of teams from ending, if an error may be due to that.

    Args:
        outputs: returns the stack's outputs, with the kubeconfig.
    """
    if any(_WAITED in error for error in errors):
        # The errors themselves are reported in any case.
        with suppress(OperationError, ApiError):
            api, _ = access.connected(outputs(), "what remains in namespaces is unknown")
            yield from blocking(api)


def blocking(api: Api) -> Iterator[str]:
    """Yield a line for each object that keeps a terminating namespace of a team, with the command that
    removes its finalizers.
    """
    for namespace in api.items("/api/v1/namespaces", labelSelector=_TEAMS):
        name = namespace["metadata"]["name"]
        conditions = parts(namespace, "status", "conditions")
        remaining = [text(item, "message") for item in conditions if item.get("type") == _REMAINING]
        found = [item for kind in _KIND.findall(" ".join(remaining)) for item in _held(api, name, *kind)]
        for resource, item, finalizers in found[:_SHOWN]:
            patch = json.dumps({"metadata": {"finalizers": None}})
            command = shlex.join(
                ["kubectl", "patch", resource, item, "-n", name, "--type", "merge", "-p", patch]
            )
            yield (
                f"Namespace {name} cannot end: {resource}/{item} has the finalizer {and_list(finalizers)}. "
                f"If no controller removes it any more: {command}"
            )
        if len(found) > _SHOWN:
            yield f"And {len(found) - _SHOWN} more in the namespace {name}."


def _held(api: Api, namespace: str, resource: str, group: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield resource, name and finalizers of the objects of a kind that have any."""
    root = "/api/v1"
    if group:
        version = text(api.find(f"/apis/{group}") or {}, "preferredVersion", "version")
        root = f"/apis/{group}/{version}"
    path = f"{root}/namespaces/{namespace}/{resource}"
    for item in items_of(api.find(path, accept=METADATA)):
        if finalizers := words(item, "metadata", "finalizers"):
            yield f"{resource}.{group}" if group else resource, item["metadata"]["name"], tuple(finalizers)
