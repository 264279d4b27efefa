"""Logs of pods: line by line while they are written, and of deleted pods by a query or a page's address."""

import base64
import gzip
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, assert_never
from urllib.parse import quote

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.objects import Object, parts, phase_of, text, words
from ebbtide.placement import Profile
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.work.arguments import is_label, is_subdomain
from ebbtide.work.errors import Problems, WorkloadError
from ebbtide.work.kinds import INDEX, TRIAL_LABEL

_KEY: Final = re.compile(r"(?:[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9](?:[-._A-Za-z0-9]*[A-Za-z0-9])?")
_VALUE: Final = re.compile(r"[A-Za-z0-9](?:[-._A-Za-z0-9]*[A-Za-z0-9])?")
_PORTAL: Final = (
    "https://portal.azure.com/#blade/Microsoft_OperationsManagementSuite_Workspace/Logs.ReactView/resourceId/"
)
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


def log_query(profile: Profile, *, namespace: str, pod: str = "", job: str = "", label: str = "") -> str:
    """Return the query for pods' logs in the language of the cloud's log store, including deleted pods. It
    has no time range: the page or the command that runs it adds one.

    Args:
        job: name of a Job or a sweep, for all of its pods.
        label: label of pods, `key=value`: of a pipeline run (`pipeline/runid=…`), or of a labelled step. On
            AKS, the agent must collect pod labels, which it does not by default (azure-monitor docs,
            container-insights-logs-schema).

    Raises:
        WorkloadError: not exactly one of pod, job and label is given, or it is malformed.
    """
    _check(namespace, pod, job, label)
    query = profile.logs.query
    if not pod:
        template, chosen = _clause(profile, job, label)
        if template not in query:
            raise WorkloadError(
                "The profile's query supports only a single pod: write the profile again with `ebbtide "
                "profile`, or name a pod."
            )
        query = query.replace(template, chosen).replace(
            "project TimeGenerated,", "project TimeGenerated, PodName,"
        )
    return query.replace("{namespace}", namespace).replace("{pod}", pod)


def log_link(
    profile: Profile, *, namespace: str, pod: str = "", job: str = "", label: str = "", workspace: str = ""
) -> str:
    """Return the URL of a page with pods' logs.

    Args:
        namespace: as in `log_query`.
        pod: as in `log_query`.
        job: as in `log_query`.
        label: as in `log_query`.
        workspace: on AKS, resource id of the Log Analytics workspace, which the profile does not have. The
            form of the address is undocumented; it is that of the portal's own sharing (2026).

    Returns:
        The address; empty on AKS without `workspace`.

    Raises:
        WorkloadError: as in `log_query`.
    """
    query = log_query(profile, namespace=namespace, pod=pod, job=job, label=label)
    if profile.logs.link:
        return profile.logs.link.replace(quote(profile.logs.query, safe="{}"), quote(query, safe=""))
    if not workspace:
        return ""
    packed = base64.b64encode(gzip.compress(query.encode(), mtime=0)).decode()
    shared = f"LogsBlade.AnalyticsShareLinkToQuery/q/{quote(packed, safe='')}"
    return f"{_PORTAL}{quote(workspace, safe='')}/source/{shared}"


def _check(namespace: str, pod: str, job: str, label: str) -> None:
    problems = Problems()
    problems.check(sum(map(bool, (pod, job, label))) == 1, "Name one of pod, job and label.")
    problems.check(is_label(namespace), f"namespace is {namespace!r}, which is not a valid namespace name.")
    problems.check(not pod or is_subdomain(pod), f"pod is {pod!r}, which is not a valid pod name.")
    problems.check(not job or is_label(job), f"job is {job!r}, which is not a valid Job name.")
    key, _, value = label.partition("=")
    problems.check(
        not label or (_KEY.fullmatch(key) and _VALUE.fullmatch(value)),
        f"label is {label!r}; write it as key=value.",
    )
    problems.end()


def _clause(profile: Profile, job: str, label: str) -> tuple[str, str]:
    """Return the query's condition on a pod, and its replacement.

    Cloud Logging has pods' labels, with `_` for each dot of a key (GKE's own entries, 2024). Container
    insights has none by default, so a Job's pods are selected by name, which the Job controller generates:
    `<job>-<5 characters>`, with the index in between for a sweep.
    """
    key, _, value = (label or f"batch.kubernetes.io/job-name={job}").partition("=")
    match profile.cloud:
        case CloudKind.GKE:
            return 'resource.labels.pod_name="{pod}"', f'labels."k8s-pod/{key.replace(".", "_")}"="{value}"'
        case CloudKind.AKS if job:
            pods = f'PodName matches regex @"^{re.escape(job)}(-[0-9]+)?-[a-z0-9]{{5}}$"'
        case CloudKind.AKS:
            pods = f'tostring(parse_json(tostring(KubernetesMetadata.podLabels))["{key}"]) == "{value}"'
        case _:
            assert_never(profile.cloud)
    return 'PodName == "{pod}"', pods


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
