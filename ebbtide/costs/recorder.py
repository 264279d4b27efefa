"""The cost recorder: a program that writes one line for each ended attempt and each node that left.

A CronJob runs it with Python's standard library alone, from a ConfigMap. Lines are data of ConfigMaps, one
key each, in as many ConfigMaps per month as their size requires. A line's key is the UID of its pod or node,
and a line that exists is never written again, so that a run that was interrupted can be repeated. The
ConfigMap `state` has the attempts and nodes of the last run that had not ended.

An object that left between two runs ended when an event says so. Without an event, half of the time between
the runs counts, and `uncertain` is the other half. Events are kept for one hour (Kubernetes docs,
kube-apiserver, `--event-ttl`, 2026). Attempts that start and are deleted between two runs are not recorded;
their node's time is.
"""

import argparse
import json
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast

NAMESPACE: Final = "ebbtide-costs"
STATE: Final = "state"
"""ConfigMap with the attempts and nodes that have not ended; also its key."""
MONTH_LABEL: Final = "ebbtide.dev/cost-month"
"""Label of the ConfigMaps with lines: the month in which they ended, in UTC, as 2026-11."""
OWNER_LABEL: Final = "ebbtide.dev/owner"
"""Label of a pod with the user who created the work."""

_LARGEST: Final = 900_000
"""Maximum bytes of lines in a ConfigMap, whose own maximum is 1 MiB (Kubernetes docs, ConfigMap, 2026)."""
_MOUNTED: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
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
_SUFFIXES: Final = {"m": 1e-3, "": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15} | {
    f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTP", 1)
}

Object = dict[str, Any]


class Api:
    """A client for the API server, as the pod's service account."""

    def __init__(self, server: str, authority: str, token: str) -> None:
        self._server, self._token = server, Path(token)
        self._context = ssl.create_default_context(cafile=authority)

    def request(self, method: str, path: str, body: Object | None = None) -> Object:
        """Send a request, and return the object."""
        request = urllib.request.Request(  # noqa: S310 - the server is the cluster's
            self._server + path, None if body is None else json.dumps(body).encode(), method=method
        )
        request.add_header("Authorization", f"Bearer {self._token.read_text().strip()}")
        kind = "merge-patch+json" if method == "PATCH" else "json"
        request.add_header("Content-Type", f"application/{kind}")
        with urllib.request.urlopen(request, timeout=60, context=self._context) as answer:  # noqa: S310
            return cast("Object", json.load(answer))

    def items(self, path: str, **query: str) -> Iterator[Object]:
        """Yield the objects of a list, by pages."""
        token = ""
        while True:
            page = {"limit": "500", **query, **({"continue": token} if token else {})}
            answer = self.request("GET", f"{path}?{urllib.parse.urlencode(page)}")
            yield from answer.get("items") or []
            token = answer["metadata"].get("continue", "")
            if not token:
                return

    def find(self, path: str) -> Object:
        """Return an object; empty if it does not exist."""
        try:
            return self.request("GET", path)
        except urllib.error.HTTPError as error:
            if error.code == _NOT_FOUND:
                return {}
            raise

    def merge(self, namespace: str, name: str, manifest: Object) -> None:
        """Merge data into a ConfigMap, which is created if it does not exist."""
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        try:
            self.request("PATCH", f"{path}/{name}", manifest)
        except urllib.error.HTTPError as error:
            if error.code != _NOT_FOUND:
                raise
            metadata = {"name": name, **manifest.get("metadata", {})}
            self.request("POST", path, {**manifest, "metadata": metadata})


def seconds(text: str | None) -> float | None:
    """Parse a time of the API, as seconds since 1970; None without one."""
    return datetime.fromisoformat(text).timestamp() if text else None


