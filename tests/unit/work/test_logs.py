"""Logs of pods: queries, and lines while they are written, over lost connections."""

import base64
import gzip
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.placement import LogsProfile
from ebbtide.work import logs
from ebbtide.work.errors import WorkloadError
from ebbtide.work.logs import LogStream, log_link, log_query, of_index, print_logs
from tests.unit.work.clusters import DEV, DEV_AKS

_STEP = "pipeline/runid=0b1c"


def test_one_pod_on_gke() -> None:
    """The profile's own query, for that pod."""
    lines = log_query(DEV, namespace="vision", pod="train-x7k2p").splitlines()
    assert lines[-2:] == [
        'resource.labels.namespace_name="vision"',
        'resource.labels.pod_name="train-x7k2p"',
    ]


def test_a_job_and_a_step_on_gke() -> None:
    """By their pods' labels, whose dots Cloud Logging writes as underscores."""
    job = log_query(DEV, namespace="vision", job="train")
    assert job.endswith('labels."k8s-pod/batch_kubernetes_io/job-name"="train"')
    assert "pod_name" not in job
    step = log_query(DEV, namespace="kubeflow", label=_STEP)
    assert step.endswith('labels."k8s-pod/pipeline/runid"="0b1c"')


def test_a_job_on_aks() -> None:
    """By the names that the Job controller gives its pods, and those of no other Job."""
    query = log_query(DEV_AKS, namespace="vision", job="train")
    match = re.search(r'PodName matches regex @"([^"]+)"', query)
    assert match is not None
    assert [name for name in ("train-x7k2p", "train-12-x7k2p") if re.search(match[1], name)]
    assert not re.search(match[1], "train-large-x7k2p")
    assert "| project TimeGenerated, PodName, ContainerName, LogMessage" in query


def test_a_pod_and_a_step_on_aks() -> None:
    """A pod by its name, a step by a label of its pod."""
    assert 'PodName == "train-x7k2p"' in log_query(DEV_AKS, namespace="vision", pod="train-x7k2p")
    step = log_query(DEV_AKS, namespace="kubeflow", label=_STEP)
    assert 'tostring(parse_json(tostring(KubernetesMetadata.podLabels))["pipeline/runid"]) == "0b1c"' in step


_NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?", fullmatch=True)


@given(st.sampled_from(["pod", "job"]), _NAMES, _NAMES)
def test_the_link_carries_the_query(kind: str, name: str, namespace: str) -> None:
    """The page that it leads to shows what the query says, for the last week."""
    chosen = {kind: name}
    address = urlsplit(log_link(DEV, namespace=namespace, **chosen))
    query = unquote(address.path.partition(";query=")[2].removesuffix(";duration=P7D"))
    assert query == log_query(DEV, namespace=namespace, **chosen)
    assert (address.netloc, address.query) == ("console.cloud.google.com", "project=acme-ml")


def test_the_link_on_aks_needs_the_workspace() -> None:
    """Without it there is none; with it the query is packed as the portal packs it."""
    assert log_link(DEV_AKS, namespace="vision", job="train") == ""
    workspace = "/subscriptions/1/resourceGroups/g/providers/Microsoft.OperationalInsights/workspaces/w"
    link = log_link(DEV_AKS, namespace="vision", job="train", workspace=workspace)
    resource, _, packed = link.partition("/resourceId/")[2].partition(
        "/source/LogsBlade.AnalyticsShareLinkToQuery/q/"
    )
    assert unquote(resource) == workspace
    query = gzip.decompress(base64.b64decode(unquote(packed))).decode()
    assert query == log_query(DEV_AKS, namespace="vision", job="train")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "Name one of pod, job and label"),
        ({"pod": "a", "job": "b"}, "Name one of pod, job and label"),
        ({"pod": 'x" OR "'}, "which is not a valid pod name"),
        ({"job": "A"}, "job is 'A', which is not a valid Job name."),
        ({"label": "key"}, "label is 'key'; write it as key=value"),
        ({"label": 'a="b"'}, "write it as key=value"),
        ({"pod": "a", "namespace": ""}, "namespace is '', which is not a valid namespace name."),
    ],
)
def test_invalid_arguments(given: dict[str, str], message: str) -> None:
    """And nothing that is not a name gets into a query."""
    with pytest.raises(WorkloadError, match=re.escape(message)):
        log_query(DEV, **{"namespace": "vision"} | given)


def test_a_query_that_is_not_known() -> None:
    """A profile with a query of another form still finds pods, and says that it finds no more."""
    other = replace(DEV, logs=LogsProfile(query="{namespace}/{pod}", link=""))
    assert log_query(other, namespace="vision", pod="a") == "vision/a"
    with pytest.raises(WorkloadError, match="supports only a single pod"):
        log_query(other, namespace="vision", job="a")


class _Logs(Api):
    """A fake API server with prepared answers for each request of a log."""

    def __init__(self, *answers: list[str | ApiError], phase: str = "Running") -> None:
        super().__init__(None, "vision")
        self._answers, self._phase = list(answers), phase
        self.queries: list[dict[str, str]] = []

    def lines(self, path: str, **query: str) -> Iterator[str]:
        """The next answer; after the last one, the pod has ended."""
        assert path == "/api/v1/namespaces/vision/pods/train-0/log"
        self.queries.append(query)
        answer = self._answers.pop(0)
        for item in answer:
            if isinstance(item, ApiError):
                raise item
            yield item

    def find(self, path: str, **query: str) -> dict[str, Any] | None:  # noqa: ARG002 - as its base
        """The pod, which runs until the last answer."""
        return {"status": {"phase": self._phase if self._answers else "Succeeded"}}


