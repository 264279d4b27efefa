"""Shape faults: the errors of pydantic in the words of the declaration, with examples, and the faults of the
other parts."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, Final, Literal, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.shape.error_locations import (
    Location,
    aliases_of,
    has_defaults_only,
    item_of,
    kind_of,
    leaf_of,
    location_of,
    models_in,
    null_fields,
    words_of,
)
from ebbtide.declaration.model.shape.unknown_keys import unknown_key
from ebbtide.text import described, did_you_mean, several
from ebbtide.values.paths import is_within, path_keys, path_text
from ebbtide.values.quantities import LARGEST

_EXAMPLES = {
    "Accelerator.type": "nvidia-tesla-t4",
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
    "Commitment.count": "8",
    "Commitment.usdPerHour": "0.25",
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
    "Reservation.from": "2026-12-01T08:00Z",
    "Reservation.name": "a100-reservation",
    "Reservation.until": "2026-12-08T08:00Z",
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
"""Example values of fields and list items."""

_TAINT = re.compile(r"(?P<key>[^=:\s]+)(=(?P<value>[^=:\s]*))?(:(?P<effect>\w+))?")
"""A taint in kubectl's form: `key=value:NoSchedule`."""
UNREADABLE = "The declaration cannot be read."
_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_attributes_type": "a mapping",
    "model_type": "a mapping",
    "string_type": "text",
    "tuple_type": "a list",
}
_WORDS_TOO = ("capacity", "machine")
"""Fields that also accept a single word."""
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
"""Other names for a capacity type or cloud."""
_Check = tuple[str, Callable[[Location, ErrorDetails], Fault]]
_DECLARATION: Final = "The declaration"
"""Subject of the sentences of faults."""
_ROUNDS = 4
"""Rounds of removal: removing a broken value can break its parent, for example when it is required."""
_PLACEHOLDER = "stand-in"  # codespell:ignore
_PLACEHOLDERS: dict[object, object] = {
    int: 1,
    float: 1,
    timedelta: "24h",
    date: "2000-01-01",
    datetime: "2000-01-01T00:00Z",
}
_NOTHING_WITHOUT = ((), ("cloud",))
"""Paths without which no rule can be checked: the root, and the cloud with its kind."""
_DEPENDENT = re.compile(
    r"""
      pools                              \s pools\[\d+\](\.role)?
    | pools                              \s cloud\.existing(\..*)?
    | cloud\.maintenance\.window\..*      \s cloud\.maintenance\.window\..*
    | cloud\.maintenance\.exclusions    \s cloud\.maintenance\..*
    | (?P<without>cloud\.maintenance\.exclusions\[\d+\])\..*
                                         \s (?P=without)\..*
    | pools\[\d+\]\.capacity             \s (cloud\.existing(\..*)?|pools\[\d+\](\.role|\.capacity.*)?)
    | pools\[\d+\]\.(zones.*|compact)    \s cloud\.location
    | cloud\.network\..*                \s cloud\.network\..*
    | (?P<one>pools\[\d+\])\.taints      \s (?P=one)\.accelerator.*
    | (?P<of>pools\[\d+\])\.upgrade\..*  \s (?P=of)\.upgrade\..*
    | (?P<team>teams\[\d+\])\..*         \s (?P=team)\.namespace\..*
    | (?P<pool>pools\[\d+\])\.(?!name|labels|image|maxPodsPerNode|disk\.sizeGib).*
                                         \s (?P=pool)\.(role|machine.*)
    | (?P<way>pools\[\d+\])\.(taints|compact|shutdownGrace|upgrade|auto|capacity|zones|locationPolicy).*
                                         \s (?P=way)\.capacity.*
    | queues\[\d+\]\.pools.*             \s pools(\[\d+\](\.(name|role))?)?
    | teams\[\d+\]\.queues.*             \s queues(\[\d+\](\.name)?)?
    """,
    re.VERBOSE,
)
"""Dependent faults: path of a rule's fault, and path of the shape fault that may cause it."""
_OF_DERIVED_QUEUES = re.compile(r"teams\[\d+\]\.queues.* pools(\[\d+\].*)?")
"""Those of queues that are derived from the pools."""
_Model = TypeVar("_Model", bound=BaseModel)


