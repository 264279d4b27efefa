"""Faults between the API server and what `ebbtide sleep`, `wake`, `up` and `destroy` change on a cluster.

To the API server, a killed command is one whose later requests are not sent: it is run again.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from ebbtide_rehearsal.cloud.ids import NODE_POOL
from ebbtide_rehearsal.cloud.pools import all_pools, register
from ebbtide_rehearsal.cloud.rest.access import rest_access
from ebbtide_rehearsal.cloud.store import Resource, Store
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from rehearsal.tests.control_plane.cluster import Object, namespace, node
from rehearsal.tests.control_plane.fault_proxy import ONCE, Fault, FaultProxy, with_faults
from rehearsal.tests.control_plane.kueue import define
from rehearsal.tests.control_plane.node_pools import CLUSTER, work_pool
from rehearsal.tests.engine.projects import Project, lifetime, project_in
from tests.unit.operations.objects import PROFILE

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


def _holding(project: Project, proxy: FaultProxy, file: Path, *resources: Object) -> Callable[[], object]:
    """Return a function that lets the stack `dev` hold resources of a cluster whose API server is the proxy,
    and nothing else."""
    outputs = {"kubeconfig": proxy.kubeconfig(file).read_text(), "placementProfile": PROFILE.output()}
    stack = {"type": "pulumi:pulumi:Stack", "name": "tried-dev", "outputs": outputs}
    project.holds("dev", stack, *resources)
    held = {path: path.with_name(f"{path.name}-held") for path in (project.root, project.state)}

    def copied(copies: Mapping[Path, Path]) -> None:
        for source, target in copies.items():
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(source, target)

    copied(held)
    return lambda: copied({copy: path for path, copy in held.items()})


@pytest.mark.long
@pytest.mark.parametrize("shift", range(len(ONCE)))
@pytest.mark.parametrize("command", ["destroy", "reap"])
def test_a_destroy_with_a_fault(
    control_plane: ControlPlane, proxy: FaultProxy, tmp_path: Path, command: str, shift: int
) -> None:
    """Each request of `ebbtide destroy` and `ebbtide reap` meets a fault: the stack is destroyed, and users'
    load balancers with it."""
    api, project = control_plane.api, project_in(tmp_path)
    cluster = {"type": "gcp:container/cluster:Cluster", "name": "train"}

    hold = _holding(project, proxy, tmp_path / "kubeconfig", cluster, *lifetime(-1))

    def begin() -> None:
        _with_load_balancers(api, finalizers=[])
        hold()

    def is_done() -> bool:
        return not api.items(f"{_CORE}/services")

    with_faults(lambda: project.start(command, "dev", "--yes"), proxy, begin, is_done, shift)


@pytest.mark.long
@pytest.mark.parametrize("shift", range(len(ONCE)))
@pytest.mark.parametrize("command", ["sleep", "wake"])
def test_a_sleep_with_a_fault(
    control_plane: ControlPlane, proxy: FaultProxy, tmp_path: Path, command: str, shift: int
) -> None:
    """Each request of `ebbtide sleep` and `ebbtide wake` to the API server meets a fault: the queue is held
    or released, and the node pool is stopped or runs."""
    api, store, asleep = control_plane.api, Store(tmp_path / "cloud.sqlite"), command == "sleep"
    nodes, pool = f"{CLUSTER}/nodePools/work", work_pool("work", autoscaled=False)
    running = {"initial": 1, "minimum": 1, "maximum": 1}
    stopped = dict.fromkeys(running, 0)
    before: tuple[dict[str, str], str] = ({}, "None")
    after: tuple[dict[str, str], str] = ({ASLEEP: "None"}, "HoldAndDrain")
    if not asleep:
        running, stopped, before, after = stopped, running, after, before
    resources: tuple[Object, ...] = (
        {"type": "gcp:container/cluster:Cluster", "name": "train", "custom": True, "id": CLUSTER},
        {"type": NODE_POOL, "name": "work", "custom": True, "id": nodes, "inputs": {"nodeCount": 1}},
        {
            "type": "kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue",
            "name": "cpu",
            "custom": True,
            "id": "cpu",
            "outputs": {"metadata": {"name": "cpu"}},
        },
    )
    words = (command, "dev", *(["--now"] if asleep else []))
    with rest_access(tmp_path, store, tmp_path / "trusted.pem") as access:
        made = project_in(tmp_path)
        project = replace(made, environment=made.environment | dict(access.environment))
        _holding(project, proxy, tmp_path / "kubeconfig", *resources)

        def begin() -> None:
            _with_queue(api, *before)
            for identity, kind in ((CLUSTER, "gcp:container/cluster:Cluster"), (nodes, NODE_POOL)):
                store.put(Resource("gcp", identity, kind))
            register(store, pool.having(**running))

        def is_done() -> bool:
            (now,) = all_pools(store)
            return _queue(api) == (after[0].get(ASLEEP), after[1]) and now.initial == stopped["initial"]

        with_faults(lambda: project.start(*words), proxy, begin, is_done, shift)
