"""Teams: their queues and guarantees, local queues without a team, members, and admission."""

from collections.abc import Collection, Iterable, Iterator
from typing import assert_never

from ebbtide.declaration.model.cloud import Aks, Gke
from ebbtide.declaration.model.cluster import PIPELINES_NAMESPACE, Cluster, pod_security_of, system_owner
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.names import namespace_path, written
from ebbtide.declaration.model.rules.rule import KUEUE, Severity, cluster_rule, one_of, user_names
from ebbtide.declaration.model.tenancy import LocalQueue, Team, groups_domain, name_of, principal
from ebbtide.text import and_list, did_you_mean
from ebbtide.values.cloud_kind import CloudKind

_KUEUE = f"{KUEUE}, ClusterQueue v1beta2 (2026-08-20)"
_SYSTEM_NAMESPACES = (
    "kubernetes.io/docs/concepts/overview/working-with-objects/namespaces, and those of "
    "GKE and AKS in ebbtide/declaration/catalog/data/namespaces.csv (2026)"
)
_KUEUE_SHARES = f"{KUEUE}, ClusterQueue and Cohort v1beta2, nominalQuota and fairSharing (2026-08-20)"
_NO_QUEUE = "None of the team's queues has a pool"
_KUEUE_LOCAL = f"{KUEUE}, LocalQueue v1beta2 (2026-08-20)"
_AKS_DOCS = "azure-aks-docs kubernetes-rbac-entra-id.md (2025-01-26)"
_USER_ROLE = "Azure Kubernetes Service Cluster User Role"
_POD_SECURITY = "Kubernetes docs, Pod Security Standards and Pod Security Admission (2026)"
_POLICY = "Kubernetes docs, ValidatingAdmissionPolicy (2026)"
_RBAC = "Kubernetes docs, role-based access control (2026)"


@cluster_rule("team queues exist", f"{_KUEUE}: LocalQueue.spec.clusterQueue")
def _teams_name_queues(cluster: Cluster) -> Iterator[Fault]:
    queues = [queue.name for queue in cluster.resolved_queues]
    for number, team in enumerate(cluster.teams):
        for index, use in enumerate(team.queues):
            if use.queue not in queues:
                yield Fault(
                    f"teams[{number}].queues[{index}]",
                    f"There is no queue {use.queue}{did_you_mean(use.queue, queues)}",
                    "The team could not submit work.",
                    one_of(queues, "Declare queues, or write addons: {kueue: {}} for the derived ones."),
                )


@cluster_rule("unique local queues in namespace", f"{_KUEUE}: LocalQueue is namespaced")
def _local_queues_once(cluster: Cluster) -> Iterator[Fault]:
    for number, team in enumerate(cluster.teams):
        names = [use.as_ or use.queue for use in team.queues]
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Fault(
                    f"teams[{number}].queues[{index}]",
                    f"The team already has a local queue {name}.",
                    "Local queue names are unique in a namespace.",
                    "Remove one of the two, or give it another name with as.",
                )


@cluster_rule("unique cluster queues", f"{_KUEUE}: ClusterQueue is cluster-scoped")
def _cluster_queues_once(cluster: Cluster) -> Iterator[Fault]:
    owners = {queue.name: f"the queue {queue.name}" for queue in cluster.queues if queue.local_queues}
    for team in cluster.teams:
        for queue in cluster.resolved_queues:
            uses = team.queues_used(queue.name)
            if uses and not any(use.cluster_queue for use in uses):
                owners[team.cluster_queue(queue.name)] = f"the queue {queue.name} of team {team.name}"
    for number, team in enumerate(cluster.teams):
        for index, use in enumerate(team.queues):
            name = use.cluster_queue
            own = f"the queue {use.queue} of team {team.name}"
            if name is not None and owners.setdefault(name, own) != own:
                yield Fault(
                    f"teams[{number}].queues[{index}].clusterQueue",
                    f"{name} is the ClusterQueue of {owners[name]}.",
                    "Both would share its quota and its settings.",
                    "Write another name, or omit clusterQueue.",
                )
            elif name is not None and name != team.cluster_queue(use.queue):
                yield Fault(
                    f"teams[{number}].queues[{index}].clusterQueue",
                    f"The team uses the queue {use.queue} through the ClusterQueue "
                    f"{team.cluster_queue(use.queue)} already.",
                    "A team has one ClusterQueue for each of its queues.",
                    f"Write {team.cluster_queue(use.queue)}, or declare another queue.",
                )


