"""Faults of shape: pydantic's errors in the words of the declaration."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ebbtide.model.faults import Fault, did_you_mean
from ebbtide.model.paths import path_text
from ebbtide.model.pool import Taint
from ebbtide.model.shape.places import Place, aliases_of, item_of, kind_of, models_in, place_of, words_of
from ebbtide.model.shape.unknown_keys import unknown_key

UNREADABLE = "The declaration cannot be read as it stands."

_EXAMPLES = {
    "Accelerator.type": "nvidia-tesla-t4",
    "Addons.katib": "{}",
    "Addons.kueue": "{}",
    "Addons.logs": "{}",
    "Addons.pipelines": "{}",
    "Addons.trainer": "{}",
    "AksAccess.admins": "[11111111-2222-3333-4444-555555555555]",
    "AksAccess.networks": "[203.0.113.0/24]",
    "Aks.location": "eastus",
    "Aks.subscription": "11111111-2222-3333-4444-555555555555",
    "Cluster.addons": "{pipelines: {}}",
    "Cluster.cloud": "{kind: gke, project: acme-ml, location: us-central1-a}",
    "Cluster.lifetime": "{hours: 8}",
    "Cluster.name": "train-dev",
    "Cluster.owner": "vision-team",
    "Cluster.pools": "[{name: system, role: system, machine: e2-standard-2, nodes: {max: 3}}]",
    "Cluster.queues": "[{name: t4, pools: [t4-spot]}]",
    "Cluster.teams": "[{name: vision, members: [vision@acme.example]}]",
    "Existing.name": "shared-cluster",
    "Gke.existing": "{name: shared-cluster}",
    "Aks.existing": "{name: shared-cluster}",
    "GkeAccess.networks": "[203.0.113.0/24]",
    "Gke.location": "us-central1-a",
    "Gke.project": "acme-ml",
    "Gke.maintenance": '{window: {days: [saturday], start: "02:00", duration: 12h}}',
    "Aks.maintenance": '{window: {days: [saturday], start: "02:00", duration: 4h}}',
    "Lifetime.hours": "8",
    "LocalQueue": "{namespace: default}",
    "LocalQueue.name": "dws-local-queue",
    "LocalQueue.namespace": "default",
    "MachineShape.type": "n2-standard-8",
    "Maintenance.window": '{days: [saturday], start: "02:00", duration: 12h}',
    "MaintenanceExclusion": '{name: launch, start: "2026-12-20", end: "2027-01-04"}',
    "MaintenanceExclusion.name": "launch",
    "MaintenanceExclusion.start": '"2026-12-20"',
    "MaintenanceExclusion.end": '"2027-01-04"',
    "MaintenanceWindow.duration": "12h",
    "MaintenanceWindow.start": '"02:00"',
    "Namespace.name": "vision",
    "PolicyException": "{rule: spot-system, resource: system, reason: a cluster for hours}",
    "PolicyException.reason": "a cluster for hours",
    "PolicyException.resource": "system",
    "PolicyException.rule": "spot-system",
    "PolicyException.until": '"2027-01-31"',
    "Pool": "{name: cpu-spot, machine: n2-standard-8, capacity: spot, nodes: {max: 4}}",
    "Pool.accelerator": "{type: nvidia-tesla-t4, count: 1}",
    "Pool.capacity": "spot",
    "Pool.disk": "{sizeGib: 100}",
    "Pool.labels": "{team: vision}",
    "Pool.machine": "n2-standard-8",
    "Pool.name": "cpu-spot",
    "Pool.nodes": "{max: 4}",
    "Pool.taints": "[{key: preemptible, value: 'true'}]",
    "Pool.upgrade": "{maxSurge: 1}",
    "Queue": "{name: t4, pools: [t4-spot]}",
    "Queue.localQueues": "[{namespace: default}]",
    "Queue.name": "t4",
    "Queue.pools": "[t4-spot]",
    "QueueUse": "t4",
    "QueueUse.queue": "t4",
    "Reservation.name": "a100-reservation",
    "Taint": "{key: preemptible, value: 'true'}",
    "Taint.key": "preemptible",
    "Team": "{name: vision, members: [vision@acme.example]}",
    "Team.bucket": "{}",
    "Team.guarantee": "{t4-spot: 1}",
    "Team.name": "vision",
    "Team.namespace": "{name: vision}",
    "Team.queues": "[t4]",
    "Team.volume": "{}",
}
"""Accepted values: of a field, and of an item of a list."""

_WANTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_type": "a whole number",
    "model_attributes_type": "a mapping",
    "model_type": "a mapping",
    "string_type": "text",
    "tuple_type": "a list",
}

_WORDS_TOO = ("capacity", "machine")
"""Fields for which a word can stand."""

_OTHER_WORDS = {
    "azure": "aks",
    "dws": "queued",
    "flex": "flex-start",
    "gcp": "gke",
    "google": "gke",
    "ondemand": "on-demand",
    "queued-provisioning": "queued",
    "regular": "on-demand",
    "standard": "on-demand",
}
"""Other names of a kind of capacity or cloud."""

_TAINT = re.compile(r"(?P<key>[^=:\s]+)(=(?P<value>[^=:\s]*))?(:(?P<effect>\w+))?")
"""A taint as kubectl writes it: `key=value:NoSchedule`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of shape, and what has to go for the rest to be read.

    Attributes:
        fault: the fault.
        place: the place of it.
        meant: path of the field that was probably meant by an unknown key; empty where that cannot be told.
    """

    fault: Fault
    place: Place
    meant: str = ""


def described(value: object) -> str:
    """Return a value in a sentence: `the text "4"`, `a mapping`."""
    if value is None or value == "":
        return "left empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, str):
        return f'the text "{value}"'
    if isinstance(value, Mapping):
        return "a mapping"
    return "a list" if isinstance(value, Sequence) else str(value)


def _example(place: Place) -> str:
    if place.owner is None or place.field is None:
        return next((_EXAMPLES.get(model.__name__, "") for model in models_in(place.annotation)), "")
    alias = next(alias for alias, field in aliases_of(place.owner).items() if field is place.field)
    return _EXAMPLES.get(f"{place.owner.__name__}.{alias}", "")


def _taint(place: Place) -> str:
    """Taints as the declaration has them, from kubectl's form or a mapping of keys to values; empty for
    anything else."""
    value = place.value
    if models_in(place.annotation) == (Taint,) and isinstance(value, str):
        found = _TAINT.fullmatch(value)
        return _taint_of(**found.groupdict(default="")) if found else ""
    if models_in(item_of(place.annotation)) == (Taint,) and isinstance(value, Mapping):
        values = cast("Mapping[str, object]", value)
        written = [_taint_of(str(key), text) for key, text in values.items() if isinstance(text, str)]
        return f"[{', '.join(written)}]" if len(written) == len(values) and "key" not in values else ""
    return ""


def _taint_of(key: str, value: str, effect: str = "") -> str:
    fields = {"key": key, "value": value, "effect": effect}
    return f"{{{', '.join(f'{name}: {text}' for name, text in fields.items() if text)}}}"


def _how_to_write(place: Place, wanted: str) -> str:
    name, value = place.name, place.value
    own = "" if isinstance(place.keys[-1], int) else f"{name}: "
    if wanted == "text" and place.name == "kubernetesVersion":
        return "Write it in quotes, since YAML reads 1.30 as the number 1.3."
    if wanted == "text" and isinstance(value, bool | int | float):
        return f'Write {own}"{str(value).lower()}", in quotes.'
    if wanted == "a whole number" and isinstance(value, str) and value.strip().isdigit():
        return f"Write {own}{value.strip()}, without quotes."
    if wanted == "a list" and isinstance(value, str) and value and not models_in(item_of(place.annotation)):
        return f"Write {own}[{value}]."
    return _by_example(place, wanted, own)


def _by_example(place: Place, wanted: str, own: str) -> str:
    if taint := _taint(place):
        return f"Write {own}{taint}."
    example = _example(place)
    if example and wanted == "a list" and isinstance(place.value, Mapping) and example.startswith("[{"):
        return f"Begin each item with a dash: - {example.strip('[]')}, for example."
    if example:
        return f"Write {own}{example}, for example."
    return f"Write {wanted} here, or leave it out." if wanted else "Write something else, or leave it out."


def _wrong_type(place: Place, error: ErrorDetails) -> Fault:
    wanted = "a word or a mapping" if place.name in _WORDS_TOO else _WANTED[error["type"]]
    problem = f"{place.name} is {described(place.value)}, and {wanted} is wanted."
    if not place.keys:
        problem = problem.replace("the declaration is", "The declaration is", 1)
        return Fault("", problem, UNREADABLE, "Write name, owner, cloud and pools under ebbtide:cluster.")
    return Fault(place.path, problem, UNREADABLE, _how_to_write(place, wanted))


def _missing(place: Place, _: ErrorDetails) -> Fault:
    owner = place.owner or BaseModel
    alias = next((alias for alias, field in aliases_of(owner).items() if field is place.field), place.name)
    fix = f"Write {alias}: {_example(place)}, for example."
    problem = f"{alias} is missing."
    if place.as_word:
        problem = f"The {alias} of the {place.value} is missing."
        fix = f"Write {place.name}: {{kind: {place.value}, {alias}: {_example(place)}}}, for example."
    return Fault(place.path, problem, "Nothing can be made without it.", fix)


def _empty(place: Place, _: ErrorDetails) -> Fault:
    return Fault(
        place.path, f"{place.name} is empty.", "Nothing can be made of it.", _how_to_write(place, "text")
    )


def _too_small(place: Place, error: ErrorDetails) -> Fault:
    limits = error.get("ctx", {})
    least = f"{limits['ge']} or more" if "ge" in limits else f"more than {limits.get('gt', 0):g}"
    return Fault(
        place.path,
        f"{place.name} is {place.value}.",
        "Nothing can be made with it.",
        f"Write {least}, or leave it out.",
    )


def _choice(place: Place, _: ErrorDetails) -> Fault:
    words = words_of(place.annotation)
    near = did_you_mean(str(place.value).lower(), words)
    return Fault(
        place.path,
        f"{place.name} cannot be {place.value}{near}",
        UNREADABLE,
        f"Write one of {', '.join(words)}.",
    )


def _kind(place: Place, error: ErrorDetails) -> Fault:
    kinds = [kind_of(variant) for variant in models_in(place.annotation)]
    what = "capacity" if place.name == "capacity" else place.name
    fix = f"Write one of {', '.join(kinds)}."
    if error["type"] == "union_tag_not_found":
        path = path_text((*place.keys, "kind"))
        return Fault(
            path,
            f"The kind of {what} is missing.",
            "Nothing can be made without it.",
            f"Under kind, {fix.lower()}",
        )
    is_word = isinstance(place.value, str)
    written = place.value if is_word else cast("Mapping[str, object]", place.value).get("kind")
    path = place.path if is_word else path_text((*place.keys, "kind"))
    word = str(written).lower()
    near = f"; did you mean {_OTHER_WORDS[word]}?" if word in _OTHER_WORDS else did_you_mean(word, kinds)
    return Fault(path, f"There is no {what} kind {written}{near}", UNREADABLE, fix)


def _duration(place: Place, _: ErrorDetails) -> Fault:
    bare = isinstance(place.value, int | float) or str(place.value).strip().isdigit()
    wrong = "and a duration needs a unit" if bare else "which is no duration in whole seconds"
    return Fault(
        place.path,
        f"{place.name} is {described(place.value)}, {wrong}.",
        UNREADABLE,
        "Write a number with its unit: 30s, 90m, 12h or 7d.",
    )


def _key_of_no_text(place: Place) -> Fault:
    key = str(place.keys[-1])
    problem = f"The key {key} is not text as YAML reads it."
    return Fault(place.path, problem, UNREADABLE, f'Write "{key}", in quotes.')


def _other(place: Place, _: ErrorDetails) -> Fault:
    return Fault(
        place.path, f"{place.name} cannot be {described(place.value)}.", UNREADABLE, _how_to_write(place, "")
    )


_Check = tuple[str, Callable[[Place, ErrorDetails], Fault]]

_OTHER: _Check = ("known-value", _other)

_CHECKS: dict[str, _Check] = {
    **dict.fromkeys(_WANTED, ("value-type", _wrong_type)),
    "enum": ("known-value", _choice),
    "greater_than": ("value-range", _too_small),
    "greater_than_equal": ("value-range", _too_small),
    "literal_error": ("known-value", _choice),
    "missing": ("required-field", _missing),
    "string_too_short": ("required-field", _empty),
    "too_short": ("required-field", _empty),
    "union_tag_invalid": ("known-kind", _kind),
    "union_tag_not_found": ("required-field", _kind),
    "value_error": ("duration", _duration),
}
"""The id of the rule that each of pydantic's errors breaks, and the fault to report."""


