"""Check of a stack's recorded resources against the policy rules."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

from ebbtide.analysis.charges import Charge, charges
from ebbtide.analysis.policy import pools, protection
from ebbtide.analysis.policy.rule import WHOLE, Reviewed, Rule, RuleFinding, Subject
from ebbtide.analysis.policy.settings import Level, Policy, PolicyException, loosened, read_policy
from ebbtide.analysis.reading.facts import ClusterFacts, RecordedPool
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.declaration.catalog.prices import Prices, replaced_prices
from ebbtide.text import and_list

EXCEPTIONS: Final = Rule(
    lambda _: (),  # its violations depend on all other rules; `check` yields them
    id="current-exceptions",
    title="Exceptions have not expired, and each matches a violation.",
    level=Level.ADVISORY,
    reason="An exception that outlives its cause hides the next violation.",
    source="the policy's own list",
)

LOOSENED: Final = Rule(
    lambda _: (),  # it is about two policies; `check` yields its violations
    id="policy-not-loosened",
    title="A change does not loosen the policy that it is reviewed by.",
    level=Level.ADVISORY,
    reason="Of the policies before and after a change of the stack, the stricter decides. Advisory, since a "
    "team may loosen its policy: first the policy alone, for which this rule is advisory at any level, then "
    "what it permits.",
    source="the policy of the earlier version, with `ebbtide review --against`",
)

RULES: Final = (
    *(rule for module in (pools, protection) for rule in vars(module).values() if isinstance(rule, Rule)),
    EXCEPTIONS,
    LOOSENED,
)
"""All rules, in the order of the documentation."""

BY_ID: Final = {rule.id: rule for rule in RULES}
_REFUSED: Final = 3
"""Strictness of findings of which one is refused."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The rules of a stack before the change under review.

    Attributes:
        own_prices: the prices of its `ebbtide:prices`; None for those around. A change that lowers a price
            thereby does not come within a limit.
        authors: authors of the commits since, in the project's directory.
        decides: False if the change under review is of the policy or the prices alone: as long as these are
            invalid for the unchanged stack, no change of them would be within the earlier ones.
        invalid: why its policy or its prices are invalid: the default policy, or the prices around, are used.
    """

    policy: Policy
    own_prices: Prices | None = None
    authors: tuple[str, ...] = ()
    decides: bool = True
    invalid: tuple[str, ...] = ()

    def prices(self) -> AbstractContextManager[None]:
        """Return a context with its prices."""
        return nullcontext() if self.own_prices is None else replaced_prices(self.own_prices)


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken rule.

    Attributes:
        level: its level in this stack; never `disabled`.
        subject: the violating object.
        message: violation with a suggested fix.
        exception: declared reason for an exception, with its last day; empty for none.
    """

    rule: Rule
    level: Level
    subject: Subject
    message: str
    exception: str = ""

    @property
    def is_refused(self) -> bool:
        """True if it fails the review."""
        return self.level is Level.MANDATORY and not self.exception


def policy_of(written: object) -> Policy:
    """Parse the object under `ebbtide:policy`; None is the default policy.

    Raises:
        PolicyError: the policy is invalid; it has every fault.
    """
    return Policy() if written is None else read_policy(written, BY_ID)


def policy_schema() -> dict[str, Any]:
    """Return the JSON Schema of the object under `ebbtide:policy`, for editors."""
    schema = Policy.model_json_schema(by_alias=True, mode="validation")
    ids = {"enum": list(BY_ID)}
    schema["properties"]["levels"]["propertyNames"] = ids
    schema["$defs"]["PolicyException"]["properties"]["rule"] |= ids
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def check(
    recording: Recording,
    clusters: Sequence[ClusterFacts],
    pools: Sequence[RecordedPool],
    cost: Sequence[Charge],
    settings: Policy,
    today: date | None = None,
    *,
    earlier: Earlier | None = None,
    deleted: Sequence[Resource] = (),
) -> tuple[Finding, ...]:
    """Check a stack against all rules.

    Args:
        cost: its charges.
        settings: levels, limits and exceptions.
        today: date to compare the exceptions with; by default the current date.
        earlier: the policy before the change under review, if any: of the two, the stricter finding counts.
        deleted: resources that the change under review deletes.

    Returns:
        The findings: refused, then advisory, then excepted ones, each in the order of the rules.
    """
    stack = Reviewed(
        recording=recording,
        clusters=clusters,
        pools=pools,
        charges=cost,
        limits=settings.limits,
        deleted=deleted,
    )
    day = today or date.today()  # noqa: DTZ011 - days of the policy have no time zone
    findings, used = _findings(stack, settings, day)
    decisive = [settings]
    if earlier is not None:
        charged = cost
        if earlier.own_prices is not None:
            with earlier.prices():
                charged = charges(recording, clusters, pools)
        was = replace(stack, limits=earlier.policy.limits, charges=charged, deleted=())
        before, _ = _findings(was, earlier.policy, day)
        loose = [*_invalid(earlier), *_loosened(earlier, settings)]
        if earlier.decides:
            decisive.append(earlier.policy)
            findings = [*_stricter(before, findings)]
        else:
            loose += _permitted(before, findings, _strictest(LOOSENED, earlier.policy, settings))
        findings += loose
    findings += _exceptions(settings, used, day, _strictest(EXCEPTIONS, *decisive))
    order = {rule.id: index for index, rule in enumerate(RULES)}
    return tuple(
        sorted(
            findings,
            key=lambda finding: (bool(finding.exception), not finding.is_refused, order[finding.rule.id]),
        )
    )


