"""The cost recorder: a program that writes one line for each ended attempt and each node that left.

A CronJob runs it with Python's standard library alone, from a ConfigMap with the two modules of Ebbtide that
it imports. Lines are data of ConfigMaps, one key each, in as many ConfigMaps per month as their size
requires. A line's key is the UID of its pod or node, and a line that exists is never written again, so that a
run that was interrupted can be repeated.

The state is what the next run needs: the lines of the attempts and nodes that have not ended, and the UIDs of
the recorded pods that still exist. It alternates between two sets of ConfigMaps; the ConfigMap `state`, which
is written last, names the set that is complete.

An object that left between two runs ended when an event says so. Without an event, half of the time between
the runs counts, and `uncertain` is the other half. Events are kept for one hour (Kubernetes docs,
kube-apiserver, `--event-ttl`, 2026). Attempts that start and are deleted between two runs are not recorded;
their node's time is.

A namespace that cannot be read, or an object that cannot be understood, keeps its open lines and stops
nothing else. Lists are read object by object, and lines are kept as text: members decide on the number and
the size of their pods, and the pod of this program has little memory.
"""

import argparse
import io
import json
import os
import re
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections import defaultdict
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any, Final, NamedTuple, cast

from ebbtide.values.pod_requests import Amounts, amounts, node_share, pod_requests

NAMESPACE: Final = "ebbtide-costs"
PROGRAM: Final = "recorder"
"""ConfigMap with this program."""
STATE: Final = "state"
"""ConfigMap that names the complete state; also the key of its data, and of that of the state's parts."""
MONTH_LABEL: Final = "ebbtide.dev/cost-month"
"""Label of the ConfigMaps with lines: the month in which they ended, in UTC, as 2026-11."""
OWNER_LABEL: Final = "ebbtide.dev/owner"
"""Label of a pod with the user who created the work."""

_LARGEST: Final = 900_000
"""Maximum bytes of lines and their keys in a ConfigMap, whose own maximum is 1 MiB (Kubernetes docs,
ConfigMap, 2026)."""
_MAPS: Final = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
_JOBS: Final = (
    "jobset.sigs.k8s.io/jobset-name",
    "batch.kubernetes.io/job-name",
    "workflows.argoproj.io/workflow",
)
"""Labels of a pod with the name of the work that it belongs to."""
_QUEUE: Final = ("kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/local-queue-name")
"""Labels of a Job or a pod with its LocalQueue; Kueue sets the second (kueue 0.19, pkg/constants)."""
_PRIORITY: Final = "kueue.x-k8s.io/priority-class"
_LEFT: Final = ("RemovingNode", "DeletingNode")
"""Reasons of events about a node that left (Kubernetes 1.36, node lifecycle controllers)."""
_STOPPED: Final = ("Killing", "Preempted", "Evicted", "TaintManagerEviction")
"""Reasons of events about a pod that is stopped (Kubernetes 1.36, kubelet, scheduler and taint eviction)."""
_NOT_FOUND: Final = 404
_RECORDED: Final = "null"
"""Entry of the state of a recorded pod that still exists."""
_CHUNK: Final = 1 << 16
_ITEMS: Final = re.compile(r'"items"\s*:\s*\[')
_SEPARATOR: Final = re.compile(r"[\s,]*")
_UNREADABLE: Final = (OSError, HTTPException, ValueError)
"""Errors of requests, and of responses that are cut off."""
_MALFORMED: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

Object = dict[str, Any]


class RequestError(OSError):
    """The API server refuses a request.

    Attributes:
        code: HTTP status.
    """

    def __init__(self, error: urllib.error.HTTPError) -> None:
        super().__init__(str(error))
        self.code = error.code


