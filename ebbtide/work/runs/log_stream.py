"""The logs of a workload's pods, line by line while they are written."""

import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.parts import parts, text, words
from ebbtide.work.job_progress import INDEX
from ebbtide.work.kinds import TRIAL_LABEL
from ebbtide.work.objects import Object, phase_of

_STAMP: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*) ?(.*)")
_COLLECTOR: Final = "metrics-logger-and-collector"
_COLLECTED: Final = "1>/var/log/katib/metrics.log 2>&1"
_KLOG: Final = re.compile(r"[IWEF]\d{4} [\d:.]+ +\d+ \S+\] ")
"""Katib's sidecar reads the output of a trial from a file, and logs it with klog's header (kubeflow/katib
0.19, pkg/webhook/v1beta1/pod/utils.go, cmd/metricscollector/v1beta1/file-metricscollector/main.go)."""
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
        prefixed: whether lines begin with the pod's index or trial.

    Returns:
        A sentence for each log that could not be read.
    """
    unread: list[str] = []
    for pod in sorted(filter(has_started, pods), key=lambda pod: pod["metadata"]["creationTimestamp"]):
        path = f"/api/v1/namespaces/{namespace}/pods/{pod['metadata']['name']}/log"
        try:
            for line in api.lines(path, container=_container(pod)):
                on_line(_written(line, pod, prefixed=prefixed))
        except ApiError as error:
            unread.append(_unread(pod, error))
    return unread


def of_index(pods: Sequence[Object], index: int | None) -> Sequence[Object]:
    """Return the pods of an index; all for None."""
    return pods if index is None else [pod for pod in pods if _index(pod) == str(index)]


def _index(pod: Object) -> str:
    return text(pod, "metadata", "annotations", INDEX)


def _container(pod: Object) -> str:
    """Return the container whose log has the output of a pod's program."""
    first = pod["spec"]["containers"][0]
    names = [container["name"] for container in parts(pod, "spec", "containers")]
    is_collected = any(_COLLECTED in word for word in words(first, "args"))
    return _COLLECTOR if is_collected and _COLLECTOR in names else first["name"]


def _written(line: str, pod: Object, *, prefixed: bool) -> str:
    """Return a line as the program wrote it, with the pod's index or trial before it."""
    if _container(pod) == _COLLECTOR:
        line = _KLOG.sub("", line, count=1)
    label = _index(pod) or text(pod, "metadata", "labels", TRIAL_LABEL)
    return f"[{label}] {line}" if prefixed and label else line


def _unread(pod: Object, error: ApiError) -> str:
    """Return why a pod's log could not be read; the API server's reason after a removal names the node."""
    name, node = pod["metadata"]["name"], text(pod, "spec", "nodeName")
    if error.not_found and f'nodes "{node}"' in error.message:
        return f"The log of pod {name} is not on the cluster any more: its node {node} is removed."
    return f"The log of pod {name} could not be read: {error.message}"


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
            prefixed: whether lines begin with the pod's index or trial.
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
        return list(self._unread.values())

    def _run(self, pod: Object) -> None:
        try:
            self._read(pod)
        except BrokenPipeError as error:  # a thread cannot end the program
            self._closed = error

    def _read(self, pod: Object) -> None:
        name = pod["metadata"]["name"]
        path = f"/api/v1/namespaces/{self._namespace}/pods/{name}/log"
        query = {"container": _container(pod), "follow": "true", "timestamps": "true"}
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
                        self._write(_written(content, pod, prefixed=self._prefixed))
                if not self._is_running(name):
                    return
            except ApiError as error:
                if not error.unanswered or self._over.is_set():
                    if not last:
                        self._unread[name] = _unread(pod, error)
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
