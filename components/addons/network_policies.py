"""Network policies of the add-ons' namespaces: pods of teams reach only what is meant for them.

The kubelet's probes and port-forwards are not affected: both come from the pod's own node, which every
policy lets in. The address from which the API server calls a webhook depends on the cloud and the version:
those ports are open to any source, and answer reviews alone. Policies add up, so that a Prometheus of one's
own can be let in beside them. Source: Kubernetes docs, network policies (2026).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .katib_objects import INJECTED
from .katib_objects import NAMESPACE as KATIB_NAMESPACE
from .kueue_values import VISIBILITY_PORT, WEBHOOK_PORT
from .manifest import obj
from .patches import CONTROL_PLANE_PORT

Manifest = dict[str, Any]

_METRICS: Final = 8443
"""Metrics of Kueue, Trainer and JobSet, served over TLS to whom the API server authorizes (their charts,
0.19.2, 2.3.0, 0.12.0)."""
_STATUS: Final = 10443
"""Training pods report their progress to Trainer there, with a token (Trainer 2.3.0, charts)."""
_KATIB_METRICS: Final = 8080
_KATIB_API: Final = 6789
"""Ports of metrics and of suggestions (Katib 0.19.0)."""
_KATIB_COMPONENT: Final = "katib.kubeflow.org/component"
_KATIB_SUGGESTION: Final = "katib.kubeflow.org/deployment"
_ARGO_METRICS: Final = 9090
_MYSQL: Final = 3306


def policy(
    name: str, namespace: str, ingress: Sequence[Manifest], selector: Manifest | None = None
) -> Manifest:
    """Return a policy that admits nothing but what is listed."""
    return obj(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        name,
        namespace,
        spec={"podSelector": selector or {}, "policyTypes": ["Ingress"], "ingress": list(ingress)},
    )


def own_namespace(namespace: str, selector: Manifest | None = None) -> Manifest:
    """Return the policy by which pods are reached from their own namespace."""
    return policy("own-namespace", namespace, [{"from": [{"podSelector": {}}]}], selector)


def suggestions(namespace: str) -> Manifest:
    """Return the policy by which Katib's controller reaches what suggests the next trial, which runs in the
    experiment's namespace (Katib 0.19.0, pkg/controller.v1beta1/suggestion)."""
    selector = {"matchExpressions": [{"key": _KATIB_SUGGESTION, "operator": "Exists"}]}
    source = _namespaces({"kubernetes.io/metadata.name": KATIB_NAMESPACE})
    return policy("katib-controller", namespace, [{"from": [source]}], selector)


def kueue(namespace: str) -> tuple[Manifest, ...]:
    """Return the policy of Kueue's namespace: webhooks, the visibility API, metrics."""
    return (policy("controller", namespace, [_ports(WEBHOOK_PORT, VISIBILITY_PORT, _METRICS)]),)


def trainer(namespace: str) -> tuple[Manifest, ...]:
    """Return the policy of the namespace of Trainer and JobSet: webhooks, metrics, progress."""
    return (policy("controllers", namespace, [_ports(CONTROL_PLANE_PORT, _METRICS, _STATUS)]),)


def katib(namespace: str) -> tuple[Manifest, ...]:
    """Return the policies of Katib's namespace. Trials report to the database's manager, and reach neither
    the database nor the interface, which asks for no password."""
    reports = {"from": [_namespaces({INJECTED: "enabled"})], **_ports(_KATIB_API)}
    return (
        own_namespace(namespace),
        policy(
            "controller",
            namespace,
            [_ports(CONTROL_PLANE_PORT, _KATIB_METRICS)],
            _labeled(_KATIB_COMPONENT, "controller"),
        ),
        policy("db-manager", namespace, [reports], _labeled(_KATIB_COMPONENT, "db-manager")),
    )


def pipelines(namespace: str) -> tuple[Manifest, ...]:
    """Return the policies of the namespace of Kubeflow Pipelines, whose API asks for no password.

    Runs are in the same namespace: their drivers, launchers and steps reach the API, the metadata and the
    store. The database is for its three clients alone. The store's policy is upstream's, which lets in this
    namespace, and those of profiles (kubeflow/pipelines 2.17.0, manifests/kustomize, seaweedfs).
    """
    others = {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["mysql", "seaweedfs"]}]}
    clients = [
        _labeled("app", "ml-pipeline"),
        _labeled("app", "cache-server"),
        _labeled("component", "metadata-grpc-server"),
    ]
    to_database = {"from": [{"podSelector": client} for client in clients], **_ports(_MYSQL)}
    return (
        own_namespace(namespace, others),
        policy("mysql", namespace, [to_database], _labeled("app", "mysql")),
        policy(
            "workflow-controller", namespace, [_ports(_ARGO_METRICS)], _labeled("app", "workflow-controller")
        ),
    )


def _ports(*numbers: int) -> Manifest:
    return {"ports": [{"port": number, "protocol": "TCP"} for number in numbers]}


def _labeled(key: str, value: str) -> Manifest:
    return {"matchLabels": {key: value}}


def _namespaces(labels: Mapping[str, str]) -> Manifest:
    return {"namespaceSelector": {"matchLabels": dict(labels)}}