@cluster_rule("no team in system namespace", _SYSTEM_NAMESPACES)
def _namespaces_for_people(cluster: Cluster) -> Iterator[Fault]:
    for index, team in enumerate(cluster.teams):
        name = team.namespace_name
        if (owner := system_owner(cluster, name)) is not None:
            yield Fault(
                namespace_path(index, team),
                f"The namespace {name} belongs to {owner}.",
                "The team could change components of the cluster.",
                "Write a namespace of the team's own.",
            )


@cluster_rule("team name of Kubeflow Pipelines", "Pulumi docs, resource names: URNs are unique (2026-08)")
def _named_as_pipelines(cluster: Cluster) -> Iterator[Fault]:
    derived = [tenant.name for tenant in cluster.tenants if tenant not in cluster.teams]
    for index, team in enumerate(cluster.teams):
        if team.name == PIPELINES_NAMESPACE and team.name in derived:
            yield Fault(
                f"teams[{index}].name",
                f"{team.name} is the name of what addons.pipelines creates for its own namespace.",
                "Pulumi refuses two resources with the same URN.",
                "Write another name, or omit namespace for a team in the namespace of Kubeflow Pipelines.",
            )


@cluster_rule("default namespace exists", _SYSTEM_NAMESPACES)
def _default_exists(cluster: Cluster) -> Iterator[Fault]:
    for index, team in enumerate(cluster.teams):
        if team.namespace_name == "default" and (team.namespace is None or team.namespace.create):
            yield Fault(
                namespace_path(index, team),
                "The namespace default already exists.",
                "It could not be created, and must not be deleted with the team.",
                "Write namespace: {name: default, create: false}.",
            )


@cluster_rule("guaranteed pool in team queues", _KUEUE_SHARES)
def _guarantees_name_pools(cluster: Cluster) -> Iterator[Fault]:
    consequence = "Its nodes would be reserved for a team that cannot use them."
    for number, team in enumerate(cluster.teams):
        path = f"teams[{number}].guarantee"
        yield from _in_pools(path, team.guarantee, _pools_of(cluster, team), _NO_QUEUE, consequence)


@cluster_rule("limited pool in queue", _KUEUE_SHARES)
def _limits_name_pools(cluster: Cluster) -> Iterator[Fault]:
    consequence = "The limit would have no effect."
    for number, queue in enumerate(cluster.queues):
        path, pools = f"queues[{number}].borrowingLimit", set(queue.pools)
        yield from _in_pools(path, queue.borrowing_limit, pools, "The queue has no pool", consequence)
    for number, team in enumerate(cluster.teams):
        path, pools = f"teams[{number}].borrowingLimit", _pools_of(cluster, team)
        yield from _in_pools(path, team.borrowing_limit, pools, _NO_QUEUE, consequence)


def _pools_of(cluster: Cluster, team: Team) -> set[str]:
    return {pool for queue in cluster.resolved_queues if team.queues_used(queue.name) for pool in queue.pools}


def _in_pools(
    path: str, named: Iterable[str], pools: Collection[str], problem: str, consequence: str
) -> Iterator[Fault]:
    for pool in named:
        if pool not in pools:
            yield Fault(
                f"{path}.{pool}",
                f"{problem} {pool}{did_you_mean(pool, pools)}",
                consequence,
                one_of(sorted(pools), "Declare a queue for the team first."),
            )


