"""Security of namespaces: Pod Security Standards, roles of members, network policies.

Network policies let teams' pods reach only the ports that are intended for them. The kubelet's probes and
port-forwards are not affected: both come from the pod's own node, which every policy admits. The source
address of the API server's webhook calls depends on the cloud and the version: those ports are open to any
source, and only answer reviews. Policies are additive, so users can admit their own Prometheus with another
one. Source: Kubernetes docs, network policies (2026).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ebbtide.declaration.model.addons import READ, WORK, AddOn
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.tenancy import Team, is_group, is_object_id, name_of
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import Object

from .manifest import obj

_PREFIX = "pod-security.kubernetes.io"

Rule = dict[str, Any]

_RBAC = "rbac.authorization.k8s.io"

_VERSION: Final = "networking.k8s.io/v1"
_METADATA_SERVICE: Final = "169.254.169.254/32"
"""Azure's instance metadata service (azure docs, virtual-machines/instance-metadata-service, 2026)."""


def pod_security(enforced: str) -> dict[str, str]:
    """Return the labels that enforce a standard, and warn about and audit violations of `restricted`.

    `baseline` forbids host namespaces, host paths and privileged pods. Source: Kubernetes docs, Pod Security
    Standards and Pod Security Admission (stable since 1.25).
    """
    return {
        f"{_PREFIX}/enforce": enforced,
        f"{_PREFIX}/warn": "restricted",
        f"{_PREFIX}/audit": "restricted",
    }


def system_namespace(name: str, enforced: str) -> dict[str, Any]:
    """Return the namespace of an add-on that no team uses."""
    return obj("v1", "Namespace", name, metadata={"labels": pod_security(enforced)})


def driver_namespace(name: str) -> dict[str, Any]:
    """Return the namespace of driver installers. Their pods have to be privileged, so warnings would have no
    value; members have no permissions in it."""
    labels = {f"{_PREFIX}/{mode}": "privileged" for mode in ("enforce", "warn", "audit")}
    return obj("v1", "Namespace", name, metadata={"labels": labels})


def rbac_rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Rule:
    """Return a rule of a role."""
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def granted(
    namespace: str,
    name: str,
    rules: Sequence[Rule],
    subjects: Sequence[dict[str, str]],
    *,
    bound_by: str = "",
) -> Iterator[dict[str, Any]]:
    """Yield a role of a namespace and its binding, which has the role's name unless it has its own."""
    yield obj(f"{_RBAC}/v1", "Role", name, namespace, rules=list(rules))
    yield binding("Role", name, namespace, subjects, name=bound_by)


def binding(
    kind: str, role: str, namespace: str | None, subjects: Sequence[dict[str, str]], *, name: str = ""
) -> dict[str, Any]:
    """Return the binding of a Role, or without a namespace of a ClusterRole."""
    to = {"apiGroup": _RBAC, "kind": kind, "name": role}
    return obj(f"{_RBAC}/v1", f"{kind}Binding", name or role, namespace, roleRef=to, subjects=list(subjects))


def member_rules(declaration: Cluster, team: Team) -> list[Rule]:
    """Return the rules of the role of a team's members.

    Workloads are submitted as Jobs and as the kinds of the declared add-ons. The pods of a multi-node Job
    find each other by a headless Service; the namespace's quota admits no Service of type LoadBalancer. Not
    included: claims, whose disks would outlive the cluster (volumes are declared, with the team); reading
    Secrets, nor `patch` or `update`, whose answers have the object; roles, quotas, and anything outside of
    the namespace. `exec` into a running pod permits no more than the Job that started it. That Job can mount
    every Secret of its namespace, and the answer to `delete` in the foreground has the object too, so the
    stack creates no Secret there.
    """
    rules = [
        rbac_rule("batch", ["jobs", "cronjobs"], WORK),
        rbac_rule("", ["pods"], [*READ, *(["create"] if team.interactive else []), "delete"]),
        rbac_rule("", ["pods/log"], ["get"]),
        rbac_rule("", ["pods/exec", "pods/portforward"], ["create"]),
        rbac_rule("", ["configmaps", "services"], WORK),
        rbac_rule("", ["secrets"], ["create", "delete"]),
        # `kubectl top pods`, from the metrics server that both clouds run.
        rbac_rule("metrics.k8s.io", ["pods"], ["get", "list"]),
        rbac_rule("", ["events", "serviceaccounts", "persistentvolumeclaims", "limitranges"], READ),
    ]
    rights = [right for add_on in declaration.add_ons for right in add_on.spec.rights]
    return rules + [rbac_rule(right.group, right.resources, right.verbs) for right in rights]


