"""Cases on the real Kueue: suspended Jobs, whose status is written here in place of the Job controller."""

import json
import math
import time
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from threading import Event as Flag
from threading import Thread

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.objects import condition
from ebbtide.values.kueue_api import API_PATH, API_VERSION
from kueue_grid import STEP, Case, Decision, Row, Script, run
from kueue_jobs import NAMESPACE
from kueue_replay.kueue import Check, Event, Finish, PodsReady, Submit
from rehearsal.tests.control_plane.cluster import Object, job, pod

JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
WORKLOADS = f"{API_PATH}/namespaces/{NAMESPACE}/workloads"
REQUESTS = f"/apis/autoscaling.x-k8s.io/v1/namespaces/{NAMESPACE}/provisioningrequests"

QUIET = 1.6
"""Seconds without a change after which a slot may end: Kueue retries what did not fit after one (0.19.2).
Until then a slot is extended by whole steps, which leaves Kueue's own timers between the slots."""

_CONDITIONS = {
    "QuotaReserved": "reserved",
    "Admitted": "admitted",
    "Evicted": "evicted",
    "Finished": "finished",
}


class _Inboxes:
    """Versions of objects as they are written, by the case of their job."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._of: defaultdict[str, SimpleQueue[tuple[str, Object]]] = defaultdict(SimpleQueue)
        self._closed = Flag()

    def __getitem__(self, prefix: str) -> SimpleQueue[tuple[str, Object]]:
        return self._of[prefix]

    @contextmanager
    def watching(self) -> Generator[None]:
        for path in (WORKLOADS, JOBS, REQUESTS):
            version = str(self._api.get(path)["metadata"]["resourceVersion"])
            Thread(target=self._watch, args=(path, version), daemon=True).start()
        try:
            yield
        finally:
            self._closed.set()

    def _watch(self, path: str, version: str) -> None:
        while not self._closed.is_set():
            try:
                for line in self._api.lines(path, watch="true", resourceVersion=version):
                    item: Object = json.loads(line)["object"]
                    version = item["metadata"]["resourceVersion"]
                    prefix = _job_of(path, item).rpartition("-")[0] + "-"
                    self._of[prefix].put((path, item))
            except ApiError as error:
                if not error.unanswered:  # nothing was written for a minute
                    raise


def _job_of(path: str, item: Object) -> str:
    """Return the Job of an object; Kueue names Workloads `job-NAME-HASH`."""
    if path == JOBS:
        return str(item["metadata"]["name"])
    owner = str(item["metadata"]["ownerReferences"][0]["name"])
    return owner if path == WORKLOADS else owner.removeprefix("job-").rpartition("-")[0]


class _Real:
    def __init__(
        self, api: Api, script: Script, inbox: SimpleQueue[tuple[str, Object]], start: float
    ) -> None:
        self._api, self._script, self._inbox = api, script, inbox
        self._start = start
        self.extensions: list[float] = []
        self._workloads: dict[str, Object] = {}
        self._requests: dict[str, str] = {}
        self._named: set[str] = set()
        self._running: set[str] = set()
        self._attempts: defaultdict[str, int] = defaultdict(int)

    def act(self, action: Decision) -> None:
        match action:
            case Submit():
                self._submit(action)
            case Check():
                kind = "Provisioned" if action.state == "Ready" else "Failed"
                self._write(REQUESTS, self._requests[action.job], {"conditions": [_true(kind)]})
            case PodsReady():
                self._write(JOBS, action.job, {"ready": 1})
            case Finish():
                ended = {"active": 0, "ready": 0, "succeeded": 1, "completionTime": _now()}
                conditions = [_true("SuccessCriteriaMet"), _true("Complete")]
                self._write(JOBS, action.job, ended | {"conditions": conditions})

    def events(self, until: float) -> list[Event]:
        planned, events = self._start + until, list[Event]()
        end, quiet = planned, 0.0
        while (now := time.time()) < max(end, quiet):
            if now >= end:
                end += STEP
            try:
                path, item = self._inbox.get(timeout=end - now)
            except Empty:
                continue
            quiet = time.time() + QUIET
            job = _job_of(path, item)
            if path == JOBS:
                self._control(job, item)
            elif path == WORKLOADS:
                events += self._changes(job, item)
            elif (name := item["metadata"]["name"]) not in self._named:
                self._named.add(name)
                self._requests[job] = name
                attempt = int(name.rpartition("-")[2])
                events.append(self._event("check", job, attempt=attempt))
        self.extensions.append(end - planned)
        self._start += end - planned
        return events

    def _event(self, kind: str, job: str, **details: object) -> Event:
        return Event(kind, time.time() - self._start, job, **details)  # pyright: ignore[reportArgumentType]

    def _write(self, path: str, name: str, status: Object) -> None:
        self._api.patch(f"{path}/{name}/status", {"status": status})

    def _submit(self, action: Submit) -> None:
        (pods,) = action.pod_sets
        labels = {
            "kueue.x-k8s.io/queue-name": action.queue.partition("/")[2],
            "kueue.x-k8s.io/priority-class": f"priority-{action.priority}",
        }
        template = pod({}, container={"resources": {"requests": dict(pods.requests)}})
        item = job(action.job, template, labels=labels, suspend=True, managedBy="example.com/test")
        self._api.create(JOBS, item)

    def _control(self, name: str, item: Object) -> None:
        """Start and stop the pod of a Job."""
        if item["spec"]["suspend"] and name in self._running:
            self._running.remove(name)
            self._write(JOBS, name, {"active": 0, "ready": 0})
        elif not item["spec"]["suspend"] and name not in self._running:
            self._running.add(name)
            self._attempts[name] += 1
            ready = int(self._script.ready_at_once(name, self._attempts[name]))
            self._write(JOBS, name, {"active": 1, "ready": ready, "startTime": _now()})

    def _changes(self, name: str, item: Object) -> Iterable[Event]:
        """Yield what a version of a Workload means, as the program in virtual time does."""
        before = self._workloads.get(name, {})
        self._workloads[name] = item
        for kind, event in _CONDITIONS.items():
            if condition(item, kind) and not condition(before, kind):
                details = {"flavors": _flavors(item)} if event in {"reserved", "admitted"} else {}
                yield self._event(event, name, **details)
        if before and before["spec"].get("active", True) and not item["spec"].get("active", True):
            yield self._event("deactivated", name)


def _flavors(item: Object) -> Mapping[str, Mapping[str, str]]:
    return {part["name"]: part["flavors"] for part in item["status"]["admission"]["podSetAssignments"]}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _true(kind: str) -> Object:
    return {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime": _now()}


def priority_classes(cases: Iterable[Case]) -> list[Object]:
    """Return the WorkloadPriorityClasses of jobs."""
    return [
        {
            "apiVersion": API_VERSION,
            "kind": "WorkloadPriorityClass",
            "metadata": {"name": f"priority-{value}"},
            "value": value,
        }
        for value in sorted({job.priority for case in cases for job in case.jobs})
    ]


def in_real_time(api: Api, cases: Mapping[str, Case]) -> dict[str, tuple[list[Row], list[float]]]:
    """Run cases side by side, each with the prefix that is its key.

    Returns:
        Their events, and the seconds by which each slot was longer than the step.
    """
    inboxes = _Inboxes(api)
    # On a whole second, since the API server truncates times.
    start = math.ceil(time.time()) + 2

    def played(prefix: str, case: Case, begin: float) -> tuple[list[Row], list[float]]:
        script = Script(case, prefix)
        real = _Real(api, script, inboxes[prefix], begin)
        time.sleep(begin - time.time())
        return run(script, real), real.extensions

    with inboxes.watching(), ThreadPoolExecutor(len(cases)) as pool:
        begun = {
            prefix: pool.submit(played, prefix, case, start + number % STEP)
            for number, (prefix, case) in enumerate(cases.items())
        }
        return {prefix: future.result() for prefix, future in begun.items()}
