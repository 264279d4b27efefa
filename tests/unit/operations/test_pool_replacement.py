"""Replaced pools: names, renames and references in a state, and the drain of nodes."""

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.operations.update import pool_replacement
from ebbtide.operations.update.pool_replacement import REQUEUED, SINCE, DrainedPool
from ebbtide.values import clock

_PARENTS = {
    "gke": ("ebbtide:gke:Topology$ebbtide:gke:NodePool", "gcp:container/nodePool:NodePool", "name"),
    "aks": (
        "ebbtide:aks:Topology$ebbtide:aks:NodePool",
        "azure-native:containerservice:AgentPool",
        "agentPoolName",
    ),
}


def _pool(cloud: str, name: str, cloud_name: str) -> list[dict[str, Any]]:
    """A pool as a state has it."""
    types, type_, key = _PARENTS[cloud]
    urn = f"urn:pulumi:dev::p::{types}::{name}"
    component = {"urn": urn, "type": types.rpartition("$")[2], "inputs": {key: "cpu", "mode": "User"}}
    child = {
        "urn": f"urn:pulumi:dev::p::{types}${type_}::{name}",
        "type": type_,
        "custom": True,
        "parent": urn,
        "inputs": {key: cloud_name},
    }
    return [component, child]


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_a_drained_pool_gives_its_name_to_its_replacement(cloud: str) -> None:
    """In every reference, and back with the other rename."""
    resources = [*_pool(cloud, "train-cpu", "cpu"), *_pool(cloud, "train-cpu.next", "cpu-abcd")]
    user = {"urn": "urn:pulumi:dev::p::a:b:C::user", "type": "a:b:C", "dependencies": [resources[1]["urn"]]}
    deployment = {"resources": [*resources, user]}
    retired = pool_replacement.renamed(deployment, pool_replacement.retired("train-cpu"))
    names = {name: pool.cloud_name for name, pool in pool_replacement.pools_of(retired).items()}
    assert names == {"train-cpu.old": "cpu", "train-cpu": "cpu-abcd"}
    assert retired["resources"][4]["dependencies"] == [retired["resources"][1]["urn"]]
    assert pool_replacement.interrupted(retired) == ["cpu"]
    swapped = pool_replacement.renamed(deployment, pool_replacement.swapped("train-cpu"))
    assert pool_replacement.renamed(swapped, pool_replacement.swapped("train-cpu")) == deployment
    assert [item["urn"] for item in pool_replacement.without_replacements(deployment)["resources"]] == [
        resources[0]["urn"],
        resources[1]["urn"],
        user["urn"],
    ]


def _recorded(cloud: str, name: str, **inputs: Any) -> Recording:
    types, _, key = _PARENTS[cloud]
    type_ = types.rpartition("$")[2]
    urn = f"urn:pulumi:dev::p::{types}::train-{name}"
    component = Resource(
        urn=urn, type=type_, name=f"train-{name}", custom=False, inputs={key: name, "mode": "User", **inputs}
    )
    return Recording(project="p", stack="dev", resources=(component,))


@pytest.mark.parametrize(
    ("cloud", "name", "pattern"),
    [
        ("gke", "cpu", r"cpu-[a-z0-9]{4}"),
        ("gke", "a" * 40, r"a{35}-[a-z0-9]{4}"),
        ("aks", "cpu", r"cpu[a-z0-9]{4}"),
        ("aks", "a" * 12, r"a{8}[a-z0-9]{4}"),
    ],
)
def test_a_replacement_has_a_name_of_its_own(cloud: str, name: str, pattern: str) -> None:
    """The same for the same inputs, another for others, and none that is taken."""
    first = pool_replacement.replacement_name(_recorded(cloud, name, spot=True), f"train-{name}", ())
    assert re.fullmatch(pattern, first)
    assert first == pool_replacement.replacement_name(_recorded(cloud, name, spot=True), f"train-{name}", ())
    assert first != pool_replacement.replacement_name(_recorded(cloud, name, spot=False), f"train-{name}", ())
    assert first != pool_replacement.replacement_name(
        _recorded(cloud, name, spot=True), f"train-{name}", (first,)
    )


def test_the_time_for_work_is_declared() -> None:
    """Each pool has its own drainTimeout, and without one a day."""
    other = _recorded("gke", "other", drainTimeoutSeconds=1800)
    both = Recording(project="p", stack="dev", resources=(*other, *_recorded("gke", "cpu")))
    assert pool_replacement.timeout(both, "train-cpu") == timedelta(hours=24)
    assert pool_replacement.timeout(both, "train-other") == timedelta(minutes=30)
    assert pool_replacement.timeout(both, "train-other", timedelta()) == timedelta()