@cluster_rule("lending limit within guarantee", f"{_KUEUE_SHARES}; lendingLimit")
def _lends_what_it_has(cluster: Cluster) -> Iterator[Fault]:
    for number, team in enumerate(cluster.teams):
        for pool, nodes in team.lending_limit.items():
            guaranteed = team.guarantee.get(pool, 0)
            less = f"{guaranteed} or less, or a larger guarantee"
            if nodes > guaranteed:
                yield Fault(
                    f"teams[{number}].lendingLimit.{pool}",
                    f"The team lends up to {nodes} nodes of {pool}, and {guaranteed} are guaranteed to it.",
                    "Kueue refuses a lendingLimit beyond the nominalQuota.",
                    f"Write {less if guaranteed else 'a guarantee, or remove the limit'}.",
                )


@cluster_rule(
    "guarantees reclaimed",
    f"{_KUEUE_SHARES}; ClusterQueuePreemption.reclaimWithinCohort",
    severity=Severity.WARNED,
)
def _guarantees_come_back(cluster: Cluster) -> Iterator[Fault]:
    warned: set[str] = set()
    for number, queue in enumerate(cluster.resolved_queues):
        own = cluster.queues[number].preemption if cluster.queues else None
        path = f"queues[{number}].preemption" if own and own.reclaim_within_cohort else "cohort.preemption"
        reclaimed = (queue.preemption and queue.preemption.reclaim_within_cohort) or "Any"
        for team in cluster.teams:
            mine = [pool for pool, nodes in team.guarantee.items() if nodes and pool in queue.pools]
            if reclaimed != "Any" and mine and team.queues_used(queue.name) and path not in warned:
                warned.add(path)
                yield Fault(
                    f"{path}.reclaimWithinCohort",
                    f"{team.name} has guaranteed nodes of {and_list(mine)}, and reclaims them from "
                    + ("no work." if reclaimed == "Never" else "work of lower priority alone."),
                    "Its work waits until that of the teams that borrow the nodes ends.",
                    "Write Any, unless waiting is better than evicting the borrowers' work.",
                )


@cluster_rule("guarantees within pool limits", _KUEUE_SHARES)
def _guarantees_fit(cluster: Cluster) -> Iterator[Fault]:
    for pool in cluster.resolved_pools:
        holders = [
            (number, team.guarantee[pool.name])
            for number, team in enumerate(cluster.teams)
            if team.guarantee.get(pool.name)
        ]
        promised = sum(nodes for _, nodes in holders)
        if promised > pool.max_nodes:
            yield Fault(
                f"teams[{holders[-1][0]}].guarantee.{pool.name}",
                f"{promised} nodes of {pool.name} are guaranteed, and it has at most {pool.max_nodes}.",
                "Not every guarantee could be met, and admitted work would wait indefinitely.",
                "Write smaller guarantees, or a larger nodes.max.",
            )


@cluster_rule("fair sharing needs queues", _KUEUE_SHARES)
def _shares_need_queues(cluster: Cluster) -> Iterator[Fault]:
    if cluster.has_kueue:
        return
    for number, team in enumerate(cluster.teams):
        if team.weight != 1:
            yield Fault(
                f"teams[{number}].weight",
                "The team has a weight, and the cluster has no queues.",
                "The weight would have no effect.",
                "Declare queues, or write addons: {kueue: {}}.",
            )


def _local_queues(cluster: Cluster) -> Iterator[tuple[str, str, LocalQueue]]:
    """Yield each local queue with its path and its name."""
    for number, queue in enumerate(cluster.queues):
        for index, local in enumerate(queue.local_queues):
            yield f"queues[{number}].localQueues[{index}]", local.name or queue.name, local


