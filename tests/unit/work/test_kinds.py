"""Work that is followed: what a name means, and TrainJobs and pipeline runs in the terms of a Job."""

from typing import Any

import pytest

from ebbtide.clients.kubernetes import JSON, Api, ApiError
from ebbtide.work import submission
from ebbtide.work.errors import ClusterError
from ebbtide.work.kinds import JOB, PIPELINE_RUN, TRAIN_JOB, kind_of
from ebbtide.work.progress import end_message, progress_line

_CREATED = {"creationTimestamp": "2026-11-22T10:00:00Z", "namespace": "vision"}
_RUN = "0b1f3a52-7c1d-4e0a-9a57-3d6f0e9a1c11"


class _Objects(Api):
    """A fake API server with objects by path; a number is the status of a refusal."""

    def __init__(self, objects: dict[str, Any]) -> None:
        super().__init__(None, "vision")
        self._objects = objects

    def get(self, path: str, *, accept: str = JSON, **query: str) -> dict[str, Any]:  # noqa: ARG002 - as its base
        key = "?".join((path, *(value for word, value in query.items() if word.endswith("Selector"))))
        known = self._objects.get(key, 404)
        if isinstance(known, int):
            raise ApiError(known, "refused")
        return known


def _pods(label: str, *pods: Any) -> dict[str, Any]:
    return {f"/api/v1/namespaces/vision/pods?{label}": {"items": list(pods)}}


def _train_job(*conditions: dict[str, Any], suspend: bool = False) -> dict[str, Any]:
    return {
        "kind": "TrainJob",
        "metadata": {"name": "llm", "uid": "t", **_CREATED},
        "spec": {"suspend": suspend},
        "status": {"conditions": list(conditions)},
    }


def _workflow(phase: str, *steps: str, **status: Any) -> dict[str, Any]:
    nodes = {str(number): {"type": "Pod", "phase": step} for number, step in enumerate(steps)}
    nodes["dag"] = {"type": "DAG", "phase": phase}
    return {
        "kind": "Workflow",
        "metadata": {"name": "train-x7z", "uid": "w", **_CREATED},
        "spec": {},
        "status": {"phase": phase, "nodes": nodes, **status},
    }


def test_a_name_is_looked_up_by_kind() -> None:
    """A Job before a TrainJob before a Workflow; the id of a run is its Workflow's label."""
    job, train, flow = (kind.path.format("vision") + "/llm" for kind in (JOB, TRAIN_JOB, PIPELINE_RUN))
    assert kind_of(_Objects({job: {}, train: {}}), "llm", "vision") == (JOB, "llm")
    assert kind_of(_Objects({train: {}, flow: {}}), "llm", "vision") == (TRAIN_JOB, "llm")
    assert kind_of(_Objects({train: 403, flow: {}}), "llm", "vision") == (PIPELINE_RUN, "llm")
    runs = f"{PIPELINE_RUN.path.format('vision')}?pipeline/runid={_RUN}"
    objects = _Objects({runs: {"items": [_workflow("Running")]}})
    assert kind_of(objects, _RUN, "vision") == (PIPELINE_RUN, "train-x7z")


def test_a_name_that_nothing_has() -> None:
    """The message names the kinds; one who may not see Jobs is told so."""
    with pytest.raises(ClusterError, match="There is no Job, TrainJob, pipeline run or experiment llm in"):
        kind_of(_Objects({}), "llm", "vision")
    elsewhere = f"{JOB.path.replace('/namespaces/{}', '')}?metadata.name=llm"
    jobs = [{"metadata": {"name": "llm", "namespace": place}} for place in ("vision", "speech")]
    with pytest.raises(ClusterError, match="There is one in speech and vision: add `--namespace`"):
        kind_of(_Objects({elsewhere: {"items": jobs}}), "llm", "default")
    with pytest.raises(ClusterError, match=r"in namespace default\. It may have ended"):
        kind_of(_Objects({elsewhere: 403}), "llm", "default")
    with pytest.raises(ClusterError, match="You may not follow Jobs in namespace vision"):
        kind_of(_Objects({JOB.path.format("vision") + "/llm": 403}), "llm", "vision")


def _followed(objects: dict[str, Any], name: str) -> tuple[str, str]:
    """Return the last line and the end of work that has ended."""
    lines: list[str] = []
    look, progress = submission.follow(
        _Objects(objects), name, "vision", lambda state: lines.append(progress_line(state)), lines.append
    )
    return lines[-1], end_message(look, progress)


def test_a_train_job() -> None:
    """A TrainJob ends by its conditions, and its pods are those of its JobSet."""
    path = TRAIN_JOB.path.format("vision") + "/llm"
    end = {"status": "True", "lastTransitionTime": "2026-11-22T10:01:05Z"}
    pods = _pods("jobset.sigs.k8s.io/jobset-name=llm")
    done = {path: _train_job({"type": "Complete", **end}), **pods}
    assert _followed(done, "llm") == ("completed", "TrainJob llm completed after 1 min 5 s.")
    failed = {path: _train_job({"type": "Failed", "message": "jobset failed", **end}), **pods}
    last, ending = _followed(failed, "llm")
    assert last == "failed: jobset failed"
    assert ending.startswith("TrainJob llm failed after 1 min 5 s: jobset failed.")
    assert "logs -n vision --label jobset.sigs.k8s.io/jobset-name=llm" in ending


def test_a_pipeline_run() -> None:
    """Pods of a run's steps are counted, and a failed pod of a successful run is a retry."""
    path = PIPELINE_RUN.path.format("vision") + "/train-x7z"
    pods = _pods("workflows.argoproj.io/workflow=train-x7z")
    ended = {"finishedAt": "2026-11-22T10:00:40Z"}
    done = {path: _workflow("Succeeded", "Succeeded", "Failed", "Succeeded", **ended), **pods}
    assert _followed(done, "train-x7z") == (
        "completed, done 2 of 3; 1 retry used",
        "Pipeline run train-x7z completed after 40 s; 1 retry used.",
    )
    lost = {path: _workflow("Failed", "Succeeded", "Failed", message="child failed", **ended), **pods}
    last, ending = _followed(lost, "train-x7z")
    assert last == "failed, done 1 of 2: child failed"
    assert ending.startswith("Pipeline run train-x7z failed after 40 s: child failed.")


def test_a_run_that_is_suspended() -> None:
    """A suspended run is queued, like a Job, and its steps are counted once it runs."""
    path = PIPELINE_RUN.path.format("vision") + "/train-x7z"
    pods = _pods("workflows.argoproj.io/workflow=train-x7z")
    flow = _workflow("Running", "Succeeded", "Running")
    held = {**flow, "spec": {"suspend": True}}
    lines = [
        progress_line(
            submission.progress(
                submission.take_snapshot(_Objects({path: item, **pods}), "train-x7z", "vision", PIPELINE_RUN)
            )
        )
        for item in (held, flow)
    ]
    assert lines[0].startswith("queued, done 1 of 2: ")
    assert lines[1] == "starting, done 1 of 2"
