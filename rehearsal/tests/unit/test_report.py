"""The report of a rehearsal: costs over time, as text and as a page."""

import io
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from ebbtide.analysis.charges import cloud_nat
from ebbtide.analysis.recording.recording import Recording
from ebbtide.autoscaler.scale_down import UNNEEDED
from ebbtide_rehearsal.cloud.store import Clock, Event
from ebbtide_rehearsal.report import page
from ebbtide_rehearsal.report.document import (
    EventReport,
    JobsReport,
    MoneyReport,
    Rates,
    Report,
    StepReport,
    ledger,
    minutes_to_zero,
    pools,
    rates,
)
from ebbtide_rehearsal.report.page import narration, zero_words
from ebbtide_rehearsal.scenarios.model import Scenario
from ebbtide_rehearsal.scenarios.runner import Finished, Started, Worked, play
from ebbtide_rehearsal.stage import Stage
from tests.declarations import GKE as GKE_DECLARED
from tests.declarations import only
from tests.html_pages import NAMESPACES, parsed
from tests.repository import ROOT
from tests.synth import synth, synth_stack
from tests.unit.policy.stacks_in_memory import GKE, GKE_POOL, resource

_HOUR = 3600.0


def _event(at: float, kind: str, **facts: Any) -> Event:
    return Event(0, at, kind, f"{kind} {facts.get('node', '')}", facts)


_TIMELINE = [
    _event(0, "cluster-created", id="c"),
    _event(_HOUR, "node-added", node="a", pool="spot", hourly=2.0),
    _event(2 * _HOUR, "node-added", node="b", pool="spot", hourly=2.0),
    _event(2.5 * _HOUR, "node-reclaimed", node="a", pool="spot"),
    _event(3 * _HOUR, "node-removed", node="a", pool="spot"),
    _event(4 * _HOUR, "node-removed", node="b", pool="spot"),
    _event(5 * _HOUR, "cluster-deleted", id="c"),
]
_RATES = Rates({"control plane": lambda _: 0.1, "Cloud NAT": lambda nodes: 0.01 * nodes})


def test_a_reservation_is_billed_in_its_period() -> None:
    """A request in calendar mode costs its machines from begin to end, used or not."""
    period = {"from": "2026-12-01T08:00Z", "until": "2026-12-08T08:00Z"}
    declaration = only(GKE_DECLARED, machine="a3-megagpu-8g", capacity={"kind": "reservation", **period})
    other = rates(synth(declaration))
    ((item, hourly, begin, end),) = other.periods
    assert hourly > 1
    created = _event(0, "cluster-created", id="c")
    started = other.on(lambda time: time - (begin - 10 * _HOUR))
    for hours, billed in ((9, 0), (11, 1), (10 + 24 * 7 + 5, 24 * 7)):
        now = hours * _HOUR
        costs = ledger([created], now, started)
        assert costs.others[item] == pytest.approx(hourly * billed)
    assert end - begin == 24 * 7 * _HOUR


def _report(**more: Any) -> Report:
    costs = ledger(_TIMELINE, 6 * _HOUR, _RATES)
    facts: dict[str, Any] = {
        "title": "Nodes come & go",
        "stack": "dev",
        "speed": 120,
        "steps": (StepReport(title="pulumi up", at=0, seconds=61, misses=()),),
        "events": tuple(
            EventReport(at=e.at, kind=e.kind, text=e.text, facts=dict(e.facts)) for e in _TIMELINE
        ),
        "jobs": (JobsReport(at=_HOUR / 2, waiting=3, running=0, ended=0),),
        "minutes_to_zero": {"spot": 10.5},
        "cost": dict(costs.pools),
        "other_costs": dict(costs.others),
        "total_cost": costs.total[-1][1],
        "without_price": (),
        "estimated": (),
        "money": tuple(MoneyReport(at=at, usd=usd, hourly=hourly) for at, usd, hourly in costs.total),
        "seconds": 61,
        "memory_mib": 700,
    }
    return Report(**{**facts, **more})


def test_minutes_to_zero_are_counted_from_the_last_job() -> None:
    """Minutes to zero count pools that the autoscaler emptied, not pools that were deleted or used again."""
    jobs = (
        JobsReport(at=60, waiting=0, running=1, ended=1),
        JobsReport(at=120, waiting=0, running=0, ended=2),
    )
    idle = f"{UNNEEDED} 10 min"
    events = [
        *(
            _event(at, "node-added", node=node, pool=pool)
            for at, (node, pool) in enumerate(("ac", "bc", "dg", "eh"))
        ),
        _event(100, "node-removed", node="a", pool="c", why=idle),
        _event(750, "node-removed", node="b", pool="c", why=idle),
        _event(760, "node-removed", node="d", pool="g", why=idle),
        _event(800, "node-added", node="f", pool="g"),
        _event(900, "node-removed", node="e", pool="h", why="its pool was deleted"),
    ]
    assert minutes_to_zero(events, jobs) == {"c": 10.5}
    assert minutes_to_zero(events, jobs[:1]) == {}
    assert zero_words(_report(minutes_to_zero={"c": 10.5, "a": 2})) == "a 2.0, c 10.5"


