"""An API server with nodes and pods alone, for commands that drain nodes."""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import trustme

from ebbtide.values.paths import Object
from tests.loopback import Handler, listening


def _no() -> bool:
    return False


@dataclass
class ApiServer:
    """The objects of a cluster.

    Attributes:
        origin: host and port.
        authority: file with the authority of its certificate.
        nodes: the nodes, by name.
        pods: the pods, by name.
        evicted: names of evicted pods, in order.
        guarded: names of pods whose eviction a PodDisruptionBudget refuses.
        is_stopped: tells whether the cluster is stopped: connections are closed without a response then.
    """

    origin: str
    authority: Path
    nodes: dict[str, Object] = field(default_factory=dict[str, Object])
    pods: dict[str, Object] = field(default_factory=dict[str, Object])
    evicted: list[str] = field(default_factory=list[str])
    guarded: set[str] = field(default_factory=set[str])
    is_stopped: Callable[[], bool] = _no

    def add_pod(self, name: str, node: str, *, restart: str = "Never", owner: str = "Job") -> None:
        """Add a running pod."""
        self.pods[name] = {
            "metadata": {
                "name": name,
                "namespace": "research",
                "ownerReferences": [{"kind": owner, "name": name, "controller": True}],
            },
            "spec": {"nodeName": node, "restartPolicy": restart},
            "status": {"phase": "Running"},
        }

    def answer(self, method: str, path: str, query: dict[str, list[str]], body: Object) -> tuple[int, Object]:
        """Return status and document of the response to a request."""
        parts = path.strip("/").split("/")
        if method == "GET" and parts == ["api", "v1", "nodes"]:
            key, _, value = query.get("labelSelector", ["="])[0].partition("=")
            nodes = [node for node in self.nodes.values() if node["metadata"]["labels"].get(key, "") == value]
            return 200, {"items": nodes}
        if method == "PATCH" and parts[:3] == ["api", "v1", "nodes"] and parts[3] in self.nodes:
            node = self.nodes[parts[3]]
            node["spec"] |= body.get("spec", {})
            node["metadata"].setdefault("annotations", {}).update(body["metadata"].get("annotations", {}))
            return 200, node
        if method == "GET" and parts == ["api", "v1", "pods"]:
            return 200, {"items": list(self.pods.values())}
        if method == "POST" and parts[-1] == "eviction" and parts[-2] in self.pods:
            return self._evict(parts[-2])
        return 404, {"kind": "Status", "reason": "NotFound", "message": f"{path} not found", "code": 404}

    def _evict(self, name: str) -> tuple[int, Object]:
        if name in self.guarded:
            message = "Cannot evict pod as it would violate the pod's disruption budget."
            return 429, {"kind": "Status", "reason": "TooManyRequests", "message": message, "code": 429}
        del self.pods[name]
        self.evicted.append(name)
        return 201, {"kind": "Status", "status": "Success"}


@contextmanager
def api_server(directory: Path) -> Generator[ApiServer]:
    """Serve a cluster's API on the loopback.

    Args:
        directory: for the certificate's authority.
    """
    authority, file = trustme.CA(), directory / "authority.pem"
    authority.cert_pem.write_to_path(file)

    class Answers(Handler):
        protocol_version = "HTTP/1.1"

        def _handle(self) -> None:
            if api.is_stopped():
                self.close_connection = True
                return
            address = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            sent: Object = json.loads(body or "{}")
            self.send(*api.answer(self.command, address.path, parse_qs(address.query), sent))

        do_GET = do_PATCH = do_POST = _handle  # noqa: N815 - named by http.server

    with listening(Answers, authority) as port:
        api = ApiServer(f"localhost:{port}", file)
        yield api
