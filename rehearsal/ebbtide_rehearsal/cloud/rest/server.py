"""The HTTPS server of the REST APIs."""

import json
import ssl
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from ebbtide_rehearsal.cloud.faults import API_ERROR
from ebbtide_rehearsal.cloud.rest.routes import RefusedRequestError, Request, Response, RestApi, Route
from ebbtide_rehearsal.cloud.store import Store

_BUSY: Final = (429, 503)
_NO_CONTENT: Final = 204


class RestServer:
    """A server of the clouds' REST APIs, in its own threads.

    Attributes:
        origin: origin, such as `https://localhost:40123`.
    """

    def __init__(self, store: Store, apis: Sequence[RestApi], context: ssl.SSLContext) -> None:
        """Start the server.

        Args:
            store: the fake cloud's store, for injected faults.
            apis: the APIs to serve.
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> tuple[int, Mapping[str, Any], Mapping[str, str]]:
        """Return status, document and headers of the response to a request."""
        request = self._request(handler)
        try:
            route, names = self._route(request)
            self._injected(route)
            answer = route.handle(replace(request, names=names))
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

    def _route(self, request: Request) -> tuple[Route, Mapping[str, str]]:
        for api in self._apis:
            for route in api.routes:
                match = route.path.fullmatch(request.path)
                if match and route.method == request.method:
                    return route, match.groupdict()
        raise RefusedRequestError(404, f"The requested URL {request.path} was not found on this server.")

    def _injected(self, route: Route) -> None:
        fault = self._store.strike(API_ERROR, route.operation)
        if fault is not None:
            status = int(fault.details.get("status", 500))
            headers = {"Retry-After": str(fault.details.get("retry_after", 0))} if status in _BUSY else {}
            raise RefusedRequestError(status, str(fault.details["message"]), headers=headers)
