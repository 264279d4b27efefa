"""The jobs of a cluster as a trace, from objects in the form of the API."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.model.declare import declare
from ebbtide.in_pods.cost_recorder import MONTH_LABEL, NAMESPACE, Recorder
from ebbtide.operations.traces.history import (
    History,
    TraceExportError,
    TraceRow,
    anonymous,
    read_history,
    to_csv,
)
from ebbtide.placement import Profile
from ebbtide.placement.derive import profile
from ebbtide.values.paths import Object
from ebbtide.work.placement import KEPT
from tests.declarations import GKE
from tests.unit.costs.cluster import SETTINGS, START, Cluster, done, node, pod, when

NOW = START + 7200
GIB = 2.0**30


class _Lists:
    """Lists of objects by the last part of their path, and the cost record."""

    def __init__(self, lists: Mapping[str, list[Object]], recorded: Cluster | None) -> None:
        self._lists, self._recorded = lists, recorded

    def items(self, path: str, **query: str) -> list[Object]:
        """Return a list; empty if there is none."""
        if self._recorded and path.endswith(f"{NAMESPACE}/configmaps"):
            months = query["labelSelector"]
            maps = self._recorded.maps.values()
            return [
                item for item in maps if item["metadata"].get("labels", {}).get(MONTH_LABEL, "none") in months
            ]
        return self._lists.get(path.rpartition("/")[2], [])

    def find(self, path: str, **query: str) -> Object | None:
        """Return an object or a list."""
        del query
        name = path.rpartition("/")[2]
        if name.startswith("state"):
            return self._recorded.maps[name] if self._recorded else None
        return {"items": self.items(path)}


def _read(recorded: Cluster | None = None, cluster: Profile | None = None, **lists: list[Object]) -> History:
    api = cast("Api", _Lists(lists, recorded))
    return read_history(api, "vision", START - 86400, NOW, cluster)


def _condition(kind: str, at: float) -> Object:
    return {"type": kind, "status": "True", "lastTransitionTime": when(at)}


def _job(name: str, created: float, labels: Mapping[str, str] | None = None, **status: Any) -> Object:
    requests = {"nvidia.com/gpu": "1", "cpu": "500m", "memory": "4Gi"}
    template = {"spec": {"containers": [{"resources": {"requests": requests}}]}}
    return {
        "metadata": {
            "name": name,
            "namespace": "vision",
            "uid": f"job-{name}",
            "creationTimestamp": when(created),
            "labels": dict(labels or {}),
        },
        "spec": {"parallelism": 1, "template": template},
        "status": status,
    }


def _workload(job: Object, *conditions: Object, count: int = 1) -> Object:
    metadata = job["metadata"]
    reference = {"kind": "Job", "name": metadata["name"], "uid": metadata["uid"], "controller": True}
    return {
        "metadata": {**metadata, "name": f"job-{metadata['name']}-1", "ownerReferences": [reference]},
        "spec": {
            "queueName": "t4",
            "priorityClassRef": {"kind": "WorkloadPriorityClass", "name": "ebbtide-high"},
            "podSets": [{"count": count, "template": job["spec"]["template"]}],
        },
        "status": {"conditions": list(conditions)},
    }


def _record(*attempts: Object, jobs: list[Object]) -> Cluster:
    """The record after one run of the recorder."""
    cluster = Cluster()
    cluster.nodes = [node("one", START - 9000)]
    for item in attempts:
        labels = item["metadata"]["labels"]
        name = labels["batch.kubernetes.io/job-name"]
        item["metadata"]["ownerReferences"] = [{"name": name, "uid": f"job-{name}", "controller": True}]
    cluster.pods, cluster.jobs = list(attempts), jobs
    Recorder(cluster, SETTINGS, START + 3600).run()
    return cluster


def test_a_workload_that_has_ended() -> None:
    """A finished Workload has the submission of its Job, and ran from its pods' readiness to its end."""
    job = _job("train", START)
    job["spec"]["template"]["metadata"] = {"annotations": KEPT}
    ended = (
        _condition(kind, START + at)
        for kind, at in (("Admitted", 60), ("PodsReady", 160), ("Finished", 1000))
    )
    history = _read(jobs=[job], workloads=[_workload(job, *ended, count=2)])
    assert history.rows == [
        TraceRow(
            submit=START,
            seconds=840,
            name="train",
            pods=2,
            cpu=0.5,
            memory=4 * GIB,
            gpus=1,
            queue="vision/t4",
            priority="ebbtide-high",
            keep_node=True,
        )
    ]
    assert to_csv(history.rows).endswith(",true\n")
    assert [note.partition(":")[0] for note in history.notes] == ["Deleted jobs are missing"]


