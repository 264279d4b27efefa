"""Logs of pods while they are written, over lost connections."""

from collections.abc import Iterator
from typing import Any

import pytest

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.work import logs
from ebbtide.work.logs import LogStream, of_index, print_logs


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
        thread.join(10)
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
