"""`ebbtide why` for pods, on the real API server, with the real scheduler and the real cluster-autoscaler."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ebbtide.autoscaler.nodes import NodePool
from ebbtide.clients.kubernetes import Api
from ebbtide.placement.derive import profile
from ebbtide.values import clock
from ebbtide.work.evidence import Actor, read_evidence
from ebbtide.work.progress import cause_of
from ebbtide_rehearsal.cloud.node_pools.actuator import Actuator
from ebbtide_rehearsal.cloud.store import NO_STOCK, InjectedFault
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.stages import RUNS_FOR
from rehearsal.tests.control_plane.autoscaler_trial import Trial, aks_pool
from rehearsal.tests.control_plane.cluster import Object, job, namespace, node, pod, wait, why
from rehearsal.tests.control_plane.cluster_autoscaler import NodeGroups, deciding
from rehearsal.tests.control_plane.commands import dev
from rehearsal.tests.control_plane.node_pools import CLUSTER

pytestmark = [pytest.mark.rehearsal, pytest.mark.usefixtures("clean")]

_PROFILE = profile(dev()[0])
_POOL = {"nodeSelector": {"cloud.google.com/gke-nodepool": "cpu-spot"}}


@pytest.fixture(autouse=True)
def system_node(control_plane: ControlPlane) -> None:
    """A node for no Job: without any, the scheduler explains nothing."""
    node(control_plane.api, "system", taints=[{"key": "system", "effect": "NoSchedule"}])


@pytest.fixture
def place(control_plane: ControlPlane, request: pytest.FixtureRequest) -> str:
    """A namespace for one test."""
    name = request.node.name.partition("[")[0].removeprefix("test_").replace("_", "-")
    return namespace(control_plane.api, name)


def submit(api: Api, place: str, name: str, annotations: Object | None = None, **spec: Any) -> None:
    """Create a Job of one pod."""
    fields = {key: spec.pop(key) for key in ("backoffLimit",) if key in spec}
    template = pod(annotations or {RUNS_FOR: "600"}, **spec)
    api.create(f"/apis/batch/v1/namespaces/{place}/jobs", job(name, template, **fields))


def test_rejected_pods(control_plane: ControlPlane) -> None:
    """The API server rejects pods of a Job by a Pod Security Standard, and by a quota."""
    api = control_plane.api
    strict = namespace(api, "strict", **{"pod-security.kubernetes.io/enforce": "restricted"})
    submit(api, strict, "root")
    cause = why(api, strict, "root", "PodsRejected", _PROFILE)
    assert 'violates PodSecurity "restricted:latest"' in cause.message
    full = namespace(api, "full")
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    path = f"/api/v1/namespaces/{full}/resourcequotas"
    api.create(path, {**quota, "spec": {"hard": {"pods": "0"}}})
    wait(lambda: api.get(f"{path}/none").get("status", {}).get("hard"), bool)
    submit(api, full, "more")
    assert why(api, full, "more", "ResourceQuota", _PROFILE).actor is Actor.ADMINISTRATOR


def test_pods_that_no_pool_takes(control_plane: ControlPlane, place: str) -> None:
    """The taint of the selected pool, its size, and a selector of another cluster's pool."""
    api = control_plane.api
    submit(api, place, "tainted", **_POOL)
    cause = why(api, place, "tainted", "DoesNotFit", _PROFILE)
    assert cause.message.startswith("no pool can take it: it does not tolerate the taint")
    assert cause.message.endswith("of pool cpu-spot")
    large = {"resources": {"requests": {"cpu": "90"}}}
    submit(api, place, "large", container=large, tolerations=[{"operator": "Exists"}], **_POOL)
    assert "a node of pool cpu-spot has" in why(api, place, "large", "DoesNotFit", _PROFILE).message
    elsewhere = {"nodeSelector": {"cloud.google.com/gke-nodepool": "other"}}
    submit(api, place, "elsewhere", tolerations=[{"operator": "Exists"}], **elsewhere)
    assert "excludes pool cpu-spot" in why(api, place, "elsewhere", "DoesNotFit", _PROFILE).message


def test_volumes(control_plane: ControlPlane, place: str) -> None:
    """A claim that does not exist, and one that no volume is bound to."""
    api = control_plane.api
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "empty"}}
    claims = f"/api/v1/namespaces/{place}/persistentvolumeclaims"
    api.create(claims, {**body, "spec": {**claim, "storageClassName": ""}})
    for name, reason in (("missing", "MissingVolume"), ("empty", "UnboundVolume")):
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
        submit(api, place, name, volumes=volumes, tolerations=[{"operator": "Exists"}])
        assert why(api, place, name, reason, _PROFILE).actor is Actor.OWNER


@pytest.mark.long
def test_a_full_pool(
    control_plane: ControlPlane, cluster_autoscaler: Path, tmp_path: Path, place: str
) -> None:
    """The real autoscaler creates a node for a Job; its pool is then at its maximum for another."""
    api, size = control_plane.api, {"resources": {"requests": {"cpu": "3"}}}
    submit(api, place, "first", container=size)
    with _deciding(control_plane, cluster_autoscaler, tmp_path, aks_pool("small", maximum=1), 1):
        assert _reason(api, place, "first") == "NodeStarting"
    submit(api, place, "second", container=size)
    with _deciding(control_plane, cluster_autoscaler, tmp_path, aks_pool("small", maximum=1), 2):
        # Either of the Jobs may take the node that is coming.
        assert "PoolFull" in {_reason(api, place, name) for name in ("first", "second")}


@pytest.mark.long
def test_a_stock_out(
    control_plane: ControlPlane, cluster_autoscaler: Path, tmp_path: Path, place: str
) -> None:
    """The real autoscaler backs off from a pool without stock."""
    api = control_plane.api
    submit(api, place, "third", container={"resources": {"requests": {"cpu": "3"}}})
    with _deciding(control_plane, cluster_autoscaler, tmp_path, aks_pool("spot"), 1, no_stock="spot"):
        assert _reason(api, place, "third") == "StockOut"


@contextmanager
def _deciding(
    control_plane: ControlPlane, program: Path, directory: Path, pool: NodePool, pods: int, no_stock: str = ""
) -> Generator[None]:
    """Run the autoscaler on a pool until it has decided for the unschedulable pods."""
    trial = Trial.of(control_plane.api, directory / "real", [pool], "random")
    if no_stock:
        trial.store.inject(InjectedFault(NO_STOCK, no_stock))
    wait(
        lambda: sum(item.unschedulable for item in trial.reader.snapshot().pods), lambda count: count == pods
    )
    groups = NodeGroups(CLUSTER, trial.store, Actuator(control_plane.api), trial.fleet)
    with deciding(control_plane, program, groups, directory) as real:
        real.settled()
        yield


def _reason(api: Api, place: str, name: str) -> str:
    cause = cause_of(read_evidence(api, name, place, clock.now()))
    assert cause is not None
    return cause.reason
