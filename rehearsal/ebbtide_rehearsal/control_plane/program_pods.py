"""A kubelet for pods whose program really runs, such as Kueue's, as a local process.

The process follows the declared objects, as in a cluster: it runs while a pod of the Deployment is on a
node, with that pod's configuration, arguments and service account, and ends with the pod or its node.
"""

import contextlib
import http.client
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ebbtide.clients.kubernetes import STRATEGIC_MERGE_PATCH, Api, ApiError, Object
from ebbtide.clients.kubernetes.objects import part
from ebbtide.values.paths import value_at
from ebbtide_rehearsal.addons import REHEARSED, Assignment, Listening, Program
from ebbtide_rehearsal.control_plane.plan import (
    LOCALHOST,
    ControlPlanePlan,
    ControlPlaneTools,
    PortReservation,
    kubeconfig,
)
from ebbtide_rehearsal.control_plane.pod_status import running, waiting
from ebbtide_rehearsal.control_plane.processes import ControlPlaneError, Process, Processes
from ebbtide_rehearsal.control_plane.routes import Routes
from ebbtide_rehearsal.control_plane.volumes import NotMountedError, account_token, inside, mount

_ENDED = ("Failed", "Succeeded")
_BACK_OFF = 30.0


@dataclass(frozen=True, slots=True)
class AvailableProgram:
    """An available program."""

    program: Program
    binary: Path


def available_programs(tools: ControlPlaneTools) -> tuple[AvailableProgram, ...]:
    """Return the programs among the tools. Pods of other programs become ready like any pod, and answer no
    requests.
    """
    programs: list[AvailableProgram] = []
    for program in (program for add_on in REHEARSED.values() for program in add_on.programs):
        with contextlib.suppress(KeyError):
            programs.append(AvailableProgram(program, tools.path(program.tool)))
    return tuple(programs)


def environment(pod: Object) -> dict[str, str]:
    """Return the variables of the pod's only container: literals and fields of the pod.

    Raises:
        NotMountedError: a variable has another source, or a field that the pod lacks.
    """
    (container,) = pod["spec"]["containers"]
    return {item["name"]: _value(item, pod) for item in container.get("env", [])}


def _value(item: Object, pod: Object) -> str:
    source = item.get("valueFrom")
    if source is None:
        return str(item.get("value", ""))
    value = value_at(pod, source.get("fieldRef", {}).get("fieldPath", ""))
    if not isinstance(value, str):
        raise NotMountedError(f"variable {item['name']}: a rehearsal does not know where it comes from")
    return value


@dataclass(slots=True)
class _Running:
    """A pod's process.

    Attributes:
        pod: the pod at the first start of the process.
        root: the directory that serves as its container's root.
        process: the current or last process.
        again: the time of the next restart, by the monotonic clock; 0 while it runs.
        ready: the reported readiness; None before the first report.
    """

    runs: AvailableProgram
    pod: Object
    root: Path
    address: str
    process: Process
    listening: Listening
    restarts: int = 0
    again: float = 0
    ready: bool | None = None


