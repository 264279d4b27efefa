"""Queues, teams and guarantees of a declaration, from Kueue's objects on a cluster."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from itertools import chain, count
from typing import Any, Final

from ebbtide.analysis.recording.recording import Recording
from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide.declaration.catalog.clouds import CLOUD_SPECS
from ebbtide.declaration.model.cluster import PIPELINES_NAMESPACE, Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.operations.adopting.found import AdoptionError, LeftOut
from ebbtide.operations.adopting.kueue_objects import (
    AKS_PREFIX,
    Amounts,
    FlavorPools,
    ObjectDifference,
    compare_objects,
    content,
    flavor_pools,
    left_objects,
    specs,
)
from ebbtide.placement.queue_objects import fallback_objects, layers
from ebbtide.placement.queueing import Order, cohort_name, queueing
from ebbtide.text import and_list
from ebbtide.values import quantities
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.kueue_api import TYPES, flavor_names, of_kind
from ebbtide.values.paths import Manifest

_TYPES: Final = (TYPES, "kubernetes:cloud.google.com/")
_ATOMIC: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
_FOR_TEAMS: Final = "pool-overrides-with-teams"
_NO_TEAMS: Final = (
    "A declaration has weights for teams alone, whose pods need GKE's metadata server, which pools of the "
    "cluster do not have. It stays as it is."
)
_LIMITS: Final = ("nominalQuota", "borrowingLimit", "lendingLimit")


@dataclass(frozen=True, slots=True)
class AdoptedQueues:
    """The declaration of Kueue's objects, and the proof that it derives the same objects.

    Attributes:
        fields: `pools` with the names of their flavors, `queues`, `teams`, `cohort` and `addons` of the
            declaration, in its own names; empty and unchanged ones are omitted.
        differences: fields of the objects that the declaration would change or add.
        left: objects that the declaration has no word for, and which stay as they are.
    """

    fields: Mapping[str, Any]
    differences: tuple[ObjectDifference, ...] = ()
    left: tuple[LeftOut, ...] = ()


def adopt_queues(
    objects: Sequence[Manifest], declaration: Mapping[str, Any], *, created: Collection[str] = ()
) -> AdoptedQueues:
    """Return the declaration's part of Kueue's objects, compared with the objects that it derives.

    A ClusterQueue keeps its name. It is a team's if one namespace alone submits to it, and it has a
    guarantee, a limit of lending or a weight, which a declaration has for teams alone; or if it has the name
    that a team's would have. One that cannot keep the names of its flavors, to which Workloads refer, stays
    with its owner, with all that share pools or Cohort objects with it.

    Args:
        objects: Kueue's objects, as `kueue_objects` returns them, with the ComputeClasses of fallback queues
            if any.
        declaration: the object under `ebbtide:cluster` with its pools, and without queues and teams.
        created: namespaces that the stack creates; all others exist, and are never deleted.

    Raises:
        AdoptionError: the queues break a rule of the declaration.
        DeclarationError: the declaration is invalid without them.
    """
    plain, fallbacks = _without_fallbacks(declaration)
    cluster = declare(plain)
    reading = _Reading(objects, cluster, fallbacks, created, {})
    while reading.unnamed:
        reading = _Reading(objects, cluster, fallbacks, created, reading.left | reading.unnamed)
    fields = reading.fields(declaration)
    try:
        derived = declare({**declaration, **fields})
    except DeclarationError as error:
        weightless = [_without_weight(item) for item in objects]
        if weightless != list(objects) and any(fault.rule == _FOR_TEAMS for fault in error.faults):
            adopted = adopt_queues(weightless, declaration, created=created)
            names = (text(item, "metadata", "name") for item in objects if _without_weight(item) != item)
            left = tuple(
                LeftOut(name=f"fairSharing.weight of ClusterQueue {name}", reason=_NO_TEAMS) for name in names
            )
            return replace(adopted, left=(*adopted.left, *left))
        faults = "\n".join(str(fault) for fault in error.faults)
        raise AdoptionError(f"The queues cannot be declared as they are:\n{faults}") from None
    made: list[Manifest] = []
    if reading.queues:
        made += [item for layer in layers(queueing(derived)) for item in layer]
        made += of_kind(fallback_objects(derived), "ComputeClass")
    left = tuple(left_objects(objects, made, reading.left))
    return AdoptedQueues(fields, tuple(compare_objects(objects, made)), left)


def _without_weight(item: Manifest) -> Manifest:
    """Return a ClusterQueue without its weight in fair sharing; any other object as it is."""
    spec = part(item, "spec")
    if text(item, "kind") != "ClusterQueue" or "fairSharing" not in spec:
        return item
    return {**item, "spec": {key: value for key, value in spec.items() if key != "fairSharing"}}


def adopted_objects(objects: Sequence[Manifest], recording: Recording) -> Iterator[Mapping[str, Any]]:
    """Yield type, logical name, import id and found fields of each resource of the program that exists as one
    of Kueue's objects.

    Args:
        objects: Kueue's objects, as `kueue_objects` returns them.
        recording: the program with the queues.
    """
    existing = {(text(item, "kind"), *_place(item)): item for item in objects}
    for resource in recording:
        kind, place = resource.type.rpartition(":")[2], _place(resource.inputs)
        if resource.type.startswith(_TYPES) and (item := existing.get((kind, *place))):
            own = {"type": resource.type, "name": resource.name, "id": "/".join(filter(None, place))}
            yield {**own, "found": content(item)}


def _place(manifest: Mapping[str, Any]) -> tuple[str, str]:
    """Return the namespace and the name of an object."""
    return text(manifest, "metadata", "namespace"), text(manifest, "metadata", "name")


def _without_fallbacks(declaration: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a declaration whose pools have no label of a fallback queue, which the queue derives; and the
    fallback queues by pool."""
    kind = text(declaration, "cloud", "kind")
    key = CLOUD_SPECS[CloudKind(kind)].fallback_key if kind in set(CloudKind) else ""
    pools = [dict(pool) for pool in declaration.get("pools") or ()]
    fallbacks: dict[str, str] = {}
    for pool in pools:
        labels = dict(pool.get("labels") or {})
        if key in labels:
            fallbacks[pool["name"]] = str(labels.pop(key))
            pool["labels"] = labels
    return {**declaration, "pools": pools}, fallbacks


