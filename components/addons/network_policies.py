"""Network policies: teams' pods reach only the ports that are intended for them.

The kubelet's probes and port-forwards are not affected: both come from the pod's own node, which every policy
admits. The source address of the API server's webhook calls depends on the cloud and the version: those ports
are open to any source, and only answer reviews. Policies are additive, so users can admit their own
Prometheus with another one. Source: Kubernetes docs, network policies (2026).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ebbtide.model.add_on import AddOnSpec

from .manifest import obj

Manifest = dict[str, Any]


def policy(
    name: str, namespace: str, ingress: Sequence[Manifest], selector: Manifest | None = None
) -> Manifest:
    """Return a policy that admits only the listed ingress."""
    return obj(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        name,
        namespace,
        spec={"podSelector": selector or {}, "policyTypes": ["Ingress"], "ingress": list(ingress)},
    )


def own_namespace(namespace: str, selector: Manifest | None = None) -> Manifest:
    """Return the policy that admits pods of the same namespace."""
    return policy("own-namespace", namespace, [{"from": [{"podSelector": {}}]}], selector)


def called_from(add_on: AddOnSpec, namespace: str) -> Manifest:
    """Return the policy that admits an add-on's controller to its pods in a team's namespace."""
    selector = {"matchExpressions": [{"key": add_on.calls, "operator": "Exists"}]}
    source = namespaces({"kubernetes.io/metadata.name": add_on.namespace})
    return policy(f"{add_on.name}-controller", namespace, [{"from": [source]}], selector)


def ports(*numbers: int) -> Manifest:
    """Return TCP ports of a rule."""
    return {"ports": [{"port": number, "protocol": "TCP"} for number in numbers]}


def labeled(key: str, value: str) -> Manifest:
    """Return a selector for one label."""
    return {"matchLabels": {key: value}}


def namespaces(labels: Mapping[str, str]) -> Manifest:
    """Return all pods of labeled namespaces, as the source of a rule."""
    return {"namespaceSelector": {"matchLabels": dict(labels)}}
