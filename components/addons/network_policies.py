"""Network policies: teams' pods reach only the ports that are intended for them.

The kubelet's probes and port-forwards are not affected: both come from the pod's own node, which every policy
admits. The source address of the API server's webhook calls depends on the cloud and the version: those ports
are open to any source, and only answer reviews. Policies are additive, so users can admit their own
Prometheus with another one. Source: Kubernetes docs, network policies (2026).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model.add_on import AddOnSpec

from .manifest import obj

Manifest = dict[str, Any]

_VERSION: Final = "networking.k8s.io/v1"
_METADATA_SERVICE: Final = "169.254.169.254/32"
"""Azure's instance metadata service (azure docs, virtual-machines/instance-metadata-service, 2026)."""


def policy(
    name: str, namespace: str, ingress: Sequence[Manifest], selector: Manifest | None = None
) -> Manifest:
    """Return a policy that admits only the listed ingress."""
    return obj(
        _VERSION,
        "NetworkPolicy",
        name,
        namespace,
        spec={"podSelector": selector or {}, "policyTypes": ["Ingress"], "ingress": list(ingress)},
    )


def own_namespace(namespace: str, selector: Manifest | None = None) -> Manifest:
    """Return the policy that admits pods of the same namespace."""
    return policy("own-namespace", namespace, [{"from": [{"podSelector": {}}]}], selector)


def egress_policies(cloud: CloudKind, namespace: str) -> tuple[Manifest, ...]:
    """Return the policies of a namespace on connections to elsewhere: on AKS, pods do not reach the instance
    metadata service, which gives any of them tokens of the node's identities, such as the one that pulls
    every team's images. On GKE, the metadata server gives each pod its own identity only.

    AKS' own restriction, `--enable-imds-restriction`, is a preview that a subscription has to register for,
    excludes Container insights, and is a field of preview APIs only, which azure-native 3.29.0 does not have
    (azure-aks-docs, imds-restriction, 2024-10). Enforced by Cilium, Calico and Azure Network Policy Manager;
    not on an existing cluster without a network policy engine, nor for pods in the host's network. With
    Cilium, no range of addresses contains a pod or a node: pods are admitted by the namespace selector, and
    connections to nodes' own addresses end (azure-aks-docs, azure-cni-powered-by-cilium, 2026-06).
    """
    if cloud is not CloudKind.AKS:
        return ()
    anywhere = {"ipBlock": {"cidr": "0.0.0.0/0", "except": [_METADATA_SERVICE]}}
    spec: Manifest = {
        "podSelector": {},
        "policyTypes": ["Egress"],
        "egress": [{"to": [{"namespaceSelector": {}}, anywhere]}],
    }
    return (obj(_VERSION, "NetworkPolicy", "no-instance-metadata", namespace, spec=spec),)


def from_outside(namespace: str) -> Manifest:
    """Return the policy that admits clients of load balancers. With Cilium, which both clouds' clusters have,
    a range of addresses never contains a pod or a node (azure-aks-docs, azure-cni-powered-by-cilium,
    2026-06)."""
    return policy("load-balancers", namespace, [{"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}])


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
