"""The HTTPS server of the REST APIs with its routes, and what both clouds have: managed Prometheus, enabled
APIs and permissions of the user.

No program of a rehearsal uses a GPU, so that the only samples are those that tests put into the store. A
query returns those of its cluster; their other labels and the rest of PromQL are not evaluated. By default
every API is enabled and the user is an owner; tests put a project's service, a subscription's provider, or
the permissions of the user into the store. Sources: Monitoring API v1,
`projects.location.prometheus.api.v1.query`; Service Usage API v1, `services.get`; Resource Manager API v1,
`projects.testIamPermissions`; azure-rest-api-specs: Microsoft.Monitor 2023-04-03,
`AzureMonitorWorkspaces_Get`, Resources 2021-04-01, `Providers_Get`, Authorization 2022-04-01, permissions;
Prometheus docs, HTTP API (2026).
"""

import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol, Self, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from ebbtide_rehearsal.cloud.store import API_ERROR, Resource, Store

_HandlerT = TypeVar("_HandlerT", bound=Callable[..., Any])
_ROUTED: Final[dict[Callable[..., Any], tuple[str, str, str, bool]]] = {}
_BUSY: Final = (429, 503)
_NO_CONTENT: Final = 204
_SAMPLE: Final = "sample"
_METRICS: Final = "metrics"
_CLUSTER: Final = re.compile(r'[{,]cluster="([^"]*)"')
_RIGHTS: Final = "rights"
_API: Final = "api"
_GRANT: Final = "grant"


@dataclass(frozen=True, slots=True)
class Request:
    """A request.

    Attributes:
        method: HTTP method, such as `GET`.
        path: decoded path, without the query.
        headers: headers by lower-case name.
        body: parameters of a form, or a JSON object; empty for no body.
        origin: requested scheme, host and port.
        names: variable parts of the path.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    origin: str
    names: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Response:
    """A response with headers or a status other than 200.

    Attributes:
        status: HTTP status.
        document: JSON document.
    """

    status: int
    document: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class RefusedRequestError(Exception):
    """A rejected request.

    Attributes:
        status: HTTP status.
        message: the cloud's message.
        code: the cloud's error code; empty for the usual code of the status.
    """

    def __init__(
        self, status: int, message: str, code: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        """Reject a request with a status."""
        super().__init__(message)
        self.status, self.message, self.code, self.headers = status, message, code, headers or {}


@dataclass(frozen=True, slots=True)
class Route:
    """An operation of an API.

    Attributes:
        operation: the cloud's name, such as `compute.regions.get`; also the target of injected faults.
        method: HTTP method.
        path: pattern of the whole path; its groups are the request's names.
        handle: returns the response, or its document.
        is_open: True if the API does not check its requests first.
    """

    operation: str
    method: str
    path: re.Pattern[str]
    handle: Callable[[Request], Mapping[str, Any] | Response]
    is_open: bool = False


def route(
    operation: str, method: str, path: str, *, is_open: bool = False
) -> Callable[[_HandlerT], _HandlerT]:
    """Make a method of an API the handler of an operation: see `Route`."""

    def mark(handle: _HandlerT) -> _HandlerT:
        _ROUTED[handle] = (operation, method, path, is_open)
        return handle

    return mark


def routes_of(api: object) -> Iterator[Route]:
    """Yield the routes of an API's methods, in their order."""
    for name, function in vars(type(api)).items():
        if callable(function) and function in _ROUTED:
            operation, method, path, is_open = _ROUTED[function]
            yield Route(operation, method, re.compile(path), getattr(api, name), is_open)


class RestApi(Protocol):
    """The APIs of a cloud."""

    @property
    def routes(self) -> Sequence[Route]:
        """Routes of its operations."""
        ...

    def check(self, request: Request) -> None:
        """Reject a request without credentials, or about what does not exist."""
        ...

    def owns(self, path: str) -> bool:
        """Return whether a path belongs to the cloud, so that errors have its form."""
        ...

    def refusal(self, error: RefusedRequestError) -> Mapping[str, Any]:
        """Return the document of an error."""
        ...


def bearer(request: Request) -> str:
    """Return the bearer token of a request; empty for none."""
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token if kind == "Bearer" else ""


