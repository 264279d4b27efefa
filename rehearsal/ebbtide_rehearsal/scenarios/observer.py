"""Snapshots of a cluster through its API, and the objects that a scenario's steps submit."""

import copy
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import yaml

import ebbtide
from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.project.yaml_file import load_all
from ebbtide.placement import Profile
from ebbtide.values.kueue_api import API_PATH
from ebbtide.values.paths import Object
from ebbtide.work.jobs import job
from ebbtide.work.sweeps import sweep
from ebbtide_rehearsal import RehearsalError
from ebbtide_rehearsal.cloud.store import ClusterTime, Store
from ebbtide_rehearsal.control_plane.stages import EXIT_CODE, RUNS, RUNS_FOR
from ebbtide_rehearsal.pipelines.workflow import LAUNCHED
from ebbtide_rehearsal.report.document import spent, timed
from ebbtide_rehearsal.scenarios.conditions import Observation, ObservedJob
from ebbtide_rehearsal.scenarios.model import EveryPool, Submit

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
_IMAGE: Final = "registry.k8s.io/pause:3.10"  # never pulled: no container runs here


class Observer:
    """Take snapshots of a cluster, and remember the pools of pods that no longer exist."""

    def __init__(self, api: Api, store: Store, time: ClusterTime) -> None:
        """Observe a cluster.

        Args:
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


def submitted(step: Submit, profile: Profile, base_directory: Path) -> Iterator[Object]:
    """Return the objects of a step.

    Args:
        step: the submission.
        base_directory: the scenario's directory.

    Raises:
        WorkloadError: the profile rejects it.
        YamlFileError: the file of objects cannot be read.
        RehearsalError: the program fails, or the step has pod settings and its objects have no pods.
    """
    for number in range(step.count):
        objects = _objects(step, profile, base_directory)
        if _annotations(step) and not any(map(_pods, objects)):
            kinds = ", ".join(dict.fromkeys(str(manifest.get("kind")) for manifest in objects))
            raise RehearsalError(
                "runsFor, exitCode and process apply to pods, and there are no pods in "
                f"{kinds or 'nothing'}. Write the annotations in the pod template, such as {RUNS_FOR}."
            )
        for manifest in objects:
            marked = _marked(manifest, step)
            if step.count > 1:
                marked["metadata"]["name"] += f"-{number}"
            yield marked


def on_every_pool(step: EveryPool, profile: Profile) -> Iterator[Object]:
    """Return a short Job for each work pool; pools that run only queued work use the queue of any team."""
    for pool in profile.pools:
        if pool.role == "system":
            continue
        queue = profile.queue(pool.queues[0]) if pool.capacity == "queued" else None
        manifest = job(
            profile,
            name=f"try-{pool.name}",
            image=_IMAGE,
            cpu="100m",
            memory="64Mi",
            gpus=pool.accelerator.most if pool.accelerator and pool.accelerator.slice_nodes == 1 else 0,
            pool="" if queue else pool.name,
            queue=queue.name if queue else "",
            namespace=queue.local_queues[0].namespace if queue else "",
        )
        yield _marked(manifest, Submit(do="submit", job={}, runs_for=step.runs_for))


def _objects(step: Submit, profile: Profile, base_directory: Path) -> list[Object]:
    if step.manifests is not None:
        return [document for document in load_all(base_directory / step.manifests) if document]
    if step.program is not None:
        printed = output_of(base_directory / step.program, profile)
        return [document for document in yaml.safe_load_all(printed) if document]
    fields: Any = {"image": _IMAGE, **(step.job or step.sweep or {})}
    if step.job is not None:
        return [job(profile, **fields)]
    return [sweep(profile, fields.pop("grid", {}), **fields)]


def output_of(program: Path, profile: Profile, directory: Path | None = None) -> str:
    """Return the output of a program that reads the profile; it runs in a directory, by default in this one.

    Raises:
        RehearsalError: the program fails; with the last line of its output.
    """
    package = Path(ebbtide.__file__).parent.parent
    environment = os.environ | {"EBBTIDE_PROFILE": profile.json(), "PYTHONPATH": str(package)}
    command = [sys.executable, str(program)]
    done = subprocess.run(  # noqa: S603 - the user's own
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RehearsalError(f"{program} fails: {''.join(done.stderr.strip().splitlines()[-1:])}")
    return done.stdout


def _marked(manifest: Object, step: Submit) -> Object:
    marked = copy.deepcopy(manifest)
    metadata = marked.setdefault("metadata", {})
    metadata.setdefault("labels", {})[SUBMITTED_LABEL] = "true"
    if step.namespace:
        metadata.setdefault("namespace", step.namespace)
    for pod in _pods(marked):
        pod.setdefault("metadata", {}).setdefault("annotations", {}).update(_annotations(step))
    return marked


def _annotations(step: Submit) -> dict[str, str]:
    """Return the pod annotations of a step."""
    annotations = {
        RUNS_FOR: None if step.runs_for is None else f"{step.runs_for:g}",
        EXIT_CODE: None if step.exit_code is None else str(step.exit_code),
        RUNS: "process" if step.process else None,
    }
    return {key: value for key, value in annotations.items() if value is not None}


def _pods(part: Any) -> list[Object]:
    """Yield the pods and pod templates in an object, at any depth."""
    if isinstance(part, list):
        return [pod for item in cast("list[Any]", part) for pod in _pods(item)]
    if not isinstance(part, dict):
        return []
    inside = cast("Object", part)
    spec: Any = inside.get("spec")
    if isinstance(spec, dict) and "containers" in spec:
        return [inside]
    return [pod for item in inside.values() for pod in _pods(item)]
