"""Sources of metrics on the cluster: the DCGM exporter on AKS, and what the clouds' collectors scrape.

GKE runs its own DCGM exporter (`components/gke/cluster.py`).
"""

from typing import Final

from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import Object

from .drivers import SYSTEM, daemon_set, mounts_of, requests_of
from .kueue import METRICS_PORT, NAMESPACE
from .manifest import obj
from .security import labeled, policy, ports

COUNTERS: Final = {
    "DCGM_FI_DEV_GPU_UTIL": "GPU utilization, percent.",
    "DCGM_FI_DEV_FB_USED": "Used framebuffer memory, MiB.",
    "DCGM_FI_DEV_FB_FREE": "Free framebuffer memory, MiB.",
    "DCGM_FI_DEV_POWER_USAGE": "Power draw, W.",
    "DCGM_FI_DEV_GPU_TEMP": "GPU temperature, C.",
    "DCGM_FI_DEV_XID_ERRORS": "Last XID error.",
}
"""Metrics of the exporter on AKS, each billed by the sample. GKE's exporter has these, too (GKE docs,
dcgm-metrics, 2026), except XID errors (a capture of its exporter 4.4.1-4.6.0-gke.17, 2026). None of them
needs CAP_SYS_ADMIN, as the profiling metrics do (NVIDIA docs, dcgm-exporter, 2026)."""

_INTERVAL: Final = "30s"
_EXPORTER: Final = "ebbtide-dcgm-exporter"
_EXPORTER_PORT: Final = 9400
_COUNTERS_FILE: Final = "counters.csv"
_COUNTERS: Final = "/etc/ebbtide-dcgm-exporter"
_POD_RESOURCES: Final = "/var/lib/kubelet/pod-resources"
_AZURE_AGENT: Final = {"rsName": "ama-metrics"}
"""Labels of the pods of Azure Monitor's agent that scrape monitors (Azure/prometheus-collector, addon-chart,
2026)."""
_TOKEN: Final = "kueue-metrics-reader"  # noqa: S105 - a name
_KUEUE_ONLY: Final = {"sourceLabels": ["__name__"], "regex": "kueue_.+", "action": "keep"}
"""Of Kueue's metrics, its own: not those of its client and its runtime, which are billed as well."""


def monitors(declaration: Cluster) -> list[Object]:
    """Return the objects of `addons.metrics` in the order of their dependencies; empty without it."""
    if declaration.addons.metrics is None:
        return []
    match declaration.site.cloud:
        case CloudKind.GKE:
            return _kueue_on_gke() if declaration.has_kueue else []
        case CloudKind.AKS:
            return [*_exporter(declaration), *([_kueue_on_aks()] if declaration.has_kueue else [])]


def _exporter(declaration: Cluster) -> list[Object]:
    """Return the DCGM exporter of AKS' GPU nodes, and its monitor. GPUs are visible to it without a request,
    since AKS' default container runtime on these nodes is NVIDIA's.

    It is root, without capabilities: only root reads the kubelet's list of the pods on each GPU. Only Azure
    Monitor's agent connects to it, since it names the pods of all teams. Sources: NVIDIA/dcgm-exporter 4.8.2,
    deployment; azure-aks-docs, monitor-gpu-metrics (2025-03).
    """
    pools = declaration.measured_pools
    if not pools:
        return []
    labels = {"app.kubernetes.io/name": _EXPORTER}
    volumes, mounts = mounts_of({"pod-resources": (_POD_RESOURCES, _POD_RESOURCES)})
    environment = {
        "DCGM_EXPORTER_LISTEN": f":{_EXPORTER_PORT}",
        "DCGM_EXPORTER_KUBERNETES": "true",
        "DCGM_EXPORTER_COLLECTORS": f"{_COUNTERS}/{_COUNTERS_FILE}",
    }
    container = {
        "name": "exporter",
        "image": f"nvcr.io/nvidia/k8s/dcgm-exporter:{PINS['dcgm-exporter'].version}",
        "resources": requests_of("dcgm-exporter-node") | {"limits": {"memory": "512Mi"}},
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
        "env": [
            *({"name": key, "value": value} for key, value in environment.items()),
            # Otherwise the label Hostname is the exporter's pod (dcgm-exporter, internal/pkg/hostname, 2026).
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        ],
        "ports": [{"name": "metrics", "containerPort": _EXPORTER_PORT}],
        "volumeMounts": [
            *({**mount, "readOnly": True} for mount in mounts),
            {"name": "counters", "mountPath": _COUNTERS, "readOnly": True},
        ],
    }
    pod = {
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
        "volumes": [*volumes, {"name": "counters", "configMap": {"name": _EXPORTER}}],
        "containers": [container],
    }
    rows = "".join(f"{name}, gauge, {text}\n" for name, text in COUNTERS.items())
    # The exporter's own labels name the pod on the GPU; without honorLabels they would be its own pod's.
    endpoint = {"port": "metrics", "interval": _INTERVAL, "honorLabels": True}
    source = {"from": [{"podSelector": {"matchLabels": _AZURE_AGENT}}], **ports(_EXPORTER_PORT)}
    return [
        obj("v1", "ConfigMap", _EXPORTER, SYSTEM, data={_COUNTERS_FILE: rows}),
        policy(_EXPORTER, SYSTEM, [source], {"matchLabels": labels}),
        daemon_set(_EXPORTER, pools, pod),
        obj(
            "azmonitoring.coreos.com/v1",
            "PodMonitor",
            _EXPORTER,
            SYSTEM,
            spec={"selector": {"matchLabels": labels}, "podMetricsEndpoints": [endpoint]},
        ),
    ]


