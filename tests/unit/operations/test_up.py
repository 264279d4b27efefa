"""Changes and creations of an interrupted update, from the state."""

import copy
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from ebbtide.analysis.preview.stack_files import StackFiles
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.analysis.review.baseline import Baseline
from ebbtide.analysis.review.review_document import ChangeReport, DifferenceReport, FieldChangeReport
from ebbtide.operations.engine.stack import Completed, Stack
from ebbtide.operations.leftovers.stack import existing_elsewhere, existing_refusals
from ebbtide.operations.update import up
from ebbtide.operations.update.plan import Done, Plan, done_since, evicted_pools
from ebbtide.placement.profile import PRIORITIES
from ebbtide.values.kueue_api import API_PATH, API_VERSION
from tests.unit.operations.objects import made, node, pod
from tests.unit.operations.world import World

_COMPLETED = Completed(datetime(2026, 11, 20, 10, tzinfo=UTC))


def _resource(name: str, created: str, modified: str, **more: Any) -> dict[str, Any]:
    times = {"created": f"2026-11-20T{created}Z", "modified": f"2026-11-20T{modified}Z"}
    type_ = more.pop("type", "gcp:container/nodePool:NodePool")
    urn = f"urn:pulumi:dev::ebbtide::{type_}::{name}"
    return {"urn": urn, "type": type_, "custom": True, **times, **more}


_STATE = {
    "resources": [
        _resource("old", "09:00:00", "09:00:00"),
        _resource("last", "10:00:00.9", "10:00:00.9"),  # history has whole seconds
        _resource("new", "10:05:00", "10:05:00"),
        _resource("changed", "09:00:00", "10:06:00"),
        _resource("read", "10:05:00", "10:05:00", external=True),
        _resource("leaving", "10:05:00", "10:05:00", delete=True),
        _resource("login", "10:05:00", "10:05:00", type="pulumi:providers:gcp"),
        _resource("component", "10:05:00", "10:05:00", custom=False),
    ]
}


def test_done_is_what_is_newer_than_the_last_completed_update() -> None:
    """Resources of the cloud count as created or updated, each once."""
    assert done_since(_STATE, _COMPLETED) == Done(created=("new",), updated=("changed",))


def test_everything_was_done_if_no_update_completed() -> None:
    """The first update of a stack was interrupted: all of its resources are its own."""
    assert done_since(_STATE, Completed()) == Done(created=("old", "last", "new", "changed"))
    assert done_since({}, Completed()) == Done()


def test_neither_a_failed_update_nor_a_refresh_is_done() -> None:
    """The engine writes the time of a failed update and of what a refresh has read into the state as well; a
    refresh does not end the update that was interrupted before it."""
    times = {"new": ("10:05:00", "10:05:00"), "absorbed": ("09:00:00", "10:08:00")}
    resources = [_resource(name, *own) for name, own in times.items()]
    resources.append(_resource("scaled", "09:00:00", "10:09:00", initErrors=["Apply failed with 1 conflict"]))
    refreshed = Completed(_COMPLETED.update, datetime(2026, 11, 20, 10, 8, tzinfo=UTC))
    done = done_since({"resources": resources}, refreshed)
    assert done == Done(created=("new",), failed=("scaled",))


_PREFIX = "urn:pulumi:dev::shop"
_ROOT = {
    "urn": f"{_PREFIX}::pulumi:pulumi:Stack::shop-dev",
    "type": "pulumi:pulumi:Stack",
    "outputs": {"a": 1},
}
_PROVIDER = {
    "urn": f"{_PREFIX}::pulumi:providers:azure-native::azure",
    "type": "pulumi:providers:azure-native",
    "inputs": {"subscriptionId": "00000000-0000-0000-0000-000000000001"},
}
_STAYS = [_ROOT, _PROVIDER]
_TYPE = "azure-native:containerservice:ManagedCluster"
_CLUSTER = {
    "urn": f"{_PREFIX}::{_TYPE}::train",
    "type": _TYPE,
    "custom": True,
    "provider": f"{_PROVIDER['urn']}::1",
    "inputs": {"resourceName": "train", "resourceGroupName": "ml"},
}


_NAMESPACE = {
    "urn": f"{_PREFIX}::kubernetes:core/v1:Namespace::vision",
    "type": "kubernetes:core/v1:Namespace",
    "custom": True,
    "inputs": {"kind": "Namespace", "metadata": {"name": "vision"}},
}


class _KilledError(Exception):
    """The command was killed."""


