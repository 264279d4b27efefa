"""Kueue: its component, the values of its chart, and the configuration of its controller."""

from typing import Any, Final

import pulumi
import yaml
from pulumi_kubernetes import helm

from ebbtide.declaration.catalog.versions import Pin
from ebbtide.declaration.model.addons import Kueue as Declared
from ebbtide.declaration.model.addons import remote_inputs
from ebbtide.declaration.model.cluster import Cluster, kueue_memory
from ebbtide.placement.queue_objects import FAIR_SHARING, QUEUES_LABEL, frameworks, uncounted, wait_for_pods
from ebbtide.values import durations
from ebbtide.values.kueue_api import CONFIGURATION

from .add_on import AddOnArgs, AddOnComponent, system_placement
from .manifest import leaf_options
from .post_renderer import post_renderer
from .security import policy, ports

RELEASE = "kueue"
"""Name of the release, which Kueue's certificates depend on (kueue#6797)."""

_VISIBILITY = f"{RELEASE}-visibility-server"
"""Service whose target port is fixed in the chart, unlike the port of its server."""

_CHART = "oci://registry.k8s.io/kueue/charts/kueue"

NAMESPACE: Final = Declared.spec.namespace

WEBHOOK_PORT = 10250
"""Port of the webhook server. The control plane of a private GKE cluster reaches nodes only on 443 and 10250
(GKE docs, private clusters, firewall rules, 2026): on 9443, the chart's default, every queued Job would be
rejected after a timeout. The port works on any cluster, created or existing; a firewall rule would need the
network and the control plane's range."""

VISIBILITY_PORT = 443
"""Port of the server that lists pending workloads, for the same reason. It is an aggregated API: while it is
unreachable, no namespace of the cluster can be deleted, since namespaces' contents cannot be listed."""

METRICS_PORT: Final = 8443
"""Metrics, served over TLS to clients that the API server authorizes (its chart)."""


class Kueue(AddOnComponent):
    """Kueue from its chart, on the system pool, watching labelled namespaces.

    It depends on the add-ons that install the kinds of its integrations. If the kind of training jobs exists
    before that of their runtimes, Kueue disables that integration permanently and rejects every training job
    (Kueue 0.19.2, pkg/controller/jobframework/setup.go and jobs/trainjob). A running controller restarts when
    its configuration changes: the chart adds its checksum to the pod.

    A Chart v4, not a Release: a Release cannot be deleted once the cluster is unreachable
    (pulumi-kubernetes#2675). Everything that uses Kueue's kinds, or creates pods in the namespaces that it
    watches, depends on `ready`. Sources: its charts/kueue; kueue.sigs.k8s.io, installation
    (2026-08).
    """

    def __init__(self, name: str, args: AddOnArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, args, opts)
        namespace = self._system_namespace(NAMESPACE)
        self._network_policies(network_policies(), namespace)
        release = release_of(args.declaration)
        inputs: dict[str, Any] = {
            # Helm fetches the digest, and fails if the version's tag has another (v3.18.6, pkg/registry).
            "chart": f"{_CHART}@{release.digest}",
            "version": release.version,
            "name": RELEASE,
            "namespace": NAMESPACE,
            "values": values(args.declaration),
        }
        chart = helm.v4.Chart(
            f"{name}-chart",
            **inputs,
            post_renderer=post_renderer({_VISIBILITY: VISIBILITY_PORT}),
            opts=leaf_options(self, args.deleted_with, [namespace, *args.depends_on]),
        )
        self.ready = (chart,)
        self.register_outputs(remote_inputs(inputs))


def configuration(declaration: Cluster) -> dict[str, Any]:
    """Return the controller's configuration.

    Kueue manages only labelled namespaces: its webhooks fail closed, and webhooks for all namespaces would
    block every pod of the cluster during an outage of Kueue. Workloads without a queue name are ignored.
    Ephemeral storage is excluded from quota: no flavor has any, and a Job that requests some would never be
    admitted.
    """
    timeout = durations.in_seconds(wait_for_pods(declaration))
    return {
        **CONFIGURATION,
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": f":{METRICS_PORT}", "enableClusterQueueResources": True},
        "webhook": {"port": WEBHOOK_PORT},
        "visibilityServer": {"bindPort": VISIBILITY_PORT},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        "clientConnection": {"qps": 50, "burst": 100},
        "manageJobsWithoutQueueName": False,
        "managedJobsNamespaceSelector": {"matchLabels": {QUEUES_LABEL: "true"}},
        "waitForPodsReady": {
            "timeout": timeout,
            "recoveryTimeout": timeout,
            "requeuingStrategy": {
                "timestamp": "Eviction",
                "backoffBaseSeconds": 60,
                "backoffMaxSeconds": 3600,
            },
        },
        "integrations": {"frameworks": frameworks(declaration)},
        "fairSharing": FAIR_SHARING,
        "resources": {"excludeResourcePrefixes": list(uncounted(declaration))},
    }


def release_of(declaration: Cluster) -> Pin:
    """Return the release to install."""
    return (declaration.addons.kueue or Declared()).release


def _spread() -> list[dict[str, Any]]:
    """Spread replicas over nodes if there are several; on a system pool of one node, all start there.

    The labels are those that the chart's Deployment selects (charts/kueue, _helpers.tpl).
    """
    selected = {"app.kubernetes.io/name": "kueue", "control-plane": "controller-manager"}
    return [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selected},
        }
    ]


def values(declaration: Cluster) -> dict[str, Any]:
    """Return the values of the chart, including the image of the release: the chart in the repository has
    that of a branch."""
    placement = system_placement(declaration)
    cpu = Declared.spec.footprint.requests.cpu_m
    memory, limit = kueue_memory(declaration)
    replicas = declaration.addons.kueue.replicas if declaration.addons.kueue is not None else 1
    return {
        "controllerManager": {
            "replicas": replicas,
            "manager": {
                "priorityClassName": placement.priority_class,
                "image": {
                    "repository": "registry.k8s.io/kueue/kueue",
                    "tag": f"v{release_of(declaration).version}",
                    "pullPolicy": "IfNotPresent",
                },
                "resources": {
                    "requests": {"cpu": f"{cpu:.0f}m", "memory": f"{memory}Mi"},
                    "limits": {"memory": f"{limit}Mi"},
                },
                "podSecurityContext": {
                    "runAsNonRoot": True,
                    "seccompProfile": {"type": "RuntimeDefault"},
                    # A non-root user serves on 443; Kubernetes lists this sysctl as safe.
                    "sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}],
                },
            },
            "nodeSelector": placement.node_selector,
            "tolerations": placement.tolerations,
            "topologySpreadConstraints": _spread() if replicas > 1 else [],
            # With one replica, a disruption budget would block every drain of its node.
            "podDisruptionBudget": {"enabled": replicas > 1, "minAvailable": 1},
        },
        "managerConfig": {
            "controllerManagerConfigYaml": yaml.safe_dump(configuration(declaration), sort_keys=False)
        },
        "webhookService": {
            "ports": [{"port": 443, "protocol": "TCP", "targetPort": WEBHOOK_PORT}],
        },
    }


def network_policies() -> tuple[dict[str, Any], ...]:
    """Return the network policy of its namespace: webhooks, the visibility API, metrics."""
    return (policy("controller", NAMESPACE, [ports(WEBHOOK_PORT, VISIBILITY_PORT, METRICS_PORT)]),)