class RestServer:
    """A server of the clouds' REST APIs, in its own threads.

    Attributes:
        origin: origin, such as `https://localhost:40123`.
    """

    def __init__(self, store: Store, apis: Sequence[RestApi], context: ssl.SSLContext) -> None:
        """Start the server.

        Args:
            store: the fake cloud's store, for injected faults.
            context: TLS context with a certificate for `localhost`.
        """
        self._store, self._apis = store, apis
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                self.close_connection = True
                self.raw_requestline = self.rfile.readline(65537)
                if self.raw_requestline and self.parse_request():
                    status, document, headers = server.answer(self)
                    content = b"" if status == _NO_CONTENT else json.dumps(document).encode()
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Type", "application/json; charset=utf-8")
                    self.send_header("Content-Length", str(len(content)))
                    self.send_header("Connection", "close")
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by http.server
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.origin = f"https://localhost:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="REST", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> tuple[int, Mapping[str, Any], Mapping[str, str]]:
        """Return status, document and headers of the response to a request."""
        request = self._request(handler)
        try:
            api, route, names = self._route(request)
            self._injected(route)
            request = replace(request, names=names)
            if not route.is_open:
                api.check(request)
            answer = route.handle(request)
        except RefusedRequestError as error:
            api = next((api for api in self._apis if api.owns(request.path)), self._apis[0])
            return error.status, api.refusal(error), error.headers
        response = answer if isinstance(answer, Response) else Response(200, answer)
        return response.status, response.document, response.headers

    def _request(self, handler: BaseHTTPRequestHandler) -> Request:
        address = urlsplit(handler.path)
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0)).decode()
        is_json = body and handler.headers.get("Content-Type", "").startswith("application/json")
        return Request(
            handler.command,
            unquote(address.path),
            dict(parse_qsl(address.query, keep_blank_values=True)),
            {name.lower(): value for name, value in handler.headers.items()},
            json.loads(body) if is_json else dict(parse_qsl(body)),
            self.origin,
        )

    def _route(self, request: Request) -> tuple[RestApi, Route, Mapping[str, str]]:
        for api in self._apis:
            for route in api.routes:
                match = route.path.fullmatch(request.path)
                if match and route.method == request.method:
                    return api, route, match.groupdict()
        raise RefusedRequestError(404, f"The requested URL {request.path} was not found on this server.")

    def _injected(self, route: Route) -> None:
        fault = self._store.strike(API_ERROR, route.operation)
        if fault is not None:
            status = int(fault.details.get("status", 500))
            headers = {"Retry-After": str(fault.details.get("retry_after", 0))} if status in _BUSY else {}
            raise RefusedRequestError(status, str(fault.details["message"]), headers=headers)


def planted_sample(number: int, value: float, **labels: str) -> Resource:
    """Return a sample of a metric, to be put into the store."""
    return Resource(_METRICS, str(number), _SAMPLE, state={"metric": labels, "value": value})


def samples(store: Store, request: Request) -> Mapping[str, Any]:
    """Answer a query of metrics from the samples in the store."""
    query = request.query.get("query", "")
    if not query:
        raise RefusedRequestError(
            400, 'invalid parameter "query": unknown position: parse error: no expression found in input'
        )
    clusters = set(_CLUSTER.findall(query))
    result = [
        {"metric": dict(item.state["metric"]), "value": [store.clock.now(), str(item.state["value"])]}
        for item in store.resources(_METRICS, _SAMPLE)
        if item.state["metric"].get("cluster") in clusters
    ]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def disabled(account: str, api: str) -> Resource:
    """Return an API that is not enabled.

    Args:
        account: project or subscription.
        api: API of Google Cloud, or namespace of a resource provider.
    """
    return Resource(_RIGHTS, f"{account}/{api}", _API)


def granted(account: str, *actions: str, without: tuple[str, ...] = ()) -> Resource:
    """Return the permissions of the user, which replace those of an owner.

    Args:
        account: project or subscription.
        actions: permissions; `*` matches any text.
        without: exceptions.
    """
    return Resource(_RIGHTS, account, _GRANT, state={"actions": [*actions], "notActions": [*without]})


def is_enabled(store: Store, account: str, api: str) -> bool:
    """Return whether an API is enabled; names of resource providers are compared without case."""
    ids = {resource.id.lower() for resource in store.resources(_RIGHTS, _API)}
    return f"{account}/{api}".lower() not in ids


def role(store: Store, account: str) -> Mapping[str, Any]:
    """Return the permissions of the user in an account."""
    own = store.get(_RIGHTS, account)
    return own.state if own else {"actions": ["*"], "notActions": []}
