"""Kueue's objects as the API server returns them: their comparison with those of a declaration, the pools
that ResourceFlavors select, and amounts of quota as nodes of these pools.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from math import prod
from typing import Any, ClassVar, Final, TypeAlias, cast

from ebbtide.clients.kubernetes.objects import part, parts, text
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.operations.adopting.found import AdoptionError, LeftOut
from ebbtide.placement.queueing import CPU, MEMORY, Offer, flavor
from ebbtide.values import quantities
from ebbtide.values.documents import CONFIG
from ebbtide.values.kueue_api import API_VERSION, GROUP, of_kind
from ebbtide.values.paths import Manifest

_VERSIONS: Final = (API_VERSION, f"{GROUP}/v1beta1", f"{GROUP}/v1alpha1")
COMPUTE_CLASS_VERSION: Final = "cloud.google.com/v1"
COMMAND: Final = "kubectl get resourceflavors,clusterqueues,localqueues -A -o json"
"""Writes a document of Kueue's objects."""
AKS_PREFIX: Final = "aks-"
"""Prefix of the objects that AKS' managed Kueue generates, and that it reserves (azure-aks-docs, 2026-11)."""
_FUNGIBILITY: Final = {"Borrow": "MayStopSearch", "Preempt": "MayStopSearch"}
_AMOUNTS: Final = ("nominalQuota", "borrowingLimit", "lendingLimit", "weight")
_DEFAULTS: Final[Mapping[str, Any]] = {
    "spec.stopPolicy": "None",
    "spec.queueingStrategy": "BestEffortFIFO",
    "spec.preemption.borrowWithinCohort.policy": "Never",
    "spec.preemption.reclaimWithinCohort": "Never",
    "spec.preemption.withinClusterQueue": "Never",
    "spec.flavorFungibility.whenCanBorrow": "MayStopSearch",
    "spec.flavorFungibility.whenCanPreempt": "TryNextFlavor",
    "spec.fairSharing.weight": Decimal(1),
    "spec.retryStrategy.backoffLimitCount": 3,
    "spec.retryStrategy.backoffBaseSeconds": 60,
    "spec.retryStrategy.backoffMaxSeconds": 1800,
    "spec.parameters.apiGroup": GROUP,
}
"""Defaults that the API server fills in (Kueue 0.19.2, CustomResourceDefinitions)."""
_REASONS: Final = (
    ("", r"^$", "The declaration adds it."),
    (
        "ClusterQueue",
        r"nominalQuota$",
        "The queue borrows the nodes of the cohort that no team is guaranteed, and has whole nodes.",
    ),
    ("", r"(borrowing|lending)Limit$", "Limits are whole nodes of a pool."),
    (
        "",
        r"resourceGroups\[\d+\]\.flavors",
        "A pool has one flavor; alternative pools have one together.",
    ),
    ("", r"resourceGroups", "A declaration has one resource group over all resources of the pools."),
    ("ClusterQueue", r"cohortName", "All queues of a declaration share one cohort."),
    ("Cohort", r"parentName", "The cohort of a declaration has no parent."),
    ("", r"namespaceSelector", "A queue admits the namespaces that have one of its local queues."),
    ("", r"flavorFungibility", "Ebbtide always sets it: the next pool is tried before work is preempted."),
    ("", r"preemption\.borrowWithinCohort", "The declaration has no word for it."),
    ("", r"preemption", "All teams of a queue have its preemption."),
    ("ClusterQueue", r"fairSharing\.weight", "A weight is a whole number, and belongs to a team."),
    ("ClusterQueue", r"stopPolicy", "A stop is not part of a declaration."),
    ("", r"admissionChecks", "Checks follow from queued pools, and from together on AKS."),
    ("ResourceFlavor", r"nodeLabels", "A flavor has the labels that only its pool's nodes have."),
    ("ResourceFlavor", r"(nodeTaints|tolerations)", "A flavor has its pool's taints, and tolerates each."),
    ("ComputeClass", r"", "A queue with fallback has its pools in order, and creates no others."),
    ("", r"topologyName", "The declaration has no word for topologies."),
)
_LEFT: Final = {
    "ResourceFlavor": "No queue that is declared has it.",
    "ClusterQueue": (
        "It has no LocalQueue. If it lends quota to adopted queues, delete it after the first update: their "
        "cohort has all nodes."
    ),
    "LocalQueue": "Its ClusterQueue is not declared.",
    "Cohort": "No queue that is declared is in it.",
    "WorkloadPriorityClass": "Jobs may name it, besides those that every cluster of Ebbtide has.",
    "AdmissionCheck": "Checks follow from queued pools, and from together on AKS.",
    "ProvisioningRequestConfig": "It belongs to an admission check.",
    "Topology": "The declaration has no word for topologies.",
    "ComputeClass": "No queue that is declared falls back by it.",
}
_AKS: Final = "AKS generates it."
Amounts: TypeAlias = dict[str, Decimal]
"""Amounts by resource: CPUs, bytes, accelerators."""
_UNITS: Final = {CPU: Decimal("0.001"), MEMORY: Decimal(1024**2)}
_MOST_COMBINATIONS: Final = 100_000


