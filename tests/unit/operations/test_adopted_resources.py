"""Adopted resources before the first update: which they are, and how a plan names them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from ebbtide.analysis.preview.build_report import preview_of
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.review.difference import compare
from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.project.adopt_file import AdoptedResource, write_adopt_file
from ebbtide.operations.adopted_resources import held, restorations
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


class _Cluster:
    """An API server that returns objects by their paths."""

    def __init__(self, objects: Mapping[str, Any]) -> None:
        self.find = objects.get


def test_an_undo_restores_the_objects_of_kueue_that_differ() -> None:
    """A patch has the found fields and removes others; one that is as it was, or is deleted, is left."""
    queue = {"cohortName": "ml", "resourceGroups": [{"flavors": [{"name": "theirs"}]}]}
    kueue = "kubernetes:kueue.x-k8s.io/v1beta2:"
    entries = [
        AdoptedResource(f"{kueue}ClusterQueue", "a", "theirs", {"spec": queue}),
        AdoptedResource(f"{kueue}LocalQueue", "b", "ns/theirs", {"spec": {"clusterQueue": "theirs"}}),
        AdoptedResource(f"{kueue}WorkloadPriorityClass", "c", "high", {"value": 10}),
        AdoptedResource(f"{kueue}ResourceFlavor", "d", "gone", {"spec": {}}),
        AdoptedResource(
            "kubernetes:cloud.google.com/v1:ComputeClass", "e", "f", {"spec": {"priorities": []}}
        ),
    ]
    root = "/apis/kueue.x-k8s.io/v1beta2"
    live = {
        f"{root}/clusterqueues/theirs": {"kind": "ClusterQueue", "spec": {**queue, "cohortName": "other"}},
        f"{root}/namespaces/ns/localqueues/theirs": {
            "kind": "LocalQueue",
            "spec": {"clusterQueue": "theirs", "stopPolicy": "None"},
        },
        "/apis/cloud.google.com/v1/computeclasses/f": {"kind": "ComputeClass", "spec": {"priorities": [1]}},
        f"{root}/workloadpriorityclasses/high": {
            "kind": "WorkloadPriorityClass",
            "value": 9,
            "description": "x",
        },
    }
    objects = {path: {**item, "metadata": {"name": "any"}} for path, item in live.items()}
    found = list(restorations(cast("Api", _Cluster(objects)), entries))
    assert [(item.title, item.path, item.paths) for item in found] == [
        ("ClusterQueue theirs", f"{root}/clusterqueues/theirs", ["spec.cohortName"]),
        ("WorkloadPriorityClass high", f"{root}/workloadpriorityclasses/high", ["value", "description"]),
        ("ComputeClass f", "/apis/cloud.google.com/v1/computeclasses/f", ["spec.priorities"]),
    ]
    assert [item.patch for item in found] == [
        [{"op": "add", "path": "/spec", "value": queue}],
        [{"op": "add", "path": "/value", "value": 10}, {"op": "remove", "path": "/description"}],
        [{"op": "add", "path": "/spec", "value": {"priorities": []}}],
    ]
