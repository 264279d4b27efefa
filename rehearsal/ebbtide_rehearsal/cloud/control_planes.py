"""Control planes of the fake cloud's clusters, each behind a proxy: strict validation, failures, stopped
clusters.

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from string import Template
from typing import Any, Final, TypeAlias
from weakref import WeakSet

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
from aiohttp.typedefs import Handler
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from ebbtide_rehearsal.cloud.node_pools.pod_processes import PROCESSES, log_file
from ebbtide_rehearsal.cloud.pools import is_stopped
from ebbtide_rehearsal.cloud.provider import BEHIND, CLUSTER, DISK, Endpoint
from ebbtide_rehearsal.cloud.store import API_ERROR, SLOW, ApiFailure, Resource, Store, failure
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane, ControlPlaneSettings
from ebbtide_rehearsal.control_plane.discovery import Discovery
from ebbtide_rehearsal.control_plane.plan import CloudName, ControlPlaneTools, new_token

PROVIDER: Final = "pulumi-kubernetes/"
_LOCALHOST: Final = "127.0.0.1"
_LARGEST_BODY: Final = 64 * 1024 * 1024
_OPERATIONS: Final = {"GET": "read", "POST": "create", "PUT": "update", "PATCH": "update", "DELETE": "delete"}
VALIDATED: Final = frozenset({"POST", "PUT", "PATCH"})
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
Controllers: TypeAlias = Callable[[str, CloudName, ControlPlane], Callable[[threading.Event], None]]
"""Returns what runs the controllers of a cluster's node pools until an event, from the cluster's id."""
_OPEN: Final = frozenset({443, 10250})
"""Ports of a private GKE cluster's nodes that the control plane can reach (GKE docs, private clusters)."""
_TOKEN: Final = re.compile(r"^[A-Za-z0-9._~+/=-]+$")
_CREDENTIAL: Final = """\
cat <<'END'
{
    "kind": "ExecCredential",
    "apiVersion": "client.authentication.k8s.io/v1beta1",
    "spec": {"interactive": false},
    "status": {"token": "$token"}
}
END
"""
_GKE: Final = """\
#!/bin/sh
# In place of gke-gcloud-auth-plugin, in a rehearsal.
for argument; do
    case "$$argument" in
        --version) echo "Kubernetes v0.0.0-rehearsal"; exit 0 ;;
        --use_application_default_credentials|--use_application_default_credentials=*) ;;
        --project=*|--account=*|--impersonate_service_account=*|--configuration=*) ;;
        *) echo "unknown flag: $$argument" >&2; exit 2 ;;
    esac
done
"""
_KUBELOGIN: Final = """\
#!/bin/sh
# In place of kubelogin, in a rehearsal.
fail() { echo "Error: $$1" >&2; exit 1; }
if [ "$$1" = --version ]; then echo "kubelogin version rehearsal"; exit 0; fi
[ "$$1" = get-token ] || fail "unknown command \\"$$1\\" for \\"kubelogin\\""
shift
login=devicecode server= environment=AzurePublicCloud client=$${AZURE_CLIENT_ID-} tenant=$${AZURE_TENANT_ID-}
federated=$${AZURE_FEDERATED_TOKEN_FILE-}
while [ $$# -gt 0 ]; do
    case "$$1" in
        --*=*) name=$${1%%=*} value=$${1#*=} ;;
        -*) [ $$# -gt 1 ] || fail "flag needs an argument: $$1"; name=$$1 value=$$2; shift ;;
        *) fail "unexpected argument $$1" ;;
    esac
    shift
    case "$$name" in
        --login|-l) login=$$value ;;
        --server-id) server=$$value ;;
        --environment|-e) environment=$$value ;;
        --client-id) client=$$value ;;
        --tenant-id|-t) tenant=$$value ;;
        --federated-token-file) federated=$$value ;;
        --token-cache-dir|--authority-host|--timeout) ;;
        *) fail "unknown flag: $$name" ;;
    esac
done
login=$${AAD_LOGIN_METHOD:-$$login}
case "$$login" in
    azurecli) ;;
    workloadidentity)
        [ -n "$$client" ] || fail "client ID is required"
        [ -n "$$tenant" ] || fail "tenant ID is required"
        # A job on GitHub's runners requests its token (kubelogin 0.2.22, provider.go, 2026).
        [ -n "$${ACTIONS_ID_TOKEN_REQUEST_TOKEN-}" ] && [ -n "$${ACTIONS_ID_TOKEN_REQUEST_URL-}" ] ||
            [ -n "$$federated" ] || fail "federated token file is required" ;;
    devicecode|interactive|spn|ropc|msi)
        fail "login $$login wants a person or a secret, and here is neither" ;;
    *) fail "'$$login' is not a supported login method" ;;
esac
[ -n "$$server" ] || fail "server-id is required"
case "$$environment" in
    AzurePublicCloud|AzureUSGovernmentCloud|AzureChinaCloud) ;;
    *) fail "There is no cloud environment matching the name $$environment" ;;
esac
"""


