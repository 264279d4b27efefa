"""A reverse proxy in front of an API server: strict field validation, injected failures and stopped clusters.

A stopped AKS cluster has no control plane (azure-aks-docs, start-stop-cluster, 2026): connections are closed
without a response. Everything else applies only to requests of the Kubernetes provider, identified by their
user agent. The provider requests warnings about unknown fields, but does not show them; it drops unknown
fields of built-in kinds itself. Source: pulumi-kubernetes@f47bc2d6, provider/pkg/version/version.go
(`UserAgent`), pkg/await/await.go (`Creation`), pkg/provider/provider.go (`normalizeInputs`).
"""

import asyncio
import re
import ssl
import threading
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Final

from aiohttp import (
    ClientSession,
    ClientTimeout,
    ClientWebSocketResponse,
    TCPConnector,
    WSMsgType,
    WSServerHandshakeError,
    hdrs,
    web,
)
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from ebbtide_rehearsal.cloud.api_failures import ApiFailure, failure
from ebbtide_rehearsal.cloud.faults import API_ERROR, SLOW
from ebbtide_rehearsal.cloud.nodes.processes import PROCESSES, log_file
from ebbtide_rehearsal.cloud.pools import is_stopped
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.discovery import Discovery

_PROVIDER: Final = "pulumi-kubernetes/"
_LOCALHOST: Final = "127.0.0.1"
_LARGEST_BODY: Final = 64 * 1024 * 1024
_OPERATIONS: Final = {"GET": "read", "POST": "create", "PUT": "update", "PATCH": "update", "DELETE": "delete"}
_VALIDATED: Final = frozenset({"POST", "PUT", "PATCH"})
_OBJECT: Final = re.compile(
    r"/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+/[^/]+))(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?"
)
_LOG: Final = re.compile(
    r"/api/v1/namespaces/(?P<namespace>[a-z0-9-]+)/pods/(?P<name>[a-z0-9][a-z0-9.-]*)/log"
)
_KEPT_LINES: Final = 1000
_OF_THE_CONNECTION: Final = frozenset(
    {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers that a proxy does not forward (RFC 9110, 7.6.1)."""

_WebSocket = web.WebSocketResponse | ClientWebSocketResponse

_NOT_ADDED: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that aiohttp would add."""


class ApiServerProxy:
    """A proxy in front of a control plane's API server, in its own thread.

    Attributes:
        host: host and port, such as `localhost:40123`; its certificate is the API server's.
    """

    def __init__(self, plane: ControlPlane, store: Store, cluster: str) -> None:
        """Start the proxy.

        Args:
            plane: the control plane.
            store: the fake cloud's store, for injected failures and stopped clusters.
            cluster: id of the cluster.
        """
        self._plane, self._store, self._cluster = plane, store, cluster
        self._discovery = Discovery(plane.api)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="API server proxy", daemon=True)
        self._thread.start()
        self.host = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()

    def stop(self) -> None:
        """Close every connection and stop the thread."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> str:
        certificates = self._plane.plan.certificates
        trust = ssl.create_default_context(cafile=str(certificates.authority))
        self._client = ClientSession(
            connector=TCPConnector(ssl=trust, limit=0),
            timeout=ClientTimeout(total=None),
            auto_decompress=False,
        )
        application = web.Application(client_max_size=_LARGEST_BODY)
        application.router.add_route("*", "/{path:.*}", self._forward)
        # Otherwise a watch stays open after its client has disconnected.
        self._runner = web.AppRunner(
            application, handler_cancellation=True, access_log=None, shutdown_timeout=1
        )
        await self._runner.setup()
        own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        own.load_cert_chain(certificates.api_server.certificate, certificates.api_server.key)
        site = web.TCPSite(self._runner, _LOCALHOST, 0, ssl_context=own)
        await site.start()
        return f"localhost:{self._runner.addresses[0][1]}"

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._client.close()

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        if await asyncio.to_thread(is_stopped, self._store, self._cluster):
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        url = URL(f"{self._plane.server}{request.raw_path}", encoded=True)
        if request.headers.get("User-Agent", "").startswith(_PROVIDER):
            if request.method in _VALIDATED:
                url = url.update_query(fieldValidation="Strict")
            injected = await asyncio.to_thread(self._failure, request.method, url)
            await asyncio.sleep(injected.seconds)
            if injected.message is not None:
                return _refusal(injected.message)
        if request.headers.get(hdrs.UPGRADE, "").lower() == "websocket":
            return await self._connect(request, url)
        body = BytesIO(await request.read()) if request.can_read_body else None
        async with self._client.request(
            request.method,
            url,
            headers=_forwarded(request.headers),
            data=body,
            allow_redirects=False,
            skip_auto_headers=_NOT_ADDED,
        ) as answer:
            if answer.status == web.HTTPNotFound.status_code and (
                kept := kept_log(
                    self._plane.plan.directory / PROCESSES, request.method, request.path, request.query
                )
            ):
                return web.Response(text=kept)
            response = web.StreamResponse(
                status=answer.status, reason=answer.reason, headers=_forwarded(answer.headers)
            )
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
            return response

    async def _connect(self, request: web.Request, url: URL) -> web.StreamResponse:
        """Forward a WebSocket of `kubectl exec`, `attach` or `port-forward` (Kubernetes docs, streaming
        protocol)."""
        protocols = [name.strip() for name in request.headers.get(hdrs.SEC_WEBSOCKET_PROTOCOL, "").split(",")]
        headers = CIMultiDict(
            (name, value)
            for name, value in _forwarded(request.headers).items()
            if not name.lower().startswith("sec-websocket-")
        )
        try:
            async with self._client.ws_connect(
                url, protocols=protocols, headers=headers, max_msg_size=0
            ) as server:
                client = web.WebSocketResponse(
                    protocols=(server.protocol or "",), compress=False, max_msg_size=0
                )
                await client.prepare(request)
                relays = [asyncio.create_task(_relay(*ends)) for ends in ((client, server), (server, client))]
                try:
                    await asyncio.wait(relays, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for relay in relays:
                        relay.cancel()
                    await asyncio.gather(*relays, return_exceptions=True)
                await client.close()
                return client
        except WSServerHandshakeError as error:
            return _refusal(error.message, error.status)

    def _failure(self, method: str, url: URL) -> ApiFailure:
        """Apply injected failures to a call of the provider, but not to previews, lists and watches."""
        operation, match = _OPERATIONS.get(method), _OBJECT.fullmatch(url.path)
        injected = self._store.faults(API_ERROR) or self._store.faults(SLOW)
        if not injected or operation is None or match is None or "dryRun" in url.query:
            return ApiFailure()
        if match["name"] is None and operation != "create":
            return ApiFailure()
        resource = self._discovery.at(match["core"] or match["group"], match["plural"])
        if resource is None:
            return ApiFailure()
        # Server-side apply creates missing objects.
        if method == "PATCH" and self._plane.api.find(url.path) is None:
            operation = "create"
        return failure(self._store, operation, resource.token, match["name"] or "")


def kept_log(processes: Path, method: str, path: str, query: Mapping[str, str]) -> str:
    """Return the last lines of a pod that ran as a process, and whose node or pod is removed; empty for none,
    for other requests, and for a reader that continues after a line. The clouds keep such logs in their own
    stores.
    """
    match = _LOG.fullmatch(path) if method == "GET" and "sinceTime" not in query else None
    file = log_file(processes, match["namespace"], match["name"]) if match else None
    lines = file.read_text(errors="replace").splitlines(keepends=True) if file and file.is_file() else []
    return "".join(lines[-_KEPT_LINES:])


def _forwarded(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    return CIMultiDict(
        (name, value) for name, value in headers.items() if name.lower() not in _OF_THE_CONNECTION
    )


async def _relay(source: _WebSocket, target: _WebSocket) -> None:
    """Forward messages until the source ends."""
    async for message in source:
        if message.type is WSMsgType.BINARY:
            await target.send_bytes(message.data)
        elif message.type is WSMsgType.TEXT:
            await target.send_str(message.data)


def _refusal(message: str, code: int = 500) -> web.Response:
    """Build an error response in the API server's form."""
    status = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "InternalError"}
    return web.json_response({**status, "message": message, "code": code}, status=code)
