"""Queues, teams and guarantees of a declaration, from Kueue's objects on a cluster."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from ebbtide.analysis.adopting.found import AdoptionError, Found, LeftOut
from ebbtide.analysis.adopting.kueue_objects import (
    AKS_PREFIX,
    ObjectDifference,
    compare_objects,
    kueue_objects,
    left_objects,
    specs,
)
from ebbtide.analysis.adopting.kueue_quotas import Amounts, FlavorPools, flavor_pools
from ebbtide.analysis.recording.recording import Recording
from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide.declaration.catalog.clouds import CLOUD_SPECS
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.declaration.model.cluster import PIPELINES_NAMESPACE, Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.placement.queue_objects import layers
from ebbtide.placement.queueing import Order, cohort_name, queueing
from ebbtide.values import quantities
from ebbtide.values.kueue_api import Manifest, of_kind

_TYPES: Final = "kubernetes:kueue.x-k8s.io/"
_ATOMIC: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"


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


def read(document: object, file: str) -> Found | None:
    """Return Kueue's objects in a document; None if it has none.

    Args:
        document: a List, or one object, as `kubectl get --output json` prints it.
        file: its name, for messages.

    Raises:
        AdoptionError: an object cannot be read.
    """
    objects = kueue_objects(document, file)
    return Found(objects=objects) if objects else None


def adopt_queues(
    objects: Sequence[Manifest], declaration: Mapping[str, Any], *, created: Collection[str] = ()
) -> AdoptedQueues:
    """Return the declaration's part of Kueue's objects, compared with the objects that it derives.

    A ClusterQueue keeps its name. It is a team's if one namespace alone submits to it, and it has a
    guarantee, a limit of lending or a weight, which a declaration has for teams alone; or if it has the name
    that a team's would have.

    Args:
        objects: Kueue's objects, as `read` returns them, with the ComputeClasses of fallback queues if any.
        declaration: the object under `ebbtide:cluster` with its pools, and without queues and teams.
        created: namespaces that the stack creates; all others exist, and are never deleted.

    Raises:
        AdoptionError: the queues break a rule of the declaration.
        DeclarationError: the declaration is invalid without them.
    """
    plain, fallbacks = _without_fallbacks(declaration)
    cluster = declare(plain)
    reading = _Reading(objects, cluster, fallbacks, created)
    fields = reading.fields(declaration)
    try:
        derived = declare({**declaration, **fields})
    except DeclarationError as error:
        faults = "\n".join(str(fault) for fault in error.faults)
        raise AdoptionError(f"The queues cannot be declared as they are:\n{faults}") from None
    made = [item for layer in layers(queueing(derived)) for item in layer] if reading.queues else []
    return AdoptedQueues(fields, tuple(compare_objects(objects, made)), tuple(left_objects(objects, made)))


def adopted_objects(objects: Sequence[Manifest], recording: Recording) -> Iterator[Mapping[str, str]]:
    """Yield type, logical name and import id of each resource of the program that exists as one of Kueue's
    objects.

    Args:
        objects: Kueue's objects, as `read` returns them.
        recording: the program with the queues.
    """
    existing = {(text(item, "kind"), *_place(item)) for item in objects}
    for resource in recording:
        kind, place = resource.type.rpartition(":")[2], _place(resource.inputs)
        if resource.type.startswith(_TYPES) and (kind, *place) in existing:
            yield {"type": resource.type, "name": resource.name, "id": "/".join(filter(None, place))}


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
        name: its name.
        spec: its spec.
        locals: namespace and name of each LocalQueue.
        flavors: its flavors that select pools.
        guarantee: nodes of its nominal quota by pool.
        borrowing: nodes of its limits of borrowing by pool.
        lending: nodes of its limits of lending by pool.
    """

    name: str
    spec: Mapping[str, Any]
    locals: list[tuple[str, str]]
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
    """The queues and teams of a declaration in the making."""

    def __init__(
        self,
        objects: Sequence[Manifest],
        cluster: Cluster,
        fallbacks: Mapping[str, str],
        created: Collection[str],
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
        self._found = [
            _ClusterQueue(name, spec, locals_[name], _in_groups(spec, flavors))
            for name, spec in specs(objects, "ClusterQueue")
            if name in locals_
        ]
        self._found = [item for item in self._found if item.flavors]
        self._shares(any(True for _ in of_kind(objects, "Cohort")))
        self._teams = self._team_names()
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
            if is_team or any(item.has_share for item in items):
                team = prefixes.pop() if is_team else namespace
                teams |= {item.name: team for item in items}
        return teams

    def _queues(self) -> dict[str, list[_ClusterQueue]]:
        """Return the ClusterQueues of each declared queue, in an order in which a team's guarantee of a pool
        belongs to the first of its queues with that pool."""
        queues: dict[str, list[_ClusterQueue]] = {}
        for item in self._found:
            queues.setdefault(self._queue_name(item, queues), []).append(item)
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
        if the name after the team's is the same."""
        if item.fallback:
            return item.fallback
        team, _, name = item.name.partition(".")
        named = name if self._teams.get(item.name) == team and name else item.name
        others = queues.get(named, ())
        if all(other.pools == item.pools and other.strategy == item.strategy for other in others):
            return named.replace(".", "-")
        return item.name.replace(".", "-")

    def fields(self, declaration: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of the declaration."""
        if not self.queues:
            return {}
        addons: Mapping[str, Any] = declaration.get("addons") or {}
        flavors = self._flavor_names()
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

    def _flavor_names(self) -> dict[str, str]:
        """Return the names to declare by pool: of the first flavor of a queue that selects one pool alone, of
        those whose pool has no flavor of its own name."""
        names: dict[str, str] = {}
        found = [flavor for item in self._found for flavor in item.flavors if not flavor.fallback]
        own = {flavor.name for flavor in found if flavor.pools == (flavor.name,)}
        for flavor in found:
            (pool, *others) = flavor.pools
            if not others and pool not in own and not flavor.name.startswith(AKS_PREFIX):
                names.setdefault(pool, flavor.name)
        return names

    def _is_derived(self, team: Mapping[str, Any]) -> bool:
        """Return whether a team is the tenant that the declaration derives for Kubeflow Pipelines."""
        existing = {"name": PIPELINES_NAMESPACE, "namespace": {"name": PIPELINES_NAMESPACE, "create": False}}
        return self._cluster.addons.pipelines is not None and dict(team) == existing

    def _queue(self, name: str, items: Sequence[_ClusterQueue]) -> dict[str, Any]:
        queue: dict[str, Any] = {"name": name, "pools": items[0].pools}
        if items[0].fallback:
            queue["fallback"] = True
        if any(check in self._together for item in items for check in _checks(item)):
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


def _in_groups(spec: Mapping[str, Any], flavors: Mapping[str, FlavorPools]) -> list[FlavorPools]:
    names = (str(item["name"]) for group in parts(spec, "resourceGroups") for item in group["flavors"])
    return [flavors[name] for name in dict.fromkeys(names) if name in flavors]


_LIMITS: Final = ("nominalQuota", "borrowingLimit", "lendingLimit")


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


def _checks(item: _ClusterQueue) -> Iterable[str]:
    return (str(check["name"]) for check in parts(item.spec, "admissionChecksStrategy", "admissionChecks"))


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
