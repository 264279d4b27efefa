"""A control plane on this machine: addresses, processes, routes into the cluster, programs of its pods."""

import gc
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from components.addons.kueue import configuration
from components.addons.patches import Object
from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.model.declare import declare
from ebbtide_rehearsal.addons import JOBSET, REHEARSED, Assignment, kueue_out_of_cluster
from ebbtide_rehearsal.cloud.control_planes import ApiServerProxy
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane import plan as arguments_of
from ebbtide_rehearsal.control_plane.plan import (
    KUBELET_PORT,
    LOCALHOST,
    NODE_ADDRESS,
    ControlPlanePlan,
    Identities,
    issue,
)
from ebbtide_rehearsal.control_plane.processes import AddressTakenError, ControlPlaneError, Processes
from ebbtide_rehearsal.control_plane.program_pods import environment
from ebbtide_rehearsal.control_plane.routes import NoRouteError, Routes
from ebbtide_rehearsal.control_plane.volumes import NotMountedError, mount
from tests.declarations import GKE
from tests.repository import ROOT


@pytest.fixture
def plan(tmp_path: Path) -> ControlPlanePlan:
    """A plan of which nothing has started."""
    return ControlPlanePlan(
        name="planned",
        cloud="gke",
        directory=tmp_path,
        sockets=tmp_path / "s",
        etcd_port=1111,
        api_port=2222,
        certificates=issue(tmp_path / "certificates"),
        identities=Identities.new({"ada@acme.example": ["vision", "speech"]}),
    )


def test_nothing_listens_beyond_this_machine(plan: ControlPlanePlan) -> None:
    """Every address to listen on is the loopback's, or a socket; controllers and kwok listen nowhere."""
    etcd, api = arguments_of.etcd(plan), arguments_of.api_server(plan)
    listening = [item for item in (*etcd, *api) if item.startswith(("--listen", "--bind-address"))]
    assert len(listening) == 3
    assert all(LOCALHOST in item for item in listening)
    assert f"--socket={plan.sockets}/kubelet" in arguments_of.streaming_server(plan)
    assert not [item for item in arguments_of.kwok(plan) if item.startswith(("--server", "--node-port"))]
    for program in (arguments_of.controller_manager, arguments_of.scheduler):
        assert "--secure-port=0" in program(plan)