def test_waiting_and_running_work() -> None:
    """A running job has its time until now, a waiting one is counted."""
    running, waiting = _job("running", START), _job("waiting", START + 10)
    history = _read(
        jobs=[running, waiting],
        workloads=[
            _workload(running, _condition("Admitted", START + 100), _condition("PodsReady", START + 200)),
            _workload(waiting, _condition("Admitted", START + 100)),
        ],
    )
    assert [(row.name, row.seconds) for row in history.rows] == [("running", 7000)]
    assert history.notes[1:] == [
        "1 job waits without a run time yet: not in the trace.",
        "1 job runs still: the duration is the time until now.",
    ]


def test_deleted_jobs_are_in_the_record() -> None:
    """Attempts of a deleted Job are one row, with the submission, the queue and the user that they recorded;
    attempts of an existing one count once."""
    labels = {"kueue.x-k8s.io/queue-name": "t4", "kueue.x-k8s.io/priority-class": "ebbtide-low"}
    old, kept = _job("train", START - 900, labels), _job("kept", START - 500, labels)
    attempts = [done(f"train-{number}", "one", START - 300, START + 300) for number in range(2)]
    other = done("kept-0", "one", START - 300, START)
    other["metadata"]["labels"]["batch.kubernetes.io/job-name"] = "kept"
    recorded = _record(*attempts, other, jobs=[old, kept])
    finished = (_condition(kind, START + at) for kind, at in (("Admitted", -310), ("Finished", 0)))
    history = _read(recorded, jobs=[kept], workloads=[_workload(kept, *finished)])
    assert [row.name for row in history.rows] == ["kept", "train"]
    assert history.rows[1] == TraceRow(
        submit=START - 900,
        seconds=600,
        name="train",
        user="ada",
        pods=2,
        cpu=0.5,
        memory=4 * GIB,
        gpus=1,
        queue="vision/t4",
        priority="ebbtide-low",
    )
    assert history.rows[0].seconds == 310


def test_a_disrupted_attempt_is_no_second_pod() -> None:
    """The time of both attempts is the duration, also if they overlap by a little."""
    disrupted = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    first = done("train-0", "one", START - 600, START - 100, phase="Failed", **disrupted)
    second = done("train-1", "one", START - 110, START + 300)
    history = _read(_record(first, second, jobs=[_job("train", START - 900)]))
    assert [(row.pods, row.seconds) for row in history.rows] == [(1, 910)]
    assert "1 job was disrupted: the duration includes lost attempts." in history.notes


def test_work_in_no_queue() -> None:
    """Work in no queue has its pool as queue, and the pool's accelerators if there is a profile."""
    job = _job("train", START, startTime=when(START + 60), conditions=[_condition("Complete", START + 90)])
    job["spec"]["template"]["spec"]["nodeSelector"] = {"cloud.google.com/gke-nodepool": "t4"}
    cluster = profile(declare(GKE))
    assert [row.seconds for row in _read(jobs=[job]).rows] == [30]
    running = pod("train-0", "one", START + 125)
    running["metadata"]["labels"] = {"batch.kubernetes.io/controller-uid": "job-train"}
    running["status"]["containerStatuses"] = [{"state": {"running": {"startedAt": when(START + 70)}}}]
    placed = _read(cluster=cluster, jobs=[job], pods=[running])
    assert [(row.queue, row.gpu_type, row.seconds) for row in placed.rows] == [
        ("vision/t4", "nvidia-tesla-t4", 20)
    ]
    del job["spec"]["template"]["spec"]["nodeSelector"]
    unplaced = _read(jobs=[job], pods=[running])
    assert [(row.queue, row.gpu_type) for row in unplaced.rows] == [("", "")]
    assert unplaced.notes[1].startswith("1 job ran in no queue, on an unknown pool")


def test_nothing_to_export() -> None:
    """An empty trace is an error that says what is missing."""
    with pytest.raises(TraceExportError, match=r"No job has run in namespace vision.*no cost record"):
        _read()


def test_names_are_replaced_consistently() -> None:
    """Equal names get equal pseudonyms, which another key does not give; queues keep their names."""
    rows = [
        TraceRow(submit=START, seconds=1, name=name, user="ada", queue="vision/t4")
        for name in ("a", "b", "a")
    ]
    hidden = anonymous(rows, b"key")
    assert hidden[0] == hidden[2]
    assert hidden[0].name != hidden[1].name
    assert anonymous(rows, b"other")[0].name != hidden[0].name
    text = to_csv(hidden)
    assert "ada" not in text
    assert text.count("vision/t4") == 3
