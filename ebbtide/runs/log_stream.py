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


class LogStream:
    """Read the logs of pods in threads, and pass on their lines.

    A lost connection is restored, and continues after the last line. The lines of several pods begin with
    their index.
    """

    def __init__(self, api: Api, namespace: str, on_line: Callable[[str], object]) -> None:
        """Prepare a stream.

        Args:
            api: the cluster's API.
            namespace: the pods' namespace.
            on_line: called with each line, by one thread at a time.
        """
        self._api, self._namespace = api, namespace
        self._on_line, self._lock = on_line, threading.Lock()
        self._threads: dict[str, threading.Thread] = {}
        self._unread: dict[str, str] = {}
        self._over = threading.Event()

    def add(self, pods: Sequence[Object]) -> None:
        """Start to read the logs of those pods that have started."""
        for pod in pods:
            uid = pod["metadata"]["uid"]
            if uid in self._threads or not _has_started(pod):
                continue
            if sum(thread.is_alive() for thread in self._threads.values()) < _MOST:
                thread = threading.Thread(target=self._read, args=(pod,), daemon=True)
                self._threads[uid] = thread
                thread.start()

    def end(self) -> Sequence[str]:
        """Wait a while for the rest of the logs; return a sentence for each log that could not be read."""
        self._over.set()
        deadline = time.monotonic() + _LAST
        for thread in self._threads.values():
            thread.join(max(0.0, deadline - time.monotonic()))
        return [f"The log of pod {pod} could not be read: {why}" for pod, why in self._unread.items()]

    def _read(self, pod: Object) -> None:
        name = pod["metadata"]["name"]
        index = text(pod, "metadata", "annotations", INDEX)
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
                        self._write(content, index)
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

    def _write(self, line: str, index: str) -> None:
        with self._lock:
            self._on_line(f"[{index}] {line}" if index else line)


def _has_started(pod: Object) -> bool:
    """Check that a pod's first container has started, or has ended."""
    first = pod["spec"]["containers"][0]["name"]
    statuses: Sequence[Object] = pod.get("status", {}).get("containerStatuses") or ()
    states: Sequence[Object] = [item.get("state") or {} for item in statuses if item["name"] == first]
    return any("running" in state or "terminated" in state for state in states)
