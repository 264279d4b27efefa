"""Kueue outside of a cluster: what changes of its configuration, and the way to it."""

from pathlib import Path
from typing import Any, cast

import pytest

from components.addons.kueue import configuration
from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.model.declare import declare
from ebbtide_rehearsal.addons.kueue import out_of_cluster
from ebbtide_rehearsal.control_plane.plan import KUBELET_PORT, NODE_ADDRESS
from ebbtide_rehearsal.control_plane.program import Assignment
from ebbtide_rehearsal.control_plane.routes import NoRouteError, Routes
from ebbtide_rehearsal.control_plane.volumes import NotMountedError, mount
from tests.declarations import GKE

ASSIGNMENT = Assignment((1, 2, 3, 4), Path("/pod"), "kueue-system")


def test_only_what_must_differ_does() -> None:
    """Everything else of our configuration reaches Kueue as it is."""
    ours = configuration(declare(GKE))
    adapted, _ = out_of_cluster(ours, ASSIGNMENT)
    changed = {key for key in adapted if adapted[key] != ours.get(key)}
    where = {"webhook", "visibilityServer", "metrics", "health", "leaderElection", "namespace"}
    assert changed == where
    assert adapted["metrics"]["enableClusterQueueResources"] is True
    assert adapted["leaderElection"]["leaderElect"] is True
    assert ours["webhook"] == {"port": 10250}


def test_ports_of_the_pod_lead_to_ports_of_the_machine() -> None:
    """Ports are those of the configuration, or Kueue's defaults."""
    _, ours = out_of_cluster(configuration(declare(GKE)), ASSIGNMENT)
    _, default = out_of_cluster({}, ASSIGNMENT)
    assert ours.ports == {10250: 1, 8443: 2, 8081: 3, 443: 4}
    assert default.ports == {9443: 1, 8443: 2, 8081: 3, 8082: 4}
    assert ours.health == default.health == 3


def test_certificates_are_where_the_pod_mounts_them() -> None:
    """Below the directory of the container's root, whatever the configured path."""
    adapted, _ = out_of_cluster({"webhook": {"certDir": "/certs"}}, ASSIGNMENT)
    assert adapted["webhook"]["certDir"] == "/pod/certs"


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


def test_a_service_leads_to_the_process_behind_it() -> None:
    """By its address, its port, its target port and the pod's address."""
    assert _routes(frozenset({443, 10250}), 10250)("10.96.0.7", 443) == ("127.0.0.1", 40000)


def test_a_kubelet_is_reached_on_its_socket() -> None:
    """Node's address and port lead to kwok, unless the firewall closes the port."""
    assert _routes(None, 443)(NODE_ADDRESS, KUBELET_PORT) == Path("/sockets/kubelet")
    with pytest.raises(NoRouteError, match="port 10250 is closed"):
        _routes(frozenset({443}), 443)(NODE_ADDRESS, KUBELET_PORT)


@pytest.mark.parametrize(
    ("routes", "host", "port", "why"),
    [
        (_routes(None, 10250), "10.96.0.9", 443, "is no service of this cluster"),
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