def test_minutes_to_zero_are_on_every_report_with_jobs() -> None:
    """In the terminal and on the page, whose tile has the slowest pool; without a number, the reason."""
    for minutes, value, note in (
        ({"spot": 10.5, "gpu": 11.25}, "11.2 min", "gpu 11.2, spot 10.5"),
        ({}, "?", "not measured: work remained"),
    ):
        report, out = _report(minutes_to_zero=minutes), io.StringIO()
        page.write(report, Console(file=out, width=100))
        assert note in out.getvalue().partition("Minutes from the last Job to no node")[2]
        text = page.render(report)
        tile = text.partition("Last Job to no node")[2].partition("</div>")[0]
        assert f">{value}<" in tile
        assert note in tile


def test_costs_of_a_timeline_by_hand() -> None:
    """Nodes cost while they exist, other charges while the cluster does; afterwards nothing does."""
    costs = ledger(_TIMELINE, 6 * _HOUR, _RATES)
    assert costs.pools == {"spot": pytest.approx(2 * 2 + 2 * 2)}
    assert costs.others == {"control plane": pytest.approx(0.5), "Cloud NAT": pytest.approx(0.04)}
    assert costs.total[-1] == (6 * _HOUR, pytest.approx(8.54), 0)
    assert costs.total[2] == (2 * _HOUR, pytest.approx(0.1 * 2 + 0.01 + 2), pytest.approx(4.12))


def test_only_waiting_takes_simulated_time() -> None:
    """A step that works, such as `pulumi up`, counts with this machine's seconds everywhere."""
    wall = [0.0]

    def passing(seconds: float) -> None:
        wall[0] += seconds

    def injected(_: object) -> int:
        passing(60)
        return 1

    def removed(_: int) -> None:
        passing(30)
        events.append(_event(clock.now(), "node-removed", node="a", pool="spot"))

    clock = Clock(0, speed=60, wall=lambda: wall[0])
    events = [
        _event(0, "cluster-created", id="c"),
        _event(60 * 60, "node-added", node="a", pool="spot", hourly=6.0),
    ]
    store = SimpleNamespace(clock=clock, events=lambda: events, inject=injected, remove_fault=removed)
    stage = SimpleNamespace(store=store, engine=SimpleNamespace(name="dev"), watch=passing, memory=lambda: 0)
    scenario = Scenario.model_validate(
        {
            "title": "A fault comes and goes",
            "steps": [
                {"do": "fault", "name": "out", "kind": "no-stock", "target": "spot"},
                {"do": "pause", "seconds": 10},
                {"do": "lift", "fault": "out"},
            ],
        }
    )
    report = play(scenario, cast("Stage", stage), Path(), lambda _: None)
    assert [step.at for step in report.steps] == [0, 60, 660]
    assert [event.at for event in report.events] == [0, 60, 690]
    assert report.money[-1].at == 690
    assert report.cost == {"spot": pytest.approx(6.0 * 630 / 3600)}
    removal = report.events[-1]
    assert removal.text == "node-removed a It cost $1.050 in 10 min."
    assert (removal.facts["seconds"], removal.facts["cost"]) == (630, pytest.approx(report.cost["spot"]))


_NODES = st.lists(
    st.tuples(st.floats(0, 9000), st.sampled_from(["on", "off"]), st.integers(0, 4)), max_size=20
)


@given(_NODES)
def test_the_total_grows_by_the_hourly_cost(nodes: list[tuple[float, str, int]]) -> None:
    """Between two entries the total grows by the first one's hourly cost."""
    events = [
        _event(at, "node-added" if what == "on" else "node-removed", node=str(number), pool="p", hourly=1.5)
        for at, what, number in sorted(nodes)
    ]
    total = ledger([_TIMELINE[0], *events], 10_000, _RATES).total
    for (at, usd, hourly), (later, more, _) in pairwise(total):
        assert more == pytest.approx(usd + hourly * (later - at) / _HOUR)


def test_rates_are_the_charges_of_the_review() -> None:
    """Control plane and NAT have the prices of the review, NAT by its nodes; pools are not a rate."""
    stack = (resource(GKE), resource(GKE_POOL), resource("gcp:compute/routerNat:RouterNat"))
    made = rates(Recording(project="ebbtide", stack="dev", resources=stack))
    assert made.unknown == ()
    assert list(made.by_item) == ["control plane", "Cloud NAT"]
    assert made.by_item["control plane"](7) == pytest.approx(0.1)
    assert [made.by_item["Cloud NAT"](nodes) for nodes in (0, 3)] == [
        cloud_nat(nodes).known for nodes in (0, 3)
    ]


