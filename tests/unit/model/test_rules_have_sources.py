"""The rules as data: each named once, with a source, and broken by a case."""

import re
from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.names import syntaxes
from ebbtide.declaration.model.rules.registry import RULES
from ebbtide.declaration.model.rules.rule import ClusterRule, PoolRule, Severity, pools_of
from tests.unit.model.cases import Case, bad_cases, cases

Rule = PoolRule | ClusterRule

_DATED_OR_NUMBERED = re.compile(r"20\d\d|#\d+|\.csv|\d+\.\d+\.\d+|@[0-9a-f]{7,}|facts\.md [ABC]\.\d+")


def _broken(rule: Rule, cluster: Cluster) -> Iterator[Fault]:
    """Return a rule's faults of a declaration."""
    if rule.cloud in (None, cluster.site.cloud):
        if isinstance(rule, ClusterRule):
            yield from rule.check(cluster)
        else:
            for pool in pools_of(cluster):
                yield from rule.check(pool)


def _read(written: Any) -> Cluster | None:
    try:
        return Cluster.model_validate(written)
    except ValidationError:
        return None


def _names(severity: Severity) -> set[str]:
    return {rule.name for rule in RULES if rule.severity is severity}


def _broken_by(declarations: list[Case], severity: Severity) -> set[str]:
    """Names of the rules of a severity that some declarations break."""
    clusters = [cluster for case in declarations if (cluster := _read(case.written))]
    if severity is Severity.WARNED:
        clusters = [cluster.resolved() for cluster in clusters]
    return {
        rule.name
        for rule in RULES
        if rule.severity is severity and any(any(_broken(rule, cluster)) for cluster in clusters)
    }


def test_sources_can_be_found() -> None:
    """A rule's source bears a date, a version, a commit, an issue or the name of a data file."""
    assert [rule.name for rule in RULES if not _DATED_OR_NUMBERED.search(rule.source)] == []


def test_examples_are_valid() -> None:
    """Each example of a string, which messages suggest, is accepted."""
    examples = [(row.pattern, example) for row in syntaxes() for example in row.example.split(" or ")]
    assert [pair for pair in examples if not re.fullmatch(*pair)] == []


def test_names_are_unique() -> None:
    """No two rules have one name."""
    names = [rule.name for rule in RULES]
    assert len(names) == len(set(names))


def test_every_rule_refuses_something() -> None:
    """Every rule that refuses is broken by at least one bad declaration."""
    assert _broken_by(bad_cases(), Severity.REFUSED) == _names(Severity.REFUSED)


def test_every_rule_warns_of_something() -> None:
    """Every rule that warns is broken by at least one of the declarations that are worth a warning, but that
    of the current date (test_bad_declarations)."""
    dated = {"Kubernetes version before its end of life"}
    assert _broken_by(cases("warned"), Severity.WARNED) == _names(Severity.WARNED) - dated


def test_no_rule_refuses_what_is_good() -> None:
    """No rule that refuses is broken by a good declaration, as it is written or complete."""
    written = [Cluster.model_validate(case.written) for case in (*cases("good"), *cases("warned"))]
    whole = [cluster.resolved() for cluster in written]
    refusing = [rule for rule in RULES if rule.severity is Severity.REFUSED]
    faults = [
        fault for cluster in (*written, *whole) for rule in refusing for fault in _broken(rule, cluster)
    ]
    assert faults == []
