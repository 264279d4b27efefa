"""Extension of a lifetime: from the expiry on, or from now on."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ebbtide.analysis.policy.settings import Level, Limits, Policy
from ebbtide.operations.extend import check_policy, extension
from ebbtide.operations.failures import OperationError
from tests.unit.operations.objects import STATE

_FIRST_UP = datetime(2026, 11, 22, 12, 7, tzinfo=UTC)
_STATE = replace(STATE, first_up=_FIRST_UP)
_DECLARED = {"lifetime": {"hours": 8}}


@pytest.mark.parametrize(
    ("now", "more", "hours"),
    [
        (1, 4, 12),  # it has not expired: from the expiry on
        (8, 4, 12),
        (9.5, 4, 14),  # from now on, and rounded up to whole hours of lifetime
        (100, 1, 101),
    ],
)
def test_hours_are_added(now: float, more: int, hours: int) -> None:
    """To the expiry, or to now if that is later."""
    extended = extension("dev", _DECLARED, _STATE, more, _FIRST_UP + timedelta(hours=now))
    assert extended.hours == hours
    assert extended.before == _FIRST_UP + timedelta(hours=8)
    assert extended.after == _FIRST_UP + timedelta(hours=hours)


@pytest.mark.parametrize(
    ("declared", "state", "message"),
    [
        ({}, _STATE, "Stack dev has no lifetime: its cluster is permanent"),
        ({"lifetime": None}, _STATE, "Stack dev has no lifetime"),
        (_DECLARED, STATE, "Stack dev has no cluster that expires yet"),
    ],
)
def test_nothing_to_extend(declared: Any, state: Any, message: str) -> None:
    """A permanent cluster, and one that is not there yet."""
    with pytest.raises(OperationError, match=message):
        extension("dev", declared, state, 4, _FIRST_UP)


def test_a_policy_limits_lifetimes() -> None:
    """A lifetime above the policy's limit is refused only at the level mandatory."""
    limited = Policy(limits=Limits(lifetime_hours=24))
    check_policy("dev", limited, 24)
    check_policy("dev", Policy(), 1000)
    check_policy("dev", limited.model_copy(update={"levels": {"longest-lifetime": Level.ADVISORY}}), 25)
    with pytest.raises(OperationError, match="limits the lifetime to 24 hours"):
        check_policy("dev", limited, 25)
