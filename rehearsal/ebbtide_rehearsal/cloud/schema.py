"""Validation of inputs by a resource type's schema, as providers do it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from ebbtide.analysis.recording.values import UNKNOWN, Plain, Secret
from ebbtide.declaration.providers.schema import alternatives, arguments, item_of, properties_of, word
from ebbtide.values.paths import child_path

Problem = Literal["unknown", "missing", "type"]


@dataclass(frozen=True, slots=True)
class SchemaViolation:
    """A property that does not match the schema.

    Attributes:
        path: its path, such as `nodeConfig.taints[0].effect`.
        problem: unknown property, missing required property, or wrong type.
        expected: type in the schema: `string`, `bool`, `int`, `number`, `list`, `map`, `object`; empty for an
            unknown property.
    """

    path: str
    problem: Problem
    expected: str = ""


def schema_violations(token: str, inputs: Mapping[str, Plain]) -> list[SchemaViolation]:
    """Return the properties of a resource's inputs that do not match its type's schema. Unknown values match
    any type.

    Raises:
        LookupError: as for `provider_schema.properties`.
    """
    return list(_of_object(arguments(token), inputs, ""))


def _of_object(kind: type, value: Mapping[str, Plain], path: str) -> Iterator[SchemaViolation]:
    known = properties_of(kind)
    for name, property_ in known.items():
        if property_.required and value.get(name) is None:
            yield SchemaViolation(child_path(path, name), "missing", word(property_.hint))
    for name, item in value.items():
        if name in known:
            yield from _of(known[name].hint, item, child_path(path, name))
        elif not name.startswith("__"):
            yield SchemaViolation(child_path(path, name), "unknown")


def _of(hint: Any, value: Plain, path: str) -> Iterator[SchemaViolation]:
    if isinstance(value, Secret):
        value = value.value
    if value is None or value is UNKNOWN or hint is Any:
        return
    violations = [list(_of_one(choice, value, path)) for choice in alternatives(hint)]
    if all(violations):
        yield from min(
            violations, key=lambda choice: any(violation.problem == "type" for violation in choice)
        )


def _of_one(hint: Any, value: Plain, path: str) -> Iterator[SchemaViolation]:
    match word(hint):
        case "list" if isinstance(value, list):
            for index, item in enumerate(value):
                yield from _of(item_of(hint), item, child_path(path, index))
        case "map" if isinstance(value, dict):
            for key, item in value.items():
                yield from _of(item_of(hint), item, child_path(path, key))
        case "object" if isinstance(value, dict):
            yield from _of_object(hint, value, path)
        case "any":
            return
        case name if not _is_scalar_of(name, value):
            yield SchemaViolation(path, "type", name)
        case _:
            return


def _is_scalar_of(name: str, value: Plain) -> bool:
    """Return whether a value matches a scalar type, including numbers and booleans as text, which providers
    parse."""
    match name:
        case "string":
            return isinstance(value, str | int | float)
        case "bool":
            return isinstance(value, bool) or value in ("true", "false")
        case "int":
            return _is_number(value) and float(cast("str", value)).is_integer()
        case "number":
            return _is_number(value)
        case _:
            return False


def _is_number(value: Plain) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    try:
        float(value)
    except ValueError:
        return False
    return True
