"""The clouds' own workloads in kube-system that affect node pools: pods that keep a node, and DaemonSets that
take capacity from each node.

Requests are the catalog's footprints `gke`, `gke-node`, `aks` and `aks-node`, whose sources name the parts.
GKE's kube-dns has no PodDisruptionBudget unless the user creates one (GKE docs, cluster-autoscaler, 2026);
AKS installs `coredns-pdb`, `konnectivity-agent` and `metrics-server-pdb`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from ebbtide.catalog import footprint
from ebbtide.kubernetes_api import Api

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
