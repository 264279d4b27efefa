"""Bad declarations, each an edit of a good one, and all of their faults, word for word."""

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from ebbtide.declaration.catalog.prices import find_price
from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import advice, check_pool, declare
from ebbtide.declaration.model.faults import DeclarationError, Fault
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.rules import cluster as cluster_rules
from ebbtide.declaration.model.rules import machines as machine_rules
from ebbtide.declaration.model.rules.registry import RULES
from ebbtide.declaration.model.shape.findings import shape_faults
from ebbtide.declaration.model.site import CloudKind, Site
from ebbtide.declaration.project.diagnostics import OTHER_RULES
from ebbtide.values import clock
from tests.unit.model.cases import Case, bad_cases, base, cases, edited, paths, put

_BAD, _WARNED = bad_cases(), cases("warned")
_RULES = {rule.id for rule in RULES} | set(OTHER_RULES)
_JARGON = re.compile(
    r"Input should|Extra inputs|value_error|Field required|validation|valid (dictionary|tuple|string|integer)"
)


def _faults(written: Any) -> tuple[Fault, ...]:
    with pytest.raises(DeclarationError) as refused:
        declare(written)
    return refused.value.faults


def _priced(written: Any, expected: Fault, fault: Fault) -> Fault:
    """The expected fault with the machine type that is cheapest in the catalog of today, and its price."""
    named = re.search(r"machine: (\S+), the cheapest .* at \$(\S+) an hour", fault.fix)
    if named is None:
        return expected
    site = Site(CloudKind(written["cloud"]["kind"]), written["cloud"]["location"])
    price = find_price(site.cloud, site.region, named[1])
    assert price is not None
    assert f"{price.on_demand:.3f}" == named[2]
    fix = expected.fix.replace("{machine}", named[1]).replace("{price}", named[2])
    return replace(expected, fix=fix)


@pytest.mark.parametrize("case", _BAD, ids=str)
def test_every_fault_is_reported(case: Case) -> None:
    """A bad declaration is refused with all of its faults, each with path, problem, consequence, fix and the
    id of a documented rule."""
    faults = _faults(case.written)
    assert len(faults) == len(case.faults)
    assert faults == tuple(map(partial(_priced, case.written), case.faults, faults))
    assert {fault.rule for fault in faults} <= _RULES


def test_rule_ids() -> None:
    """Rule ids are unique kebab-case phrases without relative clauses."""
    ids = [*(rule.id for rule in RULES), *OTHER_RULES]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule_id) for rule_id in ids)
    assert not [rule_id for rule_id in ids if re.search(r"\b(that|which|whom|there|alone|ours?)\b", rule_id)]
    assert "gvnic-required-by-machine-series" in ids


@pytest.mark.parametrize("case", _WARNED, ids=str)
def test_every_warning_is_reported(case: Case) -> None:
    """A valid declaration with a warning is accepted, and the warning is complete."""
    assert advice(declare(case.written)) == case.faults


def test_a_reservation_is_requested_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A begin nearer than its lead time is warned of: the stack may have requested it."""
    capacity = {"kind": "reservation", "from": "2026-12-01T08:00Z", "until": "2026-12-08T08:00Z"}
    changes = {
        "machine": "a3-megagpu-8g",
        "zones": ["us-central1-a"],
        "nodes": {"max": 2},
        "capacity": capacity,
    }
    written = edited(base("gke"), {f"pools[1].{key}": value for key, value in changes.items()}, [])
    for hour, fix in ((17, ""), (18, "Write from: 2026-12-01T09:00Z or later in a new pool")):
        monkeypatch.setattr(clock, "now", partial(datetime, 2026, 11, 27, hour, tzinfo=UTC))
        faults = [fault for fault in advice(declare(written)) if fault.path == "pools[1].capacity.from"]
        assert [fault.fix.partition(",")[0] for fault in faults] == [fix] * bool(fix)


def test_a_version_of_kubernetes_ends_by_its_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version of AKS is accepted until its last day, then warned of with those that remain, since a running
    cluster may have it; a table of which all have ended warns of none."""

    def fixes(version: str, tier: str, day: date) -> list[str]:
        monkeypatch.setattr(cluster_rules, "today", lambda: day)
        changes = {"kubernetesVersion": version, "upgradeChannel": "none", "tier": tier}
        written = edited(base("aks"), {f"cloud.{key}": value for key, value in changes.items()}, [])
        faults = [fault for fault in advice(declare(written)) if fault.path == "cloud.kubernetesVersion"]
        assert all(fault.consequence.startswith("It ended on ") for fault in faults)
        return [fault.fix for fault in faults]

    ends = [
        (row["versions"], plan, date.fromisoformat(row["until"]))
        for row in rows("kubernetes_versions")
        for plan in row["plans"].split()
        if row["until"]
    ]
    assert len(ends) == len({(version, plan) for version, plan, _ in ends})
    for version, plan, last in ends:
        assert fixes(version, plan, last) == []
        later = [other for other, of, end in ends if of == plan and end > last]
        warned = fixes(version, plan, last + timedelta(days=1))
        assert len(warned) == bool(later), (version, plan)
        assert all(fix.startswith(f"Write version {later[0]} or later, such as ") for fix in warned)
    assert fixes("1.34", "free", date(2026, 12, 1)) == [
        "Write version 1.35 or later, such as 1.36, or omit it; tier: premium has 1.32 to 1.37."
    ]