class Api:
    """A client for the API server, as the pod's service account."""

    def __init__(self, server: str, authority: str, token: str) -> None:
        self._server, self._token = server, Path(token)
        self._context = ssl.create_default_context(cafile=authority)

    def send(self, method: str, path: str, body: Object | None = None) -> IO[bytes]:
        """Send a request, and return the response."""
        request = urllib.request.Request(  # noqa: S310 - the server is the cluster's
            self._server + path, None if body is None else json.dumps(body).encode(), method=method
        )
        request.add_header("Authorization", f"Bearer {self._token.read_text().strip()}")
        kind = "merge-patch+json" if method == "PATCH" else "json"
        request.add_header("Content-Type", f"application/{kind}")
        try:
            response = urllib.request.urlopen(request, timeout=60, context=self._context)  # noqa: S310
        except urllib.error.HTTPError as error:
            with error:
                raise RequestError(error) from None
        return cast("IO[bytes]", response)

    def request(self, method: str, path: str, body: Object | None = None) -> Object:
        """Send a request, and return the object."""
        with self.send(method, path, body) as response:
            return cast("Object", json.load(response))

    def items(self, path: str, **query: str) -> Iterator[Object]:
        """Yield the objects of a list, of which at most one is in memory."""
        token = ""
        while True:
            page = {"limit": "500", **query, **({"continue": token} if token else {})}
            with self.send("GET", f"{path}?{urllib.parse.urlencode(page)}") as response:
                answer = yield from objects(response)
            token = answer["metadata"].get("continue", "")
            if not token:
                return

    def find(self, path: str) -> Object:
        """Return an object; empty if it does not exist."""
        try:
            return self.request("GET", path)
        except RequestError as error:
            if error.code == _NOT_FOUND:
                return {}
            raise

    def merge(self, name: str, manifest: Object) -> None:
        """Merge data into a ConfigMap, which is created if it does not exist."""
        try:
            self.request("PATCH", f"{_MAPS}/{name}", manifest)
        except RequestError as error:
            if error.code != _NOT_FOUND:
                raise
            metadata = {"name": name, **manifest.get("metadata", {})}
            self.request("POST", _MAPS, {**manifest, "metadata": metadata})


def objects(response: IO[bytes]) -> Generator[Object, None, Object]:
    """Yield the objects of a list as they are read; return the list without them."""
    source, decoder = io.TextIOWrapper(response, "utf-8"), json.JSONDecoder()
    text, more = "", source.read(_CHUNK)
    while more and not _ITEMS.search(text := text + more):
        more = source.read(_CHUNK)
    found = _ITEMS.search(text)
    if found is None:
        return cast("Object", json.loads(text))
    head, at = text[: found.end()], found.end()
    while True:
        at = cast("re.Match[str]", _SEPARATOR.match(text, at)).end()
        if text.startswith("]", at):
            return cast("Object", json.loads(head + text[at:] + source.read()))
        try:
            item, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            more = source.read(max(_CHUNK, len(text) - at))
            if not more:
                raise
            text, at = text[at:] + more, 0
            continue
        yield item


def seconds(text: str | None) -> float | None:
    """Parse a time of the API, as seconds since 1970; None without one."""
    return datetime.fromisoformat(text).timestamp() if text else None


def month(moment: float) -> str:
    """Return the month of a time in UTC, as 2026-11."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m}"


def pool_of(node: Object, pools: Iterable[Object]) -> Object | None:
    """Return the pool whose labels a node has; None for a node of another pool."""
    labels = node["metadata"].get("labels", {})
    return next((pool for pool in pools if pool["labels"].items() <= labels.items()), None)


def finished(pod: Object) -> float | None:
    """Return when a finished pod's last container ended; None for one that has not finished."""
    status = pod.get("status", {})
    if not _is_over(pod):
        return None
    ends = [
        seconds(item.get("state", {}).get("terminated", {}).get("finishedAt"))
        for item in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
    ]
    disrupted = [seconds(item.get("lastTransitionTime")) for item in _disruptions(pod)]
    return max((end for end in (*ends, *disrupted) if end), default=None)


def _is_over(pod: Object) -> bool:
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def owner(pod: Object) -> Object:
    """Return the reference to the controller of a pod; empty without one."""
    none: Object = {}
    references = pod["metadata"].get("ownerReferences", ())
    return next((item for item in references if item.get("controller")), none)


def submission(submitted: Object) -> Object:
    """Return when and how work was submitted, by its Job or its pod."""
    meta = submitted["metadata"]
    labels = meta.get("labels", {})
    return {
        "submitted": seconds(meta["creationTimestamp"]),
        "queue": next((labels[label] for label in _QUEUE if label in labels), ""),
        "priority": labels.get(_PRIORITY, ""),
    }


class Place(NamedTuple):
    """A node that pods run on, its pool, and what it offers them."""

    node: str
    pool: Object
    offers: Amounts