@dataclass(frozen=True, slots=True)
class ObjectDifference:
    """A field of one of Kueue's objects that differs from the declared object."""

    __pydantic_config__: ClassVar = CONFIG

    name: str
    """Kind and name, such as `ClusterQueue research`."""
    path: str
    """Path of the field; empty for an object that does not exist."""
    found: Any
    """The existing value; null if it is missing."""
    declared: Any
    """The declared value; null if the existing one stays."""
    reason: str
    """Why they differ, as a sentence."""


def kueue_objects(document: object, file: str) -> tuple[Manifest, ...]:
    """Return Kueue's objects, and GKE's ComputeClasses, in a document, in the version that Ebbtide writes.

    Args:
        document: a List, or one object, as `kubectl get --output json` prints it.
        file: its name, for messages.

    Raises:
        AdoptionError: an object has no name, or a version that cannot be read.
    """
    if not isinstance(document, Mapping):
        return ()
    whole = cast("Manifest", document)
    items = cast("object", whole.get("items", [whole]))
    if not isinstance(items, Sequence) or isinstance(items, str):
        return ()
    found = [
        cast("Manifest", item)
        for item in cast("Sequence[object]", items)
        if isinstance(item, Mapping) and _is_read(cast("Manifest", item))
    ]
    if not any(_group(item) == GROUP for item in found):
        return ()
    return tuple(_converted(item, file) for item in found)


def _group(item: Manifest) -> str:
    return str(item.get("apiVersion") or "").partition("/")[0]


def _is_read(item: Manifest) -> bool:
    return _group(item) == GROUP or (item.get("apiVersion"), item.get("kind")) == (
        COMPUTE_CLASS_VERSION,
        "ComputeClass",
    )


def _converted(item: Manifest, file: str) -> Manifest:
    """Return an object with the fields of Kueue's v1beta2 (Kueue 0.19.2, apis/kueue/v1beta1, conversion)."""
    version, kind = item["apiVersion"], item.get("kind")
    name = part(item, "metadata").get("name")
    is_namespaced = kind == "LocalQueue"
    if not kind or not name or (is_namespaced and not part(item, "metadata").get("namespace")):
        raise AdoptionError(
            f"{file}: an object of {GROUP} has no kind, name or namespace. Write the file again, with "
            "kubectl get … --output json."
        )
    if version == COMPUTE_CLASS_VERSION:
        return item
    if version not in _VERSIONS:
        raise AdoptionError(
            f"{file}: {kind} {name} is of {version}, which is not known. Ebbtide reads {API_VERSION} and "
            f"{_VERSIONS[1]}."
        )
    spec = dict(part(item, "spec"))
    for old, new in (("cohort", "cohortName"), ("parent", "parentName")):
        if old in spec:
            spec[new] = spec.pop(old)
    if checks := spec.pop("admissionChecks", None):
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": check} for check in checks]}
    if fungibility := spec.get("flavorFungibility"):
        spec["flavorFungibility"] = {key: _FUNGIBILITY.get(v, v) for key, v in fungibility.items()}
    return {**item, "apiVersion": API_VERSION, **({"spec": spec} if "spec" in item else {})}


