"""Inputs as providers want them."""

from collections.abc import Mapping
from typing import TypeVar, cast

_Inputs = TypeVar("_Inputs", bound=Mapping[str, object])


def given(inputs: _Inputs) -> _Inputs:
    """The inputs that have a value: one that is left out reads better in a difference than one that is
    null."""
    return cast("_Inputs", {key: value for key, value in inputs.items() if value is not None})
