"""Expired stacks, from the states of a backend."""

from datetime import UTC, datetime
from typing import Any, cast

from ebbtide.operations.backend import Backend
from ebbtide.operations.errors import OperationError
from ebbtide.operations.reap import ReapOutcome, expired
from tests.unit.policy.stacks_in_memory import GKE, resource, system_pool

_NOW = datetime(2026, 11, 22, 20, 0, tzinfo=UTC)


def _exported(name: str, expires: str) -> dict[str, Any]:
    shared = {"custom": True, "outputs": {"name": name}}
    cloud = [
        {"urn": item.urn, "type": item.type, "inputs": dict(item.inputs), **shared}
        for item in (resource(GKE, custom=True), system_pool(custom=True))
    ]
    urn = "urn:pulumi:dev::ebbtide::ebbtide:stack:Lifetime::l"
    life = {"urn": urn, "type": "ebbtide:stack:Lifetime", "outputs": {"expires": expires}}
    return {"version": 3, "deployment": {"resources": [life, *cloud]}}


class _States:
    """A backend of exported states; a sentence for one that is unreadable."""

    def __init__(self, **states: dict[str, Any] | str) -> None:
        self.stacks = tuple(states)
        self._states = states

    def exported(self, name: str) -> dict[str, Any]:
        state = self._states[name]
        if isinstance(state, str):
            raise OperationError(state)
        return state


def test_the_longest_expired_comes_first() -> None:
    """With its cluster and its cost; one whose state is unreadable is listed too."""
    states = _States(
        late=_exported("train-late", "2026-11-22T20:00Z"),
        early=_exported("train-early", "2026-11-22T08:00Z"),
        new=_exported("train-new", "2026-11-22T20:01Z"),
        fresh={"version": 3, "deployment": {}},
        torn="The state is torn.",
    )
    report = expired(cast("Backend", states), _NOW)
    assert [(stack.stack, stack.outcome) for stack in report.stacks] == [
        ("early", ReapOutcome.EXPIRED),
        ("late", ReapOutcome.EXPIRED),
        ("torn", ReapOutcome.UNREADABLE),
    ]
    early, _, torn = report.stacks
    assert early.clusters == ("train-early",)
    assert early.idle_usd_per_hour is not None
    assert early.idle_usd_per_hour > 0
    assert torn.error == "The state is torn."
    assert not report.is_done
