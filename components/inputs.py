"""Inputs as providers want them."""

from collections.abc import Mapping
from typing import TypeVar, cast

_Inputs = TypeVar("_Inputs", bound=Mapping[str, object])


def given(inputs: _Inputs) -> _Inputs:
    """Return the inputs that have a value: an omitted one reads better in a difference than null."""
    return cast("_Inputs", {key: value for key, value in inputs.items() if value is not None})
