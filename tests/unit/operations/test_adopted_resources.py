"""Adopted resources before the first update: which they are, and how a plan names them."""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.preview.stack_files import read_stack
from ebbtide.analysis.recording.recording import Recording
from ebbtide.analysis.review.difference import compare
from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.project.adopt_file import AdoptedResource, write_adopt_file
from ebbtide.operations.adopting.resources import check, held, remove_resources, restorations
from ebbtide.operations.engine.events import Step
from ebbtide.operations.engine.stack import Completed, Preview, Stack
from ebbtide.operations.update.plan import Done, done_since
from ebbtide.operations.update.up import Update
from tests.declarations import GKE, changed
from tests.synth import synth
from tests.unit.operations.world import QUEUES, STACK, World, resource

_POOL = "gcp:container/nodePool:NodePool"
_COMPLETED = Completed(datetime(2026, 11, 20, 10, tzinfo=UTC))


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
    assert held(recording, state, Completed()) == {urns[f"train-{name}"] for name in ("a100", "cpu", "t4")}
    assert held(synth(GKE), {"resources": []}, Completed()) == frozenset()
    assert done_since(state, _COMPLETED) == Done()


@pytest.mark.parametrize(
    ("operations", "refusal"),
    [
        (("delete",), "deleted"),
        (("create-replacement", "delete-replaced"), "replaced"),
        (("import",), ""),
        (("update",), ""),
        (("same",), ""),
    ],
)
def test_an_adopted_resource_is_never_deleted(operations: Sequence[str], refusal: str) -> None:
    """Neither by a deletion nor by a replacement; an adoption and an update in place are no refusals."""
    urn = "urn:pulumi:dev::ebbtide::gcp:container/nodePool:NodePool::train-cpu"
    steps = [
        Step(_POOL, "train-cpu", done=False, operation=operation, urn=urn, changed=("name",))
        for operation in operations
    ]

    def preview(watch: Callable[[Step], None]) -> Preview:
        for step in steps:
            watch(step)
        return Preview((), (), "")

    stack = SimpleNamespace(name="dev", preview=preview, unlock=lambda: None)
    update = Update(cast("Stack", stack), cast("Any", None), Console(file=io.StringIO()))
    refusals = check(update, Recording(project="ebbtide", stack="dev"), {urn}).refusals
    assert [text for text in refusals if refusal and f"would be {refusal}" in text] == list(refusals)
    assert bool(refusals) is bool(refusal)


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
    found = list(restorations(cast("Api", SimpleNamespace(find=objects.get)), entries))
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


_OWNERS = {"cohortName": "theirs"}


def _adopted(root: Path, found: Mapping[str, Any]) -> tuple[World, Callable[[], bool]]:
    """A stack with an adopted pool and two adopted queues, and its undo."""
    types = {"cpu": _POOL, **dict.fromkeys("ab", "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue")}
    entries = [AdoptedResource(kind, key, key, found if kind != _POOL else {}) for key, kind in types.items()]
    write_adopt_file(root / "adopt.prod.json", entries)
    (root / "Pulumi.yaml").write_text("{name: shop, runtime: python}\n")
    declared = {"config": {"ebbtide:cluster": {**changed(GKE), "adopt": "adopt.prod.json"}}}
    file = root / "other stack.yaml"
    file.write_text(json.dumps(declared))
    resources = [resource(kind, key, id=key, importID=key) for key, kind in types.items()]
    ours = {"kind": "ClusterQueue", "metadata": {"name": "any"}, "spec": {"cohortName": "ours"}}
    stack = {**STACK, "outputs": {"kubeconfig": "{}"}}
    world = World([stack, *resources], {f"{QUEUES}/{key}": ours for key in "ab"}, (), root)
    files = read_stack(root, "prod", config_file=file)
    update = Update(cast("Stack", world), files, Console(file=io.StringIO()))
    return world, lambda: remove_resources(update, lambda _: True)


def _restored(world: World) -> set[str]:
    """Return the names of the queues that have their owner's fields."""
    return {path[-1] for path, item in world.objects.items() if item["spec"] == _OWNERS}


@pytest.mark.parametrize("turns", range(9))
def test_an_undo_may_be_killed_before_and_after_every_write(
    turns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state never has a queue that is its owner's again, so that an import takes it over; the next undo
    completes it, and one more changes nothing."""
    world, undo = _adopted(tmp_path, {"spec": _OWNERS})
    world.serve(monkeypatch)
    world.turns = turns
    with pytest.raises(KeyboardInterrupt) if turns < 8 else nullcontext():
        undo()
    assert not _restored(world) & {item.get("id") for item in world.deployment["resources"]}
    for _ in range(2):
        assert undo()
        (stack,) = world.deployment["resources"]
        assert (stack["outputs"], _restored(world)) == ({"kubeconfig": "{}"}, {"a", "b"})


def test_an_undo_leaves_no_reference(tmp_path: Path) -> None:
    """A resource that stays depends on nothing that is gone, nor goes with it; other objects of
    Kubernetes need no cluster, and leave no record."""
    world, undo = _adopted(tmp_path, {})
    (_, cpu, *_) = (item["urn"] for item in world.deployment["resources"])
    other = resource("t", "other")
    references: dict[str, Any] = {
        "dependencies": [cpu, other["urn"]],
        "propertyDependencies": {"a": [cpu], "b": None},
    }
    kept = [
        resource("t", "one", deletedWith=cpu, **references),
        resource("t", "two", deletedWith=other["urn"]),
        other,
    ]
    world.deployment["resources"] += kept
    assert undo()
    stack, one, *rest = world.deployment["resources"]
    assert (stack["outputs"], _restored(world)) == ({"kubeconfig": "{}"}, set())
    without: dict[str, Any] = {"dependencies": [other["urn"]], "propertyDependencies": {"a": [], "b": []}}
    assert one == resource("t", "one", **without)
    assert rest == kept[1:]
