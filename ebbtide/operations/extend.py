"""Extension of a stack's lifetime.

The expiry follows from the first `up` and the declared hours, so only the hours are changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, cast

from ebbtide.analysis.policy.rules.pools import LONGEST_LIFETIME
from ebbtide.analysis.policy.settings import Level, Policy
from ebbtide.clients.kubernetes.objects import part
from ebbtide.operations.engine.failures import OperationError
from ebbtide.operations.engine.state import State

PATH: Final = "ebbtide:cluster.lifetime.hours"
"""Path of the lifetime in the stack's configuration."""


@dataclass(frozen=True, slots=True)
class Extension:
    """A later expiry.

    Attributes:
        before: time of expiry of the deployed stack.
        after: time of expiry with the extended lifetime.
        hours: the extended lifetime.
    """

    before: datetime
    after: datetime
    hours: int


def extension(name: str, declaration: Any, state: State, more: int, now: datetime) -> Extension:
    """Return the extension of a stack's lifetime, from its expiry or, if it has expired, from now.

    The expiry is the deployed one, and the earlier one if an update was interrupted before all labels had
    the new one: the same command then completes it, and adds nothing twice.

    Args:
        more: hours to add.

    Raises:
        OperationError: the cluster is permanent, or does not exist yet.
    """
    hours = _hours(declaration)
    if hours is None:
        raise OperationError(
            f"Stack {name} has no lifetime: its cluster is permanent, and there is nothing to extend. "
            "Declare `lifetime: {hours: 8}`, for example, for one that expires."
        )
    if state.first_up is None:
        raise OperationError(
            f"Stack {name} has no cluster that expires yet: its lifetime begins with the first `pulumi up`. "
            f"To have more than {hours} hours from then on, change `lifetime` in its file."
        )
    deployed = min(filter(None, (state.expires, state.labelled)), default=None)
    before = deployed or state.first_up + timedelta(hours=hours)
    expires = max(before, now) + timedelta(hours=more)
    extended = max(hours, -(-(expires - state.first_up) // timedelta(hours=1)))
    return Extension(before, state.first_up + timedelta(hours=extended), extended)


def _hours(declaration: Any) -> int | None:
    hours = part(cast("Mapping[str, Any]", declaration), "lifetime").get("hours")
    return hours if isinstance(hours, int) else None


def check_policy(name: str, policy: Policy, hours: int) -> None:
    """Check a lifetime against the limit of the stack's policy.

    Raises:
        OperationError: the lifetime is longer than the limit, and the rule is mandatory.
    """
    limit = policy.limits.lifetime_hours
    level = policy.levels.get(LONGEST_LIFETIME, Level.MANDATORY)
    if limit is not None and hours > limit and level is Level.MANDATORY:
        raise OperationError(
            f"The policy of stack {name} limits the lifetime to {limit} hours (limits.lifetimeHours), and it "
            f"would be {hours}. Ask for fewer hours, or raise the limit."
        )