def example_of(location: Location) -> str:
    """Return an example value of a field or list item; empty for none."""
    if location.owner is None or location.field is None:
        return next((_EXAMPLES.get(model.__name__, "") for model in models_in(location.annotation)), "")
    alias = _alias(location)
    # Every field of an add-on has a default.
    default = "{}" if any(_is(model, "AddOn") for model in models_in(location.annotation)) else ""
    return _EXAMPLES.get(f"{location.owner.__name__}.{alias}", default)


def _alias(location: Location) -> str:
    """Return the name of a location's field in YAML; the location's own without a field."""
    fields = aliases_of(location.owner).items() if location.owner else ()
    return next((alias for alias, field in fields if field is location.field), location.name)


def taint_of(location: Location) -> str:
    """Convert taints from kubectl's form or a mapping of keys to values to the declaration's form; empty for
    anything else."""
    value = location.value
    if _is_taint(location.annotation) and isinstance(value, str):
        match = _TAINT.fullmatch(value)
        return _taint_of(**match.groupdict(default="")) if match else ""
    if _is_taint(item_of(location.annotation)) and isinstance(value, Mapping):
        values = cast("Mapping[str, object]", value)
        written = [_taint_of(key, text) for key, text in values.items() if isinstance(text, str)]
        return f"[{', '.join(written)}]" if len(written) == len(values) and "key" not in values else ""
    return ""


def _is_taint(annotation: object) -> bool:
    return [model.__name__ for model in models_in(annotation)] == ["Taint"]


def _is(model: type, name: str) -> bool:
    """Return whether a class or a base of it has this name: the models import this module."""
    return any(base.__name__ == name for base in model.__mro__)


def _taint_of(key: str, value: str, effect: str = "") -> str:
    fields = {"key": key, "value": value, "effect": effect}
    return f"{{{', '.join(f'{name}: {text}' for name, text in fields.items() if text)}}}"


@dataclass(frozen=True, slots=True)
class ShapeFinding:
    """A shape fault with its location.

    Attributes:
        meant: path of the field that an unknown key probably means; empty if unknown.
    """

    fault: Fault
    location: Location
    meant: str = ""


def _how_to_write(location: Location, expected: str) -> str:
    name, value = location.name, location.value
    own = "" if isinstance(location.keys[-1], int) else f"{name}: "
    if expected == "text" and location.name == "kubernetesVersion":
        return "Write it in quotes, since YAML reads 1.30 as the number 1.3."
    if expected == "text" and isinstance(value, bool | int | float):
        return f'Write {own}"{str(value).lower()}", in quotes.'
    if expected == "a whole number" and isinstance(value, str) and value.strip().isdigit():
        return f"Write {own}{value.strip()}, without quotes."
    if (
        expected == "a list"
        and isinstance(value, str)
        and value
        and not models_in(item_of(location.annotation))
    ):
        return f"Write {own}[{value}]."
    return _by_example(location, expected, own)


def _by_example(location: Location, expected: str, own: str) -> str:
    if taint := taint_of(location):
        return f"Write {own}{taint}."
    example = example_of(location)
    if example and expected == "a list" and isinstance(location.value, Mapping) and example.startswith("[{"):
        return f"Begin each item with a dash: - {example.strip('[]')}, for example."
    if example:
        return f"Write {own}{example}, for example."
    omitted = "" if location.field is not None and location.field.is_required() else ", or omit it"
    return f"Write {expected} here{omitted}." if expected else f"Write something else{omitted}."


def _unreadable(location: Location, problem: str, fix: str) -> Fault:
    """Return the fault of a value; the problem continues its name."""
    return Fault(location.path, f"{location.name} {problem}", UNREADABLE, fix)