class ApiServerProxy:
    """A proxy in front of a control plane's API server, in its own thread.

    Attributes:
        host: host and port, such as `localhost:40123`; its certificate is the API server's.
    """

    def __init__(self, plane: ControlPlane, store: Store, cluster: str) -> None:
        """Start the proxy.

        Args:
            store: the fake cloud's store, for injected failures and stopped clusters.
        """
        self._plane, self._store, self._cluster = plane, store, cluster
        self._discovery = Discovery(plane.api)
        self._transports = WeakSet[asyncio.Transport]()
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
        application = web.Application(client_max_size=_LARGEST_BODY, middlewares=[self._remembered])
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

    @web.middleware
    async def _remembered(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.transport is not None:
            self._transports.add(request.transport)
        return await handler(request)

    async def _stop(self) -> None:
        # A connection that is only closed stays open until its client ends the TLS session.
        for transport in self._transports:
            transport.abort()
        await self._runner.cleanup()
        await self._client.close()

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        if await asyncio.to_thread(is_stopped, self._store, self._cluster):
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        url = URL(f"{self._plane.server}{request.raw_path}", encoded=True)
        if request.headers.get("User-Agent", "").startswith(PROVIDER):
            if request.method in VALIDATED:
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
            controllers: runs the node pools' controllers, in a thread.
        """
        self._directory, self._trusted, self._tools, self._store = directory, trusted, tools, store
        self._controllers = controllers
        self._running: dict[str, _Running] = {}
        self._lock = threading.Lock()
        self._token = new_token()  # of one user of all clusters
        write_credential_plugins(directory / "bin", self._token)

    def create(self, identity: str, cloud: CloudName) -> Endpoint:
        """See `Clusters.create`."""
        with self._lock:
            settings = ControlPlaneSettings(
                name=identity.rpartition("/")[2],
                cloud=cloud,
                token=self._token,
                open_ports=_OPEN if cloud == "gke" else None,
            )
            plane = ControlPlane.start(
                self._directory / "clusters" / identity.replace("/", "_"), self._tools, settings
            )
            with self._trusted.open("ab") as bundle:
                bundle.write(plane.plan.certificates.authority.read_bytes())
            ending = threading.Event()
            run = self._controllers(identity, cloud, plane)
            thread = threading.Thread(
                target=run, args=(ending,), name=f"node pools of {identity}", daemon=True
            )
            proxy = ApiServerProxy(plane, self._store, identity)
            endpoint = Endpoint(proxy.host, plane.plan.certificates.authority_data())
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


def write_credential_plugins(directory: Path, token: str) -> None:
    """Write fakes of the credential plugins of kubeconfigs, gke-gcloud-auth-plugin and kubelogin, into a
    directory for PATH, readable by the owner only.

    A stack's kubeconfig names them, so that real clients can use it unchanged. They accept and reject the
    same arguments as the real plugins, and return a token of the rehearsal. Sources:
    kubernetes/cloud-provider-gcp cmd/gke-gcloud-auth-plugin/cred.go (2026); Azure/kubelogin
    pkg/internal/token/options.go (2026); kubernetes.io/docs/reference/access-authn-authz/authentication,
    client-go credential plugins.

    Args:
        directory: created if it does not exist.
        token: the API servers' token, which the programs return.

    Raises:
        ValueError: the token has characters that are invalid in a bearer token.
    """
    if not _TOKEN.match(token):
        raise ValueError("A bearer token has letters, digits and -._~+/= alone.")
    directory.mkdir(parents=True, exist_ok=True)
    for name, checks in (("gke-gcloud-auth-plugin", _GKE), ("kubelogin", _KUBELOGIN)):
        program = directory / name
        program.touch(mode=0o700)
        program.chmod(0o700)
        program.write_text(Template(checks + _CREDENTIAL).substitute(token=token))
