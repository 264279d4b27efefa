"""Arguments of a component from a program in another language, as plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pulumi
from pulumi.output import Unknown

from ebbtide.values.paths import child_path


class Unusable:
    """In place of a value that is unknown or secret: no field accepts it, and no message shows it."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """Plain arguments.

    Attributes:
        values: the arguments; `Unusable` where there is no plain value.
        unknown: outputs of resources that do not exist yet, by path.
        secret: paths of secrets.
        foreign: kinds of other values, such as resources, by path.
    """

    values: Mapping[str, Any]
    unknown: dict[str, pulumi.Output[Any]] = field(default_factory=dict[str, pulumi.Output[Any]])
    secret: list[str] = field(default_factory=list[str])
    foreign: dict[str, str] = field(default_factory=dict[str, str])


async def plain(inputs: pulumi.Inputs) -> Arguments:
    """Return the inputs of a component as plain values, without null."""
    arguments = Arguments({})
    values = {key: await _plain(value, key, arguments) for key, value in inputs.items()}
    return Arguments(
        {key: value for key, value in values.items() if value is not None},
        arguments.unknown,
        arguments.secret,
        arguments.foreign,
    )


async def _plain(  # noqa: PLR0911 - a kind of value each
    value: Any, path: str, found: Arguments, source: pulumi.Output[Any] | None = None
) -> Any:
    match value:
        case pulumi.Output():
            output = cast("pulumi.Output[Any]", value)
            if await output.is_secret():
                found.secret.append(path)
                return Unusable()
            inner = await output.future(with_unknowns=True)
            unknown = inner is None and not await output.is_known()
            return await _plain(Unknown() if unknown else inner, path, found, output)
        case Unknown():
            found.unknown[path] = pulumi.Output.from_input(Unknown()) if source is None else source
            return Unusable()
        case float() if value.is_integer():  # the engine sends every number as a float
            return int(value)
        case None | str() | bool() | int() | float():
            return value
        case Mapping():
            fields = cast("Mapping[str, Any]", value)
            plain = {
                key: await _plain(item, child_path(path, key), found, source) for key, item in fields.items()
            }
            return {key: item for key, item in plain.items() if item is not None}
        case Sequence():
            items = cast("Sequence[Any]", value)
            return [
                await _plain(item, child_path(path, index), found, source) for index, item in enumerate(items)
            ]
        case _:
            found.foreign[path] = type(value).__name__
            return Unusable()
