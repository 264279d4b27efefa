"""The admission policy that keeps what members create, and their workloads, to what is theirs."""

from collections.abc import Iterator
from typing import Final

from ebbtide.catalog import CloudKind
from ebbtide.model import Cluster, Taint, Team
from ebbtide.model.aks_labels_and_taints import SYSTEM_ONLY
from ebbtide.model.physical_names import SUBDOMAIN, fitting
from ebbtide.model.tenants import PIPELINES_NAMESPACE, tenants_of
from ebbtide.placement.queue_policy import (
    POD_RULES,
    POD_VARIABLES,
    Manifest,
    Rule,
    assembled,
    binding,
    listed,
    named,
    quoted,
    repelling,
    requires_queue,
    tolerates,
)
from ebbtide.placement.team_storage import BUCKET_DRIVERS

MEMBERS_LABEL: Final = "ebbtide.dev/members"
"""Label of the namespaces that the policy applies to."""

LOAD_BALANCERS_LABEL: Final = "ebbtide.dev/load-balancers"
"""Label of the namespaces where Services of type LoadBalancer are declared."""

_RULES: Final[tuple[Rule, ...]] = (*POD_RULES, ("batch", "v1", ("cronjobs",)), ("", "v1", ("services",)))

_VOLUMES: Final = (
    "configMap",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
"""Volume types that find nothing outside of their namespace: those of the Pod Security Standard `restricted`
without `csi`, and images (Kubernetes docs, 2026)."""

_INLINE_DRIVERS: Final = {CloudKind.GKE: (BUCKET_DRIVERS[CloudKind.GKE],), CloudKind.AKS: ()}
"""CSI drivers that a pod may use without a claim: those that mount with the identity of the pod. Those of AKS
also mount NFS shares by their address, or with the identity of the node (kubernetes-sigs/blob-csi-driver and
azurefile-csi-driver, docs/driver-parameters.md, 2026)."""

_GKE_SYSTEM_ONLY: Final = Taint(key="components.gke.io/gke-managed-components", value="true")
"""Taint of nodes for GKE's own pods (GKE docs, isolate-workloads-dedicated-nodes, 2026)."""

HIGHEST_PRIORITY: Final = 1_000_000_000
"""The highest value of a priority class besides those of Kubernetes (Kubernetes docs,
pod-priority-preemption, 2026)."""

_OWNERS: Final = (
    ("Pod", ("Job", "ReplicaSet", "StatefulSet", "DaemonSet")),
    ("ReplicaSet", ("Deployment",)),
    ("Job", ("CronJob",)),
)
"""Kinds that Kubernetes' own controllers create from an owner whose template was checked."""


def limits_members(cluster: Cluster, team: Team) -> bool:
    """Return whether the policy applies to a tenant's namespace: the stack creates it, or members or pipeline
    steps can create workloads there."""
    return (
        team.creates_namespace
        or bool(team.members)
        or requires_queue(cluster, team)
        or (team.namespace_name == PIPELINES_NAMESPACE and cluster.addons.installed_pipelines is not None)
    )


def _name(cluster: Cluster) -> str:
    """Return the name of the policy and its binding; two stacks may declare teams of one existing cluster."""
    return fitting(f"ebbtide-members-{cluster.name}", SUBDOMAIN)


def controllers_priority(cluster: Cluster) -> str:
    """Return the name of the priority class of the add-ons' controllers."""
    return fitting(f"ebbtide-controllers-{cluster.name}", SUBDOMAIN)


def _system_taints(cluster: Cluster) -> tuple[Taint, ...]:
    """Return the taints of the system pool; of one that is not declared, those that the cloud documents."""
    if cluster.system_pool is not None:
        return tuple(repelling(cluster.system_pool))
    return (SYSTEM_ONLY,) if cluster.site.cloud is CloudKind.AKS else (_GKE_SYSTEM_ONLY,)


def _checked_with_owner() -> str:
    owned = " || ".join(
        f"(object.kind == {quoted(kind)} && o.kind in {listed(owners)})" for kind, owners in _OWNERS
    )
    return (
        "(request.userInfo.username == 'system:kube-controller-manager' || "
        "request.userInfo.username.startsWith('system:serviceaccount:kube-system:')) && "
        "has(dyn(object).metadata.ownerReferences) && dyn(object).metadata.ownerReferences.exists(o, "
        f"has(o.controller) && o.controller && ({owned}))"
    )


def _variables(cluster: Cluster) -> dict[str, str]:
    harmless = [f"has(v.{volume})" for volume in _VOLUMES]
    if drivers := _INLINE_DRIVERS[cluster.site.cloud]:
        harmless.append(f"(has(v.csi) && v.csi.driver in {listed(drivers)})")
    enforced = "'pod-security.kubernetes.io/enforce'"
    policies = "authorizer.group('admissionregistration.k8s.io').resource('validatingadmissionpolicies')"
    return {
        **POD_VARIABLES,
        "labels": "has(namespaceObject.metadata.labels) ? namespaceObject.metadata.labels : {}",
        "exempt": f"object.kind == 'Service' || ({enforced} in variables.labels && "
        f"variables.labels[{enforced}] == 'privileged')",
        "foreign": "(has(variables.pod.volumes) ? variables.pod.volumes : [])"
        f".filter(v, !({' || '.join(harmless)})).map(v, v.name)",
        "priorityClass": "has(variables.pod.priorityClassName) ? variables.pod.priorityClassName : ''",
        "loadBalancers": f"{quoted(LOAD_BALANCERS_LABEL)} in variables.labels",
        "administrator": f"{policies}.name({quoted(_name(cluster))}).check('update').allowed()",
    }


def _pod_checks(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Yield the condition of each check, and the message of its failure, both in CEL."""
    yield (
        "size(variables.foreign) == 0",
        (
            "'has volumes that can mount storage of other teams by its name or address: ' + "
            "variables.foreign.join(', ') + '. Use a claim that `kubectl get persistentvolumeclaims` lists, "
            "a ConfigMap, a Secret or an emptyDir'"
        ),
    )
    critical = listed(("system-cluster-critical", "system-node-critical", controllers_priority(cluster)))
    # Templates have the name of a class only; pods also have its value.
    yield (
        (
            f"!(variables.priorityClass in {critical}) && "
            f"(!has(variables.pod.priority) || variables.pod.priority < {HIGHEST_PRIORITY})"
        ),
        (
            "'has the priority class ' + variables.priorityClass + ', which would preempt system pods: "
            "omit priorityClassName'"
        ),
    )
    yield (
        "!has(variables.pod.nodeName) || variables.pod.nodeName == '' || request.operation == 'UPDATE'",
        (
            "'names a node, which bypasses the taints of every pool: omit nodeName, and select nodes "
            "by their labels'"
        ),
    )
    if taints := _system_taints(cluster):
        yield (
            f"!({' && '.join(map(tolerates, taints))})",
            (
                "'tolerates the taints of the system pool, whose nodes are reserved for system pods: "
                "tolerate only the taints of other pools'"
            ),
        )


_SERVICE_CHECKS: Final = (
    (
        "!has(dyn(object).spec.externalIPs) || size(dyn(object).spec.externalIPs) == 0",
        (
            "'has external IPs, and would receive the traffic of every pod of the cluster to these addresses "
            "(CVE-2020-8554): omit externalIPs'"
        ),
    ),
    (
        "dyn(object).spec.type != 'LoadBalancer' || variables.loadBalancers",
        (
            "'is of type LoadBalancer, which creates a billed address that may be public: use `kubectl "
            "port-forward`, or ask for loadBalancers in the declaration of the team'"
        ),
    ),
)


def _validations(cluster: Cluster) -> list[Manifest]:
    checks = [(f"variables.exempt || {test}", message) for test, message in _pod_checks(cluster)]
    checks += [(f"object.kind != 'Service' || {test}", message) for test, message in _SERVICE_CHECKS]
    return [
        {
            "expression": f"{test} || variables.administrator",
            "messageExpression": message,
            "reason": "Forbidden",
        }
        for test, message in checks
    ]


def objects(cluster: Cluster) -> tuple[Manifest, ...]:
    """Return the ValidatingAdmissionPolicy of a complete declaration, and its binding; empty if it has no
    tenant whose members or steps create workloads.

    Refused are volumes of types that find storage by its name or address, such as the NFS share of another
    team; Services with external IPs or of type LoadBalancer; and pods on the system pool or with the
    priorities of its pods: Kueue's webhooks fail closed, so that no pod of any team starts while Kueue has no
    node. A namespace whose pods may be privileged is exempt from the checks of pods: they can become root on
    a node.

    Requests of administrators, who could change the policy, are admitted, as are the pods of their
    DaemonSets and Deployments. Sources: Kubernetes docs, ValidatingAdmissionPolicy v1 (stable since 1.30),
    pod-priority-preemption and volumes (2026).
    """
    if not any(limits_members(cluster, team) for team in tenants_of(cluster)):
        return ()
    name = _name(cluster)
    policy = assembled(
        name,
        _RULES,
        {"not-checked-with-its-owner": f"!({_checked_with_owner()})"},
        named(_variables(cluster)),
        _validations(cluster),
    )
    return policy, binding(name, MEMBERS_LABEL)