def _wrong_type(location: Location, error: ErrorDetails) -> Fault:
    expected = "a word or a mapping" if location.name in _WORDS_TOO else _EXPECTED[error["type"]]
    problem = f"{location.name} is {described(location.value)}; expected {expected}."
    if not location.keys:
        problem = problem.replace("the declaration is", "The declaration is", 1)
        return Fault("", problem, UNREADABLE, "Write name, owner, cloud and pools under ebbtide:cluster.")
    return Fault(location.path, problem, UNREADABLE, _how_to_write(location, expected))


def _missing(location: Location, _: ErrorDetails) -> Fault:
    alias, example = _alias(location), example_of(location)
    written, problem = f"{alias}: {example}", f"{alias} is missing."
    if location.as_word:
        problem = f"The {alias} of the {location.value} is missing."
        written = f"{location.name}: {{kind: {location.value}, {written}}}"
    fix = f"Write {written}, for example." if example else f"Add {alias}."
    return Fault(location.path, problem, "The field is required.", fix)


def _length(location: Location, error: ErrorDetails) -> Fault:
    if not location.value:
        fix = _how_to_write(location, "text" if isinstance(location.value, str) else "a list")
        return Fault(location.path, f"{location.name} is empty.", "The value is invalid.", fix)
    limits, written = error.get("ctx", {}), len(error["input"])
    wanted = limits.get("max_length", limits["min_length"])
    return _unreadable(location, f"has {several(written, 'item')}.", f"Write {several(wanted, 'item')}.")


def _of_validator(location: Location, error: ErrorDetails) -> Fault:
    """Return the sentences of a model's own validator: what is wrong, and what to write instead."""
    problem, _, fix = str(error.get("ctx", {})["error"]).partition(". ")
    return Fault(location.path, f"{problem}.", UNREADABLE, fix or _how_to_write(location, ""))


def _bounds(*parts: object) -> dict[str, float]:
    """Return the bounds of a type, by their names in pydantic; that of a number of 32 bits is none."""
    found: dict[str, float] = {}
    for part in parts:
        for name in ("ge", "gt", "le"):
            if (limit := getattr(part, name, None)) is not None and limit != LARGEST:
                found[name] = limit
        found |= _bounds(*(part.metadata if isinstance(part, FieldInfo) else get_args(part)))
    return found


def _out_of_range(location: Location, error: ErrorDetails) -> Fault:
    found = _bounds(location.field, location.annotation) | error.get("ctx", {})
    limits = {name: int(limit) if limit == int(limit) else limit for name, limit in found.items()}
    least = f"more than {limits['gt']}" if "gt" in limits else str(limits.get("ge", ""))
    if "le" in limits:
        wanted = f"{least} to {limits['le']}" if least else f"{limits['le']} or less"
    else:
        wanted = least if "gt" in limits else f"{least} or more"
    required = location.field is not None and location.field.is_required()
    fix = f"Write {wanted}{'' if required else ', or omit it'}."
    return _unreadable(location, f"is {location.value}.", fix)


def _choice(location: Location, _: ErrorDetails) -> Fault:
    words = words_of(location.annotation)
    near = did_you_mean(str(location.value).lower(), words)
    return _unreadable(location, f"cannot be {location.value}{near}", f"Write one of {', '.join(words)}.")


def _kind(location: Location, error: ErrorDetails) -> Fault:
    kinds = [kind_of(variant) for variant in models_in(location.annotation)]
    name, key = location.name, error.get("ctx", {})["discriminator"].strip("'")
    fix = f"Write one of {', '.join(kinds)}."
    if error["type"] == "union_tag_not_found":
        path, problem = path_text((*location.keys, key)), f"The {key} of {name} is missing."
        return Fault(path, problem, "The field is required.", f"Under {key}, {fix.lower()}")
    is_word = isinstance(location.value, str)
    written = location.value if is_word else cast("Mapping[str, object]", location.value).get(key)
    path = location.path if is_word else path_text((*location.keys, key))
    word = str(written).lower()
    near = f"; did you mean {_OTHER_WORDS[word]}?" if word in _OTHER_WORDS else did_you_mean(word, kinds)
    return Fault(path, f"There is no {name} {key} {written}{near}", UNREADABLE, fix)


