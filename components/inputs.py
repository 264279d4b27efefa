"""Inputs in the form that providers accept."""

from collections.abc import Mapping
from typing import TypeVar, cast

_Inputs = TypeVar("_Inputs", bound=Mapping[str, object])


def without_none(inputs: _Inputs) -> _Inputs:
    """Return the inputs that have a value: a diff shows an omitted one more clearly than null."""
    return cast("_Inputs", {key: value for key, value in inputs.items() if value is not None})
