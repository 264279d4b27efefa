"""What the provider does with inputs before anything is planned: it completes them, and refuses what its
schema does not have.

The wording is that of Terraform's plug-in SDK and of Pulumi's bridge to it (pulumi-terraform-bridge v3,
pkg/tfbridge; hashicorp/terraform-plugin-sdk v2, helper/validation).
"""

import secrets
from collections.abc import Iterator, Mapping
from typing import Any, Final, assert_never

from ebbtide.recording.values import UNKNOWN, Plain
from ebbtide_rehearsal.cloud.gcp.kind import Kind
from ebbtide_rehearsal.cloud.gcp.paths import filled, values_at
from ebbtide_rehearsal.cloud.provider import Call, Failure, Properties
from ebbtide_rehearsal.cloud.schema import Misfit, misfits

_RANDOM_DIGITS: Final = 7


def completed(kind: Kind, call: Call, old: Properties, new: Properties) -> dict[str, Plain]:
    """The inputs with the provider's defaults, and a name where none is given: the one that it has, or a new
    one of the logical name and random digits."""
    inputs = filled(new, kind.defaults)
    if kind.autonamed and inputs.get(kind.autonamed) is None:
        digits = secrets.token_hex(_RANDOM_DIGITS)[:_RANDOM_DIGITS]
        inputs[kind.autonamed] = old.get(kind.autonamed) or f"{call.name}-{digits}"
    return inputs


def failures(kind: Kind, call: Call, inputs: Properties) -> list[Failure]:
    """All that the provider refuses in completed inputs."""
    found = [_failure(call, misfit) for misfit in misfits(call.type, inputs)]
    return [*found, *_invalid(kind, inputs), *kind.checked(inputs)]


def _failure(call: Call, misfit: Misfit) -> Failure:
    place = f"Examine values at '{call.name}.{misfit.path}'."
    name = misfit.path.rpartition(".")[2]
    match misfit.problem:
        case "unknown":
            reason = f'Invalid or unknown key. An argument named "{name}" is not expected here. {place}'
        case "missing":
            missing = f'The argument "{name}" is required, but no definition was found.'
            reason = f"Missing required argument. {missing} {place}"
        case "type":
            reason = f"expected type '{misfit.wanted}' for {misfit.path}. {place}"
        case _:
            assert_never(misfit.problem)
    return Failure(misfit.path, reason)


def _invalid(kind: Kind, inputs: Mapping[str, Any]) -> Iterator[Failure]:
    for check in kind.checks:
        for value in values_at(dict(inputs), check.path):
            reason = None if value is UNKNOWN else check.says(value)
            if reason is not None:
                yield Failure(check.path, reason)
