"""What every part of the declaration has in common."""

from datetime import timedelta
from typing import Annotated

import durationpy
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel


class Declared(BaseModel):
    """A part of the declaration: frozen, camelCase in YAML and snake_case in Python, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
    )


def _duration(value: object) -> object:
    if isinstance(value, str):
        value = durationpy.from_str(value)
    if isinstance(value, timedelta) and not value.microseconds:
        return value
    raise ValueError("a duration is written with its unit, in whole seconds")


def duration_text(value: timedelta) -> str:
    """A duration as the clouds write it: whole seconds, `604800s`."""
    return f"{int(value.total_seconds())}s"


Duration = Annotated[
    timedelta,
    BeforeValidator(_duration, json_schema_input_type=str),
    PlainSerializer(duration_text, return_type=str),
]
"""A duration written with its unit: `30s`, `90m`, `12h`, `7d`."""

Count = Annotated[int, Field(strict=True, ge=0)]
"""A whole number, zero or more."""

Name = Annotated[str, Field(strict=True, min_length=1)]
"""A name; what it may consist of is for the rules of the cloud."""
