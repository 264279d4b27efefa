"""Clouds' APIs that misbehave, or a proxy in their place: each answer beyond a bound is one clear line."""

import gzip
import json
import threading
import time
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import pytest
import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse

from ebbtide.clients.clouds import connect, google, http
from ebbtide.clients.clouds.interfaces import CloudApiError
from ebbtide.declaration.cloud_kind import CloudKind

_MEBIBYTE = 2**20


class _Server(ThreadingHTTPServer):
    """A server that answers as it is told.

    Attributes:
        status: HTTP status.
        headers: its other headers.
        body: the parts of the next body, by request.
        asked: the paths of the requests.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.headers, self.asked = 200, dict[str, str](), list[str]()
        self.body: Callable[[int], Any] = lambda _: [b"{}"]

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer."""
        server = cast("_Server", self.server)
        server.asked.append(self.path)
        self.send_response(server.status)
        for name, value in server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            for part in server.body(len(server.asked)):
                self.wfile.write(part)
        except OSError:
            return

    def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Log nothing."""


@pytest.fixture
def server() -> Generator[_Server]:
    """A server that misbehaves."""
    with _Server() as serving:
        threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True).start()
        yield serving
        serving.shutdown()


def _refused(server: _Server) -> str:
    with requests.Session() as session, pytest.raises(CloudApiError) as error:
        http.get_json(session, server.url, {}, {})
    return str(error.value)


def _endless(_: int) -> Generator[bytes]:
    while True:
        yield b"[" * 2**16


def _dripping(_: int) -> Generator[bytes]:
    while True:
        yield b" "
        time.sleep(0.02)


def test_a_body_has_an_end(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an endless body nor a small one that decompresses to a large one is read to its end."""
    monkeypatch.setattr(http, "_LARGEST", _MEBIBYTE)
    server.body = _endless
    assert "answered with more than 1 MiB. Check the network's proxy" in _refused(server)
    bomb = gzip.compress(bytes(64 * _MEBIBYTE))
    server.headers["Content-Encoding"] = "gzip"
    server.body = lambda _: [bomb]
    assert "answered with more than 1 MiB. Check the network's proxy" in _refused(server)


def test_an_answer_has_a_time(server: _Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that arrives byte by byte is given up."""
    monkeypatch.setattr(http, "_WHOLE", 0.2)
    server.body = _dripping
    assert "did not finish its answer within 0 s." in _refused(server)


def test_a_wait_has_a_bound() -> None:
    """A day that the server asks for is half a minute."""
    session = http.with_retries(requests.Session())
    retries = cast("HTTPAdapter", session.get_adapter("https://cloud")).max_retries
    assert retries.get_retry_after(HTTPResponse(headers={"Retry-After": "86400"})) == 30
    assert retries.new().get_retry_after(HTTPResponse(headers={"Retry-After": "5"})) == 5


@pytest.mark.parametrize(("method", "again"), [("GET", True), ("POST", False), ("DELETE", False)])
def test_only_reads_are_sent_again(method: str, again: bool) -> None:  # noqa: FBT001
    """A creation or a deletion that has had an effect before its error must not have another."""
    session = http.with_retries(requests.Session())
    retries = cast("HTTPAdapter", session.get_adapter("https://cloud")).max_retries
    for status in (429, 500, 502, 503, 504):
        assert bool(retries.is_retry(method, status)) is again
    assert not retries.is_retry(method, 404)


@pytest.mark.parametrize("body", [b"[" * 10**6, b'{"a":' * 10**5, b"[]", b"<html>", b"\xff"])
def test_a_document_of_no_shape(server: _Server, body: bytes) -> None:
    """Deep JSON, JSON that is no object, and no JSON at all are one answer."""
    server.body = lambda _: [body]
    assert _refused(server).startswith("127.0.0.1 did not return JSON. Check the network's proxy, ")


def test_a_message_is_shortened(server: _Server) -> None:
    """The beginning of an error text of 200 kB is shown."""
    server.status = 400
    server.body = lambda _: [json.dumps({"error": {"message": "no " * 70_000}}).encode()]
    assert len(_refused(server)) < 600


@pytest.mark.parametrize("token", ["same", ""])
def test_pages_have_an_end(server: _Server, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    """A page that returns and ever new pages end a list."""
    monkeypatch.setattr(http, "_PAGES", 5)
    server.body = lambda number: [json.dumps({"nextPageToken": token or str(number)}).encode()]
    with requests.Session() as session, pytest.raises(CloudApiError, match=r"does not end\. Check"):
        list(http.pages(session, server.url, {}, {}))
    assert len(server.asked) == (2 if token else 5)


def test_a_token_stays_with_its_host(server: _Server) -> None:
    """The next page of an Azure list, and where a redirect leads, are not read from another host."""
    other = f"http://localhost:{server.server_port}/elsewhere"
    server.body = lambda _: [json.dumps({"nextLink": other}).encode()]
    with requests.Session() as session, pytest.raises(CloudApiError, match="localhost, which does not get"):
        list(http.linked(session, server.url, {}, {}, "nextLink"))
    server.status, server.headers["Location"] = 302, other
    server.body = lambda _: [b""]
    assert "did not return JSON" in _refused(server)
    assert [path for path in server.asked if path == "/elsewhere"] == []


@pytest.mark.parametrize("body", ["{}", '{"quotas": 1}', '{"quotas": [1]}', '{"quotas": [{}]}'])
def test_a_document_of_another_shape(server: _Server, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """The error names the cloud that answered, and an empty one is not taken for quotas without limits."""
    server.body = lambda _: [body.encode()]
    monkeypatch.setattr(google, "google_session", requests.Session)
    monkeypatch.setenv("GOOGLE_COMPUTE_CUSTOM_ENDPOINT", server.url)
    with pytest.raises(CloudApiError, match="Google Cloud answered with a document of another shape"):
        connect.quota_source(CloudKind.GKE, "acme-ml").limits("us-central1", [])
