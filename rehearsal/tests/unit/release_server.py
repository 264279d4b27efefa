"""A loopback server of released binaries that serves, stalls, truncates and lies, for tests."""

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler
from threading import Event

from tests.loopback import Handler, listening


class Mode(Enum):
    """The server's answer to a request."""

    SERVE = auto()
    """Sends what is requested, a part if that is requested."""
    WHOLE = auto()
    """Sends everything, whatever part is requested."""
    TRUNCATE = auto()
    """Closes the connection after half of what it announced."""
    STALL = auto()
    """Sends half, then nothing."""
    LIE = auto()
    """Sends other bytes of the same length."""
    SILENT = auto()
    """Accepts the request and does not answer."""
    MISSING = auto()
    """Answers with status 404."""


@dataclass
class ReleaseServer:
    """The server.

    Attributes:
        files: what it has, by path.
        modes: what it does with the next requests, the last one from then on.
        ranges: the part that each request asked for.
    """

    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    modes: list[Mode] = field(default_factory=lambda: [Mode.SERVE])
    ranges: list[str | None] = field(default_factory=list[str | None])
    closing: Event = field(default_factory=Event)
    address: str = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a GET request in the current mode."""
        mode = self.modes.pop(0) if len(self.modes) > 1 else self.modes[0]
        part = handler.headers["Range"]
        self.ranges.append(part)
        if mode is Mode.SILENT:
            self.closing.wait()
            return
        body = self.files.get(handler.path)
        if body is None or mode is Mode.MISSING:
            handler.send_error(404)
            return
        start = 0
        if part and mode is not Mode.WHOLE and (match := re.fullmatch(r"bytes=(\d+)-", part)):
            start = int(match[1])
            if start >= len(body):
                handler.send_error(416)
                return
            handler.send_response(206)
            handler.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            handler.send_response(200)
        rest = body[start:]
        handler.send_header("Content-Length", str(len(rest)))
        handler.end_headers()
        match mode:
            case Mode.TRUNCATE:
                handler.wfile.write(rest[: len(rest) // 2])
            case Mode.STALL:
                handler.wfile.write(rest[: len(rest) // 2])
                self.closing.wait()
            case Mode.LIE:
                handler.wfile.write(bytes(byte ^ 1 for byte in rest))
            case _:
                handler.wfile.write(rest)
        handler.close_connection = True


@contextmanager
def serving() -> Generator[ReleaseServer]:
    """Run a server on the loopback interface."""
    state = ReleaseServer()

    class Answers(Handler):
        def do_GET(self) -> None:  # noqa: N802 - named by http.server
            """Answer."""
            state.answer(self)

    with listening(Answers) as port:
        state.address = f"http://127.0.0.1:{port}"
        try:
            yield state
        finally:
            state.closing.set()
