"""Effects of an update on what a person has changed, computed from a recorded program."""

import copy
from collections.abc import Callable
from typing import Any, cast

import pytest

from ebbtide.analysis.drift.differences import ReadResource
from ebbtide.analysis.drift.report import ResourceDrift, baseline_of, drift_of, refreshed
from ebbtide.analysis.recording.recording import urn_name
from tests.declarations import GKE, Declaration, changed
from tests.synth import synth
from tests.unit.operations.world import STACK, resources_of

_DECLARED: Declaration = changed(
    GKE,
    pools=GKE["pools"][:2],
    queues=[{"name": "cpu", "pools": ["cpu"]}],
    teams=[{"name": "vision", "queues": [{"queue": "cpu", "as": "ours"}]}],
)
_Change = Callable[[dict[str, Any]], object]


def _drifted(name: str, type_: str, change: _Change | None) -> ResourceDrift:
    """Return the drift of a resource whose read inputs and outputs a person has changed; None deletes it."""
    after = synth(_DECLARED)
    resources = resources_of(after)
    own = {"project": after.project, "stack": after.stack}
    document: dict[str, Any] = {"version": 3, "deployment": {"resources": resources}}
    (item,) = (it for it in resources if urn_name(it["urn"]) == name and it["type"].endswith(type_))
    read: list[dict[str, Any] | None] = [copy.deepcopy(item[key]) for key in ("inputs", "outputs")]
    if change:
        for values in read:
            assert values is not None
            change(values)
        if item["type"].startswith("kubernetes:"):  # server-side apply reads the fields that were sent
            read[0] = _of_shape(read[0], item["inputs"])
    if change is None:
        read = [None, None]
    found = [ReadResource(item["urn"], item["type"], item["id"], item["inputs"], item["outputs"], *read)]
    before, cloud = (baseline_of(it, **own) for it in (document, refreshed(document, found)))
    drift = drift_of(found, after, before, cloud)
    assert STACK["urn"] not in {it.urn for it in drift.resources}
    (result,) = drift.resources
    assert result.is_of_person
    return result


def _of_shape(value: Any, shape: Any) -> Any:
    if not isinstance(shape, dict):
        return value
    return {key: _of_shape(value[key], item) for key, item in cast("dict[str, Any]", shape).items()}


def _set(path: str, value: Any) -> _Change:
    *above, last = path.split(".")

    def change(values: dict[str, Any]) -> None:
        for key in above:
            values = values.setdefault(key, {})
        values[last] = value

    return change


@pytest.mark.parametrize(
    ("name", "type_", "path", "value", "action", "kept"),
    [
        ("train-addons-queues-localqueue-vision/ours", "LocalQueue", "spec.stopPolicy", "Hold", "none", True),
        (
            "train-addons-queues-clusterqueue-vision.cpu",
            "ClusterQueue",
            "spec.cohortName",
            "other",
            "update",
            False,
        ),
        ("train-cpu", "container/nodePool:NodePool", "autoscaling.totalMaxNodeCount", 99, "update", False),
        ("train-cpu", "container/nodePool:NodePool", "upgradeSettings", {"maxSurge": 7}, "none", True),
    ],
    ids=str,
)
def test_what_no_update_sets_back_is_kept(
    name: str, type_: str, path: str, value: object, action: str, *, kept: bool
) -> None:
    """A refresh takes over what the program omits; what it sets is set back, and no more."""
    drift = _drifted(name, type_, _set(path, value))
    assert (drift.action, drift.deleted) == (action, False)
    assert [(field.path, field.kept) for field in drift.of_person] == [(path, kept)]


@pytest.mark.parametrize(
    ("path", "value", "action"),
    [("autoscaling.totalMaxNodeCount", 99, "update"), ("nodeConfig.spot", False, "replace")],
)
def test_beside_what_is_set_back_another_field_is_kept(path: str, value: object, action: str) -> None:
    """The field that the program omits stays if an update changes its resource, but not on a new one."""

    def both(values: dict[str, Any]) -> None:
        _set(path, value)(values)
        _set("upgradeSettings.maxSurge", 7)(values)

    drift = _drifted("train-cpu", "container/nodePool:NodePool", both)
    assert drift.action == action
    assert {field.path: field.kept for field in drift.of_person} == {
        path: False,
        "upgradeSettings": action == "update",
    }


def test_what_a_person_has_deleted_is_created_again() -> None:
    """A deleted resource is drift without fields, and an update creates it."""
    drift = _drifted("train-cpu", "container/nodePool:NodePool", None)
    assert (drift.action, drift.deleted, drift.fields) == ("create", True, ())
