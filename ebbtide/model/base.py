"""The base of every part of the declaration, and the types that they share."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Generic, Self, TypeVar, overload

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError
from pydantic.alias_generators import to_camel

from ebbtide import durations
from ebbtide.model.faults import DeclarationError

_Read = TypeVar("_Read")
_Written = TypeVar("_Written")

if TYPE_CHECKING:
    _Model = BaseModel

    class Converted(Generic[_Read, _Written]):
        """A field that a constructor takes as the second type, and that reads as the first.

        To a type checker it is a descriptor, which is how Python's dataclasses tell the two apart (typing
        specification, dataclasses, descriptor-typed fields, 2026). To pydantic it is the first type, whose
        validators convert.
        """

        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: type) -> _Read: ...
        def __get__(self, instance: Any, owner: type) -> Any: ...
        def __set__(self, instance: Any, value: _Written) -> None: ...

else:

    class _Refusing(type(BaseModel)):
        """Reports what a program passes to a constructor in the declaration's words, not in pydantic's."""

        def __call__(cls, *args: object, **fields: object) -> BaseModel:
            try:
                return super().__call__(*args, **fields)
            except ValidationError as error:
                from ebbtide.model.shape.findings import shape_faults  # noqa: PLC0415 - it reads the models

                names = {name: field.alias for name, field in cls.model_fields.items()}
                written = {names.get(name, name): value for name, value in fields.items()}
                faults = shape_faults(cls, error, written)
                raise DeclarationError(faults, subject=f"{cls.__name__}(…)") from error

    class _Model(BaseModel, metaclass=_Refusing):
        pass

    class Converted:
        """See above."""

        def __class_getitem__(cls, types: tuple[object, object]) -> object:
            return types[0]


def default(value: object) -> Any:
    """Return the default of a `Converted` field, which a type checker would compare with the descriptor."""
    return value


class Declared(_Model):
    """A part of the declaration: frozen, camelCase in YAML and snake_case in Python, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=lambda name: to_camel(name.removesuffix("_")),
        validate_by_name=True,
        validate_by_alias=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
    )


Duration = Annotated[
    timedelta,
    BeforeValidator(durations.parse, json_schema_input_type=str),
    PlainSerializer(durations.in_seconds, return_type=str),
]
"""A duration written with its unit: `30s`, `90m`, `12h`, `7d`."""

OptionalDuration = Converted[Duration | None, timedelta | str | None]
"""A duration, or nothing."""

Count = Annotated[int, Field(strict=True, ge=0)]
"""A whole number, zero or more."""

Name = Annotated[str, Field(strict=True, min_length=1)]
"""A name; what it may consist of is for the rules of the cloud."""

Names = Converted[tuple[Name, ...], list[str] | tuple[str, ...]]
"""Names, in order."""

Overrides = dict[str, Any]
"""Inputs of a provider's resource, by their names in camel case, applied last."""
