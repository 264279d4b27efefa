"""The present state of a cluster's queues, from objects in the form of the API."""

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.declaration.model.declare import declare
from ebbtide.in_pods.cost_recorder import NAMESPACE, STATE
from ebbtide.operations.traces.existing import planned
from ebbtide.operations.traces.when import Present, read_present
from ebbtide.placement import Profile
from ebbtide.placement.derive import profile
from ebbtide.values.kueue_api import API_PATH
from ebbtide.values.paths import Object
from ebbtide.work.jobs import job as made
from tests.declarations import GKE, changed
from tests.unit.costs.cluster import START, when

NOW = START + 7200
_JOBS, _PODS = "/apis/batch/v1/{}jobs", "/api/v1/{}pods"
_CONFIGURATION = "/api/v1/namespaces/kueue-system/configmaps/kueue-manager-config"


class _Server:
    """Lists and objects by path; the others are forbidden."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = answers

    def items(self, path: str, **query: str) -> list[Object]:
        """Return a list."""
        del query
        if path not in self._answers:
            raise ApiError(403, f"{path} is forbidden")
        return self._answers[path]

    def find(self, path: str, **query: str) -> Object | None:
        """Return an object or a list."""
        answer: Any = self.items(path, **query)
        return {"items": answer} if isinstance(answer, list) else answer


@pytest.fixture(scope="module")
def cluster() -> Profile:
    """The profile of a cluster with a queue and two teams."""
    teams = [{"name": "vision"}, {"name": "speech"}]
    return profile(declare(changed(GKE, queues=[{"name": "t4", "pools": ["t4"]}], teams=teams)))


def _job(name: str, namespace: str = "vision", *, limit: int | None = None, **spec: Any) -> Object:
    pod: Object = {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "1", "cpu": "1"}}}]}
    if limit:
        pod["activeDeadlineSeconds"] = limit
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}"}
    return {
        "metadata": {**metadata, "creationTimestamp": when(START)},
        "spec": {**spec, "template": {"spec": pod}},
    }


def _workload(job: Object, **conditions: float) -> Object:
    reference = {"kind": "Job", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
    found = [
        {"type": kind, "status": "True", "lastTransitionTime": when(at)} for kind, at in conditions.items()
    ]
    return {
        "metadata": {**job["metadata"], "ownerReferences": [reference]},
        "spec": {"queueName": "t4", "podSets": [{"count": 1, "template": job["spec"]["template"]}]},
        "status": {"conditions": found, "admission": {"podSetAssignments": [{"flavors": {"cpu": "t4"}}]}},
    }


def _answers(prefix: str, *jobs: Object, workloads: list[Object]) -> dict[str, Any]:
    return {
        _JOBS.format(prefix): list(jobs),
        _PODS.format(prefix): [],
        f"{API_PATH}/{prefix}workloads": workloads,
    }


def _read(cluster: Profile, answers: Mapping[str, Any]) -> Present:
    return read_present(cast("Api", _Server(answers)), "vision", cluster, NOW)


def test_an_administrator_reads_all_queues(cluster: Profile) -> None:
    """Work with quota comes first; earlier runs of the name, with its number or its random suffix, give its
    run times; objects are without their status."""
    first, waiting = _job("train-2", limit=600), _job("train-bcdf2")
    done, other = _job("train", "vision"), _job("talk", "speech")
    workloads = [
        _workload(waiting),
        _workload(first, Admitted=NOW - 100, PodsReady=NOW - 90),
        _workload(done, Admitted=START, PodsReady=START + 60, Finished=START + 660),
        _workload(other, Admitted=NOW - 200, PodsReady=NOW - 200),
    ]
    queue = {"metadata": {"name": "gpus", "uid": "1"}, "spec": {"stopPolicy": "Hold"}, "status": {}}
    kinds = ("resourceflavors", "provisioningrequestconfigs", "admissionchecks", "cohorts", "localqueues")
    labels = {item.key: item.values[0] for item in cluster.pool("t4").affinity}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    node = {"metadata": {"labels": labels}, "spec": {}, "status": ready}
    present = _read(
        cluster,
        _answers("", first, waiting, done, other, workloads=workloads)
        | {f"{API_PATH}/{kind}": [] for kind in (*kinds, "workloadpriorityclasses")}
        | {f"{API_PATH}/clusterqueues": [queue]}
        | {_CONFIGURATION: {"data": {"controller_manager_config.yaml": "kind: Configuration\n"}}}
        | {"/api/v1/nodes": [node, {**node, "spec": {"unschedulable": True}}]},
    )
    assert [job.work.name for job in present.jobs] == ["talk", "train-2", "train-bcdf2"]
    assert [job.earlier for job in present.jobs] == [(), (600,), (600,)]
    assert present.jobs[1].work.requests.limit == 600
    assert present.jobs[1].work.flavor == "t4"
    (item,) = present.objects
    assert (item["kind"], item["spec"], item.get("status")) == ("ClusterQueue", {"stopPolicy": "Hold"}, None)
    assert present.configuration == {"kind": "Configuration"}
    assert (present.nodes or {})["t4"] == 1
    assert present.notes == ()


def test_a_member_reads_its_namespace(cluster: Profile) -> None:
    """Without the rights of an administrator, what is not in the estimate is said."""
    job = _job("train")
    present = _read(cluster, _answers("namespaces/vision/", job, workloads=[_workload(job)]))
    assert [item.work.name for item in present.jobs] == ["train"]
    assert (present.objects, present.configuration, present.nodes) == ((), None, None)
    assert present.notes == (
        "You may read namespace vision alone: work of other teams is not in it.",
        "You may not read ClusterQueues: guarantees of teams are not in it.",
    )


def test_a_member_knows_running_work_of_other_teams_from_the_cost_record(cluster: Profile) -> None:
    """Running pods of others are work with quota, and ended ones are earlier runs."""
    line = {
        "kind": "attempt",
        "start": NOW - 1000,
        "share": 1.0,
        "price": None,
        "currency": "USD",
        "estimated": False,
        "disruptions": 0,
        "pool": "t4",
        "option": "spot",
        "node": "n",
        "job": "talk-2",
        "namespace": "speech",
        "submitted": NOW - 1500,
        "queue": "t4",
        "cpu": 1.0,
        "memory": 2.0**30,
        "gpus": 4,
    }
    state = {"since": START, "last": NOW, "parts": ["state-a-1"]}
    part = {"a": line, "b": line, "own": line | {"namespace": "vision"}, "recorded": None}
    ended = line | {"job": "talk", "start": START, "end": START + 500.0, "submitted": START}
    maps = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    job = _job("train")
    present = _read(
        cluster,
        _answers("namespaces/vision/", job, workloads=[_workload(job)])
        | {
            f"{maps}/{STATE}": {"data": {STATE: json.dumps(state)}},
            f"{maps}/state-a-1": {"data": {STATE: json.dumps(part)}},
            maps: [{"data": {"c": json.dumps(ended)}}],
        },
    )
    talk, train = present.jobs
    assert (talk.work.namespace, talk.work.name, talk.work.started) == ("speech", "talk-2", NOW - 1000)
    assert (talk.work.requests.pods, talk.work.requests.gpus) == (2, 4)
    assert talk.earlier == (500,)
    assert train.work.admitted is None
    assert present.notes[0] == (
        "You may read namespace vision alone: running work of other teams is from the cost record, their "
        "waiting work is not in it."
    )


def test_a_planned_job_has_the_requests_of_its_manifest(cluster: Profile) -> None:
    """Queue, priority, accelerators and time limit are those of the Job that would be created."""
    manifest = made(
        cluster,
        name="train",
        namespace="vision",
        image="busybox",
        queue="t4",
        gpus=1,
        cpu="1",
        memory="2Gi",
        priority="ebbtide-high",
        max_run="30m",
    )
    work = planned(manifest, "default", cluster, NOW)
    assert (work.namespace, work.name, work.queue, work.priority) == (
        "vision",
        "train",
        "t4",
        "ebbtide-high",
    )
    assert (work.requests.pods, work.requests.gpus, work.requests.limit) == (1, 1, 1800)
    assert (work.admitted, work.started) == (None, None)


@pytest.mark.parametrize(("spec", "limit"), [({}, 600), ({"completions": 5, "parallelism": 2}, 1800)])
def test_pods_one_after_another_have_their_limit_each(cluster: Profile, spec: Object, limit: int) -> None:
    """Five pods of ten minutes, two at once, may take thirty minutes."""
    assert planned(_job("grid", limit=600, **spec), "vision", cluster, NOW).requests.limit == limit