def _unknown(place: Place, whole: type[BaseModel]) -> Finding:
    known = tuple(aliases_of(place.owner)) if place.owner else ()
    reading = unknown_key(place, whole, known)
    meant = path_text((*place.keys[:-1], reading.meant)) if reading.meant else ""
    fault = Fault(place.path, reading.problem, reading.consequence, reading.fix, rule="known-key")
    return Finding(fault, place, meant)


def findings(model: type[BaseModel], error: ValidationError, written: object) -> tuple[Finding, ...]:
    """Every fault of shape, with what `salvage` needs to know of it; arguments as for `shape_faults`."""
    found: list[Finding] = []
    for details in error.errors(include_url=False):
        place = place_of(model, details["loc"], written)
        if details["type"] == "too_short" and details["input"]:
            continue  # the items that are there have faults of their own
        if details["loc"][-1:] == ("[key]",):
            found.append(Finding(replace(_key_of_no_text(place), rule="value-type"), place))
        elif details["type"] in ("extra_forbidden", "invalid_key"):
            found.append(_unknown(place, model))
        else:
            rule, fault_of = _CHECKS.get(details["type"], _OTHER)
            found.append(Finding(replace(fault_of(place, details), rule=rule), place))
    meant = {finding.meant for finding in found}
    return tuple(
        each
        for each in found
        if not (each.fault.problem.endswith("is missing.") and each.fault.path in meant)
    )


def shape_faults(model: type[BaseModel], error: ValidationError, written: object) -> tuple[Fault, ...]:
    """Convert pydantic's errors to faults in the declaration's words.

    Args:
        model: the model to read.
        error: pydantic's error.
        written: the written value.

    Returns:
        A fault for each error; a field whose misspelt key is named is not also called missing.
    """
    return tuple(finding.fault for finding in findings(model, error, written))
