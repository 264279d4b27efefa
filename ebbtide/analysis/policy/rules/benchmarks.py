"""Rules from the table of benchmark items, one for each item that a recorded property decides."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from ebbtide.analysis.policy.benchmarks import BENCHMARKS, Item
from ebbtide.analysis.policy.expectations import RequiredProperty
from ebbtide.analysis.policy.rules.rule import Reviewed, Rule, Violation
from ebbtide.analysis.policy.settings import Level
from ebbtide.analysis.recording.values import UNKNOWN, at, masked, revealed
from ebbtide.declaration.catalog import CloudKind

_COVERED: Final = {"CIS GKE Benchmark 1.9.0": {"5.6.3", "5.6.5"}, "CIS AKS Benchmark 1.8.0": {"5.4.3"}}
"""Items covered by rules in protection.py, which check more fields than the benchmark."""

_JOB: Final = "Job"
"""Jobs are created by `ebbtide job`, not by a stack."""

_REASON: Final = (
    "An item of a security benchmark that a new cluster satisfies. Advisory, since an organization decides "
    "which items it adopts."
)


def _check(stack: Reviewed, cloud: CloudKind, property_: RequiredProperty) -> Iterator[Violation]:
    if cloud not in stack.clouds:
        return
    for resource in stack.created(property_.type):
        if property_.exempts(resource.inputs):
            continue
        value = at(dict(resource.inputs), property_.path)
        if value is UNKNOWN or property_.expected.holds(revealed(value)):
            continue
        message = f"{property_.path} is {_text(masked(value))}; expected: {property_.expected.text}."
        yield Violation(stack.subject(resource), message)


def _text(value: object) -> str:
    if value is None:
        return "not set"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= _LONGEST else "another value"


_LONGEST: Final = 40


def _rule(benchmark: str, item: Item, property_: RequiredProperty) -> Rule:
    family, cloud, *_ = benchmark.lower().split()
    return Rule(
        id=f"{family}-{cloud}-{item.number}",
        title=f"{item.subject[0].upper()}{item.subject[1:]}.",
        level=Level.ADVISORY,
        reason=_REASON,
        source=f"{benchmark}, {item.number}",
        check=partial(_check, cloud=CloudKind(cloud), property_=property_),
    )


RULES: Final = tuple(
    _rule(benchmark, item, item.default)
    for benchmark, items in BENCHMARKS.items()
    for item in items
    if item.default and item.default.type != _JOB and item.number not in _COVERED[benchmark]
)
