"""Faults between the API server and what `ebbtide sleep`, `wake`, `up` and `destroy` change on a cluster.

To the API server, a killed command is one whose later requests are not sent: it is run again.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes import api as client
from ebbtide.operations import sleep, work
from ebbtide.operations.engine.state import State
from ebbtide.operations.leftovers import users
from ebbtide.operations.update import pool_replacement
from ebbtide.operations.update.pool_replacement import DrainedPool
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.kueue_api import ASLEEP
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from rehearsal.tests.control_plane.cluster import Object, namespace, node
from rehearsal.tests.control_plane.fault_proxy import Fault, FaultProxy
from rehearsal.tests.control_plane.kueue import define

pytestmark = [pytest.mark.rehearsal, pytest.mark.timeout(7200)]

_PLACE = "operated"
_CORE = f"/api/v1/namespaces/{_PLACE}"
_KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
_FINALIZER = "service.kubernetes.io/load-balancer-cleanup"
_QUEUE = f"{_KUEUE}/clusterqueues/cpu"
_POOL = DrainedPool("cpu", "pool", "cpu-old", timedelta())
_STATE = State(
    resources=1,
    protected=(),
    owns_cluster=True,
    buckets=(),
    registries=(),
    objects=frozenset(),
    teams=frozenset(),
)
_FAULTS = (Fault.LOST, Fault.GONE, Fault.BUSY, Fault.ERROR, Fault.LATE)


@dataclass(frozen=True, slots=True)
class _Operation:
    """Changes of a command on a cluster.

    Attributes:
        prepare: brings the cluster into the state before it.
        run: makes the changes.
        is_done: tells whether they are made.
    """

    prepare: Callable[[Api], object]
    run: Callable[[Api], object]
    is_done: Callable[[Api], bool]


def _with_queue(api: Api, annotations: dict[str, str], policy: str) -> None:
    spec: Object = {"stopPolicy": policy, "namespaceSelector": {}}
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue"}
    api.delete(_QUEUE)
    api.create(
        f"{_KUEUE}/clusterqueues",
        {**body, "metadata": {"name": "cpu", "annotations": annotations}, "spec": spec},
    )


def _queue(api: Api) -> tuple[str | None, str]:
    item = api.get(_QUEUE)
    return item["metadata"].get("annotations", {}).get(ASLEEP), item["spec"]["stopPolicy"]


def _with_pods(api: Api) -> None:
    api.patch(
        "/api/v1/nodes/worker",
        {"metadata": {"annotations": {pool_replacement.SINCE: None}}, "spec": {"unschedulable": None}},
    )
    for name in ("a", "b"):
        container = {"name": "main", "image": "busybox"}
        spec = {"nodeName": "worker", "restartPolicy": "Always", "containers": [container]}
        api.create(
            f"{_CORE}/pods", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        )


def _is_drained(api: Api) -> bool:
    return api.get("/api/v1/nodes/worker")["spec"].get("unschedulable") is True and not api.items(
        f"{_CORE}/pods"
    )


def _with_load_balancers(api: Api, finalizers: Sequence[str] = (_FINALIZER,)) -> None:
    for name in ("web", "api"):
        spec = {"type": "LoadBalancer", "ports": [{"port": 80}]}
        metadata = {"name": name, "finalizers": list(finalizers)}
        api.create(
            f"{_CORE}/services", {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
        )


def _clean_up(api: Api) -> None:
    users.clean_up(api, users.list_objects(api, CloudKind.GKE, _STATE), lambda _: None)


_OPERATIONS = {
    "sleep": _Operation(
        lambda api: _with_queue(api, {}, "None"),
        lambda api: sleep.hold(api, ["cpu"], drain=True),
        lambda api: _queue(api) == ("None", "HoldAndDrain"),
    ),
    "wake": _Operation(
        lambda api: _with_queue(api, {ASLEEP: "None"}, "HoldAndDrain"),
        lambda api: sleep.release(api, ["cpu"]),
        lambda api: _queue(api) == (None, "None"),
    ),
    "up": _Operation(
        _with_pods, lambda api: pool_replacement.drain(api, [_POOL], lambda _: None), _is_drained
    ),
    "destroy": _Operation(_with_load_balancers, _clean_up, lambda api: not api.items(f"{_CORE}/services")),
}


@pytest.fixture(scope="module")
def proxy(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultProxy]:
    """A proxy before a cluster with a node, and Kueue's queues without Kueue."""
    api = control_plane.api
    define(api, "clusterqueues")
    namespace(api, _PLACE)
    node(api, "worker", labels={"pool": "cpu-old"})
    made = FaultProxy(
        control_plane, Store(tmp_path_factory.mktemp("faults") / "store"), control_plane.plan.name
    )
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make all pauses short."""
    monkeypatch.setattr(client, "_PAUSES", (0.05, 0.05, 0.05))
    monkeypatch.setattr(sleep, "_WEBHOOKS", 0.2)
    monkeypatch.setattr(sleep, "_WEBHOOKS_STEP", 0.1)
    monkeypatch.setattr(work, "_DRAIN_STEP", 0.1)
    monkeypatch.setattr(users, "_TIMEOUT", 0.5)
    for module in (pool_replacement, users):
        monkeypatch.setattr(module, "_STEP", 0.1)


def _requests(api: Api, proxied: Api, proxy: FaultProxy, operation: _Operation) -> int:
    """Return the number of requests up to the last change."""
    operation.prepare(api)
    proxy.inject()
    operation.run(proxied)
    assert operation.is_done(api)
    return 1 + max(number for number, line in enumerate(proxy.requests) if not line.startswith("GET "))


@pytest.mark.parametrize("faults", [1, pytest.param(len(_FAULTS), marks=pytest.mark.long)])
@pytest.mark.parametrize("name", list(_OPERATIONS))
def test_an_operation_with_a_fault(
    control_plane: ControlPlane, proxy: FaultProxy, tmp_path: Path, name: str, faults: int
) -> None:
    """Each request of an operation meets a fault: it makes its changes nevertheless, or when it is run again
    after a kill."""
    operation, api = _OPERATIONS[name], control_plane.api
    proxied = Api.of_kubeconfig(yaml.safe_load(proxy.kubeconfig(tmp_path / "kubeconfig").read_text()))
    for at in range(_requests(api, proxied, proxy, operation)):
        for fault in (_FAULTS * 2)[at % len(_FAULTS) :][:faults]:
            operation.prepare(api)
            proxy.inject(fault, at)
            if fault is Fault.GONE:
                with pytest.raises(ApiError):
                    operation.run(proxied)
                proxy.inject()
            operation.run(proxied)
            assert operation.is_done(api), (at, fault, proxy.requests)
    proxied.close()


@pytest.mark.usefixtures("proxy")
def test_an_object_of_the_same_name(control_plane: ControlPlane) -> None:
    """Only what was listed is deleted: a Service that has the name by then stays."""
    api = control_plane.api
    _with_load_balancers(api, finalizers=[])
    listed = users.list_objects(api, CloudKind.GKE, _STATE)
    for name in ("web", "api"):
        api.delete(f"{_CORE}/services/{name}")
    _with_load_balancers(api, finalizers=[])
    users.delete(api, listed)
    assert len(api.items(f"{_CORE}/services")) == len(listed) == 2
    _clean_up(api)
    assert api.items(f"{_CORE}/services") == []