def month(moment: float) -> str:
    """Return the month of a time in UTC, as 2026-11."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m}"


def quantity(text: object) -> float:
    """Parse a quantity, such as 500m or 4Gi."""
    written = str(text or "0")
    number = written.rstrip("mkMGTPi")
    return float(number) * _SUFFIXES[written[len(number) :]]


def requested(pod: Object, resource: str) -> float:
    """Return what the containers of a pod request together, sidecars included."""
    spec = pod["spec"]
    sidecars = [item for item in spec.get("initContainers", ()) if item.get("restartPolicy") == "Always"]
    return sum(
        quantity(item.get("resources", {}).get("requests", {}).get(resource))
        for item in (*spec["containers"], *sidecars)
    )


def share(pod: Object, node: Object, resource: str) -> float:
    """Return the share of a node that a pod has: of its accelerators, or else the mean of CPU and memory, so
    that the shares of all pods are at most 1."""
    resources = (resource,) if resource else ("cpu", "memory")
    has = node["status"].get("allocatable", {})
    parts = [requested(pod, name) / (quantity(has.get(name)) or float("inf")) for name in resources]
    return min(1.0, round(sum(parts) / len(parts), 6))


def pool_of(node: Object, pools: Iterable[Object]) -> Object | None:
    """Return the pool whose labels a node has; None for a node of another pool."""
    labels = node["metadata"].get("labels", {})
    return next((pool for pool in pools if pool["labels"].items() <= labels.items()), None)


def finished(pod: Object) -> float | None:
    """Return when a finished pod's last container ended; None for one that has not finished."""
    status = pod.get("status", {})
    if status.get("phase") not in ("Succeeded", "Failed"):
        return None
    ends = [
        seconds(item.get("state", {}).get("terminated", {}).get("finishedAt"))
        for item in status.get("containerStatuses", ())
    ]
    disrupted = [seconds(item.get("lastTransitionTime")) for item in _disruptions(pod)]
    return max((end for end in (*ends, *disrupted) if end), default=None)


def owner(pod: Object) -> Object:
    """Return the reference to the controller of a pod; empty without one."""
    none: Object = {}
    references = pod["metadata"].get("ownerReferences", ())
    return next((item for item in references if item.get("controller")), none)


def submission(pod: Object, job: Object | None) -> Object:
    """Return when and how a pod's work was submitted: by its Job, or by itself without one."""
    submitted = (job or pod)["metadata"]
    labels = {**pod["metadata"].get("labels", {}), **submitted.get("labels", {})}
    return {
        "submitted": seconds(submitted["creationTimestamp"]),
        "queue": next((labels[label] for label in _QUEUE if label in labels), ""),
        "priority": labels.get(_PRIORITY, ""),
    }


