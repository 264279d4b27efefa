"""The proxy from the API server to the cluster's network, whose addresses are fake.

In a cloud, the control plane reaches webhooks and aggregated APIs through a proxy (Konnectivity on GKE and
AKS). This proxy accepts a connection to a service's address, selects a pod behind it, as kube-proxy does, and
connects to the local process of that pod; a connection to a node's kubelet goes to kwok. Rehearsals
therefore use unchanged objects: a service with a wrong port, a webhook without a pod and a port closed by
the cloud's firewall fail as they do in a cloud.
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

from ebbtide.clients.kubernetes import ApiError

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