@dataclass(slots=True)
class _ClusterQueue:
    """A ClusterQueue, in nodes of pools.

    Attributes:
        locals: namespace and name of each LocalQueue.
        names: the names of its flavors.
        flavors: its flavors that select pools.
        guarantee: nodes of its nominal quota by pool.
        borrowing: nodes of its limits of borrowing by pool.
        lending: nodes of its limits of lending by pool.
    """

    name: str
    spec: Mapping[str, Any]
    locals: list[tuple[str, str]]
    names: tuple[str, ...]
    flavors: list[FlavorPools]
    guarantee: dict[str, int] = field(default_factory=dict[str, int])
    borrowing: dict[str, int] = field(default_factory=dict[str, int])
    lending: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def pools(self) -> list[str]:
        """Its pools in order of preference."""
        return list(dict.fromkeys(pool for flavor in self.flavors for pool in flavor.pools))

    @property
    def namespaces(self) -> list[str]:
        """The namespaces of its LocalQueues."""
        return list(dict.fromkeys(namespace for namespace, _ in self.locals))

    @property
    def weight(self) -> int:
        """Its weight in fair sharing, rounded to a positive number."""
        return max(1, round(quantities.parse(part(self.spec, "fairSharing").get("weight") or 1)))

    @property
    def has_share(self) -> bool:
        """True if it has a share of its own, which only a team has in a declaration."""
        return bool(any(self.guarantee.values()) or self.lending or self.weight != 1)

    def preemption(self, key: str) -> str:
        """Return a policy of its preemption."""
        return text(self.spec, "preemption", key) or "Never"

    @property
    def strategy(self) -> str:
        """Its queueing strategy."""
        return text(self.spec, "queueingStrategy") or "BestEffortFIFO"

    @property
    def fallback(self) -> str:
        """The name of its fallback queue; empty for none."""
        return next((flavor.fallback for flavor in self.flavors), "") if len(self.flavors) == 1 else ""