def test_a_pool_with_an_error_is_not_ready() -> None:
    """A pool with an error has no work, and is created again."""
    resources = _pool("aks", "train-cpu", "cpu")
    resources[1] |= {"initErrors": ["no stock"], "inputs": {"agentPoolName": "cpu", "count": 3}}
    pool = pool_replacement.pools_of(json.loads(json.dumps({"resources": resources})))["train-cpu"]
    assert (pool.is_ready, pool.count, pool.name) == (False, 3, "cpu")
    assert pool_replacement.pools_of({"resources": resources[:1]})["train-cpu"].is_ready is False


_BEGUN = datetime(2026, 11, 22, 12, tzinfo=UTC)
_POOL = DrainedPool("cpu", "pool", "cpu-old", timedelta(hours=2))


class _Api:
    """An API server with one node, whose pods end or are evicted."""

    def __init__(self, **pods: dict[str, Any]) -> None:
        self.node: dict[str, Any] = {"metadata": {"name": "n1"}, "spec": {}}
        self.pods = {
            name: {
                "metadata": {"name": name, "namespace": "lab", "uid": name, **pod.pop("metadata", {})},
                "spec": {"nodeName": "n1", "restartPolicy": "Never", **pod},
                "status": {"phase": "Running"},
            }
            for name, pod in pods.items()
        }
        self.workloads: dict[str, dict[str, Any]] = {}
        self.changes: list[tuple[str, bool]] = []
        self.evicted: list[str] = []
        self.guarded: set[str] = set()

    def items(self, path: str, **query: str) -> list[dict[str, Any]]:
        """List nodes or pods."""
        if path.endswith("/nodes"):
            return [self.node] if query["labelSelector"] == "pool=cpu-old" else []
        return list(self.pods.values())

    def find(self, path: str) -> dict[str, Any]:
        """List the Workloads. Kueue has by then ended the pods of those that are not active."""
        assert path.endswith("/workloads")
        for name, workload in self.workloads.items():
            if not workload["spec"]["active"]:
                self.pods = {key: pod for key, pod in self.pods.items() if _workload_of(pod) != name}
                workload["status"] = {}
        return {"items": list(self.workloads.values())}

    def patch(self, path: str, body: dict[str, Any]) -> None:
        """Patch the node or a Workload."""
        item = self.workloads[path.rpartition("/")[2]] if "/workloads/" in path else self.node
        item["spec"] |= body["spec"]
        annotations = item["metadata"].get("annotations", {}) | body["metadata"]["annotations"]
        item["metadata"]["annotations"] = {key: value for key, value in annotations.items() if value}
        if item is not self.node:
            self.changes.append((path.rpartition("/")[2], item["spec"]["active"]))

    def create(self, path: str, body: dict[str, Any]) -> None:
        """Evict a pod, by its UID."""
        name = path.split("/")[-2]
        assert body["deleteOptions"]["preconditions"] == {"uid": self.pods[name]["metadata"]["uid"]}
        if name in self.guarded:
            raise ApiError(429, "Cannot evict pod as it would violate the pod's disruption budget.")
        self.evicted.append(name)
        del self.pods[name]


def _workload_of(pod: dict[str, Any]) -> str:
    return pod["metadata"].get("annotations", {}).get("kueue.x-k8s.io/workload", "")


def _admitted(workload: str, **spec: Any) -> dict[str, Any]:
    """Return a pod that Kueue has admitted to the old pool."""
    annotations = {"kueue.x-k8s.io/workload": workload}
    return {"metadata": {"annotations": annotations}, "nodeSelector": {"pool": "cpu-old"}, **spec}


