"""Start, supervision and stop of a whole control plane."""

import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import yaml

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide_rehearsal.control_plane import plan as arguments
from ebbtide_rehearsal.control_plane.installed import install
from ebbtide_rehearsal.control_plane.plan import (
    CloudName,
    ControlPlanePlan,
    ControlPlaneTools,
    Identities,
    PortReservation,
    issue,
    kubeconfig,
)
from ebbtide_rehearsal.control_plane.processes import AddressTakenError, ControlPlaneError, Process, Processes
from ebbtide_rehearsal.control_plane.program_pods import ProgramPods, available_programs
from ebbtide_rehearsal.control_plane.routes import EgressProxy, Routes
from ebbtide_rehearsal.control_plane.stages import stages
from ebbtide_rehearsal.control_plane.volumes import PersistentDisk, Volumes

_TRIES = 3
_MANAGER = "ebbtide-rehearsal"
_TIMEOUT = 600.0  # a program that has ended is reported at once
_STEP = 0.1
_EVERY = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlaneSettings:
    """Settings of a control plane.

    Attributes:
        cloud: the cloud whose defaults a new cluster has.
        token: bearer token of the user of the clouds' credential helpers. Default: a random one.
        members: team members by name, with their groups in the cloud.
        open_ports: the ports of nodes and pods that the cloud's firewall opens to the control plane; None for
            all.
    """

    name: str
    cloud: CloudName
    token: str = ""
    members: Mapping[str, Iterable[str]] = field(default_factory=dict[str, Iterable[str]])
    open_ports: frozenset[int] | None = None