def attempt(pod: Object, place: Place, team: str, now: float) -> Object:
    """Return the line of an attempt that has not ended."""
    meta, labels = pod["metadata"], pod["metadata"].get("labels", {})
    owners = [owner(pod)["name"]] if owner(pod) else []
    scheduled = (
        item.get("lastTransitionTime")
        for item in pod.get("status", {}).get("conditions", ())
        if item["type"] == "PodScheduled"
    )
    named = [labels[label] for label in _JOBS if label in labels]
    requests, resource = pod_requests(pod["spec"]), place.pool["resource"]
    return {
        "kind": "attempt",
        "team": team,
        "user": labels.get(OWNER_LABEL, ""),
        "job": (*named, *owners, meta["name"])[0],
        "namespace": meta["namespace"],
        "name": meta["name"],
        "node": place.node,
        "start": seconds(next(scheduled, None)) or seconds(meta["creationTimestamp"]),
        "seen": now,
        "share": round(node_share(requests, place.offers, resource) or 0.0, 6),
        "cpu": round(float(requests.get("cpu", 0)), 3),
        "memory": round(requests.get("memory", 0)),
        "gpus": round(requests.get(resource, 0)) if resource else 0,
        "disruptions": len(_disruptions(pod)),
        **_priced(place.pool),
    }


def node_line(node: Object, pool: Object, before: Mapping[str, Any], now: float) -> Object:
    """Return the line of a node that has not left."""
    return {
        "kind": "node",
        "node": node["metadata"]["name"],
        "start": seconds(node["metadata"]["creationTimestamp"]),
        "seen": now,
        "share": 1.0,
        "disruptions": before.get("disruptions", 0),
        **_priced(pool),
    }


def _priced(pool: Object) -> Object:
    price = pool["price"]
    return {
        "pool": pool["name"],
        "option": pool["option"],
        "price": price["per_hour"],
        "currency": price["currency"],
        "estimated": price["estimated"],
    }


def _disruptions(pod: Object) -> list[Object]:
    conditions = pod.get("status", {}).get("conditions", ())
    return [item for item in conditions if item["type"] == "DisruptionTarget" and item["status"] == "True"]