CREATED = {"creationTimestamp": "2026-11-23T10:00:00Z"}


def _pod(state: str, **annotations: str) -> dict[str, Any]:
    statuses: list[dict[str, Any]] = [{"name": "work", "state": {state: {}}}]
    metadata = {"name": "train-0", "uid": "u", "annotations": annotations}
    return {
        "metadata": metadata,
        "spec": {"containers": [{"name": "work"}]},
        "status": {"containerStatuses": statuses},
    }


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_PAUSE", 0.01)


def _read(api: Api, *pods: dict[str, Any]) -> tuple[list[str], list[str]]:
    lines: list[str] = []
    stream = LogStream(api, "vision", lines.append)
    for pod in pods:
        stream.add([pod])
    for thread in stream._threads.values():  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        thread.join(600)
    return lines, list(stream.end())


def test_a_lost_connection_continues_after_the_last_line() -> None:
    """Lines that come again are omitted, also after a response that ended while the pod runs."""
    first, second, third = (f"2026-11-23T10:00:00.{number}00000000Z line {number}" for number in (1, 2, 3))
    api = _Logs([first, ApiError(0, "lost")], [first, second], [second, third, ""])
    lines, unread = _read(api, _pod("running"))
    assert (lines, unread) == (["line 1", "line 2", "line 3", ""], [])
    assert [query.get("sinceTime") for query in api.queries] == [None, *["2026-11-23T10:00:00Z"] * 2]


def test_a_pod_is_read_once_and_only_when_it_has_started() -> None:
    """A waiting container has no log yet; an index is in front of its lines."""
    pod = _pod("terminated", **{"batch.kubernetes.io/job-completion-index": "3"})
    api = _Logs(["no stamp"])
    assert _read(api, _pod("waiting"), pod, pod) == (["[3] no stamp"], [])


def test_a_log_that_cannot_be_read() -> None:
    """The reason is reported in the end."""
    api = _Logs([ApiError(403, "pods/log is forbidden")])
    assert _read(api, _pod("running")) == (
        [],
        ["The log of pod train-0 could not be read: pods/log is forbidden"],
    )


def test_a_log_whose_node_is_removed() -> None:
    """The API server names the node as what is missing, which is not the pod."""
    pod = _pod("terminated")
    pod["spec"]["nodeName"] = "gke-t4-1"
    api = _Logs([ApiError(404, 'nodes "gke-t4-1" not found')])
    assert print_logs(api, "vision", [pod | {"metadata": pod["metadata"] | CREATED}], print) == [
        "The log of pod train-0 is not on the cluster any more: its node gke-t4-1 is removed."
    ]


def test_the_logs_of_all_attempts() -> None:
    """The oldest pod comes first, a waiting one has no log, and a log that cannot be read is reported."""
    first, second = _pod("terminated"), _pod("running", **{"batch.kubernetes.io/job-completion-index": "3"})
    for pod, time in ((first, "10:00"), (second, "11:00")):
        pod["metadata"]["creationTimestamp"] = f"2026-11-23T{time}:00Z"
    waiting = _pod("waiting")
    lines: list[str] = []
    api = _Logs(["step 1"], ["step 2", ApiError(500, "the kubelet is gone")])
    unread = print_logs(api, "vision", [second, waiting, first], lines.append)
    assert lines == ["step 1", "[3] step 2"]
    assert unread == ["The log of pod train-0 could not be read: the kubelet is gone"]
    assert of_index([first, second], 3) == [second]
    assert print_logs(_Logs(["step 2"]), "vision", [second], lines.append, prefixed=False) == []
    assert lines[-1] == "step 2"


def test_the_output_of_a_trial() -> None:
    """Katib's sidecar has the program's output; its lines have the trial's name instead of klog's header."""
    pod = _pod("running")
    pod["metadata"]["labels"] = {"katib.kubeflow.org/trial": "lr-x7z"}
    redirected = "python train.py 1>/var/log/katib/metrics.log 2>&1 && echo completed > $$$$.pid"
    collector = {"name": "metrics-logger-and-collector"}
    pod["spec"]["containers"] = [{"name": "work", "command": ["sh", "-c"], "args": [redirected]}, collector]
    api = _Logs(["2026-11-23T10:00:00.1Z I1123 10:00:00.000100      12 main.go:139] accuracy=0.9"])
    assert _read(api, pod) == (["[lr-x7z] accuracy=0.9"], [])
    assert api.queries[0]["container"] == "metrics-logger-and-collector"
    pod["spec"]["containers"] = [{"name": "work", "args": ["train.py"]}, collector]
    assert _read(_Logs(["loss=1"]), pod) == (["[lr-x7z] loss=1"], [])


def test_an_output_that_is_closed() -> None:
    """The threads end without a traceback, and the next snapshot raises the error."""

    def closed(_line: str) -> None:
        raise BrokenPipeError

    stream = LogStream(_Logs(["step 1"]), "vision", closed)
    stream.add([_pod("running")])
    assert stream.end() == []
    with pytest.raises(BrokenPipeError):
        stream.add([])
