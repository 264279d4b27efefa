"""Rules for names of pools, queues and teams: unique names, and valid references."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain

from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool import Taint
from ebbtide.declaration.model.queues import FLAVORS_IN_A_GROUP, TAINTS_OF_A_FLAVOR, queues_of
from ebbtide.declaration.model.rules.kubernetes import DNS_LABEL, DNS_LABEL_WORDS, NAMES_SOURCE
from ebbtide.declaration.model.rules.rule import ClusterRule, Severity, cluster_rule
from ebbtide.declaration.model.rules.syntax import Syntax, Texts, cluster_rules
from ebbtide.declaration.model.tenancy import Team
from ebbtide.declaration.model.tenants import PIPELINES_NAMESPACE, system_owner, tenants_of
from ebbtide.text import and_list, did_you_mean

_KUEUE = "Kueue 0.19.2, ClusterQueue v1beta2 (2026-08-20)"
_SYSTEM_NAMESPACES = (
    "kubernetes.io/docs/concepts/overview/working-with-objects/namespaces, and those of "
    "GKE and AKS in ebbtide/declaration/catalog/data/namespaces.csv (2026)"
)


def _namespace_path(index: int, team: Team) -> str:
    return f"teams[{index}].namespace.name" if team.namespace else f"teams[{index}].name"


def _pool_names(cluster: Cluster) -> Texts:
    return [(f"pools[{index}].name", pool.name) for index, pool in enumerate(cluster.pools)]


def _queue_names(cluster: Cluster) -> Texts:
    return [(f"queues[{index}].name", queue.name) for index, queue in enumerate(cluster.queues)]


def _team_names(cluster: Cluster) -> Texts:
    return [(f"teams[{index}].name", team.name) for index, team in enumerate(cluster.teams)]


def _storage_names(cluster: Cluster) -> Texts:
    """Yield the names in the names of teams' storage, if a team declares one."""
    if any(team.storage_name for team in cluster.teams):
        for index, team in enumerate(cluster.teams):
            yield f"teams[{index}].{'storageName' if team.storage_name else 'name'}", team.stored_as


def _declared_namespaces(cluster: Cluster) -> Texts:
    for index, team in enumerate(cluster.teams):
        if team.namespace is not None:
            yield _namespace_path(index, team), team.namespace.name
    for number, queue in enumerate(cluster.queues):
        for index, local in enumerate(queue.local_queues):
            yield f"queues[{number}].localQueues[{index}].namespace", local.namespace


def _namespaces(cluster: Cluster) -> Texts:
    return [(_namespace_path(index, team), team.namespace_name) for index, team in enumerate(cluster.teams)]


def _local_queue_names(cluster: Cluster) -> Texts:
    for number, team in enumerate(cluster.teams):
        for index, use in enumerate(team.queues):
            yield f"teams[{number}].queues[{index}].as", use.as_
    for number, queue in enumerate(cluster.queues):
        for index, local in enumerate(queue.local_queues):
            yield f"queues[{number}].localQueues[{index}].name", local.name


def _once(
    noun: str, consequence: str, names: Callable[[Cluster], Texts], cluster: Cluster
) -> Iterator[Fault]:
    first: dict[str, str] = {}
    for path, name in names(cluster):
        if name is None:
            continue
        if name in first:
            problem = f"The {noun} {name} is already in use, at {first[name]}."
            yield Fault(path, problem, consequence, f"Write a {noun} of its own.")
        first.setdefault(name, path)


def _once_rule(noun: str, consequence: str, names: Callable[[Cluster], Texts]) -> ClusterRule:
    return ClusterRule(f"unique {noun}s", NAMES_SOURCE, partial(_once, noun, consequence, names))


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
    for index, queue in enumerate(queues_of(cluster)):
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
    for number, queue in enumerate(queues_of(cluster)):
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
    queues = [queue.name for queue in queues_of(cluster)]
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
    for path, name in _namespaces(cluster):
        if name is not None and (owner := system_owner(cluster, name)) is not None:
            yield Fault(
                path,
                f"The namespace {name} belongs to {owner}.",
                "The team could change components of the cluster.",
                "Write a namespace of the team's own.",
            )


@cluster_rule("team name of Kubeflow Pipelines", "Pulumi docs, resource names: URNs are unique (2026-08)")
def _named_as_pipelines(cluster: Cluster) -> Iterator[Fault]:
    derived = [tenant.name for tenant in tenants_of(cluster) if tenant not in cluster.teams]
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
                _namespace_path(index, team),
                "The namespace default already exists.",
                "It could not be created, and must not be deleted with the team.",
                "Write namespace: {name: default, create: false}.",
            )


def _dns_label(noun: str, example: str, names: Callable[[Cluster], Texts]) -> Syntax[Cluster]:
    return Syntax(
        what=noun,
        whose="Kubernetes",
        pattern=DNS_LABEL,
        wants=DNS_LABEL_WORDS,
        example=example,
        consequence="It could not be created.",
        source=f"{NAMES_SOURCE}: DNS label",
        texts=names,
    )


RULES = (
    *cluster_rules(
        _dns_label("queue name", "t4", _queue_names),
        _dns_label("local queue name", "big", _local_queue_names),
        _dns_label("team name", "vision", _team_names),
        _dns_label("storage name", "vision", _storage_names),
        _dns_label("namespace", "vision", _declared_namespaces),
    ),
    _once_rule("pool name", "One of the two pools could not be created.", _pool_names),
    _once_rule("queue name", "One of the two queues could not be created.", _queue_names),
    _once_rule("team name", "The teams would share their permissions.", _team_names),
    _once_rule("storage name", "Two teams would have one bucket, share and registry.", _storage_names),
    _once_rule(
        "namespace", "Two teams would share it, with each other's permissions and queues.", _namespaces
    ),
)
