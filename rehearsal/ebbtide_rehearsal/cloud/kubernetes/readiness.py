"""When an object is as it should be, of the kinds that the Kubernetes provider waits for: pure functions.

Every function tells what is still missing, in a few words, or None. Namespaces, definitions of kinds and
custom resources are not waited for. Source: pulumi-kubernetes 4.32, provider/pkg/await.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from ebbtide_rehearsal.cloud.kubernetes.difference import differences
from ebbtide_rehearsal.cloud.kubernetes.kinds import Kind, kind_of
from ebbtide_rehearsal.cloud.kubernetes.objects import (
    MISSING,
    Object,
    annotation,
    at,
    name_of,
    namespace_of,
    objects_at,
)

REVISION: Final = "deployment.kubernetes.io/revision"


class FailedError(Exception):
    """It has failed and will not come right by waiting."""


class Surroundings(Protocol):
    """What else is in the cluster."""

    def find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """An object of the cluster."""
        ...


Check = Callable[[Object, Surroundings], str | None]


def condition(live: Mapping[str, Any], kind: str) -> Object:
    """A condition of an object's status; empty where it has none of the kind."""
    found = [item for item in objects_at(live, "status", "conditions") if item.get("type") == kind]
    return found[0] if found else {}


def _number(live: Object, *path: str) -> int:
    found = at(live, *path)
    return found if isinstance(found, int) else 0


def _wanted(live: Object) -> int:
    found = at(live, "spec", "replicas")
    return found if isinstance(found, int) else 1


def _observed(live: Object) -> bool:
    return _number(live, "status", "observedGeneration") >= _number(live, "metadata", "generation")


def _said(found: Object) -> str:
    """What a condition says, after a colon."""
    return f": [{found.get('reason')}] {found.get('message')}" if found.get("message") else ""


def deployment(live: Object, _: Surroundings) -> str | None:
    """Available, every replica of the newest revision ready, and after a change rolled out."""
    if not _observed(live) or not annotation(live, REVISION):
        return "the deployment controller has not seen it yet"
    available, progressing = condition(live, "Available"), condition(live, "Progressing")
    wanted = _wanted(live)
    ready = min(_number(live, "status", "updatedReplicas"), _number(live, "status", "readyReplicas"))
    if ready < wanted or available.get("status") != "True":
        why = _said(progressing) if progressing.get("status") == "False" else _said(available)
        return f"{ready} of {wanted} pods are ready{why}"
    if annotation(live, REVISION) != "1" and progressing.get("reason") != "NewReplicaSetAvailable":
        return f"the new revision is not rolled out{_said(progressing)}"
    return None


def stateful_set(live: Object, _: Surroundings) -> str | None:
    """Every replica ready and of the newest revision."""
    if not _observed(live):
        return "the controller of stateful sets has not seen it yet"
    wanted, ready = _wanted(live), _number(live, "status", "readyReplicas")
    if ready != wanted or _number(live, "status", "replicas") != wanted:
        return f"{ready} of {wanted} pods are ready"
    on_delete = at(live, "spec", "updateStrategy", "type") == "OnDelete"
    if not on_delete and at(live, "status", "currentRevision") != at(live, "status", "updateRevision"):
        return "the new revision is not rolled out"
    return None


def daemon_set(live: Object, _: Surroundings) -> str | None:
    """A pod of the newest revision, ready and available, on every node that is to have one."""
    if not _observed(live) or at(live, "status", "desiredNumberScheduled") is MISSING:
        return "the controller of daemon sets has not seen it yet"
    wanted = _number(live, "status", "desiredNumberScheduled")
    for field in (
        "currentNumberScheduled",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberReady",
    ):
        if _number(live, "status", field) < wanted:
            return f"{_number(live, 'status', field)} of {wanted} nodes have a pod that is ready"
    return None


def job(live: Object, _: Surroundings) -> str | None:
    """Complete; one that has failed for good is an error."""
    failed = condition(live, "Failed")
    if failed.get("status") == "True" and failed.get("reason") in (
        "BackoffLimitExceeded",
        "DeadlineExceeded",
    ):
        raise FailedError(f"[{failed['reason']}] {failed.get('message', '')}")
    if condition(live, "Complete").get("status") == "True":
        return None
    counts = ", ".join(f"{_number(live, 'status', field)} {field}" for field in ("active", "succeeded"))
    return f"the job is not complete ({counts})"


