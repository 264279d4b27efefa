"""Load balancers and volumes of users on a real API server: listed, deleted first, or kept."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ebbtide.clients.kubernetes import Api
from ebbtide.operations.engine.state import ObjectReference, State
from ebbtide.operations.leftovers import users
from ebbtide.values import clock
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from rehearsal.tests.control_plane.cluster import Object, wait
from rehearsal.tests.engine.projects import project_in
from tests.unit.operations.objects import PROFILE

pytestmark = pytest.mark.rehearsal

STATE = State(
    resources=3,
    protected=(),
    owns_cluster=True,
    buckets=(),
    registries=(),
    objects=frozenset(
        {
            ObjectReference("Service", "default", "of-the-stack"),
            ObjectReference("Namespace", "", "kueue-system"),
        }
    ),
    teams=frozenset(),
)
_DEFAULT = "/api/v1/namespaces/default"
_SERVICE = "service.kubernetes.io/load-balancer-cleanup"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


@pytest.fixture
def api(control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    """Return the API of a cluster with users' load balancers and without a service controller."""
    monkeypatch.setattr(users, "_STEP", 0.1)
    api = control_plane.api
    for name, kind, finalizers in (
        ("web", "LoadBalancer", [_SERVICE]),
        ("inside", "ClusterIP", []),
        ("of-the-stack", "LoadBalancer", []),
    ):
        spec = {"type": kind, "ports": [{"port": 80}]}
        api.create(f"{_DEFAULT}/services", _object("v1", "Service", name, spec=spec, finalizers=finalizers))
    for name, of in (("gke", {}), ("nginx", {"ingressClassName": "nginx"})):
        spec = {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}, **of}
        path = "/apis/networking.k8s.io/v1/namespaces/default/ingresses"
        api.create(path, _object("networking.k8s.io/v1", "Ingress", name, spec=spec))
    yield api
    for path in ("/apis/networking.k8s.io/v1/ingresses", "/api/v1/services", "/apis/apps/v1/statefulsets"):
        for item in api.items(path):
            if item["metadata"]["name"] != "kubernetes":
                group, _, plural = path.rpartition("/")
                item_path = (
                    f"{group}/namespaces/{item['metadata']['namespace']}/{plural}/{item['metadata']['name']}"
                )
                api.patch(item_path, {"metadata": {"finalizers": []}})
                api.delete(item_path)
    for item in api.items("/api/v1/persistentvolumes"):
        path = f"/api/v1/persistentvolumes/{item['metadata']['name']}"
        api.patch(path, {"spec": {"persistentVolumeReclaimPolicy": "Delete"}})
    for item in api.items("/api/v1/pods"):
        api.delete(f"{_DEFAULT}/pods/{item['metadata']['name']}", gracePeriodSeconds=0)
    for item in api.items("/api/v1/persistentvolumeclaims"):
        api.delete(f"{_DEFAULT}/persistentvolumeclaims/{item['metadata']['name']}")
    wait(control_plane.disks, lambda disks: not disks)