def attempt(pod: Object, node: Object, pool: Object, team: str, now: float) -> Object:
    """Return the line of an attempt that has not ended."""
    meta, labels = pod["metadata"], pod["metadata"].get("labels", {})
    owners = [owner(pod)["name"]] if owner(pod) else []
    scheduled = (
        item.get("lastTransitionTime")
        for item in pod.get("status", {}).get("conditions", ())
        if item["type"] == "PodScheduled"
    )
    named = [labels[label] for label in _JOBS if label in labels]
    return {
        "kind": "attempt",
        "team": team,
        "user": labels.get(OWNER_LABEL, ""),
        "job": (*named, *owners, meta["name"])[0],
        "namespace": meta["namespace"],
        "name": meta["name"],
        "node": node["metadata"]["name"],
        "start": seconds(next(scheduled, None)) or seconds(meta["creationTimestamp"]),
        "seen": now,
        "share": share(pod, node, pool["resource"]),
        "cpu": round(requested(pod, "cpu"), 3),
        "memory": round(requested(pod, "memory")),
        "gpus": round(requested(pod, pool["resource"])) if pool["resource"] else 0,
        "disruptions": len(_disruptions(pod)),
        **_priced(pool),
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


def ended(line: Object, end: float, uncertain: float = 0.0) -> Object:
    """Return the line of an attempt or a node that ended."""
    kept = {key: value for key, value in line.items() if key != "seen"}
    length = round(max(0.0, end - line["start"]), 3)
    return {**kept, "end": end, "seconds": length, "uncertain": round(uncertain, 3)}


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
    """One run of the recorder.

    Attributes:
        lines: the lines of what ended since the last run, by UID.
    """

    def __init__(self, api: Api, settings: Object, now: float) -> None:
        self._api, self._settings, self._now = api, settings, now
        kept = api.find(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{STATE}")
        self._before: Object = json.loads(kept.get("data", {}).get(STATE, "{}"))
        self._open: dict[str, Object] = {}
        self._recorded: set[str] = set()
        self.lines: dict[str, Object] = {}

    def run(self) -> int:
        """Write the lines, then the state; return the count of new lines."""
        present = self._nodes()
        unreadable = self._pods(present)
        known: dict[str, Object] = self._before.get("open", {})
        left = {
            uid: line
            for uid, line in known.items()
            if uid not in self._open and uid not in self.lines and line.get("namespace") not in unreadable
        }
        for uid, line in sorted(left.items(), key=lambda item: item[1]["kind"] == "attempt"):
            self.lines[uid] = self._vanished(line)
        self._open |= {uid: line for uid, line in known.items() if line.get("namespace") in unreadable}
        written = self._write()
        state = {
            "since": self._before.get("since", self._now),
            "last": self._now,
            "open": self._open,
            "recorded": sorted(self._recorded),
        }
        self._api.merge(NAMESPACE, STATE, {"data": {STATE: json.dumps(state)}})
        return written

    def _nodes(self) -> dict[str, tuple[Object, Object]]:
        """Add the nodes of the stack's pools; return them with their pools, by name."""
        present: dict[str, tuple[Object, Object]] = {}
        for node in self._api.items("/api/v1/nodes"):
            pool = pool_of(node, self._settings["pools"])
            if pool is not None:
                uid = node["metadata"]["uid"]
                present[node["metadata"]["name"]] = node, pool
                before = self._before.get("open", {}).get(uid, {})
                self._open[uid] = node_line(node, pool, before, self._now)
        return present

    def _pods(self, present: Mapping[str, tuple[Object, Object]]) -> set[str]:
        """Add the attempts of the teams' namespaces; return the namespaces that cannot be read."""
        unreadable: set[str] = set()
        for namespace, team in self._settings["teams"].items():
            try:
                pods = list(self._api.items(f"/api/v1/namespaces/{namespace}/pods"))
                jobs = list(self._api.items(f"/apis/batch/v1/namespaces/{namespace}/jobs"))
            except urllib.error.HTTPError as error:
                sys.stdout.write(f"The pods and Jobs of namespace {namespace} cannot be listed: {error}\n")
                unreadable.add(namespace)
                continue
            by_uid = {job["metadata"]["uid"]: job for job in jobs}
            for pod in pods:
                self._pod(pod, by_uid.get(owner(pod).get("uid", "")), team, present)
        return unreadable

    def _pod(
        self, pod: Object, job: Object | None, team: str, present: Mapping[str, tuple[Object, Object]]
    ) -> None:
        uid = pod["metadata"]["uid"]
        known: Object | None = self._before.get("open", {}).get(uid)
        if uid in self._before.get("recorded", ()):
            self._recorded.add(uid)
            return
        on = present.get(pod["spec"].get("nodeName", ""))
        if on is None and known is None:
            return
        line = attempt(pod, *on, team, self._now) if on else {**cast("Object", known), "seen": self._now}
        submitted = submission(pod, job)
        line |= submitted if job or not known else {key: known.get(key, submitted[key]) for key in submitted}
        line["disruptions"] = len(_disruptions(pod))
        end = finished(pod)
        if end is not None:
            self.lines[uid] = ended(line, end)
        elif on is None or pod["status"].get("phase") in ("Succeeded", "Failed"):
            self.lines[uid] = self._vanished(cast("Object", known or line))
        else:
            self._open[uid] = line
            return
        self._recorded.add(uid)
        self._count_disruption(line)

    def _count_disruption(self, line: Object) -> None:
        """Count a disrupted attempt on its node, while the node exists."""
        for other in (*self._open.values(), *self._before.get("open", {}).values()):
            if other["kind"] == "node" and other["node"] == line["node"]:
                other["disruptions"] += line["disruptions"]

    def _vanished(self, line: Object) -> Object:
        """Return the line of an attempt or a node that is no longer there, with its end from events, from its
        node's end, or from the two runs."""
        is_node = line["kind"] == "node"
        namespace, name = ("default", line["node"]) if is_node else (line["namespace"], line["name"])
        kind, reasons = ("Node", _LEFT) if is_node else ("Pod", _STOPPED)
        selector = f"involvedObject.kind={kind},involvedObject.name={name}"
        events = self._api.items(f"/api/v1/namespaces/{namespace}/events", fieldSelector=selector)
        times = [
            seconds(item.get("lastTimestamp") or item.get("eventTime") or item.get("firstTimestamp"))
            for item in events
            if item.get("reason") in reasons
        ]
        if not is_node:
            times += [
                other["end"]
                for other in self.lines.values()
                if other["kind"] == "node" and other["node"] == line["node"] and not other["uncertain"]
            ]
        known = [moment for moment in times if moment and line["start"] <= moment <= self._now]
        if known:
            return ended(line, min(known, key=lambda moment: abs(moment - line["seen"])))
        half = (self._now - line["seen"]) / 2
        return ended(line, line["seen"] + half, half)

    def _write(self) -> int:
        """Write the lines that are not recorded yet, by month; return their count."""
        written = 0
        first = min((line["start"] for line in self.lines.values()), default=self._now)
        present = list(months(first, self._now)) if self.lines else []
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
        maps = (
            list(self._api.items(path, labelSelector=f"{MONTH_LABEL} in ({','.join(present)})"))
            if present
            else []
        )
        exists = {key for item in maps for key in cast("dict[str, str]", item.get("data") or {})}
        by_month: dict[str, dict[str, str]] = {}
        for uid, line in self.lines.items():
            if uid not in exists:
                text = json.dumps(line, separators=(",", ":"))
                by_month.setdefault(month(line["end"]), {})[uid] = text
        for label, lines in by_month.items():
            sizes = {
                item["metadata"]["name"]: _size(item.get("data") or {})
                for item in maps
                if item["metadata"]["labels"][MONTH_LABEL] == label
            }
            for name, part in _parts(label, lines, sizes):
                manifest = {"metadata": {"labels": {MONTH_LABEL: label}}, "data": part}
                self._api.merge(NAMESPACE, name, manifest)
                written += len(part)
        return written


def months(first: float, last: float) -> Iterator[str]:
    """Yield the months from one time to another."""
    start = datetime.fromtimestamp(first, UTC)
    year, number = start.year, start.month
    while (name := f"{year}-{number:02}") <= month(last):
        yield name
        year, number = (year + 1, 1) if number == 12 else (year, number + 1)  # noqa: PLR2004 - of a year


def _size(lines: Mapping[str, str]) -> int:
    return sum(len(key) + len(line) for key, line in lines.items())


def _parts(
    label: str, lines: Mapping[str, str], sizes: dict[str, int]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield new lines by the ConfigMap that they fit in, after what the ConfigMaps have."""
    number = max(len(sizes), 1)
    part: dict[str, str] = {}
    size = sizes.get(f"costs-{label}-{number}", 0)
    for key, line in lines.items():
        if size + len(key) + len(line) > _LARGEST:
            if part:
                yield f"costs-{label}-{number}", part
            number, part, size = number + 1, {}, 0
        part[key] = line
        size += len(key) + len(line)
    yield f"costs-{label}-{number}", part


def main() -> None:
    """Run once, in a pod or with the given server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("settings", type=Path)
    parser.add_argument("--server", default="https://kubernetes.default.svc")
    parser.add_argument("--authority", default=f"{_MOUNTED}/ca.crt")
    parser.add_argument("--token", default=f"{_MOUNTED}/token")
    given = parser.parse_args()
    api = Api(given.server, given.authority, given.token)
    count = Recorder(api, json.loads(given.settings.read_text()), time.time()).run()
    sys.stdout.write(f"{count} lines written.\n")


if __name__ == "__main__":
    main()
