"""What a resource type takes, read from the SDK package that is installed: the very one that the program runs
with, so that the two cannot drift apart.

A provider has its types' schemas built in, and refuses what they do not have; the SDK's argument classes are
generated from the same schemas. Python's type checker sees a mistake in them, a running program does not: a
key that no class has goes to the provider as it is.
"""

import importlib
import inspect
import sys
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, cast, get_args, get_origin, get_type_hints

import pulumi

from ebbtide.recording.values import UNKNOWN, Plain, Secret

Problem = Literal["unknown", "missing", "type"]


@dataclass(frozen=True, slots=True)
class Misfit:
    """A property that is not as the schema wants it.

    Attributes:
        path: where it is, such as `nodeConfig.taints[0].effect`.
        problem: it is not in the schema; it is required and not there; or it is of another type.
        wanted: the type that the schema has: `string`, `bool`, `int`, `number`, `list`, `map`, `object`;
            empty for an unknown property.
    """

    path: str
    problem: Problem
    wanted: str = ""


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a type or of an object in one.

    Attributes:
        name: as the engine has it, in camel case.
        required: whether it has to be there.
        hint: Python's type for it, without the wrappers for outputs.
    """

    name: str
    required: bool
    hint: Any


def properties(token: str) -> Mapping[str, Property]:
    """The inputs of a resource type, by name.

    Args:
        token: such as `gcp:container/nodePool:NodePool`, `azure-native:network:VirtualNetwork` or
            `pulumi:providers:gcp`.

    Raises:
        LookupError: the installed package has no such type.
    """
    return _properties(_arguments(token))


def misfits(token: str, inputs: Mapping[str, Plain]) -> list[Misfit]:
    """All in a resource's inputs that its type's schema does not have as they are; what is not yet known
    fits everywhere.

    Raises:
        LookupError: as of `properties`.
    """
    return list(_of_object(_arguments(token), inputs, ""))


@cache
def _arguments(token: str) -> type:
    package, where, name = token.split(":")
    if package == "pulumi" and where == "providers":
        package, name, modules = name, "Provider", ["provider"]
    else:
        modules = [part for part in where.split("/") if part not in ("", "index", name[0].lower() + name[1:])]
    path = ".".join([f"pulumi_{package.replace('-', '_')}", *modules])
    try:
        module = sys.modules[getattr(importlib.import_module(path), name).__module__]
        # Where an object's arguments have the name already, a resource's are called otherwise.
        of_resource = getattr(module, f"{name}InitArgs", None) or getattr(module, f"{name}Args")
        return cast("type", of_resource)
    except (ImportError, AttributeError):
        raise LookupError(f"The installed {path} has no type {token}.") from None


@cache
def _properties(arguments: type) -> dict[str, Property]:
    takes = inspect.signature(arguments).parameters
    names = _engine_names(arguments)
    # `pulumi.Input[T]` speaks of `Output[T]` by name.
    names_in_hints = {"Output": pulumi.Output, "T": Any, **vars(sys.modules[arguments.__module__])}
    hints = get_type_hints(arguments.__init__, names_in_hints)
    return {
        names[python]: Property(
            names[python], parameter.default is inspect.Parameter.empty, _unwrapped(hints.get(python, Any))
        )
        for python, parameter in takes.items()
        if python in names
    }


def _engine_names(arguments: type) -> dict[str, str]:
    """The engine's name of each property, by Python's."""
    getters = inspect.getmembers(arguments, inspect.isdatadescriptor)
    return {
        python: getattr(one.fget, _ENGINE_NAME)
        for python, one in getters
        if isinstance(one, property) and hasattr(one.fget, _ENGINE_NAME)
    }


_NO_CHOICES: Final = frozenset({NoneType, Awaitable, pulumi.Output})


def _unwrapped(hint: Any) -> Any:
    """A type without what makes it an input: that it may be left out, awaited or be an output."""
    if not _is_union(hint):
        return hint
    kept = [choice for choice in get_args(hint) if (get_origin(choice) or choice) not in _NO_CHOICES]
    return _unwrapped(kept[0]) if len(kept) == 1 else Union[tuple(kept)]  # noqa: UP007 - made while running


def _of_object(arguments: type, value: Mapping[str, Plain], path: str) -> Iterator[Misfit]:
    known = _properties(arguments)
    for name, one in known.items():
        if one.required and value.get(name) is None:
            yield Misfit(_below(path, name), "missing", _word(one.hint))
    for name, item in value.items():
        if name in known:
            yield from _of(known[name].hint, item, _below(path, name))
        elif not name.startswith("__"):
            yield Misfit(_below(path, name), "unknown")


def _of(hint: Any, value: Plain, path: str) -> Iterator[Misfit]:
    if isinstance(value, Secret):
        value = value.value
    if value is None or value is UNKNOWN or hint is Any:
        return
    choices = [_unwrapped(choice) for choice in get_args(hint)] if _is_union(hint) else [hint]
    found = [list(_of_one(choice, value, path)) for choice in choices]
    if all(found):
        yield from min(found, key=lambda one: any(misfit.problem == "type" for misfit in one))


def _of_one(hint: Any, value: Plain, path: str) -> Iterator[Misfit]:
    match _word(hint):
        case "list" if isinstance(value, list):
            (item,) = get_args(hint) or (Any,)
            for index, one in enumerate(value):
                yield from _of(_unwrapped(item), one, f"{path}[{index}]")
        case "map" if isinstance(value, dict):
            item = (get_args(hint) or (str, Any))[1]
            for key, one in value.items():
                yield from _of(_unwrapped(item), one, f'{path}["{key}"]')
        case "object" if isinstance(value, dict):
            yield from _of_object(hint, value, path)
        case "any":
            return
        case word if not _is_scalar_of(word, value):
            yield Misfit(path, "type", word)
        case _:
            return


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


# Attributes that the SDK's decorators leave (pulumi 3.272, pulumi/_types.py): on a class of arguments, and on
# the getter of a property.
_INPUT_TYPE: Final = "_pulumi_input_type"
_ENGINE_NAME: Final = "_pulumi_name"

_SCALARS: Final[Mapping[type, str]] = {str: "string", bool: "bool", int: "int", float: "number"}


_WORDS: Final[Mapping[type, str]] = {Enum: "string", Mapping: "map", Sequence: "list"}


def _word(hint: Any) -> str:
    """What a type is called; `any` for what is not looked into, assets among it."""
    if _is_union(hint):
        return _word(get_args(hint)[0])
    origin = get_origin(hint) or hint
    if origin in _SCALARS:
        return _SCALARS[origin]
    if not inspect.isclass(origin):
        return "any"
    fallback = "object" if hasattr(origin, _INPUT_TYPE) else "any"
    return next((word for kind, word in _WORDS.items() if issubclass(origin, kind)), fallback)


def _is_scalar_of(word: str, value: Plain) -> bool:
    """Whether a value is of a scalar type, text that says a number or a truth value among it: providers read
    it."""
    match word:
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


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
