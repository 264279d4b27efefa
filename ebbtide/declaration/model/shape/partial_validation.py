"""Partial validation of a declaration with shape faults, so that its other faults are found too."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Literal, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError

from ebbtide.declaration.model.shape.error_locations import Location, aliases_of, item_of, leaf_of, models_in
from ebbtide.declaration.model.shape.findings import ShapeFinding, findings
from ebbtide.values.paths import is_within, path_keys, path_text

_ROUNDS = 4
"""Rounds of removal: removing a broken value can break its parent, for example when it is required."""

_PLACEHOLDER = "stand-in"  # codespell:ignore

_PLACEHOLDERS: dict[object, object] = {int: 1, float: 1, timedelta: "24h", date: "2000-01-01"}

_NOTHING_WITHOUT = ((), ("cloud",))
"""Paths without which no rule can be checked: the root, and the cloud with its kind."""

_DEPENDENT = re.compile(
    r"""
      pools                              \s pools\[\d+\](\.role)?
    | pools                              \s cloud\.existing(\..*)?
    | cloud\.maintenance\.window\..*      \s cloud\.maintenance\.window\..*
    | cloud\.maintenance\.exclusions    \s cloud\.maintenance\..*
    | (?P<without>cloud\.maintenance\.exclusions\[\d+\])\..*
                                         \s (?P=without)\..*
    | pools\[\d+\]\.capacity             \s (cloud\.existing(\..*)?|pools\[\d+\](\.role|\.capacity.*)?)
    | pools\[\d+\]\.(zones.*|compact)    \s cloud\.location
    | cloud\.network\..*                \s cloud\.network\..*
    | (?P<one>pools\[\d+\])\.taints      \s (?P=one)\.accelerator.*
    | (?P<of>pools\[\d+\])\.upgrade\..*  \s (?P=of)\.upgrade\..*
    | (?P<team>teams\[\d+\])\..*         \s (?P=team)\.namespace\..*
    | (?P<pool>pools\[\d+\])\.(?!name|labels|image|maxPodsPerNode|disk\.sizeGib).*
                                         \s (?P=pool)\.(role|machine.*)
    | (?P<way>pools\[\d+\])\.(taints|compact|shutdownGrace|upgrade|auto|capacity|zones|locationPolicy).*
                                         \s (?P=way)\.capacity.*
    | queues\[\d+\]\.pools.*             \s pools(\[\d+\](\.(name|role))?)?
    | teams\[\d+\]\.queues.*             \s (queues(\[\d+\](\.name)?)?|pools(\[\d+\].*)?)
    """,
    re.VERBOSE,
)
"""Dependent faults: path of a rule's fault, and path of the shape fault that may cause it."""

_Model = TypeVar("_Model", bound=BaseModel)


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in cast("Mapping[object, object]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    return value


def _placeholder(annotation: object) -> Any:
    """Return the smallest valid value of a required type."""
    leaf = leaf_of(annotation)
    if models := models_in(leaf):
        required = {alias: field for alias, field in aliases_of(models[0]).items() if field.is_required()}
        return {alias: _placeholder(field.annotation) for alias, field in required.items()}
    if get_origin(leaf) is tuple:
        return [_placeholder(item_of(leaf))]
    if get_origin(leaf) is Literal:
        return get_args(leaf)[0]
    return _PLACEHOLDERS.get(leaf, _PLACEHOLDER)


def _remove(data: Any, location: Location) -> None:
    """Remove a broken value. Replace it with a placeholder if it is required, or an item of a list."""
    *parents, last = location.keys
    for key in parents:
        data = data[key]
    required = location.field is not None and location.field.is_required() and not location.as_word
    if required or isinstance(last, int):
        data[last] = _placeholder(location.annotation)
    else:
        data.pop(last, None)


def validate_partially(
    model: type[_Model], written: object, shape_findings: Iterable[ShapeFinding]
) -> _Model | None:
    """Parse a declaration without its shape faults.

    Args:
        model: the model to validate against.
        written: the value to parse.
        shape_findings: the shape faults.

    Returns:
        The declaration without unknown keys and broken values; None if nothing useful remains.
    """
    data = _plain(written)
    for _ in range(_ROUNDS):
        for finding in sorted(shape_findings, key=lambda item: len(item.location.keys), reverse=True):
            if finding.location.keys in _NOTHING_WITHOUT:
                return None
            _remove(data, finding.location)
        try:
            return model.model_validate(data)
        except ValidationError as error:
            shape_findings = findings(model, error, data)
    return None


def may_depend_on(path: str, broken: str) -> bool:
    """Return whether a shape fault may have caused a rule's fault.

    It may if the rule's fault is at the shape fault's path or below it; directly above it, where the missing
    field may be the misspelt one; or in a part of the declaration that refers to it.
    """
    above = path_text(path_keys(broken)[:-1])
    return (
        is_within(path, broken)
        or (path == above != "")
        or _DEPENDENT.fullmatch(f"{path} {broken}") is not None
    )
