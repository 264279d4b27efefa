"""The logs of a Job's pods, line by line while they are written."""

import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from ebbtide.kubernetes_api import Api, ApiError
from ebbtide.kubernetes_api.parts import text
from ebbtide.workloads.job_progress import INDEX
from ebbtide.workloads.objects import Object, phase_of

_STAMP: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*) ?(.*)")
_PAUSE: Final = 1.0
_LAST: Final = 10.0
"""Seconds for the rest of the logs after the end of the Job."""
_MOST: Final = 20
"""Maximum number of pods whose logs are read at once."""


def print_logs(
    api: Api,
    namespace: str,
    pods: Sequence[Object],
    on_line: Callable[[str], object],
    *,
    prefixed: bool = True,
) -> Sequence[str]:
    """Pass on the existing lines of pods, one pod after the other, the oldest first.

    Args:
        api: the cluster's API.
        namespace: the pods' namespace.
        pods: the pods.
        on_line: called with each line.
        prefixed: whether lines begin with the pod's index.

    Returns:
        A sentence for each log that could not be read.
    """
    unread: list[str] = []
    for pod in sorted(filter(has_started, pods), key=lambda pod: pod["metadata"]["creationTimestamp"]):
        path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}/log"
        try:
            for line in api.lines(path, container=pod["spec"]["containers"][0]["name"]):
                on_line(_prefixed(line, pod) if prefixed else line)
        except ApiError as error:
            unread.append(_unread(pod["metadata"]["name"], error.message))
    return unread


def of_index(pods: Sequence[Object], index: int | None) -> Sequence[Object]:
    """Return the pods of an index; all for None."""
    return pods if index is None else [pod for pod in pods if _index(pod) == str(index)]


def _index(pod: Object) -> str:
    return text(pod, "metadata", "annotations", INDEX)


def _prefixed(line: str, pod: Object) -> str:
    index = _index(pod)
    return f"[{index}] {line}" if index else line


def _unread(pod: str, reason: str) -> str:
    return f"The log of pod {pod} could not be read: {reason}"


class LogStream:
    """Read the logs of pods in threads, and pass on their lines.

    A lost connection is restored, and continues after the last line.
    """

    def __init__(
        self, api: Api, namespace: str, on_line: Callable[[str], object], *, prefixed: bool = True
    ) -> None:
        """Prepare a stream.

        Args:
            api: the cluster's API.
            namespace: the pods' namespace.
            on_line: called with each line, by one thread at a time.
            prefixed: whether lines begin with the pod's index.
        """
        self._api, self._namespace = api, namespace
        self._on_line, self._lock, self._prefixed = on_line, threading.Lock(), prefixed
        self._threads: dict[str, threading.Thread] = {}
        self._unread: dict[str, str] = {}
        self._over = threading.Event()
        self._closed: BrokenPipeError | None = None

    def add(self, pods: Sequence[Object]) -> None:
        """Start to read the logs of those pods that have started.

        Raises:
            BrokenPipeError: the output was closed, which ended the readers.
        """
        if self._closed:
            raise self._closed
        for pod in pods:
            uid = pod["metadata"]["uid"]
            if uid in self._threads or not has_started(pod):
                continue
            if sum(thread.is_alive() for thread in self._threads.values()) < _MOST:
                thread = threading.Thread(target=self._run, args=(pod,), daemon=True)
                self._threads[uid] = thread
                thread.start()

    def end(self) -> Sequence[str]:
        """Wait a while for the rest of the logs; return a sentence for each log that could not be read."""
        self._over.set()
        deadline = time.monotonic() + _LAST
        for thread in self._threads.values():
            thread.join(max(0.0, deadline - time.monotonic()))
        return [_unread(pod, reason) for pod, reason in self._unread.items()]

    def _run(self, pod: Object) -> None:
        try:
            self._read(pod)
        except BrokenPipeError as error:  # a thread cannot end the program
            self._closed = error

    def _read(self, pod: Object) -> None:
        name = pod["metadata"]["name"]
        path = f"/api/v1/namespaces/{self._namespace}/pods/{name}/log"
        query = {"container": pod["spec"]["containers"][0]["name"], "follow": "true", "timestamps": "true"}
        last = ""
        while True:
            before = last
            # The API takes whole seconds: the lines of the last second come again.
            since = {"sinceTime": f"{before[:19]}Z"} if before else {}
            try:
                for line in self._api.lines(path, **query, **since):
                    match = _STAMP.fullmatch(line)
                    stamp, content = (match[1], match[2]) if match else ("", line)
                    if not (stamp and before and stamp <= before):
                        last = max(last, stamp)
                        self._write(_prefixed(content, pod) if self._prefixed else content)
                if not self._is_running(name):
                    return
            except ApiError as error:
                if not error.unanswered or self._over.is_set():
                    if not last:
                        self._unread[name] = error.message
                    return
            time.sleep(_PAUSE)

    def _is_running(self, name: str) -> bool:
        """Check that a pod still writes: a server may end a long response."""
        pod = self._api.find(f"/api/v1/namespaces/{self._namespace}/pods/{name}")
        return pod is not None and phase_of(pod) == "Running"

    def _write(self, line: str) -> None:
        with self._lock:
            self._on_line(line)


def has_started(pod: Object) -> bool:
    """Check that a pod's first container has started, or has ended."""
    first = pod["spec"]["containers"][0]["name"]
    statuses: Sequence[Object] = pod.get("status", {}).get("containerStatuses") or ()
    states: Sequence[Object] = [item.get("state") or {} for item in statuses if item["name"] == first]
    return any("running" in state or "terminated" in state for state in states)
