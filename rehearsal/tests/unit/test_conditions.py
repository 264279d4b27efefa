"""Conditions of scenarios: each holds, or reports what is missing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide_rehearsal.cloud.store import Event
from ebbtide_rehearsal.report.document import spent
from ebbtide_rehearsal.scenarios.conditions import Condition, Observation, ObservedJob, misses

SEEN = Observation(
    jobs=[
        ObservedJob("train-0", succeeded=True),
        ObservedJob("train-1", active=True, failures=2),
        ObservedJob("sweep", suspended=True, indexes_succeeded=3, indexes_failed=1),
    ],
    nodes={"cpu": 2, "t4-spot": 1, "t4": 3},
    ran_on=frozenset({"cpu", "t4"}),
    waits=["0/3 nodes are available: 3 Insufficient nvidia.com/gpu."],
    logs="resumed at step 40",
    events=[Event(1, 0.0, "node-added", "A node of cpu.", {}), Event(2, 9.0, "reclaimed", "cpu", {})],
    cost=1.5,
    runs=["Succeeded", "Error", "Running", ""],
    steps={"train": {"a": "t4-spot", "b": "t4"}},
)


@pytest.mark.parametrize(
    ("holds", "fails", "says"),
    [
        ({"jobs": {"succeeded": 1}}, {"jobs": {"succeeded": 2}}, "1 Jobs succeeded, expected 2"),
        ({"jobs": {"name": "train-*", "active": 1}}, {"jobs": {"name": "x", "active": 1}}, "0 Jobs active"),
        ({"jobs": {"suspended": {"min": 1}}}, {"jobs": {"failed": {"min": 1}}}, "expected 1 or more"),
        ({"indexes": {"succeeded": 3, "failed": 1}}, {"indexes": {"failed": 0}}, "1 indexes failed"),
        ({"failuresCounted": {"max": 2}}, {"failuresCounted": 0}, "2 failures counted"),
        ({"nodes": {"t4*": 4, "cpu": 2}}, {"nodes": {"t4*": {"min": 5, "max": 6}}}, "4 nodes of t4*"),
        ({"ranOn": ["cpu", "t*"]}, {"ranOn": ["cpu"]}, "Pods ran on t4"),
        ({"waiting": "insufficient nvidia"}, {"waiting": "quota"}, "Insufficient nvidia"),
        ({"log": "resumed"}, {"log": "finished"}, "finished"),
        (
            {"happened": [{"kind": "node-*", "says": "CPU", "times": 1}]},
            {"happened": [{"kind": "node-*", "times": 2}]},
            "1 events node-*",
        ),
        ({"pipelines": {"succeeded": 1, "failed": 1}}, {"pipelines": {"running": 0}}, "2 pipelines running"),
        (
            {"steps": [{"name": "train", "ranOn": ["t4*"], "pods": 2}]},
            {"steps": [{"name": "train", "ranOn": ["t4"]}]},
            "Step train ran on t4-spot, not only on t4.",
        ),
        (
            {"steps": [{"name": "train", "ranOn": ["*"]}]},
            {"steps": [{"name": "report", "ranOn": ["*"]}]},
            "Step report has not run.",
        ),
        ({"costsAtMost": 1.5}, {"costsAtMost": 1}, "$1.50"),
    ],
)
def test_a_condition_holds_or_says_what_is_missing(
    holds: dict[str, Any], fails: dict[str, Any], says: str
) -> None:
    """Each kind of condition both ways."""
    assert misses(Condition.model_validate(holds), SEEN) == []
    (missed,) = misses(Condition.model_validate(fails), SEEN)
    assert says in missed


def test_all_that_is_missing_is_said() -> None:
    """Every condition must hold, and each failed one is reported."""
    condition = Condition.model_validate({"jobs": {"succeeded": 3}, "nodes": {"cpu": 0}, "log": "no"})
    assert len(misses(condition, SEEN)) == 3


@given(
    stays=st.lists(
        st.tuples(
            st.sampled_from(["a", "b"]),
            st.floats(0, 10),
            st.floats(0, 7200),
            st.floats(0, 7200),
            st.booleans(),
        ),
        max_size=8,
    )
)
def test_a_node_costs_from_when_it_comes_to_when_it_goes(
    stays: list[tuple[str, float, float, float, bool]],
) -> None:
    """The cost is the sum over nodes of price and time, those that are still there until now."""
    now, expected = 7200.0, 0.0
    events: list[Event] = []
    for number, (pool, hourly, moment, other, gone) in enumerate(stays):
        came, went = sorted((moment, other))
        facts = {"node": f"n{number}", "pool": pool, "hourly": hourly}
        events.append(Event(0, came, "node-added", "", facts))
        if gone:
            events.append(Event(0, went, "node-removed", "", facts))
        expected += hourly * ((went if gone else now) - came) / 3600
    events.sort(key=lambda event: (event.at, event.kind))
    assert sum(spent(events, now).values()) == pytest.approx(expected)
