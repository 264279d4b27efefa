"""Rules for members of teams: names, and access to an existing cluster."""

from collections.abc import Iterator

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model.cloud import Aks
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.members import groups_domain, is_object_id, name_of, principal
from ebbtide.declaration.model.rules.names import written
from ebbtide.declaration.model.rules.rule import Severity, cluster_rule

_AKS_DOCS = "azure-aks-docs kubernetes-rbac-entra-id.md (2025-01-26)"
_USER_ROLE = "Azure Kubernetes Service Cluster User Role"


@cluster_rule("members written once", "Pulumi docs, resource names: URNs are unique (2026-08)")
def _once(cluster: Cluster) -> Iterator[Fault]:
    """Each member of a team and each administrator has grants of that name in the stack."""
    lists = {f"teams[{number}].members": team.members for number, team in enumerate(cluster.teams)}
    if isinstance(cluster.cloud, Aks):
        lists["cloud.access.admins"] = cluster.cloud.access.admins
    for path, names in lists.items():
        # Addresses and object ids are the same in any case; subjects of a workforce pool are not.
        same = [name if "://" in name else name.casefold() for name in names]
        for index, name in enumerate(names):
            if (first := same.index(same[index])) < index:
                yield Fault(
                    f"{path}[{index}]",
                    f"{name} is already in {path}[{first}].",
                    "Pulumi refuses two resources with the same URN, here two grants.",
                    "Remove one of the two.",
                )


@cluster_rule("unique member kind", "cloud.google.com/iam/docs/principal-identifiers (2026)", CloudKind.GKE)
def _one_kind(cluster: Cluster) -> Iterator[Fault]:
    """Refuse a name that is a group's and another's: the grants of both would have one name in the stack."""
    known: dict[str, tuple[str, str]] = {}
    for path, member in written(cluster, "teams[*].members[*]"):
        if member is None:
            continue
        first, as_first = known.setdefault(name_of(member), (path, member))
        if member != as_first:
            yield Fault(
                path,
                f"{member} is declared as {as_first} in {first}.",
                "An address is either a group or a user: one of the two grants would fail, and Pulumi "
                "refuses two resources with the same URN.",
                "Write it the same way in both.",
            )


@cluster_rule("member groups in one domain", "GKE docs, google-groups-rbac (2026)", CloudKind.GKE)
def _one_domain(cluster: Cluster) -> Iterator[Fault]:
    domain = groups_domain(cluster.members)
    for path, member in written(cluster, "teams[*].members[*]"):
        if member is not None and member.startswith("group:") and not member.endswith(f"@{domain}"):
            yield Fault(
                path,
                f"{member} is not in the domain of the groups before it, {domain}.",
                f"GKE supports only the groups in one security group, gke-security-groups@{domain}.",
                f"Write a group of {domain}, or each user.",
            )


@cluster_rule(
    "role assignment needs object id",
    f"{_AKS_DOCS}; azure-native 3.29.0, RoleAssignment.principalId",
    CloudKind.AKS,
    Severity.WARNED,
)
def _only_inside(cluster: Cluster) -> Iterator[Fault]:
    for path, member in written(cluster, "teams[*].members[*]"):
        if member is not None and not is_object_id(member) and cluster.cloud.existing is None:
            yield Fault(
                path,
                f"Azure role assignments need an object id, and {member} is a user name.",
                "The user has access to the namespace, but az aks get-credentials is denied.",
                "Write the object id of a group of the user, or give the user the stack's kubeconfig, "
                "which contains no credentials.",
            )


@cluster_rule(
    "members of existing cluster",
    "GKE docs, dns-endpoint (2026); azure-aks-docs control-kubeconfig-access.md (2023-03-28)",
    severity=Severity.WARNED,
)
def _by_its_owner(cluster: Cluster) -> Iterator[Fault]:
    existing, members = cluster.cloud.existing, cluster.members
    if existing is None or not members:
        return
    if isinstance(cluster.cloud, Aks):
        group = cluster.cloud.resource_group or cluster.physical_name
        command = (
            f'az role assignment create --role "{_USER_ROLE}" --assignee {members[0]} --scope "$(az aks show '
            f'--resource-group {group} --name {existing.name} --query id --output tsv)"'
        )
    else:
        suffix = f"/{cluster.cloud.location}/clusters/{existing.name}"
        command = (
            f"gcloud projects add-iam-policy-binding {cluster.cloud.project} --role "
            f"roles/container.clusterViewer --member {principal(members[0])} --condition "
            f"'title=cluster {existing.name},expression=resource.name.endsWith(\"{suffix}\")'"
        )
    yield Fault(
        "teams",
        f"Members get access to their namespaces; access to {existing.name} itself is granted by its owner.",
        "Without it, kubectl cannot reach the cluster.",
        f"Have the owner run, for each member without access, `{command}`.",
    )