class _Stack:
    """A stack whose engine was killed while it created a cluster."""

    def __init__(self, *, exists: bool, creating: dict[str, Any] = _CLUSTER, manager: str = "") -> None:
        self._exists, self._manager = exists, manager
        operations = [{"resource": creating, "type": "creating"}]
        self.deployment: dict[str, Any] = {"resources": _STAYS, "pending_operations": operations}
        self.errors: list[str] = []
        self.writes_before_kill = 9

    def exported(self) -> dict[str, Any]:
        """Return the state."""
        return {"version": 3, "deployment": copy.deepcopy(self.deployment)}

    def replace_state(self, document: dict[str, Any]) -> None:
        """Write the state."""
        if not self.writes_before_kill:
            raise _KilledError
        self.writes_before_kill -= 1
        self.deployment = copy.deepcopy(document["deployment"])

    def refresh(self, urns: Collection[str]) -> list[str]:
        """Read the resources; the cloud's defaults become inputs, since there are no earlier outputs."""
        if self.errors:
            return [self.errors.pop()]
        resources: list[dict[str, Any]] = []
        outputs: dict[str, Any] = {"fqdn": "train.example"}
        if self._manager:
            outputs = {"metadata": {"managedFields": [{"manager": self._manager}]}}
        for item in self.deployment["resources"]:
            if item["urn"] not in urns:
                resources.append(item)
            elif self._exists:
                item.pop("initErrors")
                inputs = item["inputs"] | {"nodeResourceGroup": "MC_ml_train"}
                resources.append({**item, "inputs": inputs, "outputs": outputs})
        self.deployment["resources"] = resources
        return []


def _resolve(stack: _Stack) -> tuple[list[str], list[str]]:
    """Return the errors and what was reported."""
    lines: list[str] = []
    return up.resolve_pending(cast("Stack", stack), lines.append), lines


def _is_resolved(stack: _Stack) -> bool:
    assert stack.deployment["pending_operations"] == []
    *others, cluster = stack.deployment["resources"]
    assert others == _STAYS
    return cluster["inputs"] == _CLUSTER["inputs"] and cluster["outputs"] == {"fqdn": "train.example"}


def test_two_stacks_with_queues_on_one_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one gets a single answer about the priority classes, whose names are those of the first."""
    found = {f"{API_PATH}/workloadpriorityclasses/{name}": made(name, "") for name in PRIORITIES}
    world = World([], found)
    world.serve(monkeypatch)
    kind = f"kubernetes:{API_VERSION}:WorkloadPriorityClass"
    classes = tuple(
        Resource(urn=name, type=kind, name=name, inputs={"metadata": {"name": name}}) for name in PRIORITIES
    )
    recording = Recording(project="shop", stack="second", resources=classes)
    (message,) = existing_refusals(cast("Stack", world), recording, {"resources": []}, pytest.fail)
    assert message.startswith("Nothing was changed: another stack has queues on this cluster")
    assert ": ebbtide-high, ebbtide-low, ebbtide-normal. The first destroy" in message


@pytest.mark.parametrize(
    ("created", "refused"),
    [
        ("none", True),
        ("the cluster", False),
        ("a cluster beside it", False),
        ("no cluster but its own", True),
        ("a pool", True),
        ("a cluster that is read", True),
    ],
)
def test_a_new_cluster_has_nothing_yet(
    monkeypatch: pytest.MonkeyPatch,
    created: str,
    refused: bool,  # noqa: FBT001
) -> None:
    """Objects are looked for on the cluster that exists, and not if the update creates one; other new
    resources, and a cluster that is only read, change nothing."""
    world = World([], {"/api/v1/namespaces/vision": made("vision", "")})
    world.serve(monkeypatch)
    namespace = "kubernetes:core/v1:Namespace"
    cluster, pool = "gcp:container/cluster:Cluster", "gcp:container/nodePool:NodePool"
    others = {
        "none": (),
        "the cluster": (Resource(urn="c", type=cluster, name="c", inputs={}),),
        "no cluster but its own": (Resource(urn="c", type=cluster, name="c", inputs={}),),
        "a pool": (Resource(urn="p", type=pool, name="p", inputs={}),),
        "a cluster beside it": tuple(Resource(urn=urn, type=cluster, name="c", inputs={}) for urn in "cd"),
        "a cluster that is read": (Resource(urn="c", type=cluster, name="c", inputs={}, read=True),),
    }[created]
    vision = Resource(urn="n", type=namespace, name="n", inputs={"metadata": {"name": "vision"}})
    recording = Recording(project="shop", stack="dev", resources=(vision, *others))
    has_own = created in ("a cluster beside it", "no cluster but its own")
    known = [{"urn": "c", "type": cluster, "custom": True}] if has_own else []
    found = existing_refusals(cast("Stack", world), recording, {"resources": known}, pytest.fail)
    assert bool(found) is refused


def test_an_existing_resource_has_the_inputs_that_were_sent() -> None:
    """An update replaced the cluster if the cloud's defaults stayed among them."""
    stack = _Stack(exists=True)
    errors, lines = _resolve(stack)
    assert errors == []
    assert lines == ["An earlier update was interrupted while it created train; it exists in the cloud."]
    assert _is_resolved(stack)
    assert _resolve(stack) == ([], [])


def test_a_missing_resource_is_created_again() -> None:
    """A missing resource is removed from the state, so that the engine creates it."""
    stack = _Stack(exists=False)
    assert _resolve(stack) == ([], ["An earlier update was interrupted before it created train."])
    assert stack.deployment == {"resources": _STAYS, "pending_operations": []}


