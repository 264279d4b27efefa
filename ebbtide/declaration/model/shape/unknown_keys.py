"""Unknown keys in a declaration: their probable meaning and correct location."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter, ValidationError

from ebbtide.declaration.model.shape.error_locations import Location, aliases_of, item_of, kind_of, models_in
from ebbtide.text import is_comparable

_TOO_MANY = 2
_SHORTEST = 3
"""Minimum length of the common prefix with a known key."""
_IGNORED = "The key would have no effect."
_CAPACITY = "spot and other kinds of capacity are written under capacity."
_AT_FULL_PRICE = "The pool would have on-demand machines at full price."
_SCARCE = "The pool would have on-demand machines, which are scarce for GPUs."


@dataclass(frozen=True, slots=True)
class Reading:
    """Interpretation of an unknown key.

    Attributes:
        fix: the correction.
        meant: the intended field of the same part; empty if unknown.
    """

    problem: str
    consequence: str
    fix: str
    meant: str = ""


_WELL_KNOWN: Final[tuple[tuple[str, ...], ...]] = (
    (
        "Pool Nodes",
        (
            "minPerZone maxPerZone perZone minCount maxCount minNodes maxNodes minNodeCount maxNodeCount "
            "minSize maxSize totalMinNodeCount totalMaxNodeCount nodeCount numNodes initialNodeCount"
        ),
        "nodes.min and nodes.max are totals of the pool, for all of its zones.",
        "Numbers per zone would silently be multiplied by the number of zones.",
        "Write nodes: {min: 0, max: 4} with the totals.",
        "nodes",
    ),
    (
        "Pool Nodes",
        "autoscaling enableAutoscaling enableAutoScaling autoScaling",
        "a pool always scales between nodes.min and nodes.max.",
        _IGNORED,
        "Write nodes: {max: 4}, or nodes: {count: 4} for a fixed number.",
        "nodes",
    ),
    (
        "Pool",
        "spot scaleSetPriority priority provisioningModel",
        _CAPACITY,
        _AT_FULL_PRICE,
        "Write capacity: spot.",
        "capacity",
    ),
    (
        "Pool",
        "preemptible",
        _CAPACITY,
        _AT_FULL_PRICE,
        "Write capacity: spot, or capacity: preemptible for preemptible VMs.",
        "capacity",
    ),
    (
        "Pool",
        "queuedProvisioning enableQueuedProvisioning queued",
        _CAPACITY,
        _SCARCE,
        "Write capacity: queued.",
        "capacity",
    ),
    ("Pool", "flexStart enableFlexStart", _CAPACITY, _SCARCE, "Write capacity: flex-start.", "capacity"),
    (
        "Pool",
        "machineType vmSize instanceType nodeVmSize",
        "the machine type is written under machine.",
        "The pool would have no machine type.",
        "Write machine: and the type.",
        "machine",
    ),
    (
        "Pool",
        "gpu gpus guestAccelerator guestAccelerators accelerators acceleratorType gpuType",
        "accelerators are written under accelerator, for one node.",
        "The nodes would have no accelerators.",
        "Write accelerator: {type: nvidia-tesla-t4, count: 1}.",
        "accelerator",
    ),
    (
        "Pool",
        "reservationAffinity",
        "it follows from the capacity kind.",
        "Spot, flex-start and queued nodes cannot use a reservation.",
        (
            "Remove it, or write capacity: {kind: reservation, name: NAME}, or affinity: any for any "
            "matching reservation."
        ),
    ),
    (
        "Pool",
        "diskSizeGb diskSize diskType osDiskSizeGb osDiskType bootDisk",
        "the boot disk is written under disk.",
        "The disk would have the default size and type.",
        "Write disk: {sizeGib: 100, type: pd-balanced}, or one of its fields.",
        "disk",
    ),
    (
        "Pool",
        "mode",
        "the purpose of a pool is written under role.",
        "The pool would be a work pool.",
        "Write role: system for the system pool, and omit role for all others.",
        "role",
    ),
    (
        "Gke Aks",
        "region zone",
        "the location of a cluster is written under location.",
        "The cluster would have no cloud.",
        "Write location: and a region, or on GKE a zone.",
        "location",
    ),
    (
        "Cluster",
        "nodePools agentPools agentPoolProfiles",
        "node pools are written under pools.",
        "The cluster would have no pools.",
        "Write pools: and the list.",
        "pools",
    ),
)
"""Parts of the declaration, keys of other tools there, and the parts of `Reading`: of the problem, the end of
its sentence."""


def _well_known(owner: str, key: str) -> Reading | None:
    for owners, keys, instead, *rest in _WELL_KNOWN:
        if owner in owners.split() and key in keys.split():
            return Reading(f"There is no {key}: {instead}", *rest)
    return None


def _takes(annotation: Any, value: object) -> bool:
    """Return whether a field has the kind of a value; the parts of a mapping have errors of their own."""
    if value is None or isinstance(value, Mapping):
        return True
    try:
        TypeAdapter(annotation).validate_python(value)
    except ValidationError:
        return False
    return True


def _parents(model: type[BaseModel], key: str, value: object, path: str = "") -> Iterator[str]:
    """Yield every path in the declaration that has a field of that name, for values of that kind."""
    for alias, field in aliases_of(model).items():
        if alias == key and path and _takes(field.annotation, value):
            yield path
        items = models_in(item_of(field.annotation))
        nested = f"{path}.{alias}" if path else alias
        for part in models_in(field.annotation) or items:
            yield from _parents(part, key, value, f"{nested}[]" if items else nested)


def _nearest_parents(location: Location, whole: type[BaseModel]) -> list[str]:
    """Return the paths that accept a key: directly below its part, or else anywhere; empty if there are too
    many."""
    key, value = str(location.keys[-1]), location.value
    own = _parents(location.owner, key, value) if location.owner else ()
    beneath = [parent for parent in own if "." not in parent]
    parents = list(dict.fromkeys(beneath or _parents(whole, key, value)))
    return parents if len(parents) <= _TOO_MANY else []


def unknown_key(
    location: Location, whole: type[BaseModel], known: tuple[str, ...], *, is_given: bool
) -> Reading:
    """Interpret an unknown key.

    Args:
        whole: model of the whole declaration, to find a path that accepts the key.
        known: keys accepted at the location.
        is_given: whether the whole declaration has a field of that name already.
    """
    key, owner = str(location.keys[-1]), location.owner
    if owner is not None and (reading := _well_known(owner.__name__, key)):
        return reading
    for variant in location.variants[1:]:
        if key in aliases_of(variant):
            mine, other = kind_of(location.variants[0]), kind_of(variant)
            return Reading(f"{key} is a field of {other}, not of {mine}.", _IGNORED, "Remove it.")
    if near := _nearest(key, known):
        return Reading(f"There is no {key} here; did you mean {near}?", _IGNORED, f"Write {near}.", near)
    if owner is not whole and key in aliases_of(whole) and not is_given:
        return Reading(
            f"There is no {key} here; it is a field of the whole declaration.",
            _IGNORED,
            "Indent it at the level of owner.",
        )
    parents = _nearest_parents(location, whole)
    if parents:
        names = [
            f"an item of {parent.removesuffix('[]')}" if parent.endswith("[]") else parent
            for parent in parents
        ]
        fix = f"Write it under {' or '.join(names)}."
        if len(parents) == 1 and parents[0].endswith("[]"):
            fix = f"Indent it under the item of {parents[0].removesuffix('[]')} that it belongs to."
        return Reading(f"There is no {key} here; it is a field of {' and of '.join(names)}.", _IGNORED, fix)
    others = f"one of {', '.join(known)}" if len(known) > 1 else "".join(known)
    return Reading(f"There is no {key} here.", _IGNORED, f"Remove it, or write {others}.")


def _nearest(key: str, known: tuple[str, ...]) -> str:
    """Return the known key most similar to a key, or that it is a longer form of (`maximum`, `max`); empty
    for none."""
    names = {name.lower(): name for name in known if is_comparable(key, name)}
    swapped = [name for name in names if sorted(name) == sorted(key.lower())]
    near = swapped or get_close_matches(key.lower(), names, n=1, cutoff=0.7)
    begun = [name for name in names if len(name) >= _SHORTEST and key.lower().startswith(name)]
    return names[near[0]] if near else names[max(begun, key=len)] if begun else ""