@cluster_rule("no extra local queue in team namespace", _KUEUE_LOCAL)
def _namespaces_without_team(cluster: Cluster) -> Iterator[Fault]:
    teams = {name: team.name for team in cluster.teams for name in (team.name, team.namespace_name)}
    for path, _, local in _local_queues(cluster):
        if local.namespace in teams:
            team = teams[local.namespace]
            yield Fault(
                f"{path}.namespace",
                f"{local.namespace} is the namespace or the name of team {team}.",
                "Work in it would use queues of the team and a queue without the team, with different "
                "shares.",
                f"Remove it, and write the name as {{queue: …, as: …}} in the queues of team {team}.",
            )


@cluster_rule(
    "no local queue in system namespace",
    f"{_SYSTEM_NAMESPACES}; {KUEUE}, config/components/webhook: failurePolicy Fail",
)
def _namespaces_of_controllers(cluster: Cluster) -> Iterator[Fault]:
    for path, _, local in _local_queues(cluster):
        if (owner := system_owner(cluster, local.namespace)) is not None:
            yield Fault(
                f"{path}.namespace",
                f"The namespace {local.namespace} belongs to {owner}.",
                "Kueue would suspend pods that the cluster, or Kueue itself, needs.",
                "Write another namespace, such as default.",
            )


@cluster_rule("unique local queues outside of teams", _KUEUE_LOCAL)
def _once_in_a_namespace(cluster: Cluster) -> Iterator[Fault]:
    first: dict[tuple[str, str], str] = {}
    for path, name, local in _local_queues(cluster):
        identity = (local.namespace, name)
        if identity in first:
            yield Fault(
                path,
                f"The namespace {local.namespace} already has a local queue {name}, at {first[identity]}.",
                "Local queue names are unique in a namespace.",
                "Remove one of the two, or give it another name.",
            )
        first.setdefault(identity, path)


@cluster_rule("queue has local queue", _KUEUE_LOCAL, severity=Severity.WARNED)
def _queues_are_used(cluster: Cluster) -> Iterator[Fault]:
    tenants = cluster.tenants
    for index, queue in enumerate(cluster.queues):
        if not any(tenant.queues_used(queue.name) for tenant in tenants):
            yield Fault(
                f"queues[{index}].name",
                f"The queue {queue.name} has no local queue in any namespace.",
                "No work could be submitted to it.",
                "Write localQueues: [{namespace: default}] there, add it to a team's queues, or remove it.",
            )


@cluster_rule("members written once", "Pulumi docs, resource names: URNs are unique (2026-08)")
def _members_once(cluster: Cluster) -> Iterator[Fault]:
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
    if cluster.cloud.existing is None:
        yield from user_names(
            written(cluster, "teams[*].members[*]"),
            "can use the namespace, but az aks get-credentials is denied.",
            ", or hand out the stack's kubeconfig, which contains no credentials",
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
    match cluster.cloud:
        case Gke() as cloud:
            suffix = f"/{cloud.location}/clusters/{existing.name}"
            command = (
                f"gcloud projects add-iam-policy-binding {cloud.project} --role "
                f"roles/container.clusterViewer --member {principal(members[0])} --condition "
                f"'title=cluster {existing.name},expression=resource.name.endsWith(\"{suffix}\")'"
            )
        case Aks() as cloud:
            group = cloud.resource_group or cluster.physical_name
            command = (
                f'az role assignment create --role "{_USER_ROLE}" --assignee {members[0]} --scope "$(az aks '
                f'show --resource-group {group} --name {existing.name} --query id --output tsv)"'
            )
        case _:
            assert_never(cluster.cloud)
    yield Fault(
        "teams",
        f"Members get access to their namespaces; access to {existing.name} itself is granted by its owner.",
        "Without it, kubectl cannot reach the cluster.",
        f"Have the owner run, for each member without access, `{command}`.",
    )


@cluster_rule("required queues exist", _POLICY)
def _required_queues_exist(cluster: Cluster) -> Iterator[Fault]:
    for index, team in enumerate(cluster.teams):
        if team.require_queue and not cluster.uses_queues(team):
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
