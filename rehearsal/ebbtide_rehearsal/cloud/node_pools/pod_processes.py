"""Kubelet of pods whose command runs as a process of this machine.

Only a pod's first container runs, or for a pod of Argo Workflows its main container. Its end is the pod's
end: exit status, restarts, signal and grace period are as with a kubelet (Kubernetes docs, Pod Lifecycle,
1.36). For `kubectl logs`, `attach`, `exec` and `port-forward`, the streaming server
(tools/modules/streaming) reads a file per pod. `attach` shows the output and takes no input. `port-forward`
reaches declared ports only. Processes are killed when this process ends, even if it is killed.
"""

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ebbtide.autoscaler.scheduling import Pod
from ebbtide.clients.kubernetes import Api
from ebbtide_rehearsal.cloud.node_pools import pod_containers
from ebbtide_rehearsal.cloud.node_pools.actuator import Actuator
from ebbtide_rehearsal.cloud.node_pools.pod_containers import ROOT, Container, ContainerError, prepare
from ebbtide_rehearsal.control_plane.pod_status import End, now, running, waiting
from ebbtide_rehearsal.control_plane.stages import RUNS, RUNS_FOR
from ebbtide_rehearsal.control_plane.volumes import NotMountedError

_GUARD = """
trap '' TERM INT HUP
groups=' '
while read -r verb group; do
  case $verb in
    add) groups="$groups$group " ;;
    drop) groups="${groups%% $group *} ${groups#* $group }" ;;
  esac
done
for group in $groups; do kill -KILL "-$group"; done
"""
# Waits for EOF on a pipe that only this process holds, which also occurs when it is killed. The `kill` of
# dash takes no `--` before a group.
PROCESSES: Final = "processes"
"""Directory of a cluster's processes, below that of its control plane."""
_START_ERROR: Final = 128
_SIGNALLED: Final = 128
_BACKOFF: Final = 10.0  # seconds, doubled with each restart
_LONGEST_BACKOFF: Final = 300.0


class Guard:
    """Kills the registered process groups once this process has ended."""

    def __init__(self) -> None:
        """Start the guard."""
        self._lock = threading.Lock()
        self._shell = subprocess.Popen(  # noqa: S603 - our own script
            ["/bin/sh", "-c", _GUARD],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            process_group=0,
        )

    def add(self, group: int) -> None:
        """Register a group."""
        self._send(f"add {group}")

    def drop(self, group: int) -> None:
        """Kill a group and unregister it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
        self._send(f"drop {group}")

    def close(self) -> None:
        """Kill all groups."""
        with self._lock:
            if self._shell.stdin is not None:
                self._shell.stdin.close()
            self._shell.wait()

    def _send(self, words: str) -> None:
        with self._lock:
            if self._shell.stdin is not None:
                self._shell.stdin.write(words + "\n")
                self._shell.stdin.flush()


class Sessions:
    """Describe the container of each pod to the streaming server, until the pod is deleted."""

    def __init__(self, directory: Path) -> None:
        """Write into a directory that only this user can read: environments have tokens."""
        self._directory = directory
        self._pods: dict[Path, str] = {}

    def open(self, pod: Pod, container: Container, log: Path, previous: Path | None) -> None:
        """Give access to a container that is about to start.

        Args:
            log: its log, in the format of the container runtime interface; read-only once it has ended.
            previous: the log before the last restart.
        """
        session = {
            "container": container.name,
            "directory": str(container.directory),
            "environment": [f"{name}={value}" for name, value in container.environment.items()],
            "log": str(log),
            "previous": str(previous or ""),
            "ports": dict(container.ports),
        }
        file = self._directory / f"{pod.namespace}_{pod.name}.json"
        unfinished = file.with_suffix(".new")
        unfinished.write_text(json.dumps(session))
        unfinished.replace(file)
        self._pods[file] = pod.uid

    def close(self, existing: Collection[str]) -> None:
        """Remove access to deleted pods.

        Args:
            existing: uids of the pods in the API.
        """
        for file in [file for file, uid in self._pods.items() if uid not in existing]:
            del self._pods[file]
            file.unlink()


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


def log_file(cluster: Path, namespace: str, pod: str) -> Path:
    """Return the file with the whole output of a pod, below the directory of a cluster's processes."""
    return cluster / "logs" / namespace / f"{pod}.log"


def is_process(pod: Pod) -> bool:
    """Return whether a pod's command runs as a process."""
    return pod.annotations.get(RUNS) == "process"


