"""Network policies: pods of teams reach only what is meant for them.

The kubelet's probes and port-forwards are not affected: both come from the pod's own node, which every
policy lets in. The address from which the API server calls a webhook depends on the cloud and the version:
those ports are open to any source, and answer reviews alone. Policies add up, so that a Prometheus of one's
own can be let in beside them. Source: Kubernetes docs, network policies (2026).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ebbtide.model.add_on import AddOnSpec

from .manifest import obj

Manifest = dict[str, Any]


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


def called_from(add_on: AddOnSpec, namespace: str) -> Manifest:
    """Return the policy by which an add-on's controller reaches pods of its own in a team's namespace."""
    selector = {"matchExpressions": [{"key": add_on.calls, "operator": "Exists"}]}
    source = namespaces({"kubernetes.io/metadata.name": add_on.namespace})
    return policy(f"{add_on.name}-controller", namespace, [{"from": [source]}], selector)


def ports(*numbers: int) -> Manifest:
    """Return TCP ports of a rule."""
    return {"ports": [{"port": number, "protocol": "TCP"} for number in numbers]}


def labeled(key: str, value: str) -> Manifest:
    """Return a selector of one label."""
    return {"matchLabels": {key: value}}


def namespaces(labels: Mapping[str, str]) -> Manifest:
    """Return all pods of labeled namespaces, as the source of a rule."""
    return {"namespaceSelector": {"matchLabels": dict(labels)}}
