"""Inputs of a resource type, read from the installed SDK package, which the program also uses, so that the
two cannot differ.

A provider has its types' schemas built in, and rejects unknown properties; the SDK's argument classes are
generated from the same schemas. Python's type checker reports a mistake in them, a running program does not:
an unknown key is passed to the provider unchanged.
"""

import importlib
import inspect
import sys
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Union, cast, get_args, get_origin, get_type_hints

import pulumi

_NO_CHOICES: Final = frozenset({NoneType, Awaitable, pulumi.Output})
# Attributes that the SDK's decorators set (pulumi 3.272, pulumi/_types.py): on an arguments class, and on the
# getter of a property.
_INPUT_TYPE: Final = "_pulumi_input_type"
_ENGINE_NAME: Final = "_pulumi_name"
_SCALARS: Final[Mapping[type, str]] = {str: "string", bool: "bool", int: "int", float: "number"}
_WORDS: Final[Mapping[type, str]] = {Enum: "string", Mapping: "map", Sequence: "list"}
_ZEROES: Final[Mapping[str, bool | int]] = {"bool": False, "int": 0, "number": 0}


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a type or of an object in one.

    Attributes:
        name: the provider's name, in camel case.
        python: the Python SDK's name, in snake case.
        required: whether it is required.
        hint: its Python type, without the wrappers for outputs.
    """

    name: str
    python: str
    required: bool
    hint: Any


def properties(token: str) -> Mapping[str, Property]:
    """Return the inputs of a resource type, by the provider's name.

    Args:
        token: type token, such as `gcp:container/nodePool:NodePool`, `azure-native:network:VirtualNetwork` or
            `pulumi:providers:gcp`.

    Raises:
        LookupError: the installed package has no such type, or is not installed.
    """
    return properties_of(arguments(token))


@cache
def arguments(token: str) -> type:
    """Return the class of a resource type's inputs; token and errors as in `properties`."""
    package, where, name = token.split(":")
    if package == "pulumi" and where == "providers":
        package, name, modules = name, "Provider", ["provider"]
    else:
        modules = [part for part in where.split("/") if part not in ("", "index", name[0].lower() + name[1:])]
    path = ".".join([f"pulumi_{package.replace('-', '_')}", *modules])
    try:
        module = sys.modules[getattr(importlib.import_module(path), name).__module__]
        # If an object's arguments class already has the name, the resource's has another one.
        of_resource = getattr(module, f"{name}InitArgs", None) or getattr(module, f"{name}Args")
        return cast("type", of_resource)
    except (ImportError, AttributeError):
        raise LookupError(f"The installed {path} has no type {token}.") from None


@cache
def properties_of(arguments: type) -> dict[str, Property]:
    """Return the properties of an arguments class, by the provider's name."""
    takes = inspect.signature(arguments).parameters
    names = _engine_names(arguments)
    # `pulumi.Input[T]` refers to `Output[T]` by name.
    names_in_hints = {"Output": pulumi.Output, "T": Any, **vars(sys.modules[arguments.__module__])}
    hints = get_type_hints(arguments.__init__, names_in_hints)
    return {
        names[python]: Property(
            names[python],
            python,
            parameter.default is inspect.Parameter.empty,
            unwrapped(hints.get(python, Any)),
        )
        for python, parameter in takes.items()
        if python in names
    }


def _engine_names(arguments: type) -> dict[str, str]:
    """Return the provider's name of each property, by the SDK's name."""
    getters = inspect.getmembers(arguments, inspect.isdatadescriptor)
    return {
        python: getattr(getter.fget, _ENGINE_NAME)
        for python, getter in getters
        if isinstance(getter, property) and hasattr(getter.fget, _ENGINE_NAME)
    }


def unwrapped(hint: Any) -> Any:
    """Return a type without the wrappers of an input: optional, awaitable, output."""
    if not is_union(hint):
        return hint
    choices = [choice for choice in get_args(hint) if (get_origin(choice) or choice) not in _NO_CHOICES]
    return unwrapped(choices[0]) if len(choices) == 1 else Union[tuple(choices)]  # noqa: UP007 # pyrefly: ignore[invalid-annotation] # made while running


def is_union(hint: Any) -> bool:
    """Return whether a type is a union."""
    return get_origin(hint) in (Union, UnionType)


def alternatives(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union; for any other type, only the type itself."""
    return tuple(unwrapped(choice) for choice in get_args(hint)) if is_union(hint) else (hint,)


def item_of(hint: Any) -> Any:
    """Return the type of a list's items, or of a map's values."""
    return unwrapped((get_args(hint) or (Any,))[-1])


def required_zeroes(known: Mapping[str, Property]) -> dict[str, bool | int]:
    """Return the required flags and numbers of an object, by the provider's names, with the values that mean
    that they are not set."""
    kinds = {item.name: word(alternatives(item.hint)[0]) for item in known.values() if item.required}
    return {name: _ZEROES[kind] for name, kind in kinds.items() if kind in _ZEROES}


def word(hint: Any) -> str:
    """Return a type's name: `string`, `bool`, `int`, `number`, `list`, `map`, `object`; `any` for types that
    are not inspected, such as assets."""
    if is_union(hint):
        return word(get_args(hint)[0])
    origin = get_origin(hint) or hint
    if origin in _SCALARS:
        return _SCALARS[origin]
    if not inspect.isclass(origin):
        return "any"
    fallback = "object" if hasattr(origin, _INPUT_TYPE) else "any"
    return next((name for kind, name in _WORDS.items() if issubclass(origin, kind)), fallback)