def _duration(location: Location, _: ErrorDetails) -> Fault:
    bare = isinstance(location.value, int | float) or str(location.value).strip().isdigit()
    wrong = "and a duration needs a unit" if bare else "which is not a duration in whole seconds"
    problem = f"is {described(location.value)}, {wrong}."
    return _unreadable(location, problem, "Write a number with its unit: 30s, 90m, 12h or 7d.")


def _moment(location: Location, _: ErrorDetails) -> Fault:
    problem = f"is {described(location.value)}, which is not a time with its time zone."
    return _unreadable(location, problem, "Write a time such as 2026-12-01T08:00Z, which is UTC.")


def _nodes_or_share(location: Location, _: ErrorDetails) -> Fault:
    problem = f"is {described(location.value)}; expected a number of nodes, or a share of them."
    fix = f"Write {location.name}: 1, for example, or on AKS a share from 1% to 100%."
    return _unreadable(location, problem, fix)


def _key_of_no_text(location: Location) -> Fault:
    key = str(location.keys[-1])
    problem = f"The key {key} is not text as YAML reads it."
    return Fault(location.path, problem, UNREADABLE, f'Write "{key}", in quotes.')


def _other(location: Location, _: ErrorDetails) -> Fault:
    return _unreadable(location, f"cannot be {described(location.value)}.", _how_to_write(location, ""))


_OTHER: _Check = ("known-value", _other)


_CHECKS: dict[str, _Check] = {
    **dict.fromkeys(_EXPECTED, ("value-type", _wrong_type)),
    **dict.fromkeys(("datetime_from_date_parsing", "datetime_parsing"), ("value-type", _moment)),
    "duration": ("duration", _duration),
    "enum": ("known-value", _choice),
    **dict.fromkeys(
        ("greater_than", "greater_than_equal", "less_than_equal"), ("value-range", _out_of_range)
    ),
    "literal_error": ("known-value", _choice),
    "missing": ("required-field", _missing),
    "moment": ("value-type", _moment),
    "nodes_or_share": ("value-type", _nodes_or_share),
    "string_too_short": ("required-field", _length),
    "too_long": ("value-range", _length),
    "too_short": ("required-field", _length),
    "union_tag_invalid": ("known-kind", _kind),
    "union_tag_not_found": ("required-field", _kind),
    "value_error": ("known-value", _of_validator),
}
"""Rule id and fault constructor for each of pydantic's error types."""


def _unknown(location: Location, whole: type[BaseModel], written: object) -> ShapeFinding:
    known = tuple(aliases_of(location.owner)) if location.owner else ()
    is_given = isinstance(written, Mapping) and location.keys[-1] in written
    reading = unknown_key(location, whole, known, is_given=is_given)
    meant = path_text((*location.keys[:-1], reading.meant)) if reading.meant else ""
    fault = Fault(location.path, reading.problem, reading.consequence, reading.fix, rule="known-key")
    return ShapeFinding(fault, location, meant)


def findings(model: type[BaseModel], error: ValidationError, written: object) -> tuple[ShapeFinding, ...]:
    """Return the shape faults with the locations that `validate_partially` needs; arguments as for
    `shape_faults`."""
    collected: list[ShapeFinding] = []
    for details in error.errors(include_url=False):
        location = location_of(model, details["loc"], written)
        type_ = details["type"]
        if type_ == "too_short" and len(details["input"]) >= details.get("ctx", {})["min_length"]:
            continue  # the items have their own faults
        if type_ == "value_error" and leaf_of(location.annotation) is timedelta:
            type_ = "duration"
        if details["loc"][-1:] == ("[key]",):
            collected.append(ShapeFinding(replace(_key_of_no_text(location), rule="value-type"), location))
        elif type_ in ("extra_forbidden", "invalid_key"):
            collected.append(_unknown(location, model, written))
        else:
            rule, fault_of = _CHECKS.get(type_, _OTHER)
            collected.append(ShapeFinding(replace(fault_of(location, details), rule=rule), location))
    meant = {finding.meant for finding in collected}
    return tuple(
        finding
        for finding in collected
        if not (finding.fault.problem.endswith("is missing.") and finding.fault.path in meant)
    )


