"""The clouds' own workloads in kube-system that affect node pools: pods that keep a node, DaemonSets that
take capacity from each node, and those with the driver and the device plugin of its accelerators.

Requests are the catalog's footprints `gke`, `gke-node`, `aks` and `aks-node`, whose sources name the parts.
GKE's kube-dns has no PodDisruptionBudget unless the user creates one (GKE docs, cluster-autoscaler, 2026);
AKS installs `coredns-pdb`, `konnectivity-agent` and `metrics-server-pdb`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from ebbtide.clients.kubernetes import Api
from ebbtide.clients.kubernetes.objects import parts, text
from ebbtide.declaration.catalog import footprint
from ebbtide_rehearsal.cloud.nodes.cluster import Node
from ebbtide_rehearsal.cloud.nodes.pods import Pod
from ebbtide_rehearsal.cloud.pools import NodePool

_NAMESPACE: Final = "kube-system"
_IMAGE: Final = "registry.k8s.io/pause:3.10"
_EVERYTHING: Final[tuple[dict[str, str], ...]] = ({"operator": "Exists"},)
_ADDON: Final[Mapping[str, tuple[dict[str, str], ...]]] = {
    "gke": (
        {"key": "CriticalAddonsOnly", "operator": "Exists"},
        {"key": "components.gke.io/gke-managed-components", "operator": "Exists"},
    ),
    "aks": ({"key": "CriticalAddonsOnly", "operator": "Exists"},),
}


@dataclass(frozen=True, slots=True)
class _Addon:
    """A Deployment: number of pods, requests of each (millicores, MiB), and name of its budget, or empty."""

    name: str
    pods: int
    cpu_m: int
    memory_mib: int
    budget: str = ""


_ADDONS: Final[Mapping[str, tuple[_Addon, ...]]] = {
    "gke": (
        _Addon("kube-dns", 1, 260, 110),
        _Addon("konnectivity-agent", 1, 15, 60),
        _Addon("metrics-server", 1, 125, 160),
    ),
    "aks": (
        _Addon("coredns", 2, 100, 70, "coredns-pdb"),
        _Addon("konnectivity-agent", 2, 80, 35, "konnectivity-agent"),
        _Addon("metrics-server", 2, 200, 110, "metrics-server-pdb"),
    ),
}


def install(api: Api, cloud: Literal["gke", "aks"]) -> None:
    """Install the cloud's own workloads into a cluster."""
    for path, body in objects(cloud):
        api.apply(path, body)


def objects(cloud: Literal["gke", "aks"]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the cloud's own workloads, with their paths in the API."""
    each_node = footprint(f"{cloud}-node").requests
    agents = _pod("node-agents", each_node.cpu_m, each_node.memory_mib, _EVERYTHING, "system-node-critical")
    yield _object("apps/v1", "DaemonSet", "node-agents", _selecting("node-agents") | {"template": agents})
    for addon in _ADDONS[cloud]:
        template = _pod(addon.name, addon.cpu_m, addon.memory_mib, _ADDON[cloud], "system-cluster-critical")
        body = _selecting(addon.name) | {"replicas": addon.pods, "template": template}
        yield _object("apps/v1", "Deployment", addon.name, body)
        if addon.budget:
            spec = _selecting(addon.name) | {"minAvailable": 1}
            yield _object("policy/v1", "PodDisruptionBudget", addon.budget, spec)


def _selecting(name: str) -> dict[str, Any]:
    return {"selector": {"matchLabels": {"k8s-app": name}}}


def _object(version: str, kind: str, name: str, spec: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    path = f"/apis/{version}/namespaces/{_NAMESPACE}/{kind.lower()}s/{name}"
    metadata = {"name": name, "namespace": _NAMESPACE}
    return path, {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _pod(
    name: str, cpu_m: float, memory_mib: float, tolerations: tuple[dict[str, str], ...], priority: str
) -> dict[str, Any]:
    requests = {"cpu": f"{cpu_m:.0f}m", "memory": f"{memory_mib:.0f}Mi"}
    return {
        "metadata": {"labels": {"k8s-app": name}},
        "spec": {
            "priorityClassName": priority,
            "tolerations": [*tolerations],
            "containers": [{"name": name, "image": _IMAGE, "resources": {"requests": requests}}],
        },
    }


NO_PLUGIN: Final = "gke-no-default-nvidia-gpu-device-plugin"
"""Label of GKE nodes on which GKE's own device plugin does not run (GKE docs, gpu-operator)."""

_INSTALLER: Final = "nvidia-installer"
"""Common part of the driver installers' image names on GKE, `cos-nvidia-installer` and
`gke-nvidia-installer`, in any DaemonSet (container-engine-accelerators, nvidia-driver-installer,
daemonset-preloaded.yaml). These nodes have GKE's device plugin."""

_PLUGINS: Final = {"nvidia.com/gpu": "nvidia-device-plugin", "amd.com/gpu": "device-plugin"}
"""Common part of the DaemonSet names of a vendor's device plugin, standalone or of its GPU operator, by
resource (NVIDIA's k8s-device-plugin and gpu-operator; ROCm's k8s-device-plugin and gpu-operator). AKS
installs NVIDIA's driver; the operators' plugins wait for the operators' drivers."""


def has_driver(node: Node, pool: NodePool, pods: Sequence[Pod]) -> bool:
    """Return whether driver and device plugin of a node's accelerators run.

    Args:
        node: the node.
        pool: its pool.
        pods: the pods on it.
    """
    if pool.accelerator is None or pool.accelerator_resource in node.allocatable:
        return False
    plugin = _PLUGINS.get(pool.accelerator_resource)
    if pool.driver_installed or plugin is None:
        return True
    own = pool.cloud == "gke" and node.labels.get(NO_PLUGIN) != "true"
    running = [pod for pod in pods if pod.phase == "Running"]
    return any(_installs(pod) for pod in running) if own else any(plugin in _daemon(pod) for pod in running)


def _installs(pod: Pod) -> bool:
    return any(
        _INSTALLER in text(container, "image") for container in parts(pod.raw, "spec", "initContainers")
    )


def _daemon(pod: Pod) -> str:
    owners = parts(pod.raw, "metadata", "ownerReferences")
    return next((text(owner, "name") for owner in owners if owner.get("kind") == "DaemonSet"), "")