class _Reading:
    """The queues and teams of a declaration in the making.

    Attributes:
        queues: the ClusterQueues of each declared queue.
        left: the reason for each ClusterQueue that stays with its owner although it has LocalQueues.
        unnamed: the same for those that the reading cannot name, so that another one must leave them.
    """

    def __init__(
        self,
        objects: Sequence[Manifest],
        cluster: Cluster,
        fallbacks: Mapping[str, str],
        created: Collection[str],
        left: Mapping[str, str],
    ) -> None:
        self._cluster = cluster
        self._created = created
        self._together = _atomic_checks(objects)
        key = CLOUD_SPECS[cluster.site.cloud].fallback_key
        flavors = flavor_pools(objects, cluster.work_pools, fallbacks, key)
        locals_: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for item in of_kind(objects, "LocalQueue"):
            metadata = item["metadata"]
            locals_[str(item["spec"]["clusterQueue"])].append((metadata["namespace"], metadata["name"]))
        found = [
            _ClusterQueue(name, spec, locals_[name], names, [flavors[it] for it in names if it in flavors])
            for name, spec in specs(objects, "ClusterQueue")
            if name in locals_
            for names in [flavor_names(spec)]
        ]
        self.left = dict(_left(found, objects, cluster, left))
        self._found = [item for item in found if item.name not in self.left]
        self._shares(any(True for _ in of_kind(objects, "Cohort")))
        self._teams = self._team_names()
        self.unnamed: dict[str, str] = {}
        self.queues = self._queues()

    def _shares(self, has_cohort: bool) -> None:  # noqa: FBT001 - an attribute of the objects
        """Compute guarantees and limits. Quota of a pool of one ClusterQueue alone is not a guarantee."""
        users = Counter(pool for item in self._found for pool in item.pools)
        most = {pool.name: pool.max_nodes for pool in self._cluster.resolved_pools}
        free = dict(most)
        for item in self._found:
            cohort = item.spec.get("cohortName")
            for flavor, amounts in _quotas(item):
                nominal = flavor.nodes(amounts["nominalQuota"], free=free)
                free |= {pool: max(0, free[pool] - nodes) for pool, nodes in nominal.items()}
                borrowing = flavor.nodes(amounts["borrowingLimit"]) if amounts["borrowingLimit"] else {}
                lending = flavor.nodes(amounts["lendingLimit"], nominal) if amounts["lendingLimit"] else {}
                if not cohort:
                    borrowing, lending = dict.fromkeys(flavor.pools, 0), dict.fromkeys(flavor.pools, 0)
                alone = all(users[pool] == 1 for pool in flavor.pools) and not has_cohort
                if alone:
                    # The cohort has all nodes, and the queue is the only one that borrows them.
                    limited = {pool: nodes + borrowing.get(pool, 0) for pool, nodes in nominal.items()}
                    if (
                        not any(limited.values())
                        and (least := amounts["nominalQuota"])
                        and all(least.values())
                    ):
                        limited[flavor.pools[0]] = 1  # quota of less than a node admits work today
                    is_limited = bool(borrowing) or not cohort
                    nominal, lending = {}, {}
                    borrowing = {
                        pool: nodes for pool, nodes in limited.items() if is_limited and nodes < most[pool]
                    }
                item.guarantee |= {pool: nodes for pool, nodes in nominal.items() if nodes or pool in lending}
                item.borrowing |= borrowing
                item.lending |= lending

    def _team_names(self) -> dict[str, str]:
        """Return the team of each ClusterQueue that is one's, by its name."""
        by_namespace: defaultdict[str, list[_ClusterQueue]] = defaultdict(list)
        for item in self._found:
            for namespace in item.namespaces:
                by_namespace[namespace].append(item)
        teams: dict[str, str] = {}
        for namespace, items in by_namespace.items():
            if any(item.namespaces != [namespace] for item in items):
                continue
            prefixes = {item.name.partition(".")[0] for item in items if "." in item.name}
            is_team = all("." in item.name for item in items) and len(prefixes) == 1
            if is_team or any(item.has_share or item.fallback not in ("", item.name) for item in items):
                taken = {*teams.values(), *by_namespace} - {namespace}
                team = prefixes.pop() if is_team and not prefixes & taken else namespace
                teams |= {item.name: team for item in items}
        return teams

    def _queues(self) -> dict[str, list[_ClusterQueue]]:
        """Return the ClusterQueues of each declared queue, in an order in which a team's guarantee of a pool
        belongs to the first of its queues with that pool."""
        queues: dict[str, list[_ClusterQueue]] = {}
        # Those of a team are last: they can have any name.
        for item in sorted(self._found, key=lambda item: (not item.fallback, item.name in self._teams)):
            if name := self._queue_name(item, queues):
                queues.setdefault(name, []).append(item)
            else:
                self.unnamed[item.name] = "Its name cannot be declared beside those of the other queues."
        before: dict[str, set[str]] = {name: set() for name in queues}
        for name, items in queues.items():
            for other, others in queues.items():
                if other != name and any(self._precedes(one, two) for one in items for two in others):
                    before[other].add(name)
        try:
            order = tuple(TopologicalSorter(before).static_order())
        except CycleError:
            order = tuple(queues)
        return {name: queues[name] for name in order}

    def _precedes(self, one: _ClusterQueue, two: _ClusterQueue) -> bool:
        is_same_team = self._teams.get(one.name, "") == self._teams.get(two.name) and one is not two
        return is_same_team and not one.guarantee.keys().isdisjoint(two.pools)

    def _queue_name(self, item: _ClusterQueue, queues: Mapping[str, Sequence[_ClusterQueue]]) -> str:
        """Return the declared queue of a ClusterQueue; that of another one with the same pools and settings,
        if the name after the team's is the same. Empty if it cannot have the name that it must have: that of
        its ComputeClass, or without a team its own."""
        team, _, name = item.name.partition(".")
        if item.name not in self._teams:
            names = iter([item.name] if not name and item.fallback in ("", item.name) else [])
        elif item.fallback:
            names = iter([item.fallback])
        else:
            named = name if self._teams[item.name] == team and name else item.name
            numbered = (f"{item.name}-{number}" for number in count(2))
            names = (name.replace(".", "-") for name in chain((named, item.name), numbered))
        return next((it for it in names if all(self._are_one(item, one) for one in queues.get(it, ()))), "")

    def _are_one(self, one: _ClusterQueue, two: _ClusterQueue) -> bool:
        """Return whether a queue of a declaration derives both ClusterQueues."""
        settings = [(item.pools, item.strategy, item.fallback) for item in (one, two)]
        is_same_team = self._teams.get(one.name, "") == self._teams.get(two.name)
        return settings[0] == settings[1] and not is_same_team

    def fields(self, declaration: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of the declaration."""
        if not self.queues:
            return {}
        addons: Mapping[str, Any] = declaration.get("addons") or {}
        flavors = {
            pool: flavor.name
            for item in self._found
            for flavor in item.flavors
            for pool in flavor.pools
            if not flavor.fallback and flavor.name != pool
        }
        fields: dict[str, Any] = {
            "pools": [
                {**pool, "resourceFlavor": flavors[pool["name"]]} if pool["name"] in flavors else pool
                for pool in declaration["pools"]
            ]
            if flavors
            else [],
            "queues": [self._queue(name, items) for name, items in self.queues.items()],
            "teams": [self._team(team) for team in dict.fromkeys(self._teams.values())],
            "addons": {**addons, "kueue": {**(addons.get("kueue") or {}), "existing": True}},
        }
        cohorts = Counter(name for item in self._found if (name := item.spec.get("cohortName")))
        for name, _ in cohorts.most_common(1):
            if name != cohort_name(self._cluster):
                fields["cohort"] = {**(declaration.get("cohort") or {}), "name": name}
        fields["teams"] = [team for team in fields["teams"] if not self._is_derived(team)]
        return {key: value for key, value in fields.items() if value}

    def _is_derived(self, team: Mapping[str, Any]) -> bool:
        """Return whether a team is the tenant that the declaration derives for Kubeflow Pipelines."""
        existing = {"name": PIPELINES_NAMESPACE, "namespace": {"name": PIPELINES_NAMESPACE, "create": False}}
        return self._cluster.addons.pipelines is not None and dict(team) == existing

    def _queue(self, name: str, items: Sequence[_ClusterQueue]) -> dict[str, Any]:
        queue: dict[str, Any] = {"name": name, "pools": items[0].pools}
        if items[0].fallback:
            queue["fallback"] = True
        checks = (parts(item.spec, "admissionChecksStrategy", "admissionChecks") for item in items)
        if any(check["name"] in self._together for own in checks for check in own):
            queue["together"] = True
        local = [pair for item in items if item.name not in self._teams for pair in item.locals]
        if local:
            queue["localQueues"] = [
                {"namespace": namespace, **({"name": own} if own != name else {})} for namespace, own in local
            ]
        if preemption := _preemption(items):
            queue["preemption"] = preemption
        if items[0].strategy != Order().strategy:
            queue["queueingStrategy"] = items[0].strategy
        if items[0].borrowing and all(item.borrowing == items[0].borrowing for item in items):
            queue["borrowingLimit"] = items[0].borrowing
        return queue

    def _team(self, name: str) -> dict[str, Any]:
        mine = [
            (queue, item, all(other.borrowing == item.borrowing for other in items))
            for queue, items in self.queues.items()
            for item in items
            if self._teams.get(item.name) == name
        ]
        _, first, _ = mine[0]
        team: dict[str, Any] = {"name": name}
        (namespace,) = first.namespaces
        if namespace not in self._created:
            team["namespace"] = {"name": namespace, "create": False}
        elif namespace != name:
            team["namespace"] = {"name": namespace}
        uses = [use for queue, item, _ in mine for use in self._uses(name, queue, item)]
        if uses != list(self.queues):
            team["queues"] = uses
        shares = {
            "guarantee": [item.guarantee for _, item, _ in mine],
            "borrowingLimit": [item.borrowing for _, item, is_queues in mine if not is_queues],
            "lendingLimit": [item.lending for _, item, _ in mine],
        }
        for key, values in shares.items():
            if merged := {pool: nodes for value in reversed(values) for pool, nodes in value.items()}:
                team[key] = merged
        if first.weight != 1:
            team["weight"] = first.weight
        return team

    def _uses(self, team: str, queue: str, item: _ClusterQueue) -> Iterator[dict[str, str] | str]:
        """Yield the uses of a queue through a team's ClusterQueue, as the declaration has them."""
        own = {} if item.name == f"{team}.{queue}" else {"clusterQueue": item.name}
        for _, local in item.locals:
            use = {"queue": queue} | ({"as": local} if local != queue else {}) | own
            yield use if len(use) > 1 else queue


def _left(
    found: Sequence[_ClusterQueue], objects: Sequence[Manifest], cluster: Cluster, known: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the ClusterQueues that stay with their owner, with the reason: those with a flavor that cannot
    keep its name, and those that share the nodes of a pool, or a tree of Cohort objects, with one of them.

    Args:
        found: the ClusterQueues with LocalQueues.
        objects: Kueue's objects.
        cluster: the declaration with the pools.
        known: reasons that are known.
    """
    of_pools: defaultdict[str, set[str]] = defaultdict(set)
    for item in found:
        for flavor in item.flavors:
            for pool in flavor.pools:
                of_pools[pool].add(flavor.name)
    tree = _trees(objects, cohort_name(cluster))
    kept, left = list(found), list[_ClusterQueue]()
    while reasons := {
        item.name: reason
        for item in kept
        if (
            reason := known.get(item.name)
            or _renamed(item, of_pools, cluster)
            or next(_shared(item, left, tree), "")
        )
    }:
        yield from reasons.items()
        left += [item for item in kept if item.name in reasons]
        kept = [item for item in kept if item.name not in reasons]


def _renamed(item: _ClusterQueue, of_pools: Mapping[str, Collection[str]], cluster: Cluster) -> str:
    """Return why a flavor of a ClusterQueue cannot keep its name; empty if each can.

    Args:
        of_pools: the names of the flavors of each pool.
        cluster: the declaration with the pools.
    """
    known = {flavor.name: flavor for flavor in item.flavors}
    for name in item.names:
        if name not in known:
            return f"Its flavor {name} selects the nodes of no declared pool."
        pools, fallback = known[name].pools, known[name].fallback
        others = sorted({other for pool in pools for other in of_pools[pool]} - {name})
        if others:
            why = (
                f"{and_list(others)} {'select' if others[1:] else 'selects'} nodes of {and_list(pools)}, too"
            )
        elif fallback and (name != f"{fallback}.pools" or len(item.names) > 1):
            why = f"it is of the ComputeClass {fallback}"
        elif pools[1:] and not fallback:
            why = f"it selects the nodes of {and_list(pools)}, and a pool has a flavor of its own"
        elif name.startswith(AKS_PREFIX):
            why = "AKS reserves the name"
        elif name not in pools and name in {pool.name for pool in cluster.pools}:
            why = "it is that of another pool"
        else:
            continue
        return f"The name of its flavor {name}, to which Workloads refer, cannot be declared: {why}."
    return ""


def _shared(
    item: _ClusterQueue, left: Iterable[_ClusterQueue], tree: Callable[[_ClusterQueue], str]
) -> Iterator[str]:
    """Yield what a ClusterQueue shares with those that stay with their owner."""
    for other in left:
        pools = [pool for pool in item.pools if pool in other.pools]
        if pools:
            yield f"It shares the nodes of {and_list(pools)} with ClusterQueue {other.name}, which is left."
        elif tree(item) and tree(item) == tree(other):
            yield f"It shares the quota of Cohort {tree(item)} with ClusterQueue {other.name}, which is left."


def _trees(objects: Sequence[Manifest], default: str) -> Callable[[_ClusterQueue], str]:
    """Return a function that returns the topmost cohort of a ClusterQueue if there are Cohort objects below
    or at it, and otherwise an empty text.

    Args:
        objects: Kueue's objects.
        default: the cohort of a ClusterQueue that names none.
    """
    parents = {name: text(spec, "parentName") for name, spec in specs(objects, "Cohort")}

    def top(name: str) -> str:
        above = [name]
        while (parent := parents.get(above[-1])) and parent not in above:
            above.append(parent)
        return above[-1]

    tops = {top(name) for name in parents}

    def tree(item: _ClusterQueue) -> str:
        found = top(text(item.spec, "cohortName") or default)
        return found if found in tops else ""

    return tree


def _quotas(item: _ClusterQueue) -> Iterator[tuple[FlavorPools, dict[str, Amounts]]]:
    """Yield each flavor with the amounts of its quota and its limits, by resource, in all groups together."""
    for flavor in item.flavors:
        amounts: dict[str, Amounts] = {name: {} for name in _LIMITS}
        for group in parts(item.spec, "resourceGroups"):
            for entry in group["flavors"]:
                for resource in entry["resources"] if entry["name"] == flavor.name else ():
                    for name in _LIMITS:
                        if resource.get(name) is not None:
                            amounts[name][resource["name"]] = quantities.parse(resource[name])
        yield flavor, amounts


def _preemption(items: Sequence[_ClusterQueue]) -> dict[str, str]:
    """Return the preemption to declare: policies that differ from those that follow from guarantees."""
    default, preemption = Order(), dict[str, str]()
    within = items[0].preemption("withinClusterQueue")
    if within != default.within_cluster_queue:
        preemption["withinClusterQueue"] = within
    reclaimed = [item.preemption("reclaimWithinCohort") for item in items]
    derived = ["Any" if any(item.guarantee.values()) else default.reclaim_within_cohort for item in items]
    if reclaimed != derived:
        preemption["reclaimWithinCohort"] = reclaimed[0]
    return preemption


def _atomic_checks(objects: Sequence[Manifest]) -> set[str]:
    """Return the admission checks that request all nodes of a job at once from AKS's autoscaler."""
    configs = {
        name
        for name, spec in specs(objects, "ProvisioningRequestConfig")
        if spec.get("provisioningClassName") == _ATOMIC
    }
    return {
        name for name, spec in specs(objects, "AdmissionCheck") if text(spec, "parameters", "name") in configs
    }
