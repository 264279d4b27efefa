"""The kubelet of pods whose program really runs: Kueue's, as a process of this machine.

What is declared decides, as in a cluster: the process runs while a pod of the Deployment is on a node, with
the configuration, arguments and service account of that pod, and ends with the pod or its node.
"""

import contextlib
import http.client
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ebbtide.kubernetes_api import Api, ApiError, Object
from ebbtide.rehearsal.control_plane.failures import ControlPlaneError
from ebbtide.rehearsal.control_plane.identities import kubeconfig
from ebbtide.rehearsal.control_plane.kueue import COUNT, Listening, outside
from ebbtide.rehearsal.control_plane.mounts import NotMountedError, account_token, inside, mount
from ebbtide.rehearsal.control_plane.plan import Plan
from ebbtide.rehearsal.control_plane.pod_status import running, waiting
from ebbtide.rehearsal.control_plane.ports import LOCALHOST, Reservation
from ebbtide.rehearsal.control_plane.processes import Process, Processes
from ebbtide.rehearsal.control_plane.routes import Routes
from ebbtide.rehearsal.control_plane.stages import REAL_PROGRAMS

_CONFIG = "--config="
_ENDED = ("Failed", "Succeeded")
_BACK_OFF = 30.0


@dataclass(slots=True)
class _Program:
    """A pod's process.

    Attributes:
        pod: as it was when the process was first started.
        root: the directory that stands for the root of its container.
        address: the pod's.
        process: that runs, or ended last.
        listening: where it listens.
        restarts: how often it was started again.
        again: when it is started again, by the monotonic clock; 0 while it runs.
        ready: what its status says; None before the first word.
    """

    pod: Object
    root: Path
    address: str
    process: Process
    listening: Listening
    restarts: int = 0
    again: float = 0
    ready: bool | None = None


class ProgramPods:
    """Starts and stops the processes of such pods, each time it is asked to."""

    def __init__(self, plan: Plan, api: Api, processes: Processes, routes: Routes, binary: Path) -> None:
        """Run the pods of a control plane.

        Args:
            plan: the control plane's.
            api: it, as its administrator.
            processes: among which theirs are.
            routes: where their ports are made known.
            binary: the program.
        """
        self._plan, self._api, self._processes = plan, api, processes
        self._routes, self._binary = routes, binary
        self._programs: dict[str, _Program] = {}
        self._addresses = 0

    def reconcile(self) -> None:
        """One look at all such pods."""
        selector = ",".join(f"{key}={value}" for key, value in REAL_PROGRAMS.items())
        pods = self._api.items("/api/v1/pods", labelSelector=selector)
        nodes = (
            {item["metadata"]["name"] for item in self._api.items("/api/v1/nodes")} if pods else set[str]()
        )
        wanted = {pod["metadata"]["uid"]: pod for pod in pods if _runs(pod, nodes)}
        for uid in self._programs.keys() - wanted.keys():
            self._stop(uid)
        for pod in pods:
            if "deletionTimestamp" in pod["metadata"] and pod["spec"].get("nodeName") in nodes:
                self._api.delete(_path(pod), gracePeriodSeconds=0)
        for uid, pod in wanted.items():
            self._keep(uid, pod)

    def _stop(self, uid: str) -> None:
        program = self._programs.pop(uid)
        self._routes.remove(program.address)
        self._processes.stop(program.process)

    def _keep(self, uid: str, pod: Object) -> None:
        program = self._programs.get(uid)
        try:
            if program is None:
                program = self._start(pod)
                self._programs[uid] = program
            elif not program.process.running and self._backs_off(program):
                return
            mount(self._api, pod, program.root)
        except (NotMountedError, ControlPlaneError) as error:
            self._say(pod, waiting(pod, "CreateContainerError", str(error)))
            return
        ready = program.process.running and _answers(program.listening.health)
        if ready != program.ready:
            program.ready = ready
            self._say(pod, running(pod, program.address, ready=ready, restarts=program.restarts))

    def _start(self, pod: Object) -> _Program:
        root = self._plan.directory / "pods" / pod["metadata"]["uid"]
        mount(self._api, pod, root)
        self._addresses += 1
        address = f"10.80.0.{self._addresses}"  # above kwok's pods
        process, listening = self._run(pod, root, address)
        return _Program(pod, root, address, process, listening)

    def _backs_off(self, program: _Program) -> bool:
        """Whether it is too early to start a container again: each time it is after twice as long, as a
        kubelet does it."""
        if not program.again:
            self._routes.remove(program.address)
            program.again = time.monotonic() + min(2**program.restarts, _BACK_OFF)
            ended = str(program.process.ended())
            status = waiting(program.pod, "CrashLoopBackOff", ended, restarts=program.restarts)
            self._say(program.pod, status | {"phase": "Running"})
        if time.monotonic() < program.again:
            return True
        self._processes.stop(program.process)
        program.process, program.listening = self._run(program.pod, program.root, program.address)
        program.restarts, program.again, program.ready = program.restarts + 1, 0, None
        return False

    def _run(self, pod: Object, root: Path, address: str) -> tuple[Process, Listening]:
        (container,) = pod["spec"]["containers"]
        about = pod["metadata"]
        given = [str(word) for word in container.get("args", [])]
        file = next(word.removeprefix(_CONFIG) for word in given if word.startswith(_CONFIG))
        configuration = yaml.safe_load(inside(root, file).read_text())
        token, access = root.with_suffix(".token"), root.with_suffix(".kubeconfig")
        changed = root.with_suffix(".yaml")
        account_token(self._api, pod, token)
        access.write_text(
            json.dumps(
                kubeconfig(
                    server=self._plan.server,
                    authority=self._plan.certificates.authority_data(),
                    user={"tokenFile": str(token)},
                    namespace=about["namespace"],
                )
            )
        )
        with Reservation(COUNT) as reserved:
            told, listening = outside(
                configuration, ports=reserved.ports, root=root, namespace=about["namespace"]
            )
            changed.write_text(yaml.safe_dump(told, sort_keys=False))
        kept = [word for word in given if not word.startswith(_CONFIG)]
        process = self._processes.start(
            f"{about['namespace']}/{about['name']}",
            [self._binary, f"{_CONFIG}{changed}", f"--kubeconfig={access}", *kept],
            log=self._plan.log(about["name"]),
            directory=root,
        )
        self._routes.add(address, listening.ports)
        return process, listening

    def _say(self, pod: Object, status: dict[str, Any]) -> None:
        with contextlib.suppress(ApiError):  # it is gone; the next look sees that
            self._api.patch(f"{_path(pod)}/status", {"status": status})


def _runs(pod: Object, nodes: set[str]) -> bool:
    """Whether a node has the pod, and it is neither on its way out nor at its end."""
    return (
        pod["spec"].get("nodeName") in nodes
        and "deletionTimestamp" not in pod["metadata"]
        and pod.get("status", {}).get("phase") not in _ENDED
    )


def _path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _answers(port: int) -> bool:
    """Whether a process says that it is ready."""
    asked = http.client.HTTPConnection(LOCALHOST, port, timeout=1)
    try:
        asked.request("GET", "/readyz")
        return asked.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        asked.close()