@pytest.mark.parametrize(
    ("story", "unknown", "estimated"),
    [
        ("aks-spot", ("disks of pipelines, 40 GiB",), ("Standard_D8s_v3 (spot)",)),
        ("queued-gpus", (), ("n1-standard-2 (queued)", "nvidia-tesla-t4 (queued)")),
    ],
)
def test_estimates_are_named(story: str, unknown: tuple[str, ...], estimated: tuple[str, ...]) -> None:
    """Estimated prices are named, those of flex-start from the price on demand among them."""
    made = rates(synth_stack(ROOT / "examples" / story / f"Pulumi.{story}.yaml"))
    assert (made.unknown, made.estimated) == (unknown, estimated)


def test_nodes_of_a_pool_over_time() -> None:
    """The count changes with each node, and a reclaim is a mark."""
    (series,) = pools(_report())
    assert [(at / _HOUR, count) for at, count in series.nodes] == [
        (0, 0),
        (1, 1),
        (2, 2),
        (2.5, 2),
        (3, 1),
        (4, 0),
        (6, 0),
    ]
    assert (series.most, series.reclaims, series.refusals) == (2, (2.5 * _HOUR,), ())


def test_text_has_a_total() -> None:
    """The costs of nodes, control plane and network are listed with their sum."""
    out = io.StringIO()
    page.write(_report(), Console(file=out, width=100))
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    costs = lines[lines.index("Simulated cost") + 1 :]
    assert [line for line in costs if "$" in line] == [
        "nodes of spot $8.000",
        "control plane $0.500",
        "Cloud NAT $0.040",
        "total $8.540",
    ]
    assert any(line.startswith("0:00:00 cluster-created") for line in lines)


def test_a_total_without_all_prices_is_a_lower_bound() -> None:
    """An unknown price is never zero."""
    assert page.total_words(_report(without_price=("disks",))) == "at least $8.540"
    estimated = _report(estimated=("machine (spot)",))
    assert page.total_words(estimated) == "about $8.540"
    assert "Estimated price" in page.render(estimated)


def test_page_has_charts_of_everything() -> None:
    """Charts of nodes, waiting Jobs and money, a mark for the reclaim, and the timeline."""
    text = page.render(_report())
    root = parsed(text)
    charts = {chart.get("aria-label"): chart for chart in root.iterfind(".//s:svg", NAMESPACES)}
    assert list(charts) == [
        "nodes of spot: at most 2, 0 at the end, 1 reclaimed",
        "waiting Jobs: at most 3, 3 at last",
        "US dollars per hour: at most 4.12, 0.00 at the end",
        "cost so far, up to $8.540",
    ]
    nodes = next(iter(charts.values()))
    (mark,) = nodes.findall("s:path[@class='reclaim']", NAMESPACES)
    assert mark.get("d") == "M416.7 0V100"
    line = nodes.find("s:path[@class='line']", NAMESPACES)
    assert line is not None
    assert line.get("d", "").startswith("M0.0 100.0H166.7V52.0H333.3V4.0")
    assert "Nodes come &amp; go" in text
    assert "<script" not in text
    assert len(root.findall(".//h:tbody/h:tr/h:th[@class='time']", NAMESPACES)) == len(_TIMELINE)


def test_page_of_nothing_is_valid() -> None:
    """A rehearsal whose first step failed has a page without charts, and the missed expectation."""
    step = StepReport(title="pulumi up", at=0, seconds=1, misses=("The quota <x> is `0`.",))
    empty = _report(steps=(step,), events=(), jobs=(), money=(), cost={}, other_costs={}, total_cost=0)
    text = page.render(empty)
    root = parsed(text)
    assert root.find(".//s:svg", NAMESPACES) is None
    assert "The quota &lt;x&gt; is <code>0</code>." in text
    assert "0 of 1" in text


def _watched(*, terminal: bool) -> str:
    out = io.StringIO()
    step = StepReport(title="pulumi up", at=0, seconds=61, misses=("No quota.",))
    with narration(Console(file=out, force_terminal=terminal, width=100)) as watch:
        watch(Started("pulumi up", 1, 8))
        watch(Worked("12 operations: create x"))
        watch(Finished(step))
    return out.getvalue()


def test_a_log_gets_a_line_for_each_start_and_end() -> None:
    """A log has no line for the state within a step."""
    assert [line.rstrip() for line in _watched(terminal=False).splitlines()] == [
        "[1/8] pulumi up",
        "missed  pulumi up 61.0 s",
        "        No quota.",
    ]


def test_a_terminal_keeps_what_is_done() -> None:
    """Completed steps stay above the live lines, which have the state of the step."""
    text = _watched(terminal=True)
    assert "[1/8] pulumi up" in text
    assert "12 operations: create x" in text
    assert "missed" in text
    assert "No quota." in text
