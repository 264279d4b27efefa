"""A server in place of an API or a cloud, which answers as it is told."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest


class Server(ThreadingHTTPServer):
    """A server that records its requests.

    Attributes:
        status: HTTP status.
        headers: its other headers.
        answer: the text of its answers.
        body: the parts of the next body, by the number of requests; by default the answer.
        lost: the number of the next requests that are not answered.
        asked: the requests.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.headers, self.answer = 200, dict[str, str](), json.dumps({"kind": "Pod"})
        self.body: Callable[[int], Iterable[bytes]] = lambda _: [self.answer.encode()]
        self.lost, self.asked = 0, list[dict[str, Any]]()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """It answers each request of a server."""

    server: Server  # pyright: ignore[reportIncompatibleVariableOverride] - by the server that makes it

    def _answer(self) -> None:
        server, parts = self.server, urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server.asked.append(
            {
                "method": self.command,
                "path": parts.path,
                "query": {key: value[0] for key, value in parse_qs(parts.query).items()},
                "type": self.headers["Content-Type"],
                "token": self.headers["Authorization"],
                "user": self.headers["Impersonate-User"],
                "body": json.loads(body) if body else None,
            }
        )
        if server.lost:
            server.lost -= 1
            return
        self.send_response(server.status)
        for name, value in server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            for part in server.body(len(server.asked)):
                self.wfile.write(part)
        except OSError:
            return

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - the library's names

    def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    """A server."""
    with Server() as serving:
        threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True).start()
        yield serving
        serving.shutdown()
