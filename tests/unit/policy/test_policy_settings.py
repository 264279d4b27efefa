"""The declared policy."""

from collections.abc import Callable
from typing import Any

import pytest

from ebbtide.analysis.policy.check import policy_of
from ebbtide.analysis.policy.settings import PolicyError

_FAULTS: dict[str, tuple[Callable[[], object], list[str]]] = {
    "rules": (
        lambda: {"levels": {"idle-cots": "advisory", "lifetime": "must"}},
        [
            "levels.idle-cots: There is no rule idle-cots; did you mean idle-cost?",
            "levels.lifetime: lifetime cannot be must.",
        ],
    ),
    "exceptions": (
        lambda: {"exceptions": [{"rule": "lifetime", "resource": "a", "until": "soon"}, {"rule": "x"}]},
        [
            'exceptions[0].until: until cannot be the text "soon".',
            "exceptions[0].reason: reason is missing.",
            "exceptions[1].rule: There is no rule x.",
            "exceptions[1].resource: resource is missing.",
            "exceptions[1].reason: reason is missing.",
        ],
    ),
    "whole": (lambda: "mandatory", ['The policy is the text "mandatory"; expected a mapping.']),
}


@pytest.mark.parametrize(("written", "expected"), _FAULTS.values(), ids=_FAULTS)
def test_a_wrong_policy_is_refused(written: Callable[[], object], expected: list[str]) -> None:
    """With all faults, in the order of the file, each with its path."""
    with pytest.raises(PolicyError) as caught:
        policy_of(written())
    assert len(caught.value.faults) == len(expected)
    for fault, start in zip(caught.value.faults, expected, strict=True):
        assert str(fault).startswith(start)


@pytest.mark.parametrize(
    ("environment", "written", "ci"),
    [
        ({"CI": "true"}, {}, True),
        ({"CI": "true", "AAD_LOGIN_METHOD": "workloadidentity"}, {}, None),
        ({"CI": "true"}, {"limits": {"ci": False}}, False),
        ({}, {}, None),
        ({}, {"limits": {"ci": True}}, True),
    ],
)
def test_a_review_in_ci(*, environment: dict[str, str], written: dict[str, Any], ci: bool | None) -> None:
    """The login is checked in a job of CI that does not set it, unless the policy decides."""
    assert policy_of(written).in_ci(environment).limits.ci is ci