def test_a_retirement_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine type whose retirement has passed since the table was written is warned of as passed, not
    refused: clouds move such dates."""
    written = edited(base("aks"), {"pools[1].machine": "Standard_F8s_v2"}, [])
    told: list[tuple[str, str]] = []
    for day in (date(2028, 11, 15), date(2028, 11, 16)):
        monkeypatch.setattr(machine_rules, "today", lambda day=day: day)
        (fault,) = (item for item in advice(declare(written)) if item.path == "pools[1].machine")
        told.append((fault.problem, fault.consequence.partition(",")[0]))
    assert told == [
        ("Standard_F8s_v2 will be retired on 2028-11-15.", "Its nodes are stopped that day"),
        ("Standard_F8s_v2 was to be retired on 2028-11-15.", "Unless that date has been moved"),
    ]


def test_case_names_are_unique() -> None:
    """Every case has a name of its own."""
    names = [case.name for case in (*_BAD, *_WARNED)]
    assert len(names) == len(set(names))


def test_faults_are_sentences() -> None:
    """Problem, consequence and fix are sentences, without a word of pydantic's and without a gap."""
    faults = [fault for case in (*_BAD, *_WARNED) for fault in case.faults]
    texts = [text for fault in faults for text in (fault.problem, fault.consequence, fault.fix)]
    assert [text for text in texts if not re.fullmatch(r"\S.*[.?]", text) or "  " in text] == []
    assert list(filter(_JARGON.search, texts)) == []


def test_the_error_says_everything() -> None:
    """The error's text has a line for each fault, with its path."""
    with pytest.raises(DeclarationError) as refused:
        declare(edited(base("gke"), {"owner": "Vision", "pools[1].nodes": {"min": 5, "max": 3}}, []))
    assert str(refused.value) == (
        "owner: Vision is not a valid Google Cloud label value. The billing label of the owner could not be "
        "set. Write at most 63 lower-case letters, digits, underscores and hyphens, such as vision-team.\n"
        "pools[1].nodes.min: min 5 is above max 3. The node pool could not be created. "
        "Write min: 3 or less, or max: 5 or more."
    )


def test_a_pool_alone_is_checked() -> None:
    """A pool used without a declaration is refused with paths that begin at the pool."""
    pool = Pool.model_validate({"name": "system", "role": "system", "nodes": {"min": 0, "max": 3}})
    with pytest.raises(DeclarationError) as refused:
        check_pool(pool, Site(CloudKind.GKE, "us-central1-a"))
    assert [fault.path for fault in refused.value.faults] == ["machine", "nodes.min"]


def test_a_name_that_was_made_up_is_checked() -> None:
    """The name that a stack gives a cluster without one is held against the same rules."""
    written = base("gke")
    del written["name"]
    with pytest.raises(DeclarationError) as refused:
        declare(written, default_name="My_Project-dev")
    assert str(refused.value) == (
        "name: My_Project-dev is not a valid GKE cluster name. No cluster can have that name. Write at most "
        "40 lower-case letters, digits and hyphens, starting with a letter and not ending with a hyphen, "
        "such as train-dev."
    )


_JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 99)
    | st.floats()
    | st.text(max_size=4)
    | st.sampled_from(["spot", "gke"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["kind", "name", "min", "max", "type", "pools", "7", "x.y"]), inner, max_size=3
        )
    ),
    max_leaves=4,
)


@pytest.mark.parametrize("cloud", ["gke", "aks"])
@pytest.mark.parametrize("junk", [None, 3.5, [3], ...], ids=["nothing", "number", "list", "left-out"])
def test_one_broken_value_is_one_fault(cloud: str, junk: Any) -> None:
    """An unreadable value causes no second fault in what depends on it, wherever it stands."""
    good = base(cloud)
    for keys in paths(good):
        written = put(good, keys, junk)
        if (shape := _shape_faults(written)) is not None:
            assert {fault.path for fault in _faults(written)} == {fault.path for fault in shape}


def _shape_faults(written: Any) -> tuple[Fault, ...] | None:
    try:
        Cluster.model_validate(written)
    except ValidationError as error:
        return shape_faults(Cluster, error, written)
    return None


def _outcome(written: Any) -> str:
    try:
        declare(written)
    except DeclarationError as refused:
        return str(refused)
    return "accepted"


@settings(deadline=None)
@given(
    cloud=st.sampled_from(["gke", "aks"]),
    junk=st.lists(st.tuples(st.integers(0, 200), _JUNK | st.just(...)), min_size=1, max_size=4),
)
def test_no_junk_gets_through(cloud: str, junk: list[tuple[int, Any]]) -> None:
    """A declaration with any junk value is accepted or refused with messages, and not changed."""
    written = base(cloud)
    for number, value in junk:
        everywhere = paths(written)
        written = put(written, everywhere[number % len(everywhere)], value)
    before = repr(written)
    assert not _JARGON.search(_outcome(written))
    assert repr(written) == before