def specs(objects: Sequence[Manifest], kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield name and spec of the objects of a kind."""
    return ((str(item["metadata"]["name"]), part(item, "spec")) for item in of_kind(objects, kind))


def _key(item: Manifest) -> tuple[str, str, str]:
    metadata = item["metadata"]
    return str(item["kind"]), str(metadata.get("namespace") or ""), str(metadata["name"])


def _title(item: Manifest) -> str:
    kind, namespace, name = _key(item)
    return f"{kind} {name} in {namespace}" if namespace else f"{kind} {name}"


def compare_objects(existing: Sequence[Manifest], derived: Sequence[Manifest]) -> Iterator[ObjectDifference]:
    """Yield the fields in which existing objects differ from those that a declaration derives, and the
    objects that do not exist. Quantities are compared by their amounts, and Kueue's defaults are no
    difference."""
    found = {_key(item): item for item in existing}
    for item in derived:
        old = found.get(_key(item))
        if old is None:
            yield ObjectDifference(_title(item), "", None, "", _reason(str(item["kind"]), ""))
            continue
        before, after = dict(_fields(content(old))), dict(_fields(content(item)))
        for path in _outermost(before, after):
            one, two = before.get(path), after.get(path)
            if one == two or (path in _DEFAULTS and {one, two} == {None, _DEFAULTS[path]}):
                continue
            yield ObjectDifference(_title(item), path, one, two, _reason(str(item["kind"]), path))


def content(item: Manifest) -> Mapping[str, Any]:
    """Return the fields of an object that its owner sets, without its metadata."""
    ignored = ("apiVersion", "kind", "metadata", "status")
    return {key: value for key, value in item.items() if key not in ignored}


def _fields(value: object, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and value of each field but objects; of lists, those of items with a name or a key."""
    last = path.rpartition(".")[2]
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value)
        for key, inner in items.items():
            yield from _fields(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and (named := _named(cast("list[object]", value))):
        yield f"{path}[]", [key for key, _ in named]
        for key, inner in named:
            yield from _fields(inner, f"{path}[{key}]")
    elif isinstance(value, list) and last == "resourceGroups":
        for index, inner in enumerate(cast("list[object]", value)):
            yield from _fields(inner, f"{path}[{index}]")
    elif last in _AMOUNTS:
        yield path, _amount(str(cast("object", value)))
    elif value is not None and value not in ("", [], {}):
        yield path, value


def _amount(written: str) -> Decimal | str:
    with suppress(ValueError):
        return quantities.parse(written)
    return written


def _named(items: Sequence[object]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the items of a list by name or key; empty if they have none."""
    objects = [cast("Mapping[str, Any]", item) for item in items if isinstance(item, Mapping)]
    named = [(str(item.get("name") or item.get("key") or ""), item) for item in objects]
    unique = {key for key, _ in named}
    return named if len(unique) == len(items) and "" not in unique else []


def _outermost(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the paths of both, without those in an item that only one of them has."""
    paths = list(dict.fromkeys((*after, *before)))
    alone = [
        f"{path[:-2]}[{key}]"
        for path in paths
        if path.endswith("[]")
        for key in set(before.get(path) or ()) ^ set(after.get(path) or ())
    ]
    return [path for path in paths if not any(path.startswith(prefix) for prefix in alone)]


def _reason(kind: str, path: str) -> str:
    found = (text for own, pattern, text in _REASONS if own in ("", kind) and re.search(pattern, path))
    return next(found, "The declaration has no word for it.")


def left_objects(
    existing: Sequence[Manifest], derived: Sequence[Manifest], reasons: Mapping[str, str]
) -> Iterator[LeftOut]:
    """Yield the existing objects that a declaration does not derive, and which stay as they are.

    Args:
        existing: Kueue's objects.
        derived: the objects of the declaration.
        reasons: reasons by the name of a ClusterQueue.
    """
    made = {_key(item) for item in derived}
    for item in existing:
        kind, _, name = _key(item)
        if _key(item) not in made and kind != "Workload":
            reason = _LEFT.get(kind, "The declaration has no word for it.")
            if kind == "ClusterQueue":
                reason = reasons.get(name, reason)
            yield LeftOut(name=_title(item), reason=_AKS if name.startswith(AKS_PREFIX) else reason)


@dataclass(frozen=True, slots=True)
class FlavorPools:
    """The pools of a ResourceFlavor.

    Attributes:
        offers: the pools with their nodes, the preferred one first.
        fallback: the fallback queue of the pools; empty for none.
    """

    name: str
    offers: tuple[Offer, ...]
    fallback: str = ""

    @property
    def pools(self) -> tuple[str, ...]:
        """Names of the pools."""
        return tuple(offer.pool for offer in self.offers)

    def nodes(
        self, amounts: Amounts, most: Mapping[str, int] | None = None, free: Mapping[str, int] | None = None
    ) -> dict[str, int]:
        """Return the nodes that amounts of quota are, by pool: exactly if that is possible, else the most
        whole nodes that they hold, of the preferred pools.

        Args:
            most: the most nodes of each pool. Default: the pools' maximum.
            free: nodes of each pool that no other quota has, which are preferred.
        """
        limits = [(most or {}).get(offer.pool, 0 if most else offer.nodes) for offer in self.offers]
        unused = self._exactly(amounts, [free.get(pool, 0) for pool in self.pools]) if free else None
        return unused or self._exactly(amounts, limits) or dict(self._whole(amounts, limits))

    def _exactly(self, amounts: Amounts, limits: Sequence[int]) -> dict[str, int] | None:
        alike: dict[tuple[Decimal, ...], dict[str, int]] = {}
        for offer, limit in zip(self.offers, limits, strict=True):
            alike.setdefault(tuple(_of(offer, name) for name in amounts), {})[offer.pool] = limit
        (first, own), *others = alike.items()
        all_of = list(amounts.values())
        counted = next((place for place, one in enumerate(first) if one), None)
        most = [
            min(
                sum(pools.values()),
                *(int(amount // one) for amount, one in zip(all_of, node, strict=True) if one),
            )
            for node, pools in others
        ]
        if counted is None or prod(nodes + 1 for nodes in most) > _MOST_COMBINATIONS:
            return None
        for counts in product(*(range(nodes + 1) for nodes in most)):
            rest = [
                amount - sum(nodes * node[place] for nodes, (node, _) in zip(counts, others, strict=True))
                for place, amount in enumerate(all_of)
            ]
            nodes, over = divmod(rest[counted], first[counted])
            if not over and 0 <= nodes <= sum(own.values()) and rest == [nodes * one for one in first]:
                found = zip(alike.values(), (int(nodes), *counts), strict=True)
                return {pool: some for pools, nodes in found for pool, some in _preferred(pools, nodes)}
        return None

    def _whole(self, amounts: Amounts, limits: Sequence[int]) -> Iterator[tuple[str, int]]:
        for offer, limit in zip(self.offers, limits, strict=True):
            accelerators = [name for name in offer.node if name not in _UNITS and name in amounts]
            counted = accelerators or [name for name in _UNITS if name in amounts]
            counts = [int(amounts[name] // one) for name in counted if (one := _of(offer, name))]
            nodes = max(0, min([*counts, limit]))
            amounts = {name: amount - nodes * _of(offer, name) for name, amount in amounts.items()}
            yield offer.pool, nodes


def _preferred(pools: Mapping[str, int], nodes: int) -> Iterator[tuple[str, int]]:
    """Yield pools of equal nodes with their part of a number of nodes, the preferred ones first."""
    for pool, limit in pools.items():
        own = min(limit, nodes)
        nodes -= own
        yield pool, own


def _of(offer: Offer, resource: str) -> Decimal:
    return offer.node.get(resource, 0) * _UNITS.get(resource, Decimal(1))


def flavor_pools(
    objects: Sequence[Manifest], pools: Sequence[ResolvedPool], fallbacks: Mapping[str, str], key: str
) -> dict[str, FlavorPools]:
    """Return the flavors that select pools by their node labels.

    A flavor without labels selects the only pool of a cluster. Labels that no pool has are the cloud's.

    Args:
        objects: Kueue's objects, and the ComputeClasses with the order of fallback pools if there are any.
        pools: the work pools, without fallback.
        fallbacks: the fallback queues by pool, as node labels name them.
        key: key of that label.
    """
    labelled = {
        pool.name: pool.labels_and_taints.all_labels
        | ({key: fallbacks[pool.name]} if pool.name in fallbacks else {})
        for pool in pools
    }
    known = {label for labels in labelled.values() for label in labels}
    by_name = {pool.name: pool for pool in pools}
    found: dict[str, FlavorPools] = {}
    for name, spec in specs(objects, "ResourceFlavor"):
        labels = {label: str(value) for label, value in part(spec, "nodeLabels").items() if label in known}
        selected = [
            pool
            for pool, own in labelled.items()
            if all(own.get(label) == value for label, value in labels.items())
            and (labels or (len(pools) == 1 and not part(spec, "nodeLabels")))
        ]
        fallback = labels.get(key, "")
        if fallback:
            order = _order_of(objects, fallback)
            selected.sort(key=lambda pool: order.index(pool) if pool in order else len(order))
        if selected:
            offers = tuple(flavor(by_name[pool]).offers[0] for pool in selected)
            found[name] = FlavorPools(name, offers, fallback if len(offers) > 1 else "")
    return found


def _order_of(objects: Sequence[Manifest], fallback: str) -> list[str]:
    """Return the pools of a ComputeClass in order; empty if it is not among the objects."""
    return [
        str(pool)
        for item in of_kind(objects, "ComputeClass")
        if text(item, "metadata", "name") == fallback
        for rule in parts(item, "spec", "priorities")
        for pool in rule.get("nodepools") or ()
    ]
