"""Rules for admission to teams' namespaces."""

from collections.abc import Iterator

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import Severity, cluster_rule
from ebbtide.declaration.model.tenancy import Team
from ebbtide.declaration.model.tenants import pod_security_of

_POD_SECURITY = "Kubernetes docs, Pod Security Standards and Pod Security Admission (2026)"
_POLICY = "Kubernetes docs, ValidatingAdmissionPolicy (2026)"
_RBAC = "Kubernetes docs, role-based access control (2026)"


def _uses_queues(team: Team, cluster: Cluster) -> bool:
    return cluster.has_kueue and any(team.queues_used(queue.name) for queue in cluster.resolved_queues)


@cluster_rule("required queues exist", _POLICY)
def _required_queues_exist(cluster: Cluster) -> Iterator[Fault]:
    for index, team in enumerate(cluster.teams):
        if team.require_queue and not _uses_queues(team, cluster):
            yield Fault(
                f"teams[{index}].requireQueue",
                "The team has requireQueue: true and no queues.",
                "requireQueue would have no effect.",
                "Declare queues, or omit requireQueue.",
            )


@cluster_rule("interactive pods need members", _RBAC)
def _interactive_members(cluster: Cluster) -> Iterator[Fault]:
    for index, team in enumerate(cluster.teams):
        if team.interactive and not team.members:
            yield Fault(
                f"teams[{index}].interactive",
                "Members may create pods, and the team has no members.",
                "The setting would have no effect.",
                "Write members, or omit interactive.",
            )


@cluster_rule("Pod Security Standard in existing namespace", _POD_SECURITY, severity=Severity.WARNED)
def _existing_namespaces_are_open(cluster: Cluster) -> Iterator[Fault]:
    for index, team in enumerate(cluster.teams):
        if team.members and pod_security_of(cluster, team) is None:
            yield Fault(
                f"teams[{index}].namespace",
                f"The existing namespace {team.namespace_name} keeps its own Pod Security labels, if any.",
                "Without them, a member can run a privileged pod, and become root on a node.",
                "Write podSecurity: baseline there, unless its own labels enforce it.",
            )


@cluster_rule("existing pods violate Pod Security Standard", _POD_SECURITY, severity=Severity.WARNED)
def _existing_pods_conform(cluster: Cluster) -> Iterator[Fault]:
    for index, team in enumerate(cluster.teams):
        name, standard = team.namespace_name, team.pod_security
        if not team.creates_namespace and standard in ("baseline", "restricted"):
            yield Fault(
                f"teams[{index}].namespace.podSecurity",
                f"Pods in the existing namespace {name} that violate the Pod Security Standard {standard} "
                "keep running.",
                "When they end, the API server refuses to create them again.",
                "List them first with kubectl label --dry-run=server --overwrite namespace "
                f"{name} pod-security.kubernetes.io/enforce={standard}.",
            )


@cluster_rule(
    "instance metadata service in existing namespace",
    "azure-aks-docs, imds-restriction (2024-10)",
    CloudKind.AKS,
    Severity.WARNED,
)
def _metadata_service(cluster: Cluster) -> Iterator[Fault]:
    for index, team in enumerate(cluster.teams):
        if team.members and not team.creates_namespace:
            yield Fault(
                f"teams[{index}].namespace",
                f"Pods in the existing namespace {team.namespace_name} reach the instance metadata service.",
                "It returns access tokens of the nodes' identities, which can pull the images of every team.",
                "Create a NetworkPolicy there that excepts 169.254.169.254/32 from egress, or let the stack "
                "create the namespace.",
            )


@cluster_rule("no privileged namespaces", _POD_SECURITY, severity=Severity.WARNED)
def _privileged_namespaces(cluster: Cluster) -> Iterator[Fault]:
    for index, team in enumerate(cluster.teams):
        if team.pod_security == "privileged":
            yield Fault(
                f"teams[{index}].namespace.podSecurity",
                f"Pods in {team.namespace_name} may be privileged.",
                "Every member can become root on a node, and read what other teams run there.",
                "Write baseline, unless the team is the cluster's only user.",
            )