def _kueue_on_aks() -> Object:
    """Return the monitor of Kueue. Azure Monitor's agent authenticates with its own token, whose ClusterRole
    allows `/metrics` (Azure/prometheus-collector, addon-chart, ama-metrics-clusterRole.yaml, 2026). As in
    Kueue's chart, whose monitor is of prometheus-operator's API group (Kueue 0.19.2, charts/kueue,
    templates/prometheus)."""
    endpoint = {
        "port": "https",
        "scheme": "https",
        "path": "/metrics",
        "interval": _INTERVAL,
        "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        "tlsConfig": {"insecureSkipVerify": True},
        "metricRelabelings": [_KUEUE_ONLY],
    }
    return obj(
        "azmonitoring.coreos.com/v1",
        "ServiceMonitor",
        "kueue",
        NAMESPACE,
        spec={
            "selector": labeled("app.kubernetes.io/component", "metrics-service"),
            "endpoints": [endpoint],
        },
    )


def _kueue_on_gke() -> list[Object]:
    """Return the monitor of Kueue, and a token for GKE's collectors that permits reading `/metrics` only (GKE
    docs, kueue-cohort, 2026-04)."""
    rbac, account = (
        "rbac.authorization.k8s.io",
        {"kind": "ServiceAccount", "name": _TOKEN, "namespace": NAMESPACE},
    )
    collector = {"kind": "ServiceAccount", "name": "collector", "namespace": "gmp-system"}
    reads = {
        "apiGroups": [""],
        "resources": ["secrets"],
        "resourceNames": [_TOKEN],
        "verbs": ["get", "list", "watch"],
    }
    endpoint = {
        "port": METRICS_PORT,
        "scheme": "https",
        "path": "/metrics",
        "interval": _INTERVAL,
        "tls": {"insecureSkipVerify": True},
        "authorization": {"type": "Bearer", "credentials": {"secret": {"name": _TOKEN, "key": "token"}}},
        "metricRelabeling": [_KUEUE_ONLY],
    }
    return [
        obj("v1", "ServiceAccount", _TOKEN, NAMESPACE, automountServiceAccountToken=False),
        obj(
            "v1",
            "Secret",
            _TOKEN,
            NAMESPACE,
            type="kubernetes.io/service-account-token",
            metadata={"annotations": {"kubernetes.io/service-account.name": _TOKEN}},
        ),
        # Kueue's chart has the ClusterRole of this name.
        obj(
            f"{rbac}/v1",
            "ClusterRoleBinding",
            _TOKEN,
            roleRef={"apiGroup": rbac, "kind": "ClusterRole", "name": "kueue-metrics-reader"},
            subjects=[account],
        ),
        obj(f"{rbac}/v1", "Role", _TOKEN, NAMESPACE, rules=[reads]),
        obj(
            f"{rbac}/v1",
            "RoleBinding",
            _TOKEN,
            NAMESPACE,
            roleRef={"apiGroup": rbac, "kind": "Role", "name": _TOKEN},
            subjects=[collector],
        ),
        obj(
            "monitoring.googleapis.com/v1",
            "PodMonitoring",
            "kueue",
            NAMESPACE,
            spec={"selector": labeled("app.kubernetes.io/name", "kueue"), "endpoints": [endpoint]},
        ),
    ]