class Recorder:
    """One run of the recorder."""

    def __init__(self, api: Api, settings: Object, now: float) -> None:
        self._api, self._settings, self._now = api, settings, now
        self._kept = state_of(api.find(f"{_MAPS}/{STATE}"))
        self._before: dict[str, str] = {}
        """The last run's state by UID, without the objects that this run has seen."""
        for name in self._kept.get("parts", ()):
            part = state_of(api.find(f"{_MAPS}/{name}"))
            self._before |= {uid: _text(line) for uid, line in part.items()}
        self._state: dict[str, str] = {}
        self._nodes: dict[str, Object] = {}
        """The lines of the nodes that have not left, by UID."""
        self._left: dict[str, dict[str, str]] = defaultdict(dict)
        """The lines by UID of the attempts whose end is not known yet, by namespace."""
        self._disrupted: dict[str, int] = defaultdict(int)
        """The disruptions that this run has recorded, by node."""
        self._node_ends: dict[str, float] = {}
        self._lines: dict[str, dict[str, str]] = defaultdict(dict)
        """The new lines by UID, by month."""
        self._first = now

    def run(self) -> int:
        """Write the lines, then the state; return the count of new lines."""
        places = self._places()
        teams: dict[str, str] = self._settings["teams"]
        self._leave(
            {namespace for namespace, team in teams.items() if not self._read(namespace, team, places)}
        )
        written = self._write()
        self._save()
        return written

    def _places(self) -> dict[str, Place]:
        """Add the nodes of the stack's pools; return them by name."""
        places: dict[str, Place] = {}
        for node in self._api.items("/api/v1/nodes"):
            pool = pool_of(node, self._settings["pools"])
            if pool is not None:
                name, uid = node["metadata"]["name"], node["metadata"]["uid"]
                places[name] = Place(name, pool, amounts(node["status"].get("allocatable")))
                before = json.loads(self._before.pop(uid, "{}"))
                self._nodes[uid] = node_line(node, pool, before, self._now)
        return places

    def _read(self, namespace: str, team: str, places: Mapping[str, Place]) -> bool:
        """Add the attempts of a namespace; return whether it can be read."""
        try:
            jobs = {
                job["metadata"]["uid"]: submission(job)
                for job in self._api.items(f"/apis/batch/v1/namespaces/{namespace}/jobs")
            }
            pods = self._api.items(f"/api/v1/namespaces/{namespace}/pods", fieldSelector="spec.nodeName!=")
            for pod in pods:
                self._try(pod, jobs.get(owner(pod).get("uid", "")), team, places)
        except _UNREADABLE as error:
            _say(f"The pods and Jobs of namespace {namespace} cannot be listed: {error}")
            return False
        return True

    def _try(self, pod: Object, submitted: Object | None, team: str, places: Mapping[str, Place]) -> None:
        """Add a pod; one that cannot be understood stays as it was."""
        meta = pod["metadata"]
        try:
            self._add(pod, submitted, team, places)
        except _MALFORMED as error:
            _say(f"Pod {meta['name']} of namespace {meta['namespace']} cannot be recorded: {error!r}")
            if meta["uid"] in self._before:
                self._state[meta["uid"]] = self._before[meta["uid"]]
        self._before.pop(meta["uid"], None)

    def _add(self, pod: Object, submitted: Object | None, team: str, places: Mapping[str, Place]) -> None:
        uid = pod["metadata"]["uid"]
        known: Object | None = json.loads(self._before.get(uid, "{}"))
        if known is None:
            self._state[uid] = _RECORDED
            return
        place = places.get(pod["spec"].get("nodeName", ""))
        if place is None and not known:
            return
        line: Object = attempt(pod, place, team, self._now) if place else known | {"seen": self._now}
        own = submission(pod)
        line |= submitted or {key: known.get(key, own[key]) for key in own}
        line["queue"] = line["queue"] or own["queue"]
        line["priority"] = line["priority"] or own["priority"]
        line["disruptions"] = len(_disruptions(pod))
        end = finished(pod)
        if end is not None:
            self._end(uid, line, end)
        elif place is None or _is_over(pod):
            self._left[line["namespace"]][uid] = _text(known or line)
        else:
            self._state[uid] = _text(line)
            return
        self._state[uid] = _RECORDED
        self._disrupted[line["node"]] += line["disruptions"]

    def _leave(self, unreadable: Collection[str]) -> None:
        """Record what is no longer there: its end is known from events, from its node's end, or between the
        two runs."""
        nodes: dict[str, Object] = {}
        for uid, text in self._before.items():
            if text == _RECORDED:
                continue
            line: Object = json.loads(text)
            if line["kind"] == "node":
                nodes[uid] = line
            elif line["namespace"] in unreadable:
                self._state[uid] = text
            else:
                self._left[line["namespace"]][uid] = text
        for node in (*self._nodes.values(), *nodes.values()):
            node["disruptions"] += self._disrupted[node["node"]]
        events = self._events("default", "Node", _LEFT) if nodes else {}
        for uid, node in nodes.items():
            if self._vanished(uid, node, events.get(node["node"], ())):
                self._node_ends[node["node"]] = node["end"]
        for namespace, left in self._left.items():
            events = self._events(namespace, "Pod", _STOPPED)
            for uid, text in left.items():
                line = json.loads(text)
                of_node = (self._node_ends[line["node"]],) if line["node"] in self._node_ends else ()
                self._vanished(uid, line, (*events.get(line["name"], ()), *of_node))

    def _vanished(self, uid: str, line: Object, times: Iterable[float]) -> bool:
        """Record the end of an object: the known time that is nearest to when it was last seen, or the middle
        of the two runs; return whether it is known."""
        known = [moment for moment in times if line["start"] <= moment <= self._now]
        if known:
            self._end(uid, line, min(known, key=lambda moment: abs(moment - line["seen"])))
        else:
            half = (self._now - line["seen"]) / 2
            self._end(uid, line, line["seen"] + half, half)
        return bool(known)

    def _events(self, namespace: str, kind: str, reasons: Iterable[str]) -> dict[str, list[float]]:
        """Return the times of events with one of the reasons, by the names of their objects; empty if they
        cannot be read, as after the removal of a team."""
        times: dict[str, list[float]] = defaultdict(list)
        try:
            for reason in reasons:
                selector = f"involvedObject.kind={kind},reason={reason}"
                for item in self._api.items(f"/api/v1/namespaces/{namespace}/events", fieldSelector=selector):
                    moment = item.get("lastTimestamp") or item.get("eventTime") or item.get("firstTimestamp")
                    times[item["involvedObject"]["name"]].append(seconds(moment) or 0.0)
        except _UNREADABLE as error:
            _say(f"The events of namespace {namespace} cannot be listed: {error}")
        return times

    def _end(self, uid: str, line: Object, end: float, uncertain: float = 0.0) -> None:
        """Add the line of an attempt or a node that ended."""
        line |= {"end": end, "seconds": round(max(0.0, end - line["start"]), 3)}
        line["uncertain"] = round(uncertain, 3)
        self._lines[month(end)][uid] = _text({key: line[key] for key in line if key != "seen"})
        self._first = min(self._first, line["start"])

    def _write(self) -> int:
        """Write the lines that are not recorded yet, by month; return their count."""
        if not self._lines:
            return 0
        new = {uid for lines in self._lines.values() for uid in lines}
        exists: set[str] = set()
        sizes: dict[str, dict[str, int]] = defaultdict(dict)
        present = ",".join(months(self._first, self._now))
        for item in self._api.items(_MAPS, labelSelector=f"{MONTH_LABEL} in ({present})"):
            data: dict[str, str] = item.get("data") or {}
            exists |= data.keys() & new
            size = sum(len(uid) + len(line) for uid, line in data.items())
            sizes[item["metadata"]["labels"][MONTH_LABEL]][item["metadata"]["name"]] = size
        for label, lines in self._lines.items():
            unwritten = {uid: line for uid, line in lines.items() if uid not in exists}
            for name, part in _parts(f"costs-{label}", unwritten, sizes[label]):
                self._api.merge(name, {"metadata": {"labels": {MONTH_LABEL: label}}, "data": part})
        return len(new - exists)

    def _save(self) -> None:
        """Write the state to the set of ConfigMaps that is not current, and make it current."""
        self._state |= {uid: _text(line) for uid, line in self._nodes.items()}
        current = "b" if f"{STATE}-a-1" in self._kept.get("parts", ()) else "a"
        names: list[str] = []
        for name, part in _parts(f"{STATE}-{current}", self._state, {}):
            text = ",".join(f'"{uid}":{line}' for uid, line in part.items())
            self._api.merge(name, {"data": {STATE: f"{{{text}}}"}})
            names.append(name)
        state = {"since": self._kept.get("since", self._now), "last": self._now, "parts": names}
        self._api.merge(STATE, {"data": {STATE: _text(state)}})


