"""Rules for names of pools, queues and teams: unique names, and valid references."""

from collections.abc import Iterable, Iterator
from itertools import chain

from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool import Taint
from ebbtide.declaration.model.queues import FLAVORS_IN_A_GROUP, TAINTS_OF_A_FLAVOR
from ebbtide.declaration.model.rules.names import namespace_path
from ebbtide.declaration.model.rules.rule import Severity, cluster_rule
from ebbtide.declaration.model.tenants import PIPELINES_NAMESPACE, system_owner
from ebbtide.text import and_list, did_you_mean

_KUEUE = "Kueue 0.19.2, ClusterQueue v1beta2 (2026-08-20)"
_SYSTEM_NAMESPACES = (
    "kubernetes.io/docs/concepts/overview/working-with-objects/namespaces, and those of "
    "GKE and AKS in ebbtide/declaration/catalog/data/namespaces.csv (2026)"
)


@cluster_rule("queue pools exist", _KUEUE)
def _queues_name_pools(cluster: Cluster) -> Iterator[Fault]:
    roles = {pool.name: pool.is_system for pool in cluster.pools}
    work = [name for name, is_system in roles.items() if not is_system]
    for number, queue in enumerate(cluster.queues):
        for index, name in enumerate(queue.pools):
            path = f"queues[{number}].pools[{index}]"
            if name not in roles:
                yield Fault(
                    path,
                    f"There is no pool {name}{did_you_mean(name, work)}",
                    "Work in the queue would wait indefinitely.",
                    _one_of(work, "Declare a work pool first."),
                )
            elif roles[name]:
                yield Fault(
                    path,
                    f"The queue contains the system pool, {name}.",
                    "Jobs would displace system pods.",
                    _one_of(work, "Declare a work pool first."),
                )
            elif name in queue.pools[:index]:
                yield Fault(
                    path,
                    f"The pool {name} is in the queue twice.",
                    "Kueue refuses duplicate flavors.",
                    "Remove one of the two.",
                )


def _one_of(names: Iterable[str], otherwise: str) -> str:
    known = list(names)
    return f"Write one of {', '.join(known)}." if known else otherwise


@cluster_rule(
    "maximum pools in queue", "ebbtide/declaration/providers/schemas/kueue.csv: resourceGroups.flavors"
)
def _not_too_many_pools(cluster: Cluster) -> Iterator[Fault]:
    for index, queue in enumerate(cluster.resolved_queues):
        if len(queue.pools) > FLAVORS_IN_A_GROUP and not queue.fallback:
            yield Fault(
                f"queues[{index}].pools" if cluster.queues else "pools",
                f"The queue {queue.name} has {len(queue.pools)} pools.",
                f"Kueue supports at most {FLAVORS_IN_A_GROUP} flavors in a queue.",
                "Split the queue into several." if cluster.queues else "Write queues, each with fewer pools.",
            )


@cluster_rule(
    "maximum taints in queue",
    "ebbtide/declaration/providers/schemas/kueue.csv: ResourceFlavor nodeTaints, tolerations",
)
def _not_too_many_taints(cluster: Cluster) -> Iterator[Fault]:
    paths = {pool.name: f"pools[{index}].taints" for index, pool in enumerate(cluster.pools)}
    taints = {pool.name: pool.labels_and_taints.all_taints for pool in cluster.resolved_pools}
    flavors: dict[str, tuple[str, set[Taint]]] = {}
    for number, queue in enumerate(cluster.resolved_queues):
        names = [name for name in queue.pools if name in taints]
        if queue.fallback:
            together = set(chain.from_iterable(taints[name] for name in names))
            flavors[queue.name] = (f"queues[{number}].pools", together)
        else:
            flavors |= {name: (paths[name], set(taints[name])) for name in names}
    for path, together in flavors.values():
        if len(together) > TAINTS_OF_A_FLAVOR:
            yield Fault(
                path,
                f"The nodes have {len(together)} different taints, with those that the cloud adds.",
                f"Kueue supports at most {TAINTS_OF_A_FLAVOR} taints of a flavor, and would refuse it.",
                "Remove some of them, or write one taint that stands for several.",
            )


@cluster_rule(
    "one accelerator type in queue",
    f"{_KUEUE}: the next flavor is taken when the first is full",
    severity=Severity.WARNED,
)
def _one_accelerator_type(cluster: Cluster) -> Iterator[Fault]:
    types = {pool.name: pool.accelerator_type for pool in cluster.resolved_pools}
    for index, queue in enumerate(cluster.queues):
        accelerators = list(dict.fromkeys(types[name] for name in queue.pools if types.get(name)))
        if len(accelerators) > 1:
            yield Fault(
                f"queues[{index}].pools",
                f"The pools of the queue have different accelerators, {and_list(accelerators)}.",
                "A job may get the slower type.",
                "Declare a queue for each type, unless jobs can use any of them.",
            )


@cluster_rule(
    "one architecture in queue",
    "GKE docs, prepare-arm-workloads-for-deployment (2026): an image for amd64 does not run on Arm nodes",
    severity=Severity.WARNED,
)
def _one_architecture(cluster: Cluster) -> Iterator[Fault]:
    by_name = {pool.name: pool.architecture for pool in cluster.resolved_pools}
    for index, queue in enumerate(cluster.queues):
        names = list(dict.fromkeys(by_name[name] for name in queue.pools if name in by_name))
        if len(names) > 1:
            yield Fault(
                f"queues[{index}].pools",
                f"The pools of the queue have different architectures, {and_list(names)}.",
                "An image for one of them fails on the nodes of the other with exec format error.",
                "Declare a queue for each, unless all images have both platforms.",
            )


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
                    _one_of(queues, "Declare queues, or write addons: {kueue: {}} for the derived ones."),
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
