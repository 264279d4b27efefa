"""Routes from a service's address to the local process of a pod behind it, and from a node's to kwok."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ebbtide.clients.kubernetes import Api, Object
from ebbtide_rehearsal.control_plane.arguments import KUBELET_PORT, NODE_ADDRESS
from ebbtide_rehearsal.control_plane.egress import NoRouteError
from ebbtide_rehearsal.control_plane.ports import LOCALHOST


class Routes:
    """Services and endpoints of the API server, and the pods that are local processes.

    Attributes:
        open_ports: the ports of nodes and pods that the cloud's firewall opens to the control plane; None for
            all. On a private GKE cluster they are 443 and 10250 (GKE docs, private clusters, firewall rules,
            2026).
    """

    def __init__(self, api: Api, open_ports: frozenset[int] | None, kubelet: Path) -> None:
        self._api, self.open_ports, self._kubelet = api, open_ports, kubelet
        self._pods: dict[str, dict[int, int]] = {}
        self._lock = threading.Lock()

    def add(self, address: str, ports: Mapping[int, int]) -> None:
        """Route a pod's address to local ports."""
        with self._lock:
            self._pods[address] = dict(ports)

    def remove(self, address: str) -> None:
        """Remove a pod's routes."""
        with self._lock:
            self._pods.pop(address, None)

    def __call__(self, host: str, port: int) -> tuple[str, int] | Path:
        """Resolve the address and port of a service or of a kubelet, which has a socket.

        Raises:
            NoRouteError: there is no route.
        """
        if (host, port) == (NODE_ADDRESS, KUBELET_PORT):
            self._check_open(port)
            return self._kubelet
        service = next(
            (
                item
                for item in self._api.items("/api/v1/services")
                if host in item["spec"].get("clusterIPs", [item["spec"].get("clusterIP")])
            ),
            None,
        )
        if service is None:
            raise NoRouteError(f"{host} is no service of this cluster")
        for address, target in self._endpoints(service, port):
            self._check_open(target)
            with self._lock:
                local = self._pods.get(address, {}).get(target)
            if local is not None:
                return LOCALHOST, local
        raise NoRouteError(f"no ready pod behind port {port} of service {_name(service)}")

    def _check_open(self, port: int) -> None:
        if self.open_ports is not None and port not in self.open_ports:
            allowed = ", ".join(map(str, sorted(self.open_ports)))
            raise NoRouteError(f"port {port} is closed to the control plane, which reaches {allowed} only")

    def _endpoints(self, service: Object, port: int) -> list[tuple[str, int]]:
        """Return addresses and ports of the ready pods behind a service's port."""
        metadata = service["metadata"]
        names = {item.get("name") for item in service["spec"].get("ports", []) if item["port"] == port}
        addresses: list[tuple[str, int]] = []
        for part in self._api.items(
            f"/apis/discovery.k8s.io/v1/namespaces/{metadata['namespace']}/endpointslices",
            labelSelector=f"kubernetes.io/service-name={metadata['name']}",
        ):
            ports: list[Object] = part.get("ports") or []
            endpoints: list[Object] = part.get("endpoints") or []
            targets = [int(item["port"]) for item in ports if (item.get("name") or None) in names]
            ready = [str(item["addresses"][0]) for item in endpoints if _ready(item)]
            addresses += [(address, target) for address in ready for target in targets]
        return addresses


def _ready(endpoint: Mapping[str, Any]) -> bool:
    return endpoint.get("conditions", {}).get("ready") is not False


def _name(item: Object) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"
