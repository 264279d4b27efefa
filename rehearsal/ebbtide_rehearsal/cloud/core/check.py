"""Validation of inputs against the SDK's types and the tables' limits, before planning.

Each provider words its own refusals: `Wording`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from ebbtide.analysis.providers.property_path import values_at
from ebbtide.declaration.providers.constraints import Constraints, Limit
from ebbtide_rehearsal.cloud.provider import Call, Failure
from ebbtide_rehearsal.cloud.schema import SchemaViolation, schema_violations


class Wording(Protocol):
    """Messages of a provider's refusals."""

    def schema_failure(self, call: Call, violation: SchemaViolation) -> Failure | None:
        """Return the refusal of a property that does not match its type; None if the provider accepts it."""
        ...

    def limit_message(self, where: str, value: Any, limit: Limit) -> str | None:
        """Return why a value is outside a limit; None if it is within."""
        ...


def failures(
    wording: Wording, constraints: Constraints, call: Call, inputs: Mapping[str, Any]
) -> Iterator[Failure]:
    """Yield the provider's refusals of completed inputs."""
    missing = (SchemaViolation(name, "missing") for name in constraints.required if inputs.get(name) is None)
    for violation in (*schema_violations(call.type, inputs), *missing):
        failure = wording.schema_failure(call, violation)
        if failure is not None:
            yield failure
    for limit in constraints.limits:
        for where, value in values_at(dict(inputs), limit.path):
            reason = wording.limit_message(where, value, limit)
            if reason is not None:
                yield Failure(where, reason)
