"""Rules for teams' guaranteed nodes and for Kueue's settings."""

from collections.abc import Collection, Iterable, Iterator

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import Severity, cluster_rule
from ebbtide.declaration.model.tenancy import Team
from ebbtide.text import and_list, did_you_mean

_KUEUE = "Kueue 0.19.2, ClusterQueue and Cohort v1beta2, nominalQuota and fairSharing (2026-08-20)"
_CONFIG = "Kueue 0.19.2, apis/config/v1beta2, Integrations (2026-08-20)"

_NO_QUEUE = "None of the team's queues has a pool"

FRAMEWORKS = (
    "batch/job",
    "jobset.x-k8s.io/jobset",
    "kubeflow.org/jaxjob",
    "kubeflow.org/mpijob",
    "kubeflow.org/paddlejob",
    "kubeflow.org/pytorchjob",
    "kubeflow.org/tfjob",
    "kubeflow.org/xgboostjob",
    "leaderworkerset.x-k8s.io/leaderworkerset",
    "pod",
    "deployment",
    "statefulset",
    "ray.io/raycluster",
    "ray.io/rayjob",
    "ray.io/rayservice",
    "sparkoperator.k8s.io/sparkapplication",
    "trainer.kubeflow.org/trainjob",
    "workload.codeflare.dev/appwrapper",
)
"""Frameworks that Kueue supports itself."""


@cluster_rule("guaranteed pool in team queues", _KUEUE)
def _guarantees_name_pools(cluster: Cluster) -> Iterator[Fault]:
    consequence = "Its nodes would be reserved for a team that cannot use them."
    for number, team in enumerate(cluster.teams):
        path = f"teams[{number}].guarantee"
        yield from _in_pools(path, team.guarantee, _pools_of(cluster, team), _NO_QUEUE, consequence)


@cluster_rule("limited pool in queue", _KUEUE)
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
                f"Write one of {', '.join(sorted(pools))}."
                if pools
                else "Declare a queue for the team first.",
            )


@cluster_rule("lending limit within guarantee", f"{_KUEUE}; lendingLimit")
def _lends_what_it_has(cluster: Cluster) -> Iterator[Fault]:
    for number, team in enumerate(cluster.teams):
        for pool, nodes in team.lending_limit.items():
            guaranteed = team.guarantee.get(pool, 0)
            if nodes > guaranteed:
                yield Fault(
                    f"teams[{number}].lendingLimit.{pool}",
                    f"The team lends up to {nodes} nodes of {pool}, and {guaranteed} are guaranteed to it.",
                    "Kueue refuses a lendingLimit beyond the nominalQuota.",
                    f"Write {guaranteed} or less, or a larger guarantee."
                    if guaranteed
                    else "Write a guarantee, or remove the limit.",
                )


@cluster_rule(
    "guarantees reclaimed", f"{_KUEUE}; ClusterQueuePreemption.reclaimWithinCohort", severity=Severity.WARNED
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


@cluster_rule("guarantees within pool limits", _KUEUE)
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


@cluster_rule("fair sharing needs queues", _KUEUE)
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


@cluster_rule("known Kueue frameworks", _CONFIG)
def _known_frameworks(cluster: Cluster) -> Iterator[Fault]:
    if cluster.addons.kueue is None:
        return
    for index, name in enumerate(cluster.addons.kueue.frameworks):
        if name not in FRAMEWORKS:
            yield Fault(
                f"addons.kueue.frameworks[{index}]",
                f"Kueue has no framework {name}{did_you_mean(name, FRAMEWORKS)}",
                "Kueue would not start, and no Job could be created in a queue's namespace.",
                "Write one of Kueue's names, such as ray.io/rayjob.",
            )


@cluster_rule("Kueue needs work pools", _KUEUE)
def _kueue_has_work(cluster: Cluster) -> Iterator[Fault]:
    if cluster.has_kueue and not cluster.resolved_queues:
        yield Fault(
            "addons.kueue",
            "Kueue is declared, and the cluster has no work pool.",
            "Kueue could not admit any work.",
            "Declare a work pool, or omit kueue.",
        )


@cluster_rule(
    "together needs queued pools",
    "GKE docs, provisioningrequest (2026-04): queued-provisioning.gke.io alone",
    CloudKind.GKE,
)
def _together_on_aks(cluster: Cluster) -> Iterator[Fault]:
    for index, queue in enumerate(cluster.queues):
        if queue.together:
            yield Fault(
                f"queues[{index}].together",
                "GKE provisions all nodes of a job together only in queued pools.",
                "The autoscaler would ignore the request, and the work would wait indefinitely.",
                "Remove together, and write capacity: queued on the pool.",
            )


@cluster_rule(
    "together on spot pools",
    "kubernetes/autoscaler, cluster-autoscaler/processors/provreq/pods_filter.go (2026)",
    CloudKind.AKS,
    Severity.WARNED,
)
def _together_once(cluster: Cluster) -> Iterator[Fault]:
    spot = {pool.name for pool in cluster.pools if pool.capacity.kind == "spot"}
    for index, queue in enumerate(cluster.queues):
        for pool in queue.pools if queue.together else ():
            if pool in spot:
                yield Fault(
                    f"queues[{index}].together",
                    f"{pool} is a spot pool, and nodes are requested together only once, when work is "
                    "admitted.",
                    "A pod that is recreated after its node is reclaimed gets no new node: it waits until "
                    "another pod ends, or the whole job is queued again after an hour.",
                    "Omit together, unless waiting is better than running part of a job.",
                )