def _object(version: str, kind: str, name: str, *, finalizers: Sequence[str] = (), **parts: Any) -> Object:
    metadata = {"name": name, "namespace": "default", "finalizers": list(finalizers)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


def _put_volume(api: Api) -> str:
    """Let a StatefulSet have a claim, bound to a disk; return the name of its PersistentVolume."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "worker"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }
    if api.find("/api/v1/nodes/worker") is None:
        api.create("/api/v1/nodes", node)
    container = {"name": "db", "image": "db", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    labels = {"app": "db"}
    tolerations = [{"operator": "Exists"}]
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}},
    }
    spec = {
        "serviceName": "db",
        "selector": {"matchLabels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [container], "tolerations": tolerations},
        },
        "volumeClaimTemplates": [claim],
    }
    path = "/apis/apps/v1/namespaces/default/statefulsets"
    api.create(path, _object("apps/v1", "StatefulSet", "db", spec=spec))
    bound = wait(
        lambda: api.find(f"{_DEFAULT}/persistentvolumeclaims/data-db-0"),
        lambda item: bool(item) and item["status"].get("phase") == "Bound",
    )
    assert bound is not None
    return str(bound["spec"]["volumeName"])


def _names(objects: Sequence[users.UserObject]) -> list[str]:
    return [str(item) for item in objects]


def test_users_load_balancers_and_volumes_end_first(
    api: Api, control_plane: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the workload that holds a claim; a controller that runs is waited for, and the finalizer of one
    that is gone is removed."""
    _put_volume(api)
    objects = users.list_objects(api, CloudKind.GKE, STATE)
    assert _names(objects) == [
        "Ingress gke in default",
        "Service web in default",
        "PersistentVolumeClaim data-db-0 in default, 10Gi",
    ]
    uid = next(item.uid for item in objects if item.name == "web")
    names = users.cloud_names(api)
    assert f"a{uid.replace('-', '')}"[:32] in names.load_balancers
    assert len(names.handles) == 1
    assert len(control_plane.disks()) == 1

    monkeypatch.setattr(users, "_TIMEOUT", 60.0)
    moment = f"{clock.now() + timedelta(hours=1):%Y-%m-%dT%H:%M:%S.%fZ}"
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "cloud-controller-manager", "namespace": "kube-system"},
        "spec": {"renewTime": moment},
    }
    api.create(_LEASES, lease)
    lines: list[str] = []
    assert users.clean_up(api, objects, lines.append) == [f"Service web in default: {_SERVICE}"]
    assert lines == []
    assert control_plane.disks() == ()
    assert api.find("/apis/apps/v1/namespaces/default/statefulsets/db") is None

    api.delete(f"{_LEASES}/cloud-controller-manager")
    monkeypatch.setattr(users, "_TIMEOUT", 0.5)
    assert users.clean_up(api, objects, lines.append) == []
    assert lines[0].startswith(f"Service web in default: its finalizer {_SERVICE} is removed")
    left = {item["metadata"]["name"] for item in api.items(f"{_DEFAULT}/services")}
    assert {"inside", "of-the-stack"} <= left
    assert "web" not in left
    assert api.find("/apis/networking.k8s.io/v1/namespaces/default/ingresses/nginx") is not None


@pytest.mark.parametrize("flags", [(), ("--keep-volumes",)])
def test_destroy_deletes_them_before_the_cluster(
    api: Api, control_plane: ControlPlane, kubeconfig: str, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    """Users' objects are listed and deleted with their disks before the cluster; with --keep-volumes the disk
    is kept and reported."""
    volume = _put_volume(api)
    api.patch(f"{_DEFAULT}/services/web", {"metadata": {"finalizers": []}})
    project = project_in(tmp_path)
    outputs = {"kubeconfig": kubeconfig, "placementProfile": PROFILE.output()}
    project.holds(
        "dev",
        {"type": "pulumi:pulumi:Stack", "name": "tried-dev", "outputs": outputs},
        {"type": "gcp:container/cluster:Cluster", "name": "train"},
    )
    listed = "  PersistentVolumeClaim data-db-0 in default, 10Gi\n"
    status, out, errors = project.destroy("dev", *flags)
    assert (status, errors) == (1, "")
    assert "  Service web in default\n" in out
    assert listed in out
    assert len(control_plane.disks()) == 1
    status, out, errors = project.destroy("dev", "--yes", *flags)
    assert (status, errors) == (1 if flags else 0, ""), out
    assert "Stack dev is destroyed." in out
    services = {item["metadata"]["name"] for item in api.items(f"{_DEFAULT}/services")}
    assert "web" not in services
    if flags:
        assert f"Kept, with the disks that they own:\n{listed}" in out
        assert f"  volume {volume} of claim default/data-db-0, 10Gi, disk {volume}" in out
        assert [disk.name for disk in control_plane.disks()] == [volume]
    else:
        assert control_plane.disks() == ()