def state_of(config_map: Mapping[str, Any] | None) -> Object:
    """Return the data of the state's ConfigMap: `since`, `last`, and the names of its `parts`. The data of a
    part are lines by UID, or null for a recorded pod that still exists. Empty without the ConfigMap."""
    return cast("Object", json.loads((config_map or {}).get("data", {}).get(STATE, "{}")))


def _text(line: object) -> str:
    return json.dumps(line, separators=(",", ":"))


def _say(message: str) -> None:
    sys.stdout.write(f"{message}\n")


def months(first: float, last: float) -> Iterator[str]:
    """Yield the months from one time to another."""
    start = datetime.fromtimestamp(first, UTC)
    year, number = start.year, start.month
    while (name := f"{year}-{number:02}") <= month(last):
        yield name
        year, number = (year + 1, 1) if number == 12 else (year, number + 1)  # noqa: PLR2004 - of a year


def _parts(
    prefix: str, lines: Mapping[str, str], sizes: Mapping[str, int]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield lines by the ConfigMap that they fit in, after what the ConfigMaps have."""
    number = max(len(sizes), 1)
    part: dict[str, str] = {}
    size = sizes.get(f"{prefix}-{number}", 0)
    for uid, line in lines.items():
        if size + len(uid) + len(line) > _LARGEST:
            if part:
                yield f"{prefix}-{number}", part
            number, part, size = number + 1, {}, 0
        part[uid] = line
        size += len(uid) + len(line)
    if part:
        yield f"{prefix}-{number}", part


def main() -> None:
    """Run once, in a pod or with the given server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("settings", type=Path)
    parser.add_argument("--server", default="", help="by default that of the pod's cluster")
    parser.add_argument("--authority", required=True)
    parser.add_argument("--token", required=True)
    given = parser.parse_args()
    api = Api(given.server or _cluster_server(), given.authority, given.token)
    count = Recorder(api, json.loads(given.settings.read_text()), time.time()).run()
    _say(f"{count} lines written.")


def _cluster_server() -> str:
    """Return the API server's address, from the environment of a pod (Kubernetes docs, accessing the API from
    a pod)."""
    host, port = (os.environ[f"KUBERNETES_SERVICE_{part}"] for part in ("HOST", "PORT"))
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


if __name__ == "__main__":
    main()