def test_a_cloud_that_fails_is_asked_again() -> None:
    """The resource stays in the state, marked."""
    stack = _Stack(exists=True)
    stack.errors = ["Error 503"]
    assert _resolve(stack) == (["Error 503"], [])
    assert _resolve(stack)[0] == []
    assert _is_resolved(stack)


@pytest.mark.parametrize("writes", [0, 1])
def test_a_kill_at_any_write_loses_nothing(writes: int) -> None:
    """The next call continues."""
    stack = _Stack(exists=True)
    stack.writes_before_kill = writes
    with pytest.raises(_KilledError):
        _resolve(stack)
    stack.writes_before_kill = 9
    assert _resolve(stack)[0] == []
    assert _is_resolved(stack)


@pytest.mark.parametrize("manager", ["pulumi-kubernetes", "pulumi-kubernetes-1a2b3c4d"])
def test_an_object_that_the_provider_created_is_the_stacks(manager: str) -> None:
    """Creating it again would fail, since it exists."""
    stack = _Stack(exists=True, creating=_NAMESPACE, manager=manager)
    assert _resolve(stack)[0] == []
    *_, namespace = stack.deployment["resources"]
    assert (namespace["id"], namespace["inputs"]) == ("vision", _NAMESPACE["inputs"])


def test_an_object_of_another_client_is_not_taken_over() -> None:
    """Otherwise it would be deleted with the stack."""
    stack = _Stack(exists=True, creating=_NAMESPACE, manager="kubectl-create")
    assert _resolve(stack) == ([], ["An earlier update was interrupted before it created vision."])
    assert stack.deployment == {"resources": _STAYS, "pending_operations": []}


@pytest.mark.parametrize(
    ("type_", "metadata", "identity"),
    [
        ("kubernetes:core/v1:ConfigMap", {"name": "profile", "namespace": "vision"}, "vision/profile"),
        ("kubernetes:core/v1:NamespacePatch", {"name": "vision"}, None),
        ("kubernetes:helm.sh/v3:Release", {}, None),
    ],
)
def test_objects_have_the_ids_of_the_provider(
    type_: str, metadata: dict[str, str], identity: str | None
) -> None:
    """Namespace and name; a patch is applied again."""
    creating: dict[str, Any] = {**_NAMESPACE, "type": type_, "inputs": {"metadata": metadata}}
    stack = _Stack(exists=True, creating=creating, manager="pulumi-kubernetes")
    assert _resolve(stack)[0] == []
    assert [item["id"] for item in stack.deployment["resources"][2:]] == ([identity] if identity else [])


def test_an_add_on_in_another_namespace_is_not_installed_twice() -> None:
    """The cluster has its kinds: the update would end halfway, with conflicts of field managers."""
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    world = World([], {f"{definitions}/localqueues.kueue.x-k8s.io": made("a", "")})
    found = list(existing_elsewhere(world, {"kueue-system", "katib", "vision"}))
    assert [text.partition(" and")[0] for text in found] == ["Nothing was changed: the cluster has Kueue,"]
    assert "`addons: {kueue: {existing: true}}` to use the Kueue that is there" in found[0]


def _change(action: Any, type_: str, pool: str, *paths: str) -> ChangeReport:
    fields = tuple(FieldChangeReport(path=path, old="a", new="b", replaces=False) for path in paths)
    return ChangeReport(action=action, type=type_, name="x", urn="u", pool=pool, fields=fields)


def test_pools_whose_pods_are_evicted() -> None:
    """GKE recreates nodes for another machine type, not for another maximum; deleted pools lose theirs."""
    pool = "gcp:container/nodePool:NodePool"
    changes = (
        _change("update", pool, "spot", "nodeConfig.machineType"),
        _change("update", pool, "kept", "autoscaling.totalMaxNodeCount"),
        _change("delete", pool, "old"),
        _change("create", pool, "new"),
        _change("update", "kubernetes:core/v1:ConfigMap", "", "data"),
    )
    difference = SimpleNamespace(changes=changes)
    assert set(evicted_pools(cast("DifferenceReport", difference), Baseline("state", None))) == {
        "spot",
        "old",
    }


def test_the_work_that_an_update_evicts_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs on a pool whose nodes the cloud recreates are listed, and the question counts them."""
    world = World([])
    for pool in ("spot", "system"):
        job = made(f"train-{pool}")
        world.objects |= {
            f"/api/v1/nodes/{pool}": node(pool, pool),
            f"/api/v1/pods/{pool}": pod(f"pod-{pool}", node=pool, owner=("Job", job)),
            f"/apis/batch/v1/jobs/{pool}": job,
        }
    world.serve(monkeypatch)
    update = up.Update(cast("Stack", world), cast("StackFiles", None), Console())
    plan = Plan((), "Update stack added?", False, (), frozenset(), (), frozenset({"spot"}))  # noqa: FBT003
    question, lines = update.evicted(plan, {"resources": []})
    assert question == "Update stack added, and evict 1 piece of work?"
    assert lines[0] == "The update ends the pods of work: 1 piece, 1 pod."
    assert lines[1].startswith("  Job train-spot in research: 1 pod on spot, for ")
    assert update.evicted(replace(plan, evicted=frozenset({"gpu"})), {})[1] == []
