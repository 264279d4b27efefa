"""The policy of a stack: levels, limits and exceptions under `ebbtide:policy` in its file."""

import json
from collections.abc import Collection, Iterator, Mapping
from datetime import date
from difflib import get_close_matches
from enum import StrEnum
from typing import Annotated, Final, Self, cast

from pydantic import Field, ValidationError
from pydantic.alias_generators import to_camel

from ebbtide.declaration.model.base import Declared, Name
from ebbtide.declaration.model.faults import DeclarationError, Fault
from ebbtide.declaration.model.shape.findings import shape_faults
from ebbtide.values.paths import path_text, position

KEY: Final = "ebbtide:policy"
"""The configuration key of a stack's policy."""

Usd = Annotated[float, Field(ge=0)]
"""USD per hour or month."""

_Limit = float | bool | tuple[str, ...] | None


class Level(StrEnum):
    """Consequence of a broken rule."""

    ADVISORY = "advisory"
    MANDATORY = "mandatory"
    DISABLED = "disabled"

    @property
    def strictness(self) -> int:
        """Rank of the level, higher if stricter."""
        return (Level.DISABLED, Level.ADVISORY, Level.MANDATORY).index(self)


class Limits(Declared):
    """Limits for rules. A rule without its limit checks nothing."""

    idle_usd_per_hour: Usd | None = None
    """Maximum cost without work, USD per hour; rule `idle-cost`."""
    idle_usd_per_month: Usd | None = None
    """The same for a month of 730 hours, USD."""
    maximum_usd_per_hour: Usd | None = None
    """Maximum cost at the maximum node counts, USD per hour; rule `maximum-cost`."""
    maximum_usd_per_month: Usd | None = None
    """The same for a month of 730 hours, USD."""
    regions: tuple[Name, ...] | None = None
    """Approved regions or zones, such as `us-central1` or `europe-*`; rule `approved-regions`."""
    machines: tuple[Name, ...] | None = None
    """Approved machine types, such as `n2-standard-8` or `Standard_D*`; rule `approved-machines`."""
    ephemeral_stacks: tuple[Name, ...] = ("pr", "pr-*")
    """Names of stacks that need a lifetime, such as `pr-*`; rule `lifetime`."""
    lifetime_hours: Annotated[int, Field(strict=True, ge=1)] | None = None
    """Maximum lifetime, hours; rule `longest-lifetime`."""
    ci: bool | None = None
    """True if jobs of a CI service deploy the stack; rule `workload-identity-login`. Default for
    `ebbtide review`: true in such a job, which has `CI=true`, unless `AAD_LOGIN_METHOD` has the login."""


class PolicyException(Declared):
    """An accepted violation of a rule."""

    rule: Name
    """Id of the rule."""
    resource: Name
    """Name of the pool, the cluster or the resource, or its URN; `stack` for the whole stack."""
    reason: Annotated[str, Field(strict=True, min_length=1)]
    """Reason, displayed in reviews."""
    until: date | None = None
    """Last day of validity: `"2027-01-31"`. Default: no expiry."""

    def __str__(self) -> str:
        return f"{self.reason} (until {self.until})" if self.until else self.reason


class Policy(Declared):
    """The object under `ebbtide:policy`."""

    levels: dict[str, Level] = Field(default={})
    """Levels of rules, by id, which replace the defaults."""
    limits: Limits = Field(default=Limits())
    """Limits of rules."""
    exceptions: tuple[PolicyException, ...] = ()
    """Accepted violations."""

    def in_ci(self, environment: Mapping[str, str]) -> Self:
        """Return the policy with the default of `limits.ci` for a process with this environment."""
        is_job = environment.get("CI") == "true" and "AAD_LOGIN_METHOD" not in environment
        if self.limits.ci is not None or not is_job:
            return self
        return self.model_copy(update={"limits": self.limits.model_copy(update={"ci": True})})


