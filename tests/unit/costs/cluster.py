"""A cluster in memory, as the API that the cost recorder uses."""

import io
import json
import re
import urllib.error
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import Message
from typing import IO, Any
from urllib.parse import parse_qs, urlsplit

from ebbtide.clients.kubernetes import ApiError
from ebbtide.in_pods.cost_recorder import MONTH_LABEL, Api, RequestError
from ebbtide.values.paths import Object

POOLS = [
    {
        "name": "t4-spot",
        "option": "spot",
        "labels": {"pool": "t4-spot"},
        "resource": "nvidia.com/gpu",
        "price": {"per_hour": 1.2, "currency": "USD", "estimated": False},
    },
    {
        "name": "cpu",
        "option": "on-demand",
        "labels": {"pool": "cpu"},
        "resource": "",
        "price": {"per_hour": None, "currency": "USD", "estimated": False},
    },
]
SETTINGS: Object = {"pools": POOLS, "teams": {"vision": "vision", "speech": "speech"}}
START = 1_790_000_000.0


def when(moment: float) -> str:
    """A time as the API has it."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M:%SZ}"


def node(name: str, created: float, pool: str = "t4-spot") -> Object:
    """A node of a pool with four GPUs."""
    return {
        "metadata": {
            "name": name,
            "uid": f"node-{name}",
            "labels": {"pool": pool},
            "creationTimestamp": when(created),
        },
        "status": {"allocatable": {"nvidia.com/gpu": "4", "cpu": "8", "memory": "32Gi"}},
    }


def pod(name: str, on: str, scheduled: float, **status: Any) -> Object:
    """A pod of the Job `train` that runs on a node."""
    requests = {"nvidia.com/gpu": "1", "cpu": "500m", "memory": "4Gi"}
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": when(scheduled)}
    return {
        "metadata": {
            "name": name,
            "namespace": "vision",
            "uid": f"pod-{name}",
            "labels": {"batch.kubernetes.io/job-name": "train", "ebbtide.dev/owner": "ada"},
            "creationTimestamp": when(scheduled - 60),
        },
        "spec": {"nodeName": on, "containers": [{"resources": {"requests": requests}}]},
        "status": {
            "phase": "Running",
            **status,
            "conditions": [condition, *status.get("conditions", ())],
        },
    }


def done(name: str, on: str, scheduled: float, end: float, **status: Any) -> Object:
    """The same, finished."""
    container = {"state": {"terminated": {"finishedAt": when(end)}}}
    return pod(name, on, scheduled, **{"phase": "Succeeded", "containerStatuses": [container], **status})


class Cluster(Api):
    """The objects of a cluster; a request for anything else is an error.

    Attributes:
        nodes: its nodes.
        pods: its pods.
        jobs: its Jobs.
        events: its events.
        maps: the recorder's ConfigMaps.
        broken: pattern of the requests that fail; empty for none.
        cut: end of the paths whose responses are cut off; empty for none.
    """

    def __init__(self) -> None:
        self.nodes: list[Object] = []
        self.pods: list[Object] = []
        self.jobs: list[Object] = []
        self.events: list[Object] = []
        self.maps: dict[str, Object] = {}
        self.broken, self.cut = "", ""

    def send(self, method: str, path: str, body: Object | None = None) -> IO[bytes]:
        """Return the API server's response to a request."""
        address = urlsplit(path)
        if self.broken and re.search(self.broken, f"{method} {address.path}"):
            raise _error(path, 403)
        parts = address.path.split("/")
        if parts[-2] == "configmaps" or parts[-1] == "configmaps":
            return _response(self._maps(method, path, body))
        selected = parse_qs(address.query).get("fieldSelector", [""])[0]
        if parts[-1] == "nodes":
            items = self.nodes
        elif parts[-1] in {"pods", "jobs"}:
            assert (selected == "spec.nodeName!=") == (parts[-1] == "pods")
            listed = self.pods if parts[-1] == "pods" else self.jobs
            items = [item for item in listed if item["metadata"]["namespace"] == parts[-2]]
        else:
            assert parts[-1] == "events"
            kind, reason = (item.partition("=")[2] for item in selected.split(","))
            items = [
                item
                for item in self.events
                if (item["involvedObject"]["kind"], item["reason"]) == (kind, reason)
            ]
        response = _response({"metadata": {}, "items": items})
        return io.BytesIO(response.read()[:-9]) if self.cut and address.path.endswith(self.cut) else response

    def _maps(self, method: str, path: str, body: Object | None) -> Object:
        name = urlsplit(path).path.rpartition("/")[2]
        match method:
            case "GET" if name == "configmaps":
                months = parse_qs(urlsplit(path).query)["labelSelector"][0]
                items = [
                    item
                    for item in self.maps.values()
                    if item["metadata"].get("labels", {}).get("ebbtide.dev/cost-month", "none") in months
                ]
                return {"metadata": {}, "items": items}
            case "POST":
                assert body is not None
                made = json.loads(json.dumps(body))
                self.maps[made["metadata"]["name"]] = made
                return made
            case _ if name not in self.maps:
                raise _error(path, 404)
            case _ if body is not None:
                self.maps[name]["data"].update(body["data"])
            case _:
                pass
        assert sum(map(len, self.maps[name]["data"].values())) <= 1 << 20
        return self.maps[name]

    def lines(self) -> dict[str, Object]:
        """The recorded lines, by UID."""
        found: dict[str, Object] = {}
        for name, item in self.maps.items():
            if not name.startswith("state"):
                assert not found.keys() & item["data"].keys()
                found |= {key: json.loads(text) for key, text in item["data"].items()}
        return found


class Reader:
    """The API as `ebbtide cost` uses it, over the same ConfigMaps."""

    def __init__(self, maps: Mapping[str, Object], status: int = 200, time: float = 0.0) -> None:
        self._maps, self._status, self._time = maps, status, time

    def now(self) -> datetime:
        """Return the time of the server."""
        return datetime.fromtimestamp(self._time, UTC)

    def find(self, path: str) -> Object | None:
        """Return a ConfigMap."""
        if self._status != 200:
            raise ApiError(self._status, "forbidden")
        return self._maps.get(path.rpartition("/")[2])

    def items(self, path: str, *, labelSelector: str) -> list[Object]:  # noqa: N803
        """Return the ConfigMaps with lines."""
        assert path == "/api/v1/namespaces/ebbtide-costs/configmaps"
        found = [(item, item["metadata"].get("labels", {})) for item in self._maps.values()]
        return [item for item, labels in found if labels and labels[MONTH_LABEL] in labelSelector]


def _response(item: Object) -> IO[bytes]:
    return io.BytesIO(json.dumps(item).encode())


def _error(path: str, code: int) -> RequestError:
    with urllib.error.HTTPError(path, code, "refused", Message(), io.BytesIO()) as error:
        return RequestError(error)
