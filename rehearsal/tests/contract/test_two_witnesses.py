"""The rules and the fake clouds are two witnesses: what a rule refuses because the cloud would refuse it, the
fake cloud refuses as well, or `unwitnessed.yaml` has the reason why not.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from _pytest.mark import ParameterSet
from pydantic import ValidationError

from ebbtide.analysis.recording.failures import ProgramError
from ebbtide.declaration.model import Cluster
from ebbtide.declaration.model.rules import Severity, cluster_faults
from rehearsal.tests.fake_clouds import refusals
from tests.synth import synth
from tests.unit.model.cases import Case, bad_cases

_REFUSAL = ("could not be created", "pool could be created", "can have that name", "refuses", "would fail")
"""Words of a consequence that speak of the cloud's refusal."""
_REASONS: dict[str, list[str]] = yaml.safe_load(
    (Path(__file__).parent / "unwitnessed.yaml").read_text(encoding="utf-8")
)
_UNWITNESSED = {name for names in _REASONS.values() for name in names}


def _claims(case: Case) -> frozenset[str]:
    """Return the rules that a case breaks and whose consequence is the cloud's refusal."""
    try:
        cluster = Cluster.model_validate(case.written)
    except ValidationError:
        return frozenset()
    faults = cluster_faults(cluster, Severity.REFUSED)
    return frozenset(fault.rule for fault in faults if any(words in fault.consequence for words in _REFUSAL))


CASES = [(case, claims) for case in bad_cases() if (claims := _claims(case))]
_LONG = (pytest.mark.rehearsal, pytest.mark.long)


def _params() -> Iterator[ParameterSet]:
    """Yield the cases: the first of each rule runs always."""
    known: set[str] = set()
    for case, rules in CASES:
        yield pytest.param(case, id=str(case), marks=_LONG if rules <= known else ())
        known |= rules


@pytest.fixture
def _without_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accept every declaration."""
    module = sys.modules["ebbtide.declaration.model.declare"]
    for name in ("cluster_faults", "pool_faults"):
        monkeypatch.setattr(module, name, _no_faults)


def _no_faults(*_: Any) -> Iterator[Any]:
    return iter(())


@pytest.mark.usefixtures("_without_rules")
@pytest.mark.parametrize("case", list(_params()))
def test_the_fake_cloud_refuses_what_a_rule_refuses(case: Case) -> None:
    """Without the rules, the program's resources are put to the fake cloud."""
    try:
        refused = bool(refusals(synth(case.written), case.written))
    except (ProgramError, IndexError):
        refused = False
    assert refused == (case.name not in _UNWITNESSED)


def test_every_reason_is_about_a_refused_declaration() -> None:
    """None is listed twice, or has gone."""
    listed = [name for names in _REASONS.values() for name in names]
    assert sorted(listed) == sorted(_UNWITNESSED)
    assert {case.name for case, _ in CASES} >= _UNWITNESSED