def loosened(earlier: Policy, policy: Policy, defaults: Mapping[str, Level]) -> Iterator[str]:
    """Yield a clause for each part of a policy that is looser than in an earlier one.

    Args:
        defaults: default levels of all rules, by id.
    """
    for rule, default in defaults.items():
        before, after = (item.levels.get(rule, default) for item in (earlier, policy))
        if after.strictness < before.strictness:
            yield f"{rule} is {after}, and was {before}"
    for name in Limits.model_fields:
        before, after = (cast("_Limit", getattr(item.limits, name)) for item in (earlier, policy))
        if _is_looser(name, before, after):
            key = to_camel(name)
            yield f"limits.{key} is {_written(after)}, and was {_written(before)}"
    for item in policy.exceptions:
        same = [
            known.until or date.max
            for known in earlier.exceptions
            if (known.rule, known.resource) == (item.rule, item.resource)
        ]
        until = item.until or date.max
        if until > max(same, default=date.min):
            was = f"was valid {_lasting(max(same))}" if same else "is new"
            about = f"an exception to {item.rule} for {item.resource} is valid {_lasting(until)}"
            yield f"{about}, and {was} (reason: {item.reason})"


def _lasting(until: date) -> str:
    return "without an end" if until == date.max else f"until {until}"


def _is_looser(name: str, before: _Limit, after: _Limit) -> bool:
    """Return whether a limit is looser: a higher number, more approved names, fewer ephemeral stacks."""
    if before is None or before is False or before == after:
        return False
    if isinstance(before, tuple) and isinstance(after, tuple):
        return not (set(before) <= set(after) if name == "ephemeral_stacks" else set(after) <= set(before))
    if isinstance(before, bool | tuple) or isinstance(after, bool | tuple | None):
        return True
    return after > before


def _written(limit: _Limit) -> str:
    if limit is None:
        return "not set"
    return f"[{', '.join(limit)}]" if isinstance(limit, tuple) else json.dumps(limit)


class PolicyError(DeclarationError):
    """An invalid policy, with all its faults.

    Attributes:
        source: the policy's position in a file; None if unknown.
    """

    source: object = None


def read_policy(written: object, rules: Collection[str]) -> Policy:
    """Parse a policy.

    Args:
        written: the object under `ebbtide:policy`.
        rules: ids of the existing rules.

    Raises:
        PolicyError: the policy is invalid; it has every fault.
    """
    faults: list[Fault] = list(_unknown_rules(written, rules))
    try:
        policy = Policy.model_validate(written)
    except ValidationError as error:
        whole = f"Write levels, limits and exceptions under {KEY}."
        faults += shape_faults(Policy, error, written, "The policy", whole)
    else:
        if not faults:
            return policy
    in_order = sorted(faults, key=lambda fault: position(fault.path, written))
    raise PolicyError(in_order, declared=written, subject="The policy")


def _unknown_rules(written: object, rules: Collection[str]) -> Iterator[Fault]:
    """Yield a fault for each unknown rule id, even in a policy with other faults."""
    fields = _mapping(written)
    levels, exceptions = fields.get("levels"), fields.get("exceptions")
    items = cast("list[object]", exceptions) if isinstance(exceptions, list) else []
    named: list[tuple[tuple[str | int, ...], object]] = [
        *((("levels", str(rule)), rule) for rule in _mapping(levels)),
        *((("exceptions", index, "rule"), _mapping(item).get("rule")) for index, item in enumerate(items)),
    ]
    for path, rule in named:
        if isinstance(rule, str) and rule and rule not in rules:
            near = get_close_matches(rule, rules, n=1)
            yield Fault(
                path_text(path),
                f"There is no rule {rule}{f'; did you mean {near[0]}?' if near else '.'}",
                "The key would have no effect.",
                f"Write {near[0]}." if near else "docs/policy.md has the ids of all rules.",
                rule="known-rule",
            )


def _mapping(value: object) -> Mapping[object, object]:
    return cast("Mapping[object, object]", value) if isinstance(value, Mapping) else {}