class ControlPlane:
    """etcd, API server, controllers, scheduler and kwok on this machine, and Kueue, Trainer and Katib once
    they are installed.

    Attributes:
        plan: its directory, addresses and identities.
        api: an administrator's client.
    """

    def __init__(
        self,
        plan: ControlPlanePlan,
        tools: ControlPlaneTools,
        settings: ControlPlaneSettings,
        processes: Processes,
    ) -> None:
        """See `ControlPlane.start`."""
        self.plan = plan
        self.api = Api.of_token(
            plan.server, str(plan.certificates.authority), plan.identities.admin.token, manager=_MANAGER
        )
        self._processes, self._tools = processes, tools
        self._routes = Routes(self.api, settings.open_ports, plan.kubelet_socket)
        self._egress = EgressProxy(plan.egress_socket, self._routes)
        self._volumes = Volumes(self.api, plan.directory / "disks")
        self._pods = ProgramPods(plan, self.api, processes, self._routes, available_programs(tools))
        self._core: list[Process] = []
        self._failure: Exception | None = None
        self._ending = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name=f"keep {plan.name}", daemon=True)

    @classmethod
    def start(cls, directory: Path, tools: ControlPlaneTools, settings: ControlPlaneSettings) -> Self:
        """Start a control plane and wait until it is ready.

        Args:
            directory: its directory, for data and logs. An earlier cluster's state in it is discarded, except
                for its disks.
            tools: with the tools in `NAMES`. Pods of Trainer and Katib run their programs if those are among
                the tools.

        Raises:
            ControlPlaneError: a program failed to start; all others were stopped.
        """
        for _ in range(_TRIES - 1):
            try:
                return cls._start(directory, tools, settings)
            except AddressTakenError:
                continue
        return cls._start(directory, tools, settings)

    @classmethod
    def _start(cls, directory: Path, tools: ControlPlaneTools, settings: ControlPlaneSettings) -> Self:
        directory = directory.resolve()
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
        for before in ("etcd", "pods", "sessions"):
            shutil.rmtree(directory / before, ignore_errors=True)
        processes = Processes()
        try:
            with PortReservation(2) as reserved:
                plan = ControlPlanePlan(
                    name=settings.name,
                    cloud=settings.cloud,
                    directory=directory,
                    sockets=processes.sockets,
                    etcd_port=reserved.ports[0],
                    api_port=reserved.ports[1],
                    certificates=issue(directory / "certificates"),
                    identities=Identities.new(settings.members, settings.token),
                )
                _write(plan, tools)
            control_plane = cls(plan, tools, settings, processes)
        except BaseException:
            processes.close()
            raise
        try:
            control_plane._bring_up()
        except BaseException:
            control_plane.stop()
            raise
        return control_plane

    @property
    def server(self) -> str:
        """URL of the API server."""
        return self.plan.server

    def check(self) -> None:
        """Check that all programs still run.

        Raises:
            ControlPlaneError: a program has ended.
            Exception: the fake storage driver or kubelet has failed, which is a bug.
        """
        if self._failure is not None:
            raise self._failure
        for process in self._core:
            if not process.running:
                raise process.ended()

    def reconcile(self) -> None:
        """Run the fake storage driver and kubelet once. They also run automatically a few times a second."""
        self._volumes.reconcile()
        self._pods.reconcile()

    def disks(self) -> tuple[PersistentDisk, ...]:
        """List the existing disks, which a cloud would charge for."""
        return self._volumes.disks()

    def memory(self) -> int:
        """Return the resident memory of its processes, in bytes."""
        return self._processes.memory()

    def stop(self) -> None:
        """Stop all programs; data stays in the directory."""
        self._ending.set()
        if self._keeper.is_alive():
            self._keeper.join()
        self._processes.close()
        self._egress.close()
        self.api.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _bring_up(self) -> None:
        self._egress.start()
        self._run("etcd", arguments.etcd)
        self._run("kube-apiserver", arguments.api_server)
        self._wait("/readyz", lambda: bool(self.api.get("/readyz")))
        self._run("kube-controller-manager", arguments.controller_manager)
        self._run("kube-scheduler", arguments.scheduler)
        self._run("kwok", arguments.kwok)
        # Commands of `kubectl exec` are looked up here, as in a pod that runs as a process.
        variables = {"PATH": f"{Path(sys.executable).parent}:{os.defpath}"}
        self._run("streaming-server", arguments.streaming_server, variables)
        install(self.api, self.plan.cloud, self._tools.path("provisioning-request-crds"))
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._wait("the service account of a new namespace", lambda: self.api.find(account) is not None)
        self._keeper.start()

    def _run(
        self,
        name: str,
        arguments_of: Callable[[ControlPlanePlan], list[str]],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        command = [self._tools.path(name), *arguments_of(self.plan)]
        log, directory = self.plan.log(name), self.plan.directory
        self._core.append(
            self._processes.start(name, command, log=log, directory=directory, environment=environment)
        )

    def _wait(self, component: str, is_ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _TIMEOUT
        while time.monotonic() < deadline:
            self.check()
            try:
                if is_ready():
                    return
            except ApiError:
                pass
            time.sleep(_STEP)
        last = self._core[-1]
        raise ControlPlaneError(
            f"{self.plan.name}: {component} was not ready within {_TIMEOUT:.0f} s. "
            f"Last output of {last.name}:\n{last.last_words()}"
        )

    def _keep(self) -> None:
        while not self._ending.wait(_EVERY):
            try:
                self.reconcile()
            except ApiError:
                continue  # a conflict, or the API server is busy; the next reconciliation retries
            except Exception as error:  # noqa: BLE001 # raised by `check`, not in this thread
                self._failure = error
                return


def _write(plan: ControlPlanePlan, tools: ControlPlaneTools) -> None:
    """Write the programs' configuration files."""
    plan.sessions.mkdir()
    identities, issued = plan.identities, plan.certificates
    others = [item.program.labels for item in available_programs(tools)]
    plan.token_file.touch(mode=0o600)
    plan.token_file.write_text(identities.token_file())
    plan.egress_file.write_text(yaml.safe_dump(arguments.egress(plan)))
    plan.stages.write_text(yaml.safe_dump_all(stages(tools.path("kwok-stages"), others)))
    access = kubeconfig(
        server=plan.server,
        authority=issued.authority_data(),
        user={"token": identities.admin.token},
    )
    plan.kubeconfig.touch(mode=0o600)
    plan.kubeconfig.write_text(json.dumps(access))
