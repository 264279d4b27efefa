"""Effects of an update on what a person has changed, computed from a recorded program."""

import copy
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest

from ebbtide.analysis.drift.differences import ReadResource
from ebbtide.analysis.drift.drift_document import ResourceDrift, drift_of, refreshed
from ebbtide.analysis.recording.recording import urn_name
from ebbtide.analysis.review.baseline import baseline_of
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
    names = item["urn"], item["type"], item["id"]
    found = [ReadResource(*names, item["inputs"], item["outputs"], read[0], read[1])]
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


_REPLICAS: dict[str, Any] = {"f:spec": {"f:replicas": {}}}
_LABELS: dict[str, Any] = {"f:metadata": {"f:labels": {"f:hand": {}}}}


def _scaled(manager: Mapping[str, Any], *, failed: bool = False) -> ResourceDrift:
    """Return the drift of a chart's Deployment that a field manager has scaled and labelled; after an update
    that failed, the state has what was read."""
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "kueue"}}
    inputs: dict[str, Any] = {**manifest, "spec": {"replicas": 1, "strategy": {"type": "Recreate"}}}
    managers = [{"operation": "Update", **manager}]
    metadata = {"name": "kueue", "labels": {"hand": "x"}, "managedFields": managers}
    live: dict[str, Any] = {**inputs, "metadata": metadata, "spec": {**inputs["spec"], "replicas": 2}}
    read = inputs | {"spec": live["spec"]}
    after = synth(_DECLARED)
    (chart,) = after.of_type("kubernetes:helm.sh/v4:Chart")
    type_, urn = "kubernetes:apps/v1:Deployment", f"{chart.urn}:kueue-system/kueue"
    resource = ReadResource(
        urn, type_, "kueue-system/kueue", inputs, live if failed else inputs, read, live, has_failed=failed
    )
    made: dict[str, Any] = {"urn": urn, "type": type_, "custom": True, "inputs": inputs, "parent": chart.urn}
    resources = [*resources_of(after), made]
    for item in resources:
        item["parent"] = item["parent"] if item["parent"] != STACK["urn"] else None
    own = {"project": after.project, "stack": after.stack}
    document: dict[str, Any] = {"version": 3, "deployment": {"resources": resources}}
    before, cloud = (baseline_of(it, **own) for it in (document, refreshed(document, [resource])))
    (result,) = drift_of([resource], after, before, cloud).resources
    return result


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize("manager", [{"manager": "kubectl", "subresource": "scale"}, {"manager": "k9s"}])
def test_an_object_of_a_chart_that_was_scaled(manager: dict[str, str], *, failed: bool) -> None:
    """An update sets a chart's objects back, but for fields of a manager that the provider does not take
    over: it fails, also again after it has failed."""
    drift = _scaled({"fieldsV1": _REPLICAS, **manager}, failed=failed)
    assert drift.action == "refuse"
    kept = {field.path: field.kept for field in drift.of_person}
    assert kept == {"spec.replicas": True} | ({} if failed else {"metadata.labels": True})


@pytest.mark.parametrize(
    "manager",
    [{"manager": "k9s", "fieldsV1": _LABELS}, {"manager": "kubectl-edit", "fieldsV1": _REPLICAS}],
)
def test_an_update_sets_what_a_chart_has(manager: dict[str, Any]) -> None:
    """The provider takes over what `kubectl edit` has set; a label of another manager conflicts with nothing,
    and stays."""
    drift = _scaled(manager)
    assert {field.path: field.kept for field in drift.of_person} == {
        "metadata.labels": True,
        "spec.replicas": False,
    }
    assert drift.action == "update"


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
