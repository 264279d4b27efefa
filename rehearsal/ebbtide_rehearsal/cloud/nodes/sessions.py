"""`kubectl logs`, `attach`, `exec` and `port-forward` for pods whose command runs as a process.

kwok, as these pods' kubelet, follows its kinds ClusterLogs, ClusterAttach, ClusterExec and ClusterPortForward
(kwok docs, 0.8), each with an object per pod. `attach` shows the output and takes no input. `port-forward`
reaches declared ports only.
"""

import contextlib
import os
import signal
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from ebbtide.clients.kubernetes import Api
from ebbtide_rehearsal.cloud.nodes.container import ROOT, Container
from ebbtide_rehearsal.cloud.nodes.pods import Pod
from ebbtide_rehearsal.control_plane.ports import LOCALHOST

_VERSION: Final = "kwok.x-k8s.io/v1alpha1"
_LOGS: Final = "clusterlogs"
_KINDS: Final = {
    _LOGS: "ClusterLogs",
    "clusterattaches": "ClusterAttach",
    "clusterexecs": "ClusterExec",
    "clusterportforwards": "ClusterPortForward",
}


class Sessions:
    """Write kwok's objects for pods. Logs remain until the pod is deleted, the others until it ends."""

    def __init__(self, api: Api) -> None:
        """Use the cluster of an API server."""
        self._api = api
        self._running: set[str] = set()
        self._logged: set[str] = set()

    def open(self, pod: Pod, container: Container, log: Path, previous: Path | None) -> None:
        """Give access to a container that is about to start.

        Args:
            pod: its pod.
            container: the container.
            log: its log, in the format of the container runtime interface.
            previous: the log before the last restart.
        """
        logs = {"logsFile": str(log)} | ({"previousLogsFile": str(previous)} if previous else {})
        local = {
            "workDir": str(container.directory),
            "envs": [{"name": name, "value": value} for name, value in container.environment.items()],
        }
        forwards = [
            {"ports": [port], "target": {"port": target, "address": LOCALHOST}}
            for port, target in container.ports.items()
        ]
        specs: dict[str, dict[str, Any]] = {
            _LOGS: {"logs": [{"containers": [container.name], **logs}]},
            "clusterattaches": {"attaches": [{"containers": [container.name], "logsFile": str(log)}]},
            "clusterexecs": {"execs": [{"containers": [container.name], "local": local}]},
            "clusterportforwards": {"forwards": forwards},
        }
        selector = {"matchNamespaces": [pod.namespace], "matchNames": [pod.name]}
        for kind, spec in specs.items():
            body = {
                "apiVersion": _VERSION,
                "kind": _KINDS[kind],
                "metadata": {"name": pod.uid},
                "spec": {"selector": selector, **spec},
            }
            self._api.apply(_path(kind, pod.uid), body)
        self._running.add(pod.uid)
        self._logged.add(pod.uid)

    def close(self, running: Collection[str], existing: Collection[str]) -> None:
        """Remove access to pods that have ended, and the logs of deleted ones.

        Args:
            running: uids of the running pods.
            existing: uids of the pods in the API.
        """
        for uid in self._running.difference(running):
            for kind in _KINDS.keys() - {_LOGS}:
                self._api.delete(_path(kind, uid))
            self._running.discard(uid)
        for uid in self._logged.difference(existing):
            self._api.delete(_path(_LOGS, uid))
            self._logged.discard(uid)


def _path(kind: str, uid: str) -> str:
    return f"/apis/{_VERSION}/{kind}/{uid}"


def end_sessions(root: Path) -> None:
    """Kill the processes that `kubectl exec` started in a container, on systems with /proc.

    Args:
        root: directory that serves as the root of its file system.
    """
    mark = f"{ROOT}={root}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (process / "environ").read_bytes().split(b"\0") and int(process.name) != os.getpid():
                os.kill(int(process.name), signal.SIGKILL)
