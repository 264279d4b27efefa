"""Snapshots of a cluster through its API, with the stack's kubeconfig output."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ebbtide.clients.kubernetes import Api
from ebbtide.values.kueue_api import API_PATH
from ebbtide_rehearsal.cloud.store import ClusterTime, Store
from ebbtide_rehearsal.pipelines.templates import LAUNCHED
from ebbtide_rehearsal.report.cost import spent, timed
from ebbtide_rehearsal.scenarios.conditions import Observation, ObservedJob

SUBMITTED_LABEL: Final = "rehearsal.ebbtide.dev/submitted"
"""The label of submitted objects."""

POOL_LABELS: Final = ("cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool")
"""GKE's and AKS's node labels with the pool's name."""

_WAITING: Final = {"Pod": ("FailedScheduling", "NotTriggerScaleUp", "Pending"), "Job": ("FailedCreate",)}
_WORKLOADS: Final = f"{API_PATH}/workloads"
_TRAINER: Final = "/apis/trainer.kubeflow.org/v1alpha1/trainjobs"
_RUNS: Final = "/apis/argoproj.io/v1alpha1/workflows"
_RUN: Final = "workflows.argoproj.io/workflow"
_NODE_NAME: Final = "workflows.argoproj.io/node-name"
_OWNERS: Final = ("batch.kubernetes.io/job-name", "jobset.sigs.k8s.io/jobset-name")
"""Pod labels with the name of the Job, or of the TrainJob: its JobSet has the same name."""


class Observer:
    """Take snapshots of a cluster, and remember the pools of pods that no longer exist."""

    def __init__(self, api: Api, store: Store, time: ClusterTime) -> None:
        """Observe a cluster.

        Args:
            api: the cluster.
            store: the fake cloud's store.
            time: the cluster's time, for costs.
        """
        self._api = api
        self._store = store
        self._time = time
        self._ran_on: frozenset[str] = frozenset()
        self._steps: dict[str, dict[str, str]] = {}

    def observe(self) -> Observation:
        """Take a snapshot."""
        pools = {_name(node): _pool(node) for node in self._api.items("/api/v1/nodes")}
        pods = self._api.items("/api/v1/pods")
        jobs = self._api.items("/apis/batch/v1/jobs", labelSelector=SUBMITTED_LABEL)
        training = self._items(_TRAINER, labelSelector=SUBMITTED_LABEL)
        owned = {_name(job) for job in (*jobs, *training)}
        ran = {
            pools[node]
            for pod in pods
            if not owned.isdisjoint(pod["metadata"].get("labels", {}).get(label) for label in _OWNERS)
            and (node := pod["spec"].get("nodeName")) in pools
            and pod["status"].get("phase") != "Pending"
        }
        self._ran_on |= ran
        runs = self._items(_RUNS, labelSelector=SUBMITTED_LABEL)
        for pod in pods:
            self._step(pod, {_name(run) for run in runs}, pools)
        events = self._store.events()
        return Observation(
            jobs=[*map(_job, jobs), *map(_train_job, training)],
            nodes=Counter(pools.values()),
            ran_on=self._ran_on,
            waits=list(dict.fromkeys([*_pods_wait(pods), *self._events_wait(), *self._queued()])),
            logs="\n".join(event.text for event in events if event.kind == "pod-log"),
            events=events,
            cost=sum(spent(timed(events, self._time), self._time.at(self._store.clock.now())).values()),
            runs=[str(run.get("status", {}).get("phase", "")) for run in runs],
            steps={name: dict(counts) for name, counts in self._steps.items()},
            running=frozenset(_running(pods)),
        )

    def _step(self, pod: Mapping[str, Any], runs: set[str], pools: Mapping[str, str]) -> None:
        """Remember a pod of a pipeline's step that has run, but not its driver's pod. Its task is the second
        to last segment of its node's name, before `executor`.
        """
        metadata = pod["metadata"]
        annotations = metadata.get("annotations", {})
        if metadata.get("labels", {}).get(_RUN) not in runs or not LAUNCHED.items() <= annotations.items():
            return
        name = re.sub(r"\(\d+\)", "", annotations[_NODE_NAME]).split(".")[-2]
        node = pod["spec"].get("nodeName")
        if node in pools and pod["status"].get("phase") != "Pending":
            self._steps.setdefault(name, {})[metadata["uid"]] = pools[node]

    def _events_wait(self) -> Iterable[str]:
        for kind, reasons in _WAITING.items():
            for event in self._api.items("/api/v1/events", fieldSelector=f"involvedObject.kind={kind}"):
                if event.get("reason") in reasons:
                    yield str(event.get("message", ""))

    def _queued(self) -> Iterable[str]:
        """Return Kueue's reasons for pending workloads; empty if it is not installed."""
        for workload in self._items(_WORKLOADS):
            yield from (
                str(condition.get("message", ""))
                for condition in workload.get("status", {}).get("conditions", [])
                if condition["type"] in {"QuotaReserved", "Admitted"} and condition["status"] == "False"
            )

    def _items(self, path: str, **query: str) -> list[dict[str, Any]]:
        """Return the objects of a kind that may not be installed."""
        response = self._api.find(path, **query)
        return response["items"] if response else []


def _running(pods: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """Return the Jobs of running pods."""
    for pod in pods:
        if pod["status"].get("phase") == "Running":
            labels = pod["metadata"].get("labels", {})
            yield from (labels[label] for label in _OWNERS if label in labels)


def _name(thing: Mapping[str, Any]) -> str:
    return str(thing["metadata"]["name"])


def _pool(node: Mapping[str, Any]) -> str:
    labels = node["metadata"].get("labels", {})
    return next((labels[label] for label in POOL_LABELS if label in labels), "")


def _train_job(job: Mapping[str, Any]) -> ObservedJob:
    """Convert a TrainJob (API trainer.kubeflow.org/v1alpha1), whose status counts its Jobs by status."""
    conditions = _conditions(job)
    ended = bool(conditions & {"Complete", "Failed"})
    return ObservedJob(
        name=_name(job),
        succeeded="Complete" in conditions,
        failed="Failed" in conditions,
        active=not ended
        and any(train_job.get("active") for train_job in job.get("status", {}).get("jobsStatus", [])),
        suspended=not ended and bool(job["spec"].get("suspend")),
    )


def _conditions(job: Mapping[str, Any]) -> set[str]:
    return {obj["type"] for obj in job.get("status", {}).get("conditions", []) if obj["status"] == "True"}


def _job(job: Mapping[str, Any]) -> ObservedJob:
    status, conditions = job.get("status", {}), _conditions(job)
    ended = bool(conditions & {"Complete", "Failed"})
    return ObservedJob(
        name=_name(job),
        succeeded="Complete" in conditions,
        failed="Failed" in conditions,
        active=not ended and bool(status.get("active")),
        suspended=not ended and bool(job["spec"].get("suspend")),
        failures=int(status.get("failed", 0)),
        indexes_succeeded=_count(status.get("completedIndexes", "")),
        indexes_failed=_count(status.get("failedIndexes", "")),
    )


def _count(indexes: str) -> int:
    """Count the indexes of a list such as `1,3-5,7`."""
    bounds = (part.partition("-") for part in indexes.split(",") if part)
    return sum(int(last or first) - int(first) + 1 for first, _, last in bounds)


def _pods_wait(pods: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    for pod in pods:
        if pod["status"].get("phase") != "Pending":
            continue
        for condition in pod["status"].get("conditions", []):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                yield str(condition.get("message", ""))
