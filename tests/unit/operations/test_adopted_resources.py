"""Adopted resources before the first update: which they are, and how a plan names them."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ebbtide.analysis.preview.build_report import preview_of
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.review.difference import compare
from ebbtide.declaration.project.adopt_file import AdoptedResource, write_adopt_file
from ebbtide.operations.adopted_resources import held
from ebbtide.operations.plan import Done, done_since
from tests.declarations import GKE, changed
from tests.synth import synth

_POOL = "gcp:container/nodePool:NodePool"
_COMPLETED = datetime(2026, 11, 20, 10, tzinfo=UTC)


def _adopting(directory: Path) -> Recording:
    file = directory / "adopt.dev.json"
    write_adopt_file(file, [AdoptedResource(_POOL, f"train-{name}", name) for name in ("cpu", "t4", "a100")])
    return synth(changed(GKE, adopt=str(file)))


def test_a_plan_adopts_what_the_state_lacks(tmp_path: Path) -> None:
    """A review, a preview and an update say adopt, not create; what the state has is not adopted again."""
    recording = _adopting(tmp_path)
    (known,) = (item for item in recording if item.name == "train-t4" and item.custom)
    before = Recording(project="ebbtide", stack="test", resources=(known,))
    actions = {change.resource.name: change.action for change in compare(before, recording)}
    assert {name for name, action in actions.items() if action == "adopt"} == {"train-cpu", "train-a100"}
    counts = preview_of(recording).counts
    assert (counts.adopted, counts.created) == (3, preview_of(synth(GKE)).counts.created - 3)


def test_adopted_resources_are_held_until_an_update_has_succeeded(tmp_path: Path) -> None:
    """Held are those that the state lacks, and those that it has imported since the last update; they are no
    changes of an interrupted update."""
    recording = _adopting(tmp_path)
    urns = {item.name: item.urn for item in recording if item.type == _POOL}

    def imported(name: str, time: str) -> dict[str, Any]:
        own = {"urn": urns[name], "type": _POOL, "custom": True, "importID": name}
        return {**own, "created": f"2026-11-20T{time}Z", "modified": f"2026-11-20T{time}Z"}

    state = {"resources": [imported("train-cpu", "11:00:00"), imported("train-t4", "09:00:00")]}
    assert held(recording, state, _COMPLETED) == {urns["train-a100"], urns["train-cpu"]}
    assert held(recording, state, None) == {urns[f"train-{name}"] for name in ("a100", "cpu", "t4")}
    assert held(synth(GKE), {"resources": []}, None) == frozenset()
    assert done_since(state, _COMPLETED) == Done()
