"""HTTP servers on the loopback interface."""

import json
import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import trustme


class Handler(BaseHTTPRequestHandler):
    """A handler that logs nothing."""

    def send(self, status: int, document: object) -> None:
        """Send a JSON document."""
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's
        """Log nothing."""


class _Files(Handler, SimpleHTTPRequestHandler):
    """A handler that sends files."""


@contextmanager
def listening(
    handler: Callable[..., BaseHTTPRequestHandler], authority: trustme.CA | None = None, port: int = 0
) -> Generator[int]:
    """Serve on a port, by default a free one, until the end of the block; with an authority over TLS."""
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        if authority is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate = authority.issue_cert("localhost", "127.0.0.1")
            certificate.configure_cert(context)  # pyright: ignore[reportUnknownMemberType]
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def folder_served(folder: Path) -> Generator[str]:
    """Serve a folder; yield its address."""
    with listening(partial(_Files, directory=str(folder))) as port:
        yield f"http://127.0.0.1:{port}"
