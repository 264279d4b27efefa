"""Pods that run as processes: command, environment, files, and the logs that remain."""

import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from ebbtide.clients.kubernetes import Api
from ebbtide_rehearsal.cloud.control_planes import kept_log
from ebbtide_rehearsal.cloud.node_pools.pod_containers import ROOT, Container, ContainerError, prepare
from ebbtide_rehearsal.cloud.node_pools.pod_processes import Guard, log_file
from ebbtide_rehearsal.control_plane.volumes import NotMountedError


class _Api:
    """An API server with a ConfigMap and a bound claim."""

    def find(self, path: str) -> dict[str, Any] | None:
        objects: dict[str, dict[str, Any]] = {
            "/api/v1/namespaces/n/configmaps/settings": {
                "data": {"RATE": "0.1"},
                "binaryData": {"archive": "AAE="},
            },
            "/api/v1/namespaces/n/persistentvolumeclaims/state": {"spec": {"volumeName": "pvc-1"}},
            "/api/v1/namespaces/n/persistentvolumeclaims/late": {"spec": {}},
            "/api/v1/namespaces/n/persistentvolumeclaims/shared": {"spec": {"volumeName": "vision-shared"}},
            "/api/v1/persistentvolumes/vision-shared": {
                "spec": {"csi": {"driver": "gcsfuse.csi.storage.gke.io", "volumeHandle": "acme-vision"}}
            },
        }
        return objects.get(path)


def _prepare(directory: Path, volumes: list[dict[str, Any]] | None = None, **container: Any) -> Container:
    annotations = {"batch.kubernetes.io/job-completion-index": "3"}
    pod = {
        "metadata": {"name": "p", "namespace": "n", "annotations": annotations},
        "spec": {"containers": [{"name": "main", **container}], "volumes": volumes or [], "nodeName": "node"},
    }
    return prepare(cast("Api", _Api()), pod, directory / "root", directory / "shared")


def test_mounts_are_where_the_command_is_told(tmp_path: Path) -> None:
    """Paths of mounts in words and environment lead to the volume's directory, which outlives the pod; paths
    that only look alike are left alone."""
    prepared = _prepare(
        tmp_path,
        [{"name": "v", "persistentVolumeClaim": {"claimName": "state"}}],
        volumeMounts=[{"name": "v", "mountPath": "/state"}],
        command=["run", "--out=/state/last", "/state", "/stateful", "gs://b/state"],
        env=[{"name": "WHERE", "value": "/state/x"}],
    )
    root = f"{tmp_path}/root"
    assert prepared.command == (
        "run",
        f"--out={root}/state/last",
        f"{root}/state",
        "/stateful",
        "gs://b/state",
    )
    assert prepared.environment["WHERE"] == f"{root}/state/x"
    assert prepared.environment[ROOT] == root
    (tmp_path / "root/state/file").write_text("kept")
    assert (tmp_path / "shared/disks/pvc-1/file").read_text() == "kept"


def test_a_folder_of_a_volume(tmp_path: Path) -> None:
    """A folder of a volume may have a variable of the container in its name."""
    index = {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}
    _prepare(
        tmp_path,
        [{"name": "v", "persistentVolumeClaim": {"claimName": "state"}}],
        volumeMounts=[
            {"name": "v", "mountPath": "/one", "subPath": "runs"},
            {"name": "v", "mountPath": "/each", "subPathExpr": "runs/$(INDEX)"},
        ],
        command=["run"],
        env=[{"name": "INDEX", "valueFrom": {"fieldRef": index}}],
    )
    (tmp_path / "root/each/file").write_text("kept")
    assert (tmp_path / "root/one/3/file").read_text() == "kept"


def test_the_environment_is_a_kubelet_s(tmp_path: Path) -> None:
    """Fields of the pod, keys of ConfigMaps, and references between variables, in arguments too."""
    prepared = _prepare(
        tmp_path,
        command=["run", "$(INDEX)", "$$(INDEX)", "$(UNKNOWN)"],
        envFrom=[{"configMapRef": {"name": "settings"}, "prefix": "MY_"}],
        env=[
            {
                "name": "INDEX",
                "valueFrom": {
                    "fieldRef": {
                        "fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"
                    }
                },
            },
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "RATE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "RATE"}}},
        ],
    )
    assert prepared.command == ("run", "3", "$(INDEX)", "$(UNKNOWN)")
    expected = {"INDEX": "3", "NODE": "node", "RATE": "0.1", "MY_RATE": "0.1"}
    assert prepared.environment.items() >= expected.items()


def test_what_is_missing_is_said_as_a_kubelet_says_it(tmp_path: Path) -> None:
    """No command, no ConfigMap, no bound claim."""
    with pytest.raises(ContainerError, match="no command specified"):
        _prepare(tmp_path)
    with pytest.raises(ContainerError, match="configmap 'none' not found"):
        _prepare(tmp_path, command=["x"], envFrom=[{"configMapRef": {"name": "none"}}])
    late = [{"name": "v", "persistentVolumeClaim": {"claimName": "late"}}]
    with pytest.raises(NotMountedError, match="'late' is not bound"):
        _prepare(tmp_path, late, command=["x"], volumeMounts=[{"name": "v", "mountPath": "/v"}])


def test_guarded_processes_end_with_their_guard() -> None:
    """Removed processes end at once, the others when the guard is closed."""
    guard = Guard()
    sleep = [sys.executable, "-c", "import time; time.sleep(3600)"]
    children = [subprocess.Popen(sleep, process_group=0) for _ in range(3)]
    for child in children:
        guard.add(child.pid)
    guard.drop(children[1].pid)
    assert children[1].wait(600) == -9
    assert children[0].poll() is None
    guard.close()
    assert [child.wait(600) for child in children] == [-9, -9, -9]


_PATH = "/api/v1/namespaces/vision/pods/train-0/log"


def test_the_last_lines_of_a_pod_remain(tmp_path: Path) -> None:
    """A thousand lines of that pod, and nothing for other requests, pods and paths, nor again for a reader
    that has lines already."""
    file = log_file(tmp_path, "vision", "train-0")
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"line {number}\n" for number in range(1500)))
    kept = kept_log(tmp_path, "GET", _PATH, {}).splitlines()
    assert (kept[0], kept[-1]) == ("line 500", "line 1499")
    assert kept_log(tmp_path, "DELETE", _PATH, {}) == ""
    assert kept_log(tmp_path, "GET", _PATH, {"sinceTime": "2026-11-27T09:00:00Z"}) == ""
    for path in (
        _PATH.replace("train-0", "other"),
        _PATH.replace("vision", ".."),
        _PATH.removesuffix("/log"),
    ):
        assert kept_log(tmp_path, "GET", path, {}) == ""