def pod(live: Object, _: Surroundings) -> str | None:
    """Ready, or ended well."""
    if condition(live, "Ready").get("status") == "True" or at(live, "status", "phase") == "Succeeded":
        return None
    scheduled = condition(live, "PodScheduled")
    late = scheduled if scheduled.get("status") != "True" else condition(live, "Ready")
    return f"the pod is not ready{_said(late)}"


def persistent_volume(live: Object, _: Surroundings) -> str | None:
    """Available or bound."""
    phase = at(live, "status", "phase")
    return None if phase in ("Available", "Bound") else "the volume is neither available nor bound"


def volume_claim(live: Object, around: Surroundings) -> str | None:
    """Bound, or pending where its class binds when a pod first asks for it."""
    phase = at(live, "status", "phase")
    if phase == "Bound":
        return None
    storage = at(live, "spec", "storageClassName")
    found = around.find(Kind("storage.k8s.io", "v1", "StorageClass"), "", storage) if storage else None
    if (found or {}).get("volumeBindingMode") == "WaitForFirstConsumer" and phase == "Pending":
        return None
    return "the claim is not bound"


def service(live: Object, around: Surroundings) -> str | None:
    """An address for a load balancer, and no pod behind it that is not ready. A service without any pod is as
    good as one with ready ones."""
    if at(live, "spec", "type") == "LoadBalancer" and not objects_at(live, *_INGRESS):
        return "it was not allocated an IP address"
    if not leads_to_pods(live):
        return None
    endpoints = around.find(Kind("", "v1", "Endpoints"), namespace_of(live), name_of(live))
    if endpoints is None:
        return "it has no endpoints yet"
    if any(subset.get("notReadyAddresses") for subset in objects_at(endpoints, "subsets")):
        return "pods behind it are not ready"
    return None


def leads_to_pods(live: Object) -> bool:
    """Whether a service selects pods, and has an address for them."""
    headless = at(live, "spec", "clusterIP") == "None"
    external = at(live, "spec", "type") == "ExternalName"
    selector = at(live, "spec", "selector")
    return not headless and not external and selector is not MISSING and bool(selector)


_INGRESS: Final = ("status", "loadBalancer", "ingress")


def ingress(live: Object, _: Surroundings) -> str | None:
    """An address of its load balancer."""
    return None if objects_at(live, *_INGRESS) else "it was not allocated an IP address"


def replication_controller(live: Object, _: Surroundings) -> str | None:
    """Every replica available."""
    wanted, available = _wanted(live), _number(live, "status", "availableReplicas")
    return None if wanted == available else f"{available} of {wanted} pods are available"


def resource_quota(live: Object, _: Surroundings) -> str | None:
    """The limits in force are those that it has."""
    hard, in_force = at(live, "spec", "hard"), at(live, "status", "hard")
    same = in_force is not MISSING and not list(differences(hard, in_force, ("hard",)))
    return None if same else "its limits are not in force"


def secret(live: Object, _: Surroundings) -> str | None:
    """A token, where it is for a service account's."""
    waits = live.get("type") == "kubernetes.io/service-account-token" and not live.get("data")
    return "it has no token" if waits else None


_CHECKS: Final[Mapping[Kind, Check]] = {
    Kind("apps", "v1", "DaemonSet"): daemon_set,
    Kind("apps", "v1", "Deployment"): deployment,
    Kind("apps", "v1", "StatefulSet"): stateful_set,
    Kind("batch", "v1", "Job"): job,
    Kind("networking.k8s.io", "v1", "Ingress"): ingress,
    Kind("", "v1", "PersistentVolume"): persistent_volume,
    Kind("", "v1", "PersistentVolumeClaim"): volume_claim,
    Kind("", "v1", "Pod"): pod,
    Kind("", "v1", "ReplicationController"): replication_controller,
    Kind("", "v1", "ResourceQuota"): resource_quota,
    Kind("", "v1", "Secret"): secret,
    Kind("", "v1", "Service"): service,
}


def check_of(live: Object) -> Check | None:
    """What an object of its kind is waited for; None for nothing."""
    return _CHECKS.get(kind_of(live))
