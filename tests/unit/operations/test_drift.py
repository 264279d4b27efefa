"""What runs on pools whose nodes an update replaces, after changes by hand."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ebbtide.analysis.drift.differences import ReadResource
from ebbtide.analysis.drift.drift_document import Action, Drift, FieldDrift, ResourceDrift
from ebbtide.operations import drift
from tests.unit.operations.objects import Object, made, node, pod
from tests.unit.operations.world import World, resource

_POOL = "gcp:container/nodePool:NodePool"
_OUTPUTS = {"nodeConfig": {"machineType": "a"}}

_FIELD = FieldDrift(path="vmSize", state="a", cloud="b", maker="person", source="", replaces=True)


def _drift(action: Action, *consequences: str) -> Drift:
    pool = ResourceDrift(
        type="pool", name="spot", urn="spot", pool="spot", deleted=False, fields=(_FIELD,), action=action
    )
    return Drift(
        stack="dev",
        read=1,
        resources=(pool,),
        unowned=(),
        unread=(),
        consequences=consequences,
        fingerprint="",
    )


def _sentences(monkeypatch: pytest.MonkeyPatch, found: Drift, *pods: Object) -> list[str]:
    """The sentences, with these pods on the pool `spot`, and another one on `system`."""
    other = pod("other", node="m")
    listed = {f"/api/v1/pods/{item['metadata']['name']}": item for item in (*pods, other)}
    nodes = {f"/api/v1/nodes/{name}": node(name, pool) for name, pool in (("n", "spot"), ("m", "system"))}
    world = World([], {**nodes, **listed})
    world.serve(monkeypatch)
    return list(drift.running_work(cast("Any", world), {"resources": []}, found))


def test_work_on_a_replaced_pool_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is counted with its pods, on pools that are replaced or whose nodes are recreated alone."""
    pods = [pod(f"train-{number}", owner=("Job", made("train"))) for number in range(2)]
    named = ["On pool spot now: Job train in research, with 2 pods."]
    assert _sentences(monkeypatch, _drift("replace"), *pods) == named
    assert _sentences(monkeypatch, _drift("update", "Pool spot gets new nodes."), *pods) == named
    assert _sentences(monkeypatch, _drift("update"), *pods) == []
    assert _sentences(monkeypatch, _drift("replace")) == ["Nothing runs on pool spot now."]


def test_a_silent_cluster_is_said() -> None:
    """Without an answer, the running work is unknown."""
    stack = cast("Any", SimpleNamespace(outputs=dict[str, Any]))
    said = list(drift.running_work(stack, {"resources": []}, _drift("replace")))
    assert said == ["The stack has no output `kubeconfig`: running work is unknown."]


def test_pools_that_a_person_has_changed_are_named() -> None:
    """A deleted one, which the update changes, comes with the command that the state needs."""
    resources = [
        item
        for name in ("gone", "larger", "same")
        for component in [resource("ebbtide:gke:NodePool", name, inputs={"name": name})]
        for item in (
            component,
            {**resource(_POOL, name, custom=True, inputs={"name": name}), "parent": component["urn"]},
        )
    ]

    def read(urns: Sequence[str]) -> tuple[list[ReadResource], list[str]]:
        after = {"gone": None, "larger": {"nodeConfig": {"machineType": "b"}}, "same": _OUTPUTS}
        found = {urn: after[urn.rpartition("::")[2]] for urn in urns}
        return [ReadResource(urn, _POOL, "id", {}, _OUTPUTS, now, now) for urn, now in found.items()], []

    stack = cast("Any", SimpleNamespace(name="dev", read=read))
    changed = {(_POOL, name) for name in ("gone", "larger", "same")}
    gone, larger = drift.overwritten(stack, {"resources": resources}, changed, ())
    assert gone.startswith("Pool gone was deleted by hand, and the update of it fails: ")
    assert "`pulumi refresh --stack dev`" in gone
    assert larger.startswith("Pool larger was changed by hand, which this update may overwrite: nodeConfig.")
    assert list(drift.overwritten(stack, {"resources": resources}, (), ())) == []
