"""Shape faults: pydantic's errors in the declaration's terms."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.shape.error_locations import (
    Location,
    aliases_of,
    has_defaults_only,
    item_of,
    kind_of,
    location_of,
    models_in,
    null_fields,
    words_of,
)
from ebbtide.declaration.model.shape.examples import example_of, taint_of
from ebbtide.declaration.model.shape.unknown_keys import unknown_key
from ebbtide.text import described, did_you_mean
from ebbtide.values.paths import path_text

UNREADABLE = "The declaration cannot be read."

_EXPECTED = {
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


@dataclass(frozen=True, slots=True)
class ShapeFinding:
    """A shape fault with its location.

    Attributes:
        fault: the fault.
        location: its location.
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
    return f"Write {expected} here, or omit it." if expected else "Write something else, or omit it."


def _wrong_type(location: Location, error: ErrorDetails) -> Fault:
    expected = "a word or a mapping" if location.name in _WORDS_TOO else _EXPECTED[error["type"]]
    problem = f"{location.name} is {described(location.value)}; expected {expected}."
    if not location.keys:
        problem = problem.replace("the declaration is", "The declaration is", 1)
        return Fault("", problem, UNREADABLE, "Write name, owner, cloud and pools under ebbtide:cluster.")
    return Fault(location.path, problem, UNREADABLE, _how_to_write(location, expected))


def _missing(location: Location, _: ErrorDetails) -> Fault:
    owner = location.owner or BaseModel
    alias = next(
        (alias for alias, field in aliases_of(owner).items() if field is location.field), location.name
    )
    written, problem = f"{alias}: {example_of(location)}", f"{alias} is missing."
    if location.as_word:
        problem = f"The {alias} of the {location.value} is missing."
        written = f"{location.name}: {{kind: {location.value}, {written}}}"
    fix = f"Write {written}, for example."
    return Fault(location.path, problem, "The field is required.", fix)


def _empty(location: Location, _: ErrorDetails) -> Fault:
    return Fault(
        location.path,
        f"{location.name} is empty.",
        "The value is invalid.",
        _how_to_write(location, "text"),
    )


def _out_of_range(location: Location, error: ErrorDetails) -> Fault:
    limits = error.get("ctx", {})
    words = {"ge": "{} or more", "gt": "more than {:g}", "le": "{} or less"}
    wanted = next(text.format(limits[name]) for name, text in words.items() if name in limits)
    required = location.field is not None and location.field.is_required()
    return Fault(
        location.path,
        f"{location.name} is {location.value}.",
        "The value is out of range.",
        f"Write {wanted}{'' if required else ', or omit it'}.",
    )


def _choice(location: Location, _: ErrorDetails) -> Fault:
    words = words_of(location.annotation)
    near = did_you_mean(str(location.value).lower(), words)
    return Fault(
        location.path,
        f"{location.name} cannot be {location.value}{near}",
        UNREADABLE,
        f"Write one of {', '.join(words)}.",
    )


def _kind(location: Location, error: ErrorDetails) -> Fault:
    kinds = [kind_of(variant) for variant in models_in(location.annotation)]
    name = "capacity" if location.name == "capacity" else location.name
    fix = f"Write one of {', '.join(kinds)}."
    if error["type"] == "union_tag_not_found":
        path = path_text((*location.keys, "kind"))
        return Fault(
            path,
            f"The kind of {name} is missing.",
            "The field is required.",
            f"Under kind, {fix.lower()}",
        )
    is_word = isinstance(location.value, str)
    written = location.value if is_word else cast("Mapping[str, object]", location.value).get("kind")
    path = location.path if is_word else path_text((*location.keys, "kind"))
    word = str(written).lower()
    near = f"; did you mean {_OTHER_WORDS[word]}?" if word in _OTHER_WORDS else did_you_mean(word, kinds)
    return Fault(path, f"There is no {name} kind {written}{near}", UNREADABLE, fix)


def _duration(location: Location, _: ErrorDetails) -> Fault:
    bare = isinstance(location.value, int | float) or str(location.value).strip().isdigit()
    wrong = "and a duration needs a unit" if bare else "which is not a duration in whole seconds"
    return Fault(
        location.path,
        f"{location.name} is {described(location.value)}, {wrong}.",
        UNREADABLE,
        "Write a number with its unit: 30s, 90m, 12h or 7d.",
    )


def _nodes_or_share(location: Location, _: ErrorDetails) -> Fault:
    return Fault(
        location.path,
        f"{location.name} is {described(location.value)}; expected a number of nodes, or a share of them.",
        UNREADABLE,
        f"Write {location.name}: 1, for example, or on AKS a share from 1% to 100%.",
    )


def _key_of_no_text(location: Location) -> Fault:
    key = str(location.keys[-1])
    problem = f"The key {key} is not text as YAML reads it."
    return Fault(location.path, problem, UNREADABLE, f'Write "{key}", in quotes.')


def _other(location: Location, _: ErrorDetails) -> Fault:
    return Fault(
        location.path,
        f"{location.name} cannot be {described(location.value)}.",
        UNREADABLE,
        _how_to_write(location, ""),
    )


_Check = tuple[str, Callable[[Location, ErrorDetails], Fault]]

_OTHER: _Check = ("known-value", _other)

_CHECKS: dict[str, _Check] = {
    **dict.fromkeys(_EXPECTED, ("value-type", _wrong_type)),
    "enum": ("known-value", _choice),
    **dict.fromkeys(
        ("greater_than", "greater_than_equal", "less_than_equal"), ("value-range", _out_of_range)
    ),
    "literal_error": ("known-value", _choice),
    "missing": ("required-field", _missing),
    "nodes_or_share": ("value-type", _nodes_or_share),
    "string_too_short": ("required-field", _empty),
    "too_short": ("required-field", _empty),
    "union_tag_invalid": ("known-kind", _kind),
    "union_tag_not_found": ("required-field", _kind),
    "value_error": ("duration", _duration),
}
"""Rule id and fault constructor for each of pydantic's error types."""


def _unknown(location: Location, whole: type[BaseModel]) -> ShapeFinding:
    known = tuple(aliases_of(location.owner)) if location.owner else ()
    reading = unknown_key(location, whole, known)
    meant = path_text((*location.keys[:-1], reading.meant)) if reading.meant else ""
    fault = Fault(location.path, reading.problem, reading.consequence, reading.fix, rule="known-key")
    return ShapeFinding(fault, location, meant)


def findings(model: type[BaseModel], error: ValidationError, written: object) -> tuple[ShapeFinding, ...]:
    """Return the shape faults with the locations that `validate_partially` needs; arguments as for
    `shape_faults`."""
    collected: list[ShapeFinding] = []
    for details in error.errors(include_url=False):
        location = location_of(model, details["loc"], written)
        if details["type"] == "too_short" and details["input"]:
            continue  # the items have their own faults
        if details["loc"][-1:] == ("[key]",):
            collected.append(ShapeFinding(replace(_key_of_no_text(location), rule="value-type"), location))
        elif details["type"] in ("extra_forbidden", "invalid_key"):
            collected.append(_unknown(location, model))
        else:
            rule, fault_of = _CHECKS.get(details["type"], _OTHER)
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


def shape_faults(model: type[BaseModel], error: ValidationError, written: object) -> tuple[Fault, ...]:
    """Convert pydantic's errors to faults in the declaration's terms.

    Args:
        model: the validated model.
        error: pydantic's error.
        written: the value that was validated.

    Returns:
        A fault for each error, except for a missing field whose misspelt key has a fault.
    """
    return tuple(finding.fault for finding in findings(model, error, written))