def null_findings(model: type[BaseModel], written: object) -> Iterator[ShapeFinding]:
    """Yield a finding for each optional field that is null, as YAML reads an empty key. Pydantic accepts most
    of them, since Python's constructors take None for the default."""
    for location in null_fields(model, written):
        name = location.name
        example = example_of(location) or ("{}" if has_defaults_only(location.annotation) else "")
        fix = f"Write {name}: {example}" if example else f"Write a value for {name}"
        fault = Fault(
            location.path,
            f"{name} is empty.",
            "YAML reads this as null, and the field would have no effect.",
            f"{fix}, or omit the key {name}.",
            rule="required-field",
        )
        yield ShapeFinding(fault, location)


def shape_faults(
    model: type[BaseModel],
    error: ValidationError,
    written: object,
    subject: str = _DECLARATION,
    whole: str = "Write a mapping.",
) -> tuple[Fault, ...]:
    """Convert pydantic's errors to faults in the model's terms.

    Args:
        model: the validated model.
        written: the value that was validated.
        subject: what sentences call it.
        whole: what to write instead of all of it, unless it is a declaration.

    Returns:
        A fault for each error, except for a missing field whose misspelt key has a fault.
    """
    faults = (finding.fault for finding in findings(model, error, written))
    if subject == _DECLARATION:
        return tuple(faults)
    return tuple(
        replace(
            fault,
            problem=fault.problem.replace(_DECLARATION, subject),
            consequence=fault.consequence.replace(_DECLARATION, subject),
            fix=fault.fix if fault.path or fault.rule != "value-type" else whole,
        )
        for fault in faults
    )


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    return value


def _placeholder(annotation: object) -> Any:
    """Return the smallest valid value of a required type."""
    leaf = leaf_of(annotation)
    if models := models_in(leaf):
        required = {alias: field for alias, field in aliases_of(models[0]).items() if field.is_required()}
        return {alias: _placeholder(field.annotation) for alias, field in required.items()}
    if get_origin(leaf) is tuple:
        return [_placeholder(item_of(leaf))]
    if get_origin(leaf) is Literal:
        return get_args(leaf)[0]
    return _PLACEHOLDERS.get(leaf, _PLACEHOLDER)


def _remove(data: Any, location: Location) -> None:
    """Remove a broken value. Replace it with a placeholder if it is required, or an item of a list."""
    *parents, last = location.keys
    for key in parents:
        data = data[key]
    required = location.field is not None and location.field.is_required() and not location.as_word
    if required or isinstance(last, int):
        data[last] = _placeholder(location.annotation)
    else:
        data.pop(last, None)


def validate_partially(
    model: type[_Model], written: object, shape_findings: Iterable[ShapeFinding]
) -> _Model | None:
    """Parse a declaration without its shape faults.

    Args:
        model: the model to validate against.
        written: the value to parse.

    Returns:
        The declaration without unknown keys and broken values; None if nothing useful remains.
    """
    data = _plain(written)
    for _ in range(_ROUNDS):
        for finding in sorted(shape_findings, key=lambda item: len(item.location.keys), reverse=True):
            if finding.location.keys in _NOTHING_WITHOUT:
                return None
            _remove(data, finding.location)
        try:
            return model.model_validate(data)
        except ValidationError as error:
            shape_findings = findings(model, error, data)
    return None


def may_depend_on(path: str, broken: str, *, has_queues: bool = False) -> bool:
    """Return whether a shape fault may have caused a rule's fault.

    Args:
        has_queues: whether the declaration has queues of its own.

    It may if the rule's fault is at the shape fault's path or below it; directly above it, where the missing
    field may be the misspelt one; or in a part of the declaration that refers to it.
    """
    above, both = path_text(path_keys(broken)[:-1]), f"{path} {broken}"
    return (
        is_within(path, broken)
        or (path == above != "")
        or _DEPENDENT.fullmatch(both) is not None
        or (not has_queues and _OF_DERIVED_QUEUES.fullmatch(both) is not None)
    )
