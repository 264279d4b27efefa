"""Control planes of the fake cloud's clusters, with the controllers of their node pools."""

import base64
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from ebbtide_rehearsal.cloud.api_server_proxy import ApiServerProxy
from ebbtide_rehearsal.cloud.clusters import BEHIND, CLUSTER, DISK, Endpoint
from ebbtide_rehearsal.cloud.credential_plugins import write_credential_plugins
from ebbtide_rehearsal.cloud.store import Resource, Store
from ebbtide_rehearsal.control_plane import ControlPlane, ControlPlaneSettings, ControlPlaneTools

_OPEN: Final = frozenset({443, 10250})
"""Ports of a private GKE cluster's nodes that the control plane can reach (GKE docs, private clusters)."""


class Controller(Protocol):
    """Controllers of a cluster's node pools, in a thread."""

    def run(self, ending: threading.Event) -> None:
        """Run until the event."""
        ...


class Controllers(Protocol):
    """Factory of a cluster's controllers."""

    def __call__(self, identity: str, cloud: Literal["gke", "aks"], plane: ControlPlane, /) -> Controller:
        """Return the controllers for a cluster."""
        ...


@dataclass(frozen=True, slots=True)
class _Running:
    plane: ControlPlane
    proxy: ApiServerProxy
    endpoint: Endpoint
    thread: threading.Thread
    ending: threading.Event

    def stop(self) -> None:
        self.ending.set()
        self.thread.join()
        self.proxy.stop()
        self.plane.stop()


class ControlPlanes:
    """Implementation of `Clusters`."""

    def __init__(
        self, directory: Path, trusted: Path, tools: ControlPlaneTools, store: Store, controllers: Controllers
    ) -> None:
        """Manage control planes.

        Args:
            directory: directory of the fake cloud.
            trusted: file of publicly trusted authorities; those of control planes are added, since GKE's DNS
                endpoint has a certificate of a public authority.
            tools: programs of a control plane.
            store: the cloud's state, with clusters and disks that outlive their cluster.
            controllers: factory of the node pools' controllers.
        """
        self._directory, self._trusted, self._tools, self._store = directory, trusted, tools, store
        self._controllers = controllers
        self._running: dict[str, _Running] = {}
        self._lock = threading.Lock()

    def create(self, identity: str, cloud: Literal["gke", "aks"]) -> Endpoint:
        """See `Clusters.create`."""
        with self._lock:
            settings = ControlPlaneSettings(
                name=identity.rpartition("/")[2], cloud=cloud, open_ports=_OPEN if cloud == "gke" else None
            )
            plane = ControlPlane.start(
                self._directory / "clusters" / identity.replace("/", "_"), self._tools, settings
            )
            with self._trusted.open("ab") as bundle:
                bundle.write(plane.plan.certificates.authority.read_bytes())
            write_credential_plugins(self._directory / "bin", plane.plan.identities.person.token)
            ending = threading.Event()
            controller = self._controllers(identity, cloud, plane)
            thread = threading.Thread(
                target=controller.run, args=(ending,), name=f"node pools of {identity}", daemon=True
            )
            authority = base64.b64encode(plane.plan.certificates.authority.read_bytes()).decode()
            proxy = ApiServerProxy(plane, self._store, identity)
            endpoint = Endpoint(proxy.host, authority)
            self._running[identity] = _Running(plane, proxy, endpoint, thread, ending)
            thread.start()
            state: dict[str, Any] = {"kubeconfig": str(plane.plan.kubeconfig), "cloud": cloud}
            self._store.put(Resource(BEHIND, identity, CLUSTER, state=state))
            return endpoint

    def endpoint(self, identity: str) -> Endpoint:
        """See `Clusters.endpoint`."""
        return self._running[identity].endpoint

    def delete(self, identity: str) -> None:
        """See `Clusters.delete`. Disks outlive their cluster and are still billed, as in the clouds."""
        with self._lock:
            running = self._running.pop(identity, None)
            if running is None:
                return
            running.stop()
            for disk in running.plane.disks():
                state = {"size": disk.size, "claim": disk.claim}
                self._store.put(Resource(BEHIND, disk.name, DISK, state=state))
            self._store.remove(BEHIND, identity)

    def memory(self) -> int:
        """Return the memory of all control planes' processes, in bytes."""
        return sum(running.plane.memory() for running in list(self._running.values()))

    def stop(self) -> None:
        """Kill all control planes, as when the machine is switched off."""
        with self._lock:
            for running in self._running.values():
                running.stop()
            self._running.clear()
