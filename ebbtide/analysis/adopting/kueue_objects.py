"""Kueue's objects as the API server returns them, and their comparison with those of a declaration."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, cast

from ebbtide.analysis.adopting.found import AdoptionError, LeftOut
from ebbtide.clients.kubernetes.objects import part
from ebbtide.values import quantities
from ebbtide.values.kueue_api import API_VERSION, GROUP, Manifest, of_kind

_VERSIONS: Final = (API_VERSION, f"{GROUP}/v1beta1", f"{GROUP}/v1alpha1")
COMPUTE_CLASS_VERSION: Final = "cloud.google.com/v1"
COMMAND: Final = "kubectl get resourceflavors,clusterqueues,localqueues -A -o json"
"""Writes a document of Kueue's objects."""
AKS_PREFIX: Final = "aks-"
"""Prefix of the objects that AKS' managed Kueue generates, and that it reserves (azure-aks-docs, 2026-11)."""


@dataclass(frozen=True, slots=True)
class ObjectDifference:
    """A field of an existing object that differs from the object that the declaration derives.

    Attributes:
        name: the object's kind and name, such as `ClusterQueue research`.
        path: path of the field; empty for an object that does not exist.
        found: the existing value; None if it is missing.
        declared: the declaration's value; None if it has none, and the existing value stays.
        reason: a sentence for the user.
    """

    name: str
    path: str
    found: Any
    declared: Any
    reason: str

    @property
    def stays(self) -> bool:
        """True if an update does not change the field: the declaration does not set it."""
        return self.declared is None


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


_FUNGIBILITY: Final = {"Borrow": "MayStopSearch", "Preempt": "MayStopSearch"}


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


_AMOUNTS: Final = ("nominalQuota", "borrowingLimit", "lendingLimit", "weight")


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


def _reason(kind: str, path: str) -> str:
    found = (text for own, pattern, text in _REASONS if own in ("", kind) and re.search(pattern, path))
    return next(found, "The declaration has no word for it.")


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
