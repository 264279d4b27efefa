"""The memory of the cost recorder: its program as a process, on lists of the sizes that members can cause."""

import json
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trustme

from ebbtide.declaration.catalog.resources import footprint
from tests.repository import ROOT
from tests.unit.costs.cluster import SETTINGS, START, done, node, pod, when

_PODS = 20_000
_LARGE = 8
"""Objects of each page that have annotations of 250 kB."""
_MEASURED = """
import re, runpy, sys
from pathlib import Path
runpy.run_module("ebbtide.in_pods.cost_recorder", run_name="__main__")
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1], file=sys.stderr)
"""
"""The program; it ends with its peak memory in KiB (proc(5); `ru_maxrss` has that of the test as well)."""
_JOB = "1b0a1f66-3f6b-4e57-8f3c-0000000INDEX"


class _Server(ThreadingHTTPServer):
    """An API server with many pods, each of a Job of its own, and the recorder's ConfigMaps.

    Attributes:
        pod: JSON of a pod; `INDEX` stands for its number.
        job: the same of a Job.
        maps: the ConfigMaps.
    """

    def __init__(self, authority: trustme.CA) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(context)  # pyright: ignore[reportUnknownMemberType]
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.pod, self.job = "", _json(_job())
        self.maps: dict[str, Any] = {}

    def page(self, kind: str, start: int, limit: int) -> str:
        """Return a page of a list, whose first objects have large annotations."""
        end = min(start + limit, _PODS)
        small = self.pod if kind == "pods" else self.job
        large = small.replace('"labels"', f'"annotations":{{"note":"{"x" * 250_000}"}},"labels"', 1)
        items = [
            (large if index < start + _LARGE else small).replace("INDEX", f"{index:05}")
            for index in range(start, end)
        ]
        token = f',"continue":"{end}"' if end < _PODS else ""
        return f'{{"kind":"List","metadata":{{"resourceVersion":"9"{token}}},"items":[{",".join(items)}]}}\n'


class _Handler(BaseHTTPRequestHandler):
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride] - by the server that makes it
    protocol_version = "HTTP/1.1"

    def _handle(self) -> None:
        address = urlsplit(self.path)
        name = address.path.rpartition("/")[2]
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
        if "/configmaps" in address.path:
            self._maps(name, body)
        elif name in ("pods", "jobs") and "/vision/" in address.path:
            self._answer(200, self.server.page(name, int(query.get("continue", 0)), int(query["limit"])))
        elif name == "nodes":
            self._answer(200, _json({"metadata": {}, "items": [node("one", START)]}))
        else:
            self._answer(200, '{"metadata":{},"items":[]}')

    def _maps(self, name: str, body: Any) -> None:
        maps = self.server.maps
        if name == "configmaps" and body is None:
            items = [item for item in maps.values() if "labels" in item["metadata"]]
            self._answer(200, _json({"metadata": {}, "items": items}))
        elif name == "configmaps":
            maps[body["metadata"]["name"]] = body
            self._answer(201, "{}")
        elif name not in maps:
            self._answer(404, "{}")
        else:
            maps[name]["data"].update(body["data"] if body else {})
            self._answer(200, _json(maps[name]))

    do_GET = do_PATCH = do_POST = _handle  # noqa: N815 - named by http.server

    def _answer(self, status: int, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by http.server
        pass


def _json(item: object) -> str:
    return json.dumps(item, separators=(",", ":"))


def _shaped(item: dict[str, Any]) -> dict[str, Any]:
    """Give a pod the size that API servers return: with its environment, volumes and managed fields."""
    item["metadata"]["uid"] = "5f2c1e9a-7a55-4b2e-9d57-0000000INDEX"
    item["metadata"]["name"] = "train-INDEX-x7kq2"
    owned = {"kind": "Job", "name": "train-INDEX", "uid": _JOB, "controller": True}
    item["metadata"]["ownerReferences"] = [owned]
    fields: dict[str, Any] = {
        f"f:{key}": {"f:name": {}, "f:value": {}, ".": {}} for key in map(str, range(60))
    }
    item["metadata"]["managedFields"] = [{"manager": "kube-controller-manager", "fieldsV1": fields}]
    (container,) = item["spec"]["containers"]
    container["env"] = [{"name": f"VARIABLE_{index}", "value": "value" * 4} for index in range(40)]
    return item


def _job() -> dict[str, Any]:
    return {
        "metadata": {
            "name": "train-INDEX",
            "namespace": "vision",
            "uid": _JOB,
            "labels": {"kueue.x-k8s.io/queue-name": "gpus", "kueue.x-k8s.io/priority-class": "high"},
            "creationTimestamp": when(START),
        },
        "spec": {"template": {"spec": {"containers": [{"env": [{"value": "x" * 4000}]}]}}},
    }


@pytest.fixture
def server(tmp_path: Path) -> Iterator[_Server]:
    """The API server; its authority, a token and the recorder's settings are in the test's directory."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    (tmp_path / "token").write_text("token")
    (tmp_path / "settings.json").write_text(json.dumps(SETTINGS))
    with _Server(authority) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def _run(server: _Server, directory: Path) -> tuple[str, int]:
    """Run the program; return its output, and its peak memory in MiB."""
    address = f"https://localhost:{server.server_port}"
    settings, authority, token = (str(directory / name) for name in ("settings.json", "ca.crt", "token"))
    files = (settings, "--server", address, "--authority", authority, "--token", token)
    command = [sys.executable, "-c", _MEASURED, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout, int(done.stderr) // 1024


def test_twenty_thousand_pods(server: _Server, tmp_path: Path) -> None:
    """All are recorded while they run, when all have ended and while they still exist, large annotations
    included, in 60 % of the memory of the recorder's pod; no ConfigMap is too large."""
    limit = footprint("costs").most.memory_mib
    server.pod = _json(_shaped(pod("x", "one", START + 60)))
    for expected in (0, _PODS, 0):
        text, peak = _run(server, tmp_path)
        assert text == f"{expected} lines written.\n"
        assert peak < 0.6 * limit
        server.pod = _json(_shaped(done("x", "one", START + 60, START + 300)))
    for item in server.maps.values():
        assert sum(map(len, item["data"].values())) < 1 << 20
