"""The proxy from the API server to the cluster's network, whose addresses are fake.

In a cloud, the control plane reaches webhooks and aggregated APIs through a proxy (Konnectivity on GKE and
AKS). This proxy accepts a connection to a service's address, selects a pod behind it, as kube-proxy does, and
connects to the local process of that pod; a connection to a kubelet goes to the streaming server. Rehearsals
therefore use unchanged objects: a service with a wrong port, a webhook without a pod and a port closed by
the cloud's firewall fail as they do in a cloud.
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from ebbtide.clients.kubernetes import Api, ApiError, Object
from ebbtide_rehearsal.control_plane.plan import KUBELET_PORT, LOCALHOST, NODE_ADDRESS

Route = Callable[[str, int], tuple[str, int] | Path]
"""Map address and port of a service or a node to those of a process, or to its socket. Raises
`NoRouteError`."""

_CHUNK = 64 * 1024
_HEADERS = 8 * 1024


class NoRouteError(Exception):
    """The address is unreachable. The API server passes the message on."""


class EgressProxy:
    """A proxy for `CONNECT` on a Unix socket, in its own thread."""

    def __init__(self, socket: Path, route: Route) -> None:
        self._socket, self._route = socket, route
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="egress", daemon=True)
        self._listening = threading.Event()

    def start(self) -> None:
        """Listen; returns when ready."""
        self._thread.start()
        self._listening.wait()

    def close(self) -> None:
        """Close every connection and stop the thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_unix_server(self._connected, path=self._socket, limit=_HEADERS)
        )
        self._listening.set()
        try:
            self._loop.run_forever()
        finally:
            server.close()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self._loop.run_until_complete(asyncio.sleep(0))  # connections close in the next iteration
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gone = (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError)
        with contextlib.suppress(*gone), contextlib.closing(writer):
            host, port = _destination(await reader.readuntil(b"\r\n\r\n"))
            try:
                address = await asyncio.to_thread(self._route, host, port)
                upstream, downstream = await (
                    asyncio.open_unix_connection(address)
                    if isinstance(address, Path)
                    else asyncio.open_connection(*address)
                )
            except (NoRouteError, ApiError, OSError) as error:
                writer.write(f"HTTP/1.1 503 {error}\r\nContent-Length: 0\r\n\r\n".encode())
                await writer.drain()
                return
            with contextlib.closing(downstream):
                writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
                await _first_of(_copy(reader, downstream), _copy(upstream, writer))


def _destination(request: bytes) -> tuple[str, int]:
    """Parse address and port of `CONNECT address:port HTTP/1.1`."""
    host, _, port = request.split(maxsplit=2)[1].decode().rpartition(":")
    return host.strip("[]"), int(port)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(_CHUNK):
        target.write(data)
        await target.drain()


async def _first_of(*directions: Awaitable[None]) -> None:
    """Copy in both directions until either side closes; TLS sends nothing afterwards."""
    tasks = [asyncio.ensure_future(direction) for direction in directions]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


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
            raise NoRouteError(f"{host} is not a service of this cluster")
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
            ready = [
                str(item["addresses"][0])
                for item in endpoints
                if (item.get("conditions", {}).get("ready") is not False)
            ]
            addresses += [(address, target) for address in ready for target in targets]
        return addresses


def _name(item: Object) -> str:
    return f"{item['metadata']['namespace']}/{item['metadata']['name']}"
