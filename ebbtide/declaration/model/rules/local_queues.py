"""Rules for local queues in namespaces without a team."""

from collections.abc import Iterator

from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import Severity, cluster_rule
from ebbtide.declaration.model.tenancy import LocalQueue
from ebbtide.declaration.model.tenants import system_owner

_KUEUE = "Kueue 0.19.2, LocalQueue v1beta2 (2026-08-20)"
_SYSTEM_NAMESPACES = (
    "kubernetes.io/docs/concepts/overview/working-with-objects/namespaces, and those of "
    "GKE and AKS in ebbtide/declaration/catalog/data/namespaces.csv (2026)"
)


def _local_queues(cluster: Cluster) -> Iterator[tuple[str, str, LocalQueue]]:
    """Yield each local queue with its path and its name."""
    for number, queue in enumerate(cluster.queues):
        for index, local in enumerate(queue.local_queues):
            yield f"queues[{number}].localQueues[{index}]", local.name or queue.name, local


@cluster_rule("no extra local queue in team namespace", _KUEUE)
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
    f"{_SYSTEM_NAMESPACES}; Kueue 0.19.2, config/components/webhook: failurePolicy Fail",
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


@cluster_rule("unique local queues outside of teams", _KUEUE)
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


@cluster_rule("queue has local queue", _KUEUE, severity=Severity.WARNED)
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
