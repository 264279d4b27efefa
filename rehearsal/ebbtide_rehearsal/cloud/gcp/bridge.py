"""Pulumi's bridge to Terraform: complete and validate inputs, compare them, and read them back."""

import ipaddress
import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final, assert_never

from ebbtide.analysis.providers import google
from ebbtide.analysis.providers.property_path import plain_path, with_defaults
from ebbtide.analysis.recording.values import Plain
from ebbtide.declaration.providers.constraints import Limit
from ebbtide_rehearsal.cloud import fake_provider
from ebbtide_rehearsal.cloud.gcp.request import ResourceKind
from ebbtide_rehearsal.cloud.provider import Call, DiffResult, Failure, Properties
from ebbtide_rehearsal.cloud.schema import SchemaViolation

_RANDOM_DIGITS: Final = 7
_GCE_NAME: Final = r"^(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)$"
_MEMBER: Final = re.compile(
    r"^(allUsers|allAuthenticatedUsers|(deleted:)?[A-Za-z]+:.+|principal(Set)?://.+)$"
)


def completed(kind: ResourceKind, call: Call, old: Properties, new: Properties) -> dict[str, Plain]:
    """Return inputs with the provider's defaults and a name: by default the existing one, or a new one from
    the logical name and random digits.
    """
    inputs = with_defaults(new, kind.constraints.defaults)
    if kind.autonamed and inputs.get(kind.autonamed) is None:
        digits = secrets.token_hex(_RANDOM_DIGITS)[:_RANDOM_DIGITS]
        inputs[kind.autonamed] = old.get(kind.autonamed) or f"{call.name}-{digits}"
    return inputs


class TerraformWording:
    """Messages of Terraform's and the bridge's refusals."""

    def schema_failure(self, call: Call, violation: SchemaViolation) -> Failure:
        """See `Wording.schema_failure`."""
        position = f"Examine values at '{call.name}.{violation.path}'."
        name = violation.path.rpartition(".")[2]
        match violation.problem:
            case "unknown":
                reason = (
                    f'Invalid or unknown key. An argument named "{name}" is not expected here. {position}'
                )
            case "missing":
                missing = f'The argument "{name}" is required, but no definition was found.'
                reason = f"Missing required argument. {missing} {position}"
            case "type":
                reason = f"expected type '{violation.expected}' for {violation.path}. {position}"
            case _:
                assert_never(violation.problem)
        return Failure(violation.path, reason)

    def limit_message(self, where: str, value: Any, limit: Limit) -> str | None:  # noqa: PLR0911 - a case each
        """See `Wording.limit_message`."""
        path = plain_path(where)
        if limit.name == "validate":
            validation = VALIDATIONS.get(limit.value)
            return validation(limit.path, value) if validation else None
        if limit.allows(value):
            return None
        match limit.name:
            case "enum":
                listed = " ".join(f'"{choice}"' for choice in limit.choices)
                return f"expected {path} to be one of [{listed}], got {value}"
            case "minimum":
                return f"expected {path} to be at least ({limit.value}), got {value}"
            case "maximum":
                return f"expected {path} to be at most ({limit.value}), got {value}"
            case "longest":
                return f"expected length to be in the range (0 - {limit.value}), got {len(value)}"
            case "pattern":
                return _unmatched(limit.path, value, limit.value)
            case _:
                return f"Invalid value for {path}: {value}"


def _unmatched(name: str, value: Any, pattern: str) -> str | None:
    fits = re.search(pattern, str(value)) is not None
    return None if fits else f'"{_terraform(name)}" ("{value}") doesn\'t match regexp "{pattern}"'


def _terraform(name: str) -> str:
    """Return Terraform's name of a property."""
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def _rfc1035(shortest: int, longest: int) -> Callable[[str, Any], str | None]:
    pattern = rf"^[a-z](?:[-a-z0-9]{{{shortest - 2},{longest - 2}}}[a-z0-9])$"
    return lambda name, value: _unmatched(name, value, pattern)


def _range(_name: str, value: Any) -> str | None:
    try:
        ipaddress.ip_network(str(value), strict=False)
    except ValueError:
        return f"{value} is not a valid IP CIDR range: invalid CIDR address: {value}"
    return None


def _member(_name: str, value: Any) -> str | None:
    if _MEMBER.match(str(value)):
        return None
    where = "https://cloud.google.com/billing/docs/reference/rest/v1/Policy#Binding"
    wanted = f"IAM members must have one of the values outlined here: {where}"
    return f"invalid value for member ({wanted}), got {value}"


def _cluster_name(_name: str, value: Any) -> str | None:
    wrong = (
        (len(value) > 40, "cannot be longer than 40 characters"),  # noqa: PLR2004 - as in the message
        (not re.match(r"^[a-z0-9-]+$", value), "can only contain lowercase letters, numbers and hyphens"),
        (not re.match(r"^[a-z]", value), "must start with a letter"),
        (not re.search(r"[a-z0-9]$", value), "must end with a number or a letter"),
    )
    return next((f'"name" {why}' for broken, why in wrong if broken), None)


VALIDATIONS: Final[Mapping[str, Callable[[str, Any], str | None]]] = {
    "ValidateGCEName": lambda name, value: _unmatched(name, value, _GCE_NAME),
    "ValidateRFC1035Name(2, 63)": _rfc1035(2, 63),
    "ValidateRFC1035Name(6, 30)": _rfc1035(6, 30),
    "ValidateIpCidrRange": _range,
    "validateIAMMember": _member,
    "cluster name": _cluster_name,
}
"""Validators by name in the tables: property and value to a message, None if valid. Others are not enforced.
"""


def change(kind: ResourceKind, old: Properties, state: Properties, new: Properties) -> DiffResult:
    """Return the effect of changed inputs on a resource.

    Args:
        kind: type of the resource.
        state: its state, as known to the engine.
    """
    before = {
        **old,
        **{name: state[name] for name in kind.constraints.computed if _is_scalar(state.get(name))},
    }
    return fake_provider.change(
        before,
        new,
        is_same=lambda path, before, after: (
            google.is_same(kind.type, plain_path(path), before, after)
            or google.is_kept(kind.type, plain_path(path), after)
        ),
        needs_new=lambda path, before, after: google.needs_new(kind.type, plain_path(path), before, after),
        keeps_name=google.keeps_name(old, new),
    )


def _is_scalar(value: Any) -> bool:
    return value is not None and not isinstance(value, dict)


def read_back(kind: ResourceKind, inputs: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Plain]:
    """Return the inputs of a resource as read, with the cloud's values where they differ."""
    return _objects_back(kind, dict(inputs), dict(state), "")


def _objects_back(
    kind: ResourceKind, inputs: dict[str, Plain], state: dict[str, Plain], above: str
) -> dict[str, Plain]:
    keys = {*inputs, *state} if above in kind.maps else {*inputs}
    result: dict[str, Plain] = {}
    for key in sorted(keys):
        path = f"{above}.{key}" if above else key
        result[key] = _back(kind, inputs.get(key), state.get(key), path)
    return {key: item for key, item in result.items() if item is not None}


def _back(kind: ResourceKind, inputs: Plain, state: Plain, path: str) -> Plain:
    if isinstance(inputs, dict) and isinstance(state, dict):
        return _objects_back(kind, inputs, state, path)
    if isinstance(inputs, list) and isinstance(state, list) and len(inputs) == len(state):
        return [_back(kind, before, after, path) for before, after in zip(inputs, state, strict=True)]
    return inputs if google.is_same(kind.type, path, state, inputs) else state
