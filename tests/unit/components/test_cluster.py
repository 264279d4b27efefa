"""The expiry of a program's resources: fixed by the state, and no clock in a preview."""

import json
from datetime import datetime

import pulumi
import pytest

from components.topology import Lifetime
from ebbtide.analysis.reading.state import recording_of
from ebbtide.analysis.recording.record import record
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.review.difference import compare
from ebbtide.values import clock


def _recorded(hours: int, state: Recording | None = None) -> Recording:
    def program() -> None:
        lifetime = Lifetime("train-lifetime", hours)
        pulumi.export("expires", lifetime.expires)

    return record(program, project="shop", stack="dev", deployed=state)


def _deployed(first_up: str) -> Recording:
    urn = "urn:pulumi:dev::shop::ebbtide:stack:Lifetime$pulumi:index:Stash::train-lifetime-first-up"
    stash = {
        "urn": urn,
        "type": "pulumi:index:Stash",
        "custom": True,
        "inputs": {"input": first_up},
        "outputs": {"input": first_up, "output": first_up},
    }
    text = json.dumps({"version": 3, "deployment": {"resources": [stash]}})
    return recording_of(text, project="shop", stack="dev", file="state.json")


def test_a_preview_reads_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The preview is the same at any time."""

    def refuse() -> datetime:
        raise AssertionError("a preview must not depend on the time")

    monkeypatch.setattr(clock, "now", refuse)
    assert _recorded(8).outputs["expires"] == "8h-after-the-first-up"


def test_the_state_has_the_first_up() -> None:
    """A review against a state has the deployed expiry, moved by the declared hours alone."""
    state = _deployed("2026-11-22T12:00Z")
    assert _recorded(8, state).outputs["expires"] == "2026-11-22T20:00Z"
    assert _recorded(12, state).outputs["expires"] == "2026-11-23T00:00Z"
    assert compare(state, _recorded(8, state), deployed=True) == ()