def readers(declaration: Cluster) -> tuple[dict[str, str], ...]:
    """Return the subjects of all users of the cluster: all members, and all service accounts."""
    members = dict.fromkeys(member for team in declaration.teams for member in team.members)
    accounts = {"kind": "Group", "name": "system:serviceaccounts", "apiGroup": _RBAC}
    return (
        accounts,
        *(item for member in members for item in subjects(member, declaration.site.cloud)),
    )


def _kinds(member: str, cloud: CloudKind) -> tuple[str, ...]:
    """Return the RBAC subject kinds of a member. On AKS an object id is a user's or a group's, and is
    unique."""
    match cloud:
        case CloudKind.GKE:
            return ("Group",) if is_group(member) else ("User",)
        case CloudKind.AKS:
            return ("User", "Group") if is_object_id(member) else ("User",)


def subjects(member: str, cloud: CloudKind) -> list[dict[str, str]]:
    """Return the subjects of a binding for a member."""
    return [{"kind": kind, "name": name_of(member), "apiGroup": _RBAC} for kind in _kinds(member, cloud)]


def policy(name: str, namespace: str, ingress: Sequence[Object], selector: Object | None = None) -> Object:
    """Return a policy that admits only the listed ingress."""
    return obj(
        _VERSION,
        "NetworkPolicy",
        name,
        namespace,
        spec={"podSelector": selector or {}, "policyTypes": ["Ingress"], "ingress": list(ingress)},
    )


def own_namespace(namespace: str, selector: Object | None = None) -> Object:
    """Return the policy that admits pods of the same namespace."""
    return policy("own-namespace", namespace, [{"from": [{"podSelector": {}}]}], selector)


def egress_policies(cloud: CloudKind, namespace: str) -> tuple[Object, ...]:
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
    spec: Object = {
        "podSelector": {},
        "policyTypes": ["Egress"],
        "egress": [{"to": [{"namespaceSelector": {}}, anywhere]}],
    }
    return (obj(_VERSION, "NetworkPolicy", "no-instance-metadata", namespace, spec=spec),)


def from_outside(namespace: str) -> Object:
    """Return the policy that admits clients of load balancers. With Cilium, which both clouds' clusters have,
    a range of addresses never contains a pod or a node (azure-aks-docs, azure-cni-powered-by-cilium,
    2026-06)."""
    return policy("load-balancers", namespace, [{"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}])


def called_from(add_on: AddOn, namespace: str) -> Object:
    """Return the policy that admits an add-on's controller to its pods in a team's namespace."""
    spec = add_on.spec
    selector = {"matchExpressions": [{"key": spec.calls, "operator": "Exists"}]}
    sources = [
        namespaces({"kubernetes.io/metadata.name": name})
        for name in (spec.namespace, spec.upstream_namespace if not add_on.is_installed else "")
        if name
    ]
    return policy(f"{spec.name}-controller", namespace, [{"from": sources}], selector)


def ports(*numbers: int) -> Object:
    """Return TCP ports of a rule."""
    return {"ports": [{"port": number, "protocol": "TCP"} for number in numbers]}


def labeled(key: str, value: str) -> Object:
    """Return a selector for one label."""
    return {"matchLabels": {key: value}}


def namespaces(labels: Mapping[str, str]) -> Object:
    """Return all pods of labeled namespaces, as the source of a rule."""
    return {"namespaceSelector": {"matchLabels": dict(labels)}}
