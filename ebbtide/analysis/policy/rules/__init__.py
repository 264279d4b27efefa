"""The registry of policy rules."""

from typing import Final

from ebbtide.analysis.policy.rules import benchmarks, limits, pools, protection, versions
from ebbtide.analysis.policy.rules.rule import STACK, WHOLE, Reviewed, Rule, Subject, Violation
from ebbtide.analysis.policy.settings import Level

__all__ = [
    "BY_ID",
    "EXCEPTIONS",
    "LOOSENED",
    "RULES",
    "STACK",
    "WHOLE",
    "Reviewed",
    "Rule",
    "Subject",
    "Violation",
]

EXCEPTIONS: Final = Rule(
    id="current-exceptions",
    title="Exceptions have not expired, and each matches a violation.",
    level=Level.ADVISORY,
    reason="An exception that outlives its cause hides the next violation.",
    source="the policy's own list",
    check=lambda _: (),  # its violations depend on all other rules; `check` of policy.py yields them
)

LOOSENED: Final = Rule(
    id="policy-not-loosened",
    title="A change does not loosen the policy that it is reviewed by.",
    level=Level.ADVISORY,
    reason="Of the policies before and after a change, the stricter decides. Advisory, since a team may "
    "loosen its policy: first the policy alone, then what it permits.",
    source="the policy of the earlier version, with `ebbtide review --against`",
    check=lambda _: (),  # it is about two policies; `check` of policy.py yields its violations
)

RULES: Final = (
    *(
        rule
        for module in (limits, pools, protection, versions)
        for rule in vars(module).values()
        if isinstance(rule, Rule)
    ),
    EXCEPTIONS,
    LOOSENED,
    *benchmarks.RULES,
)
"""All rules, in the order of the documentation."""

BY_ID: Final = {rule.id: rule for rule in RULES}