@dataclass(slots=True)
class _Running:
    """A pod's process.

    Attributes:
        pod: the pod, as of the last round.
        child: the process; None between restarts.
        began: its start.
        container_log: the log file for the streaming server since the last restart, in the format of the
            container runtime interface.
        read: number of bytes of the log that were forwarded.
        code: exit status before the last restart.
        again: time of the next restart, on the monotonic clock.
        least: earliest time at which its end is reported, on the monotonic clock.
        kill: end of its grace period; None before SIGTERM.
        shutdown: True if its node shuts down.
    """

    pod: Pod
    child: "subprocess.Popen[bytes] | None"
    began: str
    name: str
    log: Path
    container_log: Path
    read: int = 0
    restarts: int = 0
    code: int = 0
    again: float = 0
    least: float = 0
    kill: float | None = None
    shutdown: bool = False


class ProcessKubelet:
    """Runs pods as processes."""

    def __init__(
        self,
        api: Api,
        actuator: Actuator,
        directory: Path,
        sessions: Path,
        log: Callable[[Pod, str], None],
    ) -> None:
        """Run pods of a cluster.

        Args:
            api: API server of the cluster.
            actuator: writes the pods' status.
            directory: directory for the pods' files and logs.
            sessions: directory of the streaming server.
            log: called with each line of a pod's output.
        """
        self._api, self._actuator, self._directory, self._log = api, actuator, directory, log
        self._guard = Guard()
        self._sessions = Sessions(sessions)
        self._running: dict[str, _Running] = {}
        self._lost: set[str] = set()

    def sync(self, pods: Sequence[Pod], nodes: frozenset[str]) -> None:
        """Start, update and end processes according to the pods in the API.

        Args:
            nodes: the nodes with a running kubelet.
        """
        self._lost &= {pod.uid for pod in pods}
        own_pods = {
            pod.uid: pod
            for pod in pods
            if is_process(pod) and pod.node in nodes and pod.uid not in self._lost
        }
        for uid in self._running.keys() - own_pods.keys():
            self._drop(uid)
        for uid, pod in own_pods.items():
            entry = self._running.get(uid)
            if entry is not None:
                entry.pod = pod
                self._update(entry)
            elif pod.deleting:
                self._gone(pod)
            elif not pod.ended:
                self._begin(pod)
        self._sessions.close({pod.uid for pod in pods})

    def stop_all(self, node: str, grace: float) -> None:
        """Terminate the pods of a node that shuts down, within `grace` seconds at most."""
        for entry in self._running.values():
            if entry.pod.node == node and entry.kill is None:
                entry.shutdown = True
                self._terminate(entry, min(grace, _grace(entry.pod)))

    def busy(self, node: str) -> bool:
        """Return whether a pod of a node is still running."""
        return any(entry.pod.node == node and entry.child is not None for entry in self._running.values())

    def lose(self, node: str) -> None:
        """End the processes of a deleted node, without a status: its kubelet no longer exists."""
        for uid in [uid for uid, entry in self._running.items() if entry.pod.node == node]:
            self._drop(uid)
            self._lost.add(uid)

    def close(self) -> None:
        """End all processes."""
        for uid in list(self._running):
            self._drop(uid)
        self._guard.close()

    def _begin(self, pod: Pod) -> None:
        log = log_file(self._directory, pod.namespace, pod.name)
        log.parent.mkdir(parents=True, exist_ok=True)
        # An earlier pod may have had this name: Argo recreates a lost pod under the same name.
        read = log.stat().st_size if log.exists() else 0
        entry = _Running(pod, None, now(), "", log, self._container_log(pod, 0), read=read)
        self._start(entry)

    def _start(self, entry: _Running) -> None:
        pod = entry.pod
        root = self._root(pod)
        try:
            container = prepare(self._api, dict(pod.raw), root, self._directory / "volumes")
        except NotMountedError as error:
            self._wait(pod, "ContainerCreating", str(error))
            return
        except ContainerError as error:
            self._wait(pod, "CreateContainerConfigError", f"Error: {error}")
            return
        last = End(entry.code, entry.began) if entry.restarts else None
        entry.name, entry.began = container.name, now()
        entry.least = time.monotonic() + float(pod.annotations.get(RUNS_FOR, 0))
        previous = entry.container_log if entry.restarts else None
        entry.container_log = self._container_log(pod, entry.restarts)
        entry.container_log.parent.mkdir(parents=True, exist_ok=True)
        entry.container_log.touch()
        self._sessions.open(pod, container, entry.container_log, previous)
        try:
            with entry.log.open("ab") as log:
                entry.child = subprocess.Popen(  # noqa: S603 - the pod's own command
                    container.command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=container.directory,
                    env=dict(container.environment),
                    process_group=0,
                )
        except OSError as error:
            words = f"exec: {container.command[0]!r}: {error.strerror}"
            self._actuator.end_containers(
                pod, {container.name: End(_START_ERROR, reason="StartError", message=words)}
            )
            return
        self._guard.add(entry.child.pid)
        self._running[pod.uid] = entry
        self._actuator.write_status(pod, running(pod.raw, restarts=entry.restarts, last=last))
        if pod_containers.is_step(pod.raw):
            pod_containers.announce(self._api, pod.raw)

    def _root(self, pod: Pod) -> Path:
        return self._directory / "pods" / pod.uid

    def _container_log(self, pod: Pod, restarts: int) -> Path:
        return self._directory / "container-logs" / pod.uid / f"{restarts}.log"

    def _wait(self, pod: Pod, reason: str, message: str) -> None:
        self._actuator.write_status(pod, waiting(pod.raw, reason, message))

    def _update(self, entry: _Running) -> None:
        self._read(entry)
        if entry.child is None:
            self._between(entry)
            return
        code = entry.child.poll()
        if code is not None and (entry.kill is not None or time.monotonic() >= entry.least):
            self._ended(entry, code)
        elif entry.kill is not None:
            if time.monotonic() >= entry.kill:
                entry.child.kill()
        elif entry.pod.deleting:
            self._terminate(entry, _grace(entry.pod))

    def _between(self, entry: _Running) -> None:
        """Restart an ended process when its backoff is over, unless its pod is being deleted."""
        if entry.pod.deleting:
            self._drop(entry.pod.uid)
            self._gone(entry.pod)
        elif entry.kill is None and time.monotonic() >= entry.again:
            entry.restarts += 1
            self._start(entry)

    def _terminate(self, entry: _Running, grace: float) -> None:
        """Send SIGTERM to the container's first process, and to no other (Kubernetes docs, Pod Lifecycle)."""
        entry.kill = time.monotonic() + grace
        if entry.child is not None:
            with contextlib.suppress(ProcessLookupError):
                entry.child.send_signal(signal.SIGTERM)

    def _ended(self, entry: _Running, status: int) -> None:
        """Restart an ended process, or report its end; a negative status is the signal that ended it."""
        self._read(entry, is_over=True)
        code = _SIGNALLED - status if status < 0 else status
        policy = entry.pod.raw.get("spec", {}).get("restartPolicy", "Always")
        again = policy == "Always" or (policy == "OnFailure" and code != 0)
        if again and entry.kill is None and not entry.pod.deleting:
            if entry.child is not None:
                self._guard.drop(entry.child.pid)
            entry.child, entry.code = None, code
            entry.again = time.monotonic() + min(_BACKOFF * 2**entry.restarts, _LONGEST_BACKOFF)
            return
        ends = {entry.name: End(code, entry.began), **pod_containers.ends(entry.pod.raw, status)}
        if pod_containers.is_step(entry.pod.raw):
            pod_containers.report(self._api, entry.pod.raw, self._root(entry.pod))
        self._actuator.end_containers(entry.pod, ends, shutdown=entry.shutdown)
        self._drop(entry.pod.uid)
        if entry.pod.deleting:
            self._gone(entry.pod)

    def _gone(self, pod: Pod) -> None:
        """Delete an ended pod from the API, as its kubelet does."""
        self._actuator.delete_pod(pod, gracePeriodSeconds=0, preconditions={"uid": pod.uid})

    def _drop(self, uid: str) -> None:
        entry = self._running.pop(uid)
        if entry.child is not None:
            self._guard.drop(entry.child.pid)
            entry.child.wait()
        end_sessions(self._root(entry.pod))
        self._read(entry, is_over=True)

    def _read(self, entry: _Running, *, is_over: bool = False) -> None:
        """Forward the new complete lines of a pod's output, or at its end all the rest."""
        with entry.log.open("rb") as log:
            log.seek(entry.read)
            new = log.read()
        end = len(new) if is_over else new.rfind(b"\n") + 1
        entry.read += end
        lines = new[:end].decode(errors="replace").splitlines()
        if lines:
            with entry.container_log.open("a") as container_log:
                container_log.writelines(f"{_stamp()} stdout F {line}\n" for line in lines)
        if is_over:
            entry.container_log.chmod(0o400)  # the sign for the streaming server that the container has ended
        for line in lines:
            self._log(entry.pod, line)


def _stamp() -> str:
    """Return the time of a log line."""
    seconds, fraction = divmod(time.time_ns(), 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"


def _grace(pod: Pod) -> float:
    """Return a pod's grace period in seconds."""
    deletion = pod.raw.get("metadata", {}).get("deletionGracePeriodSeconds")
    given = pod.raw.get("spec", {}).get("terminationGracePeriodSeconds", 30)
    return float(given if deletion is None else deletion)
