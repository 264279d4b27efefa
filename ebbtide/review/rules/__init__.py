"""The registry of policy rules."""

from typing import Final

from ebbtide.review.rules import benchmarks, limits, pools, protection, versions
from ebbtide.review.rules.rule import STACK, Reviewed, Rule, Subject, Violation
from ebbtide.review.settings import Level

__all__ = ["BY_ID", "EXCEPTIONS", "RULES", "STACK", "Reviewed", "Rule", "Subject", "Violation"]

EXCEPTIONS: Final = Rule(
    id="current-exceptions",
    title="Exceptions have not expired, and each matches a violation.",
    level=Level.ADVISORY,
    reason="An exception that outlives its cause hides the next violation.",
    source="the policy's own list",
    check=lambda _: (),  # its violations depend on all other rules; `check` of policy.py yields them
)

RULES: Final = (
    *limits.RULES,
    *pools.RULES,
    *protection.RULES,
    *versions.RULES,
    EXCEPTIONS,
    *benchmarks.RULES,
)
"""All rules, in the order of the documentation."""

BY_ID: Final = {rule.id: rule for rule in RULES}