class ProgramPods:
    """Start and stop the processes of such pods, on each reconciliation."""

    def __init__(
        self,
        plan: ControlPlanePlan,
        api: Api,
        processes: Processes,
        routes: Routes,
        programs: Sequence[AvailableProgram],
    ) -> None:
        """Run the pods of a control plane.

        Args:
            api: an administrator's client.
            processes: the process group.
            routes: the routes to register their ports with.
        """
        self._plan, self._api, self._processes = plan, api, processes
        self._routes, self._programs = routes, programs
        self._running: dict[str, _Running] = {}
        self._addresses = 0

    def reconcile(self) -> None:
        """Reconcile all such pods once."""
        pods = [
            (item, pod)
            for item in self._programs
            for pod in self._api.items("/api/v1/pods", labelSelector=item.program.selector)
        ]
        nodes = (
            {item["metadata"]["name"] for item in self._api.items("/api/v1/nodes")} if pods else set[str]()
        )
        desired = {pod["metadata"]["uid"]: (item, pod) for item, pod in pods if _runs(pod, nodes)}
        for uid in self._running.keys() - desired.keys():
            self._stop(uid)
        for _, pod in pods:
            if "deletionTimestamp" in pod["metadata"] and pod["spec"].get("nodeName") in nodes:
                self._api.delete(_path(pod), gracePeriodSeconds=0)
        for uid, (item, pod) in desired.items():
            self._keep(uid, item, pod)

    def _stop(self, uid: str) -> None:
        entry = self._running.pop(uid)
        self._routes.remove(entry.address)
        self._processes.stop(entry.process)

    def _keep(self, uid: str, item: AvailableProgram, pod: Object) -> None:
        entry = self._running.get(uid)
        try:
            if entry is None:
                entry = self._start(item, pod)
                self._running[uid] = entry
            elif not entry.process.running and self._backs_off(entry):
                return
            mount(self._api, pod, entry.root)
        except (NotMountedError, ControlPlaneError) as error:
            self._write_status(pod, waiting(pod, "CreateContainerError", str(error)))
            return
        ready = entry.process.running and _answers(entry.listening.health)
        if ready != entry.ready:
            entry.ready = ready
            began = part(pod, "status").get("startTime", "")
            status = running(pod, restarts=entry.restarts, ready=ready, began=began, address=entry.address)
            self._write_status(pod, status)

    def _start(self, item: AvailableProgram, pod: Object) -> _Running:
        root = self._plan.directory / "pods" / pod["metadata"]["uid"]
        mount(self._api, pod, root)
        self._addresses += 1
        address = f"10.80.0.{self._addresses}"  # outside kwok's range
        process, listening = self._run(item, pod, root, address)
        return _Running(item, pod, root, address, process, listening)

    def _backs_off(self, entry: _Running) -> bool:
        """Check if a container is in backoff, which doubles with each restart, as a kubelet's does."""
        if not entry.again:
            self._routes.remove(entry.address)
            entry.again = time.monotonic() + min(2**entry.restarts, _BACK_OFF)
            ended = str(entry.process.ended())
            status = waiting(entry.pod, "CrashLoopBackOff", ended, restarts=entry.restarts)
            self._write_status(entry.pod, status | {"phase": "Running"})
        if time.monotonic() < entry.again:
            return True
        self._processes.stop(entry.process)
        entry.process, entry.listening = self._run(entry.runs, entry.pod, entry.root, entry.address)
        entry.restarts, entry.again, entry.ready = entry.restarts + 1, 0, None
        return False

    def _run(
        self, item: AvailableProgram, pod: Object, root: Path, address: str
    ) -> tuple[Process, Listening]:
        (container,) = pod["spec"]["containers"]
        metadata, program = pod["metadata"], item.program
        args = [str(word) for word in container.get("args", [])]
        configuration = yaml.safe_load(inside(root, program.configuration(args)).read_text())
        variables = environment(pod)
        token, access = root.with_suffix(".token"), root.with_suffix(".kubeconfig")
        changed, temporary = root.with_suffix(".yaml"), inside(root, "/tmp")  # noqa: S108 - the container's
        temporary.mkdir(exist_ok=True)
        account_token(self._api, pod, token)
        access.write_text(
            json.dumps(
                kubeconfig(
                    server=self._plan.server,
                    authority=self._plan.certificates.authority_data(),
                    user={"tokenFile": str(token)},
                    namespace=metadata["namespace"],
                )
            )
        )
        with PortReservation(program.ports) as reserved:
            outside, listening = program.out_of_cluster(
                configuration, Assignment(reserved.ports, root, metadata["namespace"])
            )
            changed.write_text(yaml.safe_dump(outside, sort_keys=False))
        process = self._processes.start(
            f"{metadata['namespace']}/{metadata['name']}",
            [item.binary, *program.arguments(args, changed, access)],
            log=self._plan.log(metadata["name"]),
            directory=root,
            environment=variables | {"TMPDIR": str(temporary)},
        )
        self._routes.add(address, listening.ports)
        return process, listening

    def _write_status(self, pod: Object, status: dict[str, Any]) -> None:
        with contextlib.suppress(ApiError):  # the pod is deleted; the next reconciliation handles that
            self._api.patch(f"{_path(pod)}/status", {"status": status}, STRATEGIC_MERGE_PATCH)


def _runs(pod: Object, nodes: set[str]) -> bool:
    """Check that the pod is on a node, not terminating and not terminated."""
    return (
        pod["spec"].get("nodeName") in nodes
        and "deletionTimestamp" not in pod["metadata"]
        and pod.get("status", {}).get("phase") not in _ENDED
    )


def _path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _answers(port: int) -> bool:
    """Check that a process reports readiness."""
    connection = http.client.HTTPConnection(LOCALHOST, port, timeout=1)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