def _findings(stack: Reviewed, settings: Policy, day: date) -> tuple[list[Finding], list[PolicyException]]:
    """Return the findings of all rules, and the exceptions that excuse any."""
    current = [item for item in settings.exceptions if item.until is None or item.until >= day]
    used: set[int] = set()
    findings: list[Finding] = []
    for rule in RULES:
        level = settings.levels.get(rule.id, rule.level)
        for found in rule.check(stack) if level is not Level.DISABLED else ():
            exception = next((item for item in current if _excuses(item, rule, found)), None)
            if exception is not None:
                used.update(id(item) for item in current if _excuses(item, rule, found))
            own = Level.ADVISORY if found.is_undecided else level
            findings.append(Finding(rule, own, found.subject, found.message, str(exception or "")))
    return findings, [item for item in current if id(item) in used]


def _stricter(earlier: Iterable[Finding], findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield, for each rule and object, the findings of the policy that is stricter about them."""
    for before, after in _pairs(earlier, findings):
        if _strictness(before) <= _strictness(after):
            yield from after
        else:
            for finding in before:
                yield replace(
                    finding, message=f"{finding.message} The policy and prices before this change decide."
                )


def _permitted(earlier: Iterable[Finding], findings: Iterable[Finding], level: Level) -> Iterator[Finding]:
    """Yield a finding for each violation of the earlier policy that a change of it alone permits."""
    for before, after in _pairs(earlier, findings) if level is not Level.DISABLED else ():
        if _strictness(after) < _strictness(before) == _REFUSED:
            for finding in before:
                message = f"The change permits what fails {finding.rule.id} today: {finding.message}"
                yield Finding(LOOSENED, Level.ADVISORY, finding.subject, message)


def _pairs(
    earlier: Iterable[Finding], findings: Iterable[Finding]
) -> Iterator[tuple[list[Finding], list[Finding]]]:
    """Yield the findings of both policies for each rule and object."""
    before: dict[tuple[str, Subject], list[Finding]] = defaultdict(list)
    after: dict[tuple[str, Subject], list[Finding]] = defaultdict(list)
    for found, by in ((earlier, before), (findings, after)):
        for finding in found:
            by[finding.rule.id, finding.subject].append(finding)
    for key in dict.fromkeys((*after, *before)):
        yield before[key], after[key]


def _strictness(findings: Iterable[Finding]) -> int:
    return max((_REFUSED if item.is_refused else 1 if item.exception else 2 for item in findings), default=0)


def _invalid(earlier: Earlier) -> Iterator[Finding]:
    """Yield a finding for each part of the earlier rules that cannot be compared with, at any level."""
    for problem in earlier.invalid:
        message = f"{problem} What this change loosens there is unknown; the default decides in its place."
        yield Finding(LOOSENED, Level.ADVISORY, WHOLE, message)


def _loosened(earlier: Earlier, settings: Policy) -> Iterator[Finding]:
    """Yield a finding for each part of the policy that a change loosens, at the stricter level of the two;
    for a change of the policy alone, an advisory one."""
    level = _strictest(LOOSENED, earlier.policy, settings)
    if level is Level.DISABLED:
        return
    consented = tuple(item for item in settings.exceptions if not BY_ID[item.rule].is_of_change)
    permanent = settings.model_copy(update={"exceptions": consented})
    author = f" by {and_list(earlier.authors)}" if earlier.authors else ""
    advice = "Review it by itself, before what it permits."
    if not earlier.decides:
        level, advice = Level.ADVISORY, "Nothing else changes: who approves it, approves this."
    for part in loosened(earlier.policy, permanent, {rule.id: rule.level for rule in RULES}):
        yield Finding(LOOSENED, level, WHOLE, f"The change{author} loosens the policy: {part}. {advice}")


def _strictest(rule: Rule, *policies: Policy) -> Level:
    levels = (policy.levels.get(rule.id, rule.level) for policy in policies)
    return max(levels, key=lambda level: level.strictness)


def _excuses(exception: PolicyException, rule: Rule, finding: RuleFinding) -> bool:
    return exception.rule == rule.id and exception.resource in finding.subject.names


def _exceptions(
    settings: Policy, used: Sequence[PolicyException], day: date, level: Level
) -> Iterator[Finding]:
    """Yield findings for expired and unused exceptions."""
    if level is Level.DISABLED:
        return
    for exception in settings.exceptions:
        subject = Subject("", exception.resource)
        if exception.until is not None and exception.until < day:
            message = f"The exception to {exception.rule} expired on {exception.until}. Fix its cause."
        elif not any(exception is item for item in used):
            message = f"The exception to {exception.rule} matches no violation. Remove it."
        else:
            continue
        yield Finding(EXCEPTIONS, level, subject, message)
