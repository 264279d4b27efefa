"""The registry of policy rules."""

from typing import Final

from ebbtide.policy.rules import benchmarks, limits, pools, protection, versions
from ebbtide.policy.rules.rule import STACK, Reviewed, Rule, Subject, Violation
from ebbtide.policy.settings import Level

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
    *(
        rule
        for module in (limits, pools, protection, versions)
        for rule in vars(module).values()
        if isinstance(rule, Rule)
    ),
    EXCEPTIONS,
    *benchmarks.RULES,
)
"""All rules, in the order of the documentation."""

BY_ID: Final = {rule.id: rule for rule in RULES}