def _workload(name: str, *, active: bool = True, **annotations: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "lab", "annotations": annotations},
        "spec": {"active": active},
        "status": {"conditions": [{"type": "QuotaReserved", "status": "True"}]},
    }


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The passed hours; each wait is half an hour."""
    passed = [0.0]
    monkeypatch.setattr(clock, "now", lambda: _BEGUN + timedelta(hours=sum(passed)))

    def half_an_hour(_seconds: float) -> None:
        passed.append(0.5)

    monkeypatch.setattr("time.sleep", half_an_hour)
    return passed


def _drained(api: _Api) -> list[str]:
    lines: list[str] = []
    pool_replacement.drain(cast("Api", api), [_POOL], lines.append)
    return lines


def test_services_move_at_once_and_jobs_have_time(hours: list[float]) -> None:
    """A pod of a Job is evicted when the time is over; pods that stay on their node are left alone."""
    daemon = {"metadata": {"ownerReferences": [{"kind": "DaemonSet"}]}}
    static = {"metadata": {"ownerReferences": [{"kind": "Node"}]}}
    api = _Api(train={}, web={"restartPolicy": "Always"}, daemon=daemon, static=static)
    lines = _drained(api)
    assert api.evicted == ["web", "train"]
    assert sum(hours) == 2.5
    assert api.node["spec"] == {"unschedulable": True}
    assert lines[0] == (
        "pool cpu: 2 pods on its old nodes (lab/train, lab/web); they have until 2026-11-22 14:00 UTC"
    )
    assert lines[-1].endswith("evicting")


def test_an_interrupted_drain_does_not_begin_again(hours: list[float]) -> None:
    """The time of the cordon is on the node."""
    api = _Api(train={})
    earlier = (_BEGUN - timedelta(hours=1.5)).isoformat()
    api.node["metadata"]["annotations"] = {SINCE: earlier}
    _drained(api)
    assert sum(hours) == 1.0
    assert api.node["metadata"]["annotations"] == {SINCE: earlier}


def test_a_disruption_budget_delays_the_end_for_an_hour(hours: list[float]) -> None:
    """Then the pool is deleted with the pod."""
    api = _Api(train={})
    api.guarded = {"train"}
    _drained(api)
    assert api.evicted == []
    assert sum(hours) == 3.0


def test_work_of_a_queue_is_admitted_again(hours: list[float]) -> None:
    """An evicted pod alone would be created again for the old pool."""
    api = _Api(train=_admitted("job-train"))
    api.workloads = {"job-train": _workload("job-train"), "other": _workload("other")}
    _drained(api)
    assert api.evicted == []
    assert api.changes == [("job-train", False), ("job-train", True)]
    assert api.workloads["job-train"]["metadata"]["annotations"] == {}
    assert sum(hours) == 3.0


class _Slow(_Api):
    """An API server on which the pods of a Workload, and its quota, take some looks to end."""

    def __init__(self, looks: int) -> None:
        super().__init__(train=_admitted("job-train"))
        self.workloads = {"job-train": _workload("job-train")}
        self.looks = looks
        self.reserved: list[bool] = []

    def find(self, path: str) -> dict[str, Any]:
        """List the Workloads, of which Kueue ends one by one look."""
        self.looks -= not self.workloads["job-train"]["spec"]["active"]
        return super().find(path) if self.looks < 0 else {"items": list(self.workloads.values())}

    def patch(self, path: str, body: dict[str, Any]) -> None:
        """Remember whether the Workload has quota when it is reactivated."""
        super().patch(path, body)
        if body["spec"].get("active"):
            self.reserved.append(bool(self.workloads["job-train"]["status"]))


@pytest.mark.parametrize(("looks", "reserved"), [(1, False), (99, True)])
def test_work_is_admitted_again_once_its_quota_is_free(
    hours: list[float],
    looks: int,
    reserved: bool,  # noqa: FBT001
) -> None:
    """Earlier, Kueue would give it its place in the old pool back; at the end of the time it is reactivated
    as it is."""
    api = _Slow(looks)
    _drained(api)
    assert api.reserved == [reserved]
    assert sum(hours) == 3.0


def test_an_interrupted_requeueing_continues(hours: list[float]) -> None:
    """A Workload that an earlier drain has deactivated is reactivated, if it is of this pool."""
    api = _Api()
    mine, other = ({REQUEUED: name} for name in ("cpu-old", "another"))
    api.workloads = {
        "mine": _workload("mine", active=False, **mine),
        "other": _workload("other", active=False, **other),
        "of-a-user": _workload("of-a-user", active=False),
    }
    _drained(api)
    assert api.changes == [("mine", True)]
    assert sum(hours) == 0.5


def test_a_pod_that_waits_for_the_old_pool_moves_at_once(hours: list[float]) -> None:
    """Unless other pods of its Workload still run: these have their time."""
    api = _Api(
        retried=_admitted("alone", nodeName=""),
        running=_admitted("both"),
        waiting=_admitted("both", nodeName=""),
    )
    api.workloads = {"alone": _workload("alone"), "both": _workload("both")}
    lines = _drained(api)
    assert api.changes == [
        ("alone", False),
        ("alone", True),
        ("both", False),
        ("both", False),
        ("both", True),
    ]
    assert [line.partition(";")[0].count("lab/") for line in lines[:2]] == [3, 2]
    assert sum(hours) == 3.0


def test_a_pool_without_nodes_needs_no_drain(hours: list[float]) -> None:
    """Nothing is waited for."""
    api = _Api(train={})
    pool_replacement.drain(cast("Api", api), [DrainedPool("cpu", "pool", "empty", timedelta(0))], pytest.fail)
    assert hours == [0.0]
