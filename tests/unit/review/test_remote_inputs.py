"""Charts in a plan against a state, which has no inputs of them."""

from dataclasses import replace
from typing import Any

import pytest

from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.review.difference import compare
from tests.declarations import GKE, changed
from tests.synth import synth

_QUEUES = [{"name": "cpu", "pools": ["cpu"]}]


def _recorded(**addons: Any) -> Recording:
    return synth(changed(GKE, queues=_QUEUES, addons={"kueue": {}, **addons}))


def _deployed(recording: Recording, *, outputs: bool = True) -> Recording:
    """Return a recording as the engine's state has it."""
    return replace(
        recording,
        resources=tuple(
            replace(
                item,
                inputs={} if item.remote else item.inputs,
                outputs=item.outputs if outputs or item.custom else {},
            )
            for item in recording
        ),
    )


@pytest.mark.parametrize(
    ("addons", "changes"),
    [({}, []), ({"kueue": {"replicas": 2}}, ["train-addons-kueue-chart"]), ({"kueue": {"replicas": 1}}, [])],
)
def test_a_chart_changes_with_its_inputs(addons: dict[str, Any], changes: list[str]) -> None:
    """The fingerprint in the outputs of the component around it tells."""
    plan = compare(_deployed(_recorded()), _recorded(**addons), deployed=True)
    assert [change.resource.name for change in plan if change.resource.remote] == changes


def test_a_state_of_an_earlier_version_has_no_fingerprint() -> None:
    """Then a change is assumed."""
    plan = compare(_deployed(_recorded(), outputs=False), _recorded(), deployed=True)
    assert [change.resource.name for change in plan] == ["train-addons-kueue-chart"]