def test_a_proxy_that_stops_leaves_no_connection(plan: ControlPlanePlan, tmp_path: Path) -> None:
    """The connection of a client that ends no TLS session itself is closed, too."""
    plane: Any = SimpleNamespace(plan=plan, server=plan.server, api=None)
    trust = ssl.create_default_context(cafile=str(plan.certificates.authority))
    with warnings.catch_warnings(record=True) as leaks:
        warnings.simplefilter("always", ResourceWarning)
        proxy = ApiServerProxy(plane, Store(tmp_path / "cloud.sqlite"), plan.name)
        host, port = proxy.host.split(":")
        with (
            socket.create_connection((LOCALHOST, int(port))) as connection,
            trust.wrap_socket(connection, server_hostname=host) as client,
        ):
            client.sendall(b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 500 " in client.recv(1024)  # no API server has started
            proxy.stop()
        del proxy
        gc.collect()
    assert [str(leak.message) for leak in leaks] == []


_STUBBORN = ["/bin/sh", "-c", "trap '' TERM; echo here; while :; do sleep 1; done"]

_PARENT = """
import sys, threading
from pathlib import Path
from ebbtide_rehearsal.control_plane.processes import Processes

here = Path(sys.argv[1])
processes = Processes()
started = []
for command in (["sleep", "300"], sys.argv[2:]):
    worker = threading.Thread(
        target=lambda: started.append(processes.start("it", command, log=here / "log", directory=here))
    )
    worker.start()
    worker.join()
print(processes.sockets, *(process.child.pid for process in started), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def processes() -> Iterator[Processes]:
    """A group that is closed after the test."""
    with Processes() as group:
        yield group


def _ends(pid: int) -> bool:
    """Return whether a process ends soon; a zombie has ended, too."""
    command = ["/bin/ps", "-o", "stat=", "-p", str(pid)]
    for _ in range(6000):
        listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        if not listed or listed.startswith("Z"):
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_survives(how: signal.Signals, tmp_path: Path) -> None:
    """However the parent ends, its children end, also those that ignore a signal and whose thread is gone."""
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(tmp_path), *_STUBBORN],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        sockets, *children = parent.stdout.readline().split()
        parent.send_signal(how)
    assert len(children) == 2
    assert all(_ends(int(child)) for child in children)
    deadline = time.monotonic() + 600
    while Path(sockets).exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_lost_race_for_a_port_is_told_apart(processes: Processes, tmp_path: Path) -> None:
    """A port that is already in use is a separate error, which is retried with another port."""
    command = ["/bin/sh", "-c", "echo listen tcp 127.0.0.1:1: bind: address already in use; exit 1"]
    process = processes.start("it", command, log=tmp_path / "log", directory=tmp_path)
    process.child.wait()
    assert isinstance(ended := process.ended(), AddressTakenError)
    assert "it ended with status 1" in str(ended)
    assert "address already in use" in str(ended)


def test_what_cannot_be_run_is_said(processes: Processes, tmp_path: Path) -> None:
    """A missing program is one sentence."""
    with pytest.raises(
        ControlPlaneError, match=r"^cart cannot be run: /no/cart: No such file or directory\.$"
    ):
        processes.start("cart", ["/no/cart"], log=tmp_path / "log", directory=tmp_path)


def test_nothing_of_ours_is_handed_on(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy of this machine would lead a control plane away from itself."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example")
    environment = {"GREETING": "hello"}
    process = processes.start(
        "env", ["env"], log=tmp_path / "log", directory=tmp_path, environment=environment
    )
    process.child.wait()
    lines = set((tmp_path / "log").read_text().splitlines())
    assert {f"HOME={tmp_path}", "GREETING=hello", f"PATH={os.defpath}"} <= lines
    assert not [line for line in lines if "PROXY" in line]


KUEUES = Assignment((1, 2, 3, 4), Path("/pod"), "kueue-system")


def test_only_what_must_differ_does() -> None:
    """Everything else of our configuration reaches Kueue as it is."""
    ours = configuration(declare(GKE))
    adapted, _ = kueue_out_of_cluster(ours, KUEUES)
    changed = {key for key in adapted if adapted[key] != ours.get(key)}
    where = {"webhook", "visibilityServer", "metrics", "health", "leaderElection", "namespace"}
    assert changed == where
    assert adapted["metrics"]["enableClusterQueueResources"] is True
    assert adapted["leaderElection"]["leaderElect"] is True
    assert ours["webhook"] == {"port": 10250}


def test_default_ports_are_of_each_program() -> None:
    """A configuration without ports has those of Kueue, or of Katib."""
    (katib,), katibs = REHEARSED["katib"].programs, Assignment((1, 2, 3), Path("/pod"), "kubeflow")
    assert kueue_out_of_cluster({}, KUEUES)[1].ports == {9443: 1, 8443: 2, 8081: 3, 8082: 4}
    assert katib.out_of_cluster({}, katibs)[1].ports == {
        8443: 1,
        8080: 2,
        18080: 3,
    }


class _Objects:
    """An API server that has these objects, by path."""

    def __init__(self, objects: dict[str, Any]) -> None:
        self.objects = objects

    def items(self, path: str, **_: Any) -> list[dict[str, Any]]:
        """A list."""
        return self.objects.get(path, [])

    def find(self, path: str) -> dict[str, Any] | None:
        """An object."""
        return self.objects.get(path)


def _routes(open_ports: frozenset[int] | None, target: int, *, ready: bool = True) -> Routes:
    """The way to a service on port 443 of 10.96.0.7, with one pod behind it."""
    service = {
        "metadata": {"namespace": "n", "name": "s"},
        "spec": {"clusterIPs": ["10.96.0.7"], "ports": [{"port": 443}]},
    }
    endpoint = {"addresses": ["10.80.0.1"], "conditions": {"ready": ready}}
    slices = [{"ports": [{"name": "", "port": target}], "endpoints": [endpoint]}]
    objects = {
        "/api/v1/services": [service],
        "/apis/discovery.k8s.io/v1/namespaces/n/endpointslices": slices,
    }
    routes = Routes(cast("Api", _Objects(objects)), open_ports, Path("/sockets/kubelet"))
    routes.add("10.80.0.1", {10250: 40000})
    return routes


def test_a_kubelet_is_reached_on_its_socket() -> None:
    """Node's address and port lead to the streaming server, unless the firewall closes the port."""
    assert _routes(None, 443)(NODE_ADDRESS, KUBELET_PORT) == Path("/sockets/kubelet")
    with pytest.raises(NoRouteError, match="port 10250 is closed"):
        _routes(frozenset({443}), 443)(NODE_ADDRESS, KUBELET_PORT)


@pytest.mark.parametrize(
    ("routes", "host", "port", "why"),
    [
        (_routes(None, 10250), "10.96.0.9", 443, "is not a service of this cluster"),
        (_routes(None, 10250), "10.96.0.7", 80, "no ready pod behind port 80 of service n/s"),
        (_routes(None, 10250, ready=False), "10.96.0.7", 443, "no ready pod behind port 443 of service n/s"),
        (_routes(None, 9443), "10.96.0.7", 443, "no ready pod behind port 443 of service n/s"),
        (_routes(frozenset({443, 10250}), 9443), "10.96.0.7", 443, "port 9443 is closed"),
    ],
    ids=["no service", "no port", "not ready", "another port", "closed port"],
)
def test_what_a_cluster_does_not_reach_is_not_reached(routes: Routes, host: str, port: int, why: str) -> None:
    """A wrong target port and a port that the firewall closes fail as they do in a cloud."""
    with pytest.raises(NoRouteError, match=why):
        routes(host, port)


POD: dict[str, Any] = {
    "metadata": {"namespace": "n", "name": "p"},
    "spec": {
        "volumes": [
            {"name": "told", "configMap": {"name": "c"}},
            {"name": "keys", "secret": {"secretName": "s"}},
            {"name": "room", "emptyDir": {}},
            {"name": "kube-api-access", "projected": {"sources": []}},
        ],
        "containers": [
            {
                "volumeMounts": [
                    {"name": "told", "mountPath": "/told.yaml", "subPath": "file"},
                    {"name": "keys", "mountPath": "/keys"},
                    {"name": "room", "mountPath": "/room"},
                    {"name": "kube-api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
                ]
            }
        ],
    },
}


def test_mounts_follow_their_secret(tmp_path: Path) -> None:
    """A Secret that fills up and changes shows as it is; a file mounted by itself stays as it was."""
    secret, config_map = "/api/v1/namespaces/n/secrets/s", "/api/v1/namespaces/n/configmaps/c"
    fake_api = _Objects({secret: {}, config_map: {"data": {"file": "first"}}})
    api = cast("Api", fake_api)
    mount(api, POD, tmp_path)
    assert not [file for file in (tmp_path / "keys").iterdir() if not file.name.startswith(".")]
    for data, texts in (
        ({"a": "b25l", "b": "dHdv"}, {"a": "one", "b": "two"}),
        ({"b": "b25l"}, {"b": "one"}),
    ):
        fake_api.objects |= {secret: {"data": data}, config_map: {"data": {"file": "second"}}}
        mount(api, POD, tmp_path)
        files = [file for file in (tmp_path / "keys").iterdir() if not file.name.startswith(".")]
        assert {file.name: file.read_text() for file in files} == texts
    assert (tmp_path / "told.yaml").read_text() == "first"
    assert (tmp_path / "room").is_dir()
    account = tmp_path / "var/run/secrets/kubernetes.io/serviceaccount"
    assert [(file.name, file.read_text()) for file in account.iterdir()] == [("namespace", "n")]


def test_a_missing_secret_is_named(tmp_path: Path) -> None:
    """A missing Secret is reported in a kubelet's words, so that the pod's status is read the same way."""
    api = cast("Api", _Objects({"/api/v1/namespaces/n/configmaps/c": {"data": {"file": "x"}}}))
    with pytest.raises(NotMountedError, match="secret 's' not found"):
        mount(api, POD, tmp_path)


def test_a_pod_that_names_no_configuration_is_not_run() -> None:
    """A pod without a configuration does not run, and its status has the reason."""
    with pytest.raises(ControlPlaneError, match="jobset is given no --config=FILE"):
        JOBSET.configuration(["--zap-log-level=2"])


def _pod(*variables: Object) -> Object:
    return {
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"containers": [{"env": list(variables)}]},
    }


def _field(path: str) -> Object:
    return {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": path}}}


@pytest.mark.parametrize(
    "variable",
    [
        _field("status.podIP"),
        _field("metadata"),
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ],
    ids=["not there", "no text", "a Secret's"],
)
def test_other_variables_are_named(variable: Object) -> None:
    """The pod waits, and says for what."""
    with pytest.raises(NotMountedError, match="variable A"):
        environment(_pod(variable))
