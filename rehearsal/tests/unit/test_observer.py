"""Snapshots of the work that a scenario has submitted."""

from pathlib import Path
from typing import Any, cast

import pytest

from ebbtide.clients.kubernetes import Api
from ebbtide_rehearsal.cloud.store import ClusterTime, Store
from ebbtide_rehearsal.scenarios.conditions import ObservedJob
from ebbtide_rehearsal.scenarios.observer import Observer

TRAINING = "/apis/trainer.kubeflow.org/v1alpha1/trainjobs"


class _Cluster:
    """An API server that has these objects, by path, and knows no other kinds than these."""

    def __init__(self, objects: dict[str, list[dict[str, Any]]]) -> None:
        self._objects = objects

    def items(self, path: str, **_: str) -> list[dict[str, Any]]:
        """A list."""
        return self._objects.get(path, [])

    def find(self, path: str, **_: str) -> dict[str, Any] | None:
        """A list, where there is such a kind."""
        return {"items": self._objects[path]} if path in self._objects else None


def _looking(directory: Path, objects: dict[str, list[dict[str, Any]]]) -> Observer:
    return Observer(cast("Api", _Cluster(objects)), Store(directory / "store", speed=1), ClusterTime(1))


def _condition(kind: str, value: str = "True") -> dict[str, str]:
    return {"type": kind, "status": value}


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({"spec": {"suspend": True}}, ObservedJob("t", suspended=True)),
        (
            {
                "spec": {"suspend": False},
                "status": {"jobsStatus": [{"name": "a"}, {"name": "b", "active": 1}]},
            },
            ObservedJob("t", active=True),
        ),
        (
            {
                "spec": {},
                "status": {
                    "conditions": [_condition("Complete")],
                    "jobsStatus": [{"name": "a", "active": 1}],
                },
            },
            ObservedJob("t", succeeded=True),
        ),
        (
            {"spec": {"suspend": True}, "status": {"conditions": [_condition("Failed")]}},
            ObservedJob("t", failed=True),
        ),
        ({"spec": {}, "status": {"conditions": [_condition("Complete", "False")]}}, ObservedJob("t")),
    ],
    ids=["suspended", "active", "complete", "failed", "new"],
)
def test_train_jobs_are_counted_among_jobs(
    tmp_path: Path, job: dict[str, Any], expected: ObservedJob
) -> None:
    """By what their status says."""
    made = {TRAINING: [{"metadata": {"name": "t"}, **job}]}
    assert _looking(tmp_path, made).observe().jobs == [expected]


@pytest.mark.parametrize(
    ("label", "ran_on"),
    [("jobset.sigs.k8s.io/jobset-name", {"spot"}), ("some.other/label", set[str]())],
)
def test_pods_of_a_train_job_ran_where_their_node_was(tmp_path: Path, label: str, ran_on: set[str]) -> None:
    """Pods of a TrainJob are found by the name of its JobSet, and other pods are not counted."""
    node = {"metadata": {"name": "n", "labels": {"cloud.google.com/gke-nodepool": "spot"}}}
    pod = {
        "metadata": {"name": "p", "labels": {label: "t"}},
        "spec": {"nodeName": "n"},
        "status": {"phase": "Running"},
    }
    made = {
        "/api/v1/nodes": [node],
        "/api/v1/pods": [pod],
        TRAINING: [{"metadata": {"name": "t"}, "spec": {}}],
    }
    assert _looking(tmp_path, made).observe().ran_on == ran_on


def test_a_cluster_without_trainer_is_observed(tmp_path: Path) -> None:
    """A cluster without the TrainJob kind is observed without an error."""
    assert _looking(tmp_path, {}).observe().jobs == []


def test_pods_of_a_pipeline_are_counted_by_step(tmp_path: Path) -> None:
    """Pods of a pipeline are counted once per task, without drivers, even if their node is deleted later."""
    node = {"metadata": {"name": "n", "labels": {"cloud.google.com/gke-nodepool": "spot"}}}
    workflow = {"metadata": {"name": "w"}, "spec": {}, "status": {"phase": "Running"}}

    def pod(uid: str, name: str, role: str, run: str = "w") -> dict[str, Any]:
        annotations = {
            "pipelines.kubeflow.org/runtime-role": role,
            "workflows.argoproj.io/node-name": name,
        }
        labels = {"workflows.argoproj.io/workflow": run}
        about = {"name": uid, "uid": uid, "labels": labels, "annotations": annotations}
        return {"metadata": about, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}

    made = {
        "/api/v1/nodes": [node],
        "/api/v1/pods": [
            pod("1", "w(0).root(0).train(0).executor(0)", "launcher"),
            pod("2", "w(0).root(0).train(0).executor(1)", "launcher"),
            pod("3", "w(0).root(0).train-driver(0)", "driver"),
            pod("4", "x(0).root(0).train(0).executor(0)", "launcher", "of another"),
        ],
        "/apis/argoproj.io/v1alpha1/workflows": [workflow],
    }
    observer = _looking(tmp_path, made)
    assert observer.observe().runs == ["Running"]
    made["/api/v1/nodes"] = []
    assert observer.observe().steps == {"train": {"1": "spot", "2": "spot"}}
