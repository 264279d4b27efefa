"""Reader of the objects of a waiting workload, with the rights of its user."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from ebbtide.clients.kubernetes import METADATA, Api, ApiError
from ebbtide.clients.kubernetes.parts import part, parts, text
from ebbtide.placement import Profile
from ebbtide.values.kueue_api import API_PATH
from ebbtide.work.cluster import ClusterError
from ebbtide.work.kinds import EXPERIMENT, JOB, TRAIN_JOB, WORKLOADS, Kind, kind_of, lost, trials
from ebbtide.work.objects import Object, condition, phase_of, waits
from ebbtide.work.runs.pending.evidence import Evidence, Workloads, is_gated
from ebbtide.work.runs.pending.queue_causes import owner_name
from ebbtide.work.submission import JOB_UID

POSITIONS: Final = "/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/{}/localqueues/{}/pendingworkloads"
_REQUESTS: Final = "/apis/autoscaling.x-k8s.io/v1/namespaces/{}/provisioningrequests"
_TRAINER: Final = "/openapi/v3/apis/trainer.kubeflow.org/v1alpha1"


def _unchanged(item: Object) -> Object:
    return item


def _by_name(item: Object) -> str:
    return f"metadata.name={item['metadata']['name']}"


POD: Final = Kind("pod", "/api/v1/namespaces/{}/pods", _by_name, _unchanged)
WORKLOAD: Final = Kind("Workload", f"{API_PATH}/namespaces/{{}}/workloads", _by_name, _unchanged)
_KINDS: Final = (*WORKLOADS, POD, WORKLOAD)
_OWNERS: Final = {"Job": JOB, "TrainJob": TRAIN_JOB, "Pod": POD}


def read_evidence(
    api: Api, name: str, namespace: str, now: datetime, profile: Profile | None = None
) -> Evidence:
    """Read the objects of a workload. Objects that the user may not read are missing.

    Args:
        api: the cluster's API.
        name: name of a Job, TrainJob, pipeline run, experiment, pod or Workload.
        namespace: its namespace.
        now: the current time.
        profile: the cluster's profile.

    Raises:
        ClusterError: it does not exist, reading it is forbidden, or the API server does not respond.
    """
    kind, name = kind_of(api, name, namespace, _KINDS)
    try:
        return _read(_Reader(api, namespace), kind, name, now, profile)
    except ApiError as error:
        raise ClusterError(lost(error, kind, name, namespace, known=False)) from None


class _Reader:
    """A namespace's objects; a list that is not installed or forbidden is empty."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self.namespace = api, namespace

    def get(self, kind: Kind, name: str) -> Object:
        """Return an object."""
        return self._api.get(f"{kind.path.format(self.namespace)}/{name}")

    def find(self, path: str, **query: str) -> Object | None:
        """Return an object; None if it does not exist, or the user may not read it."""
        try:
            return self._api.find(path.format(self.namespace), **query)
        except ApiError as error:
            if error.forbidden or (error.unanswered and error.status):
                return None
            raise

    def items(self, path: str, **query: str) -> list[Object]:
        """Return the objects of a list."""
        listed: Any = (self.find(path, **query) or {}).get("items")
        return listed or []

    def missing(self, path: str, names: Sequence[str]) -> list[str]:
        """Return which objects of a list do not exist; none if the user may not read them."""
        listed = self.find(path, accept=METADATA) if names else None
        existing = {item["metadata"]["name"] for item in (listed or {}).get("items") or ()}
        return [name for name in names if name not in existing] if listed else []

    def workload(self, item: Object) -> Object | None:
        """Return the newest Workload of an object."""
        selector = f"{JOB_UID}={item['metadata']['uid']}"
        return next(reversed(self.items(WORKLOAD.path, labelSelector=selector)), None)


def _read(reader: _Reader, kind: Kind, name: str, now: datetime, profile: Profile | None) -> Evidence:
    item, workload = reader.get(kind, name), None
    if kind is WORKLOAD:
        workload, owners = item, parts(item, "metadata", "ownerReferences")
        owner, owner_kind = (text(owners[0], key) if owners else "" for key in ("name", "kind"))
        if owner_kind not in _OWNERS:
            is_over = condition(item, "Admitted") or condition(item, "Finished")
            job = None if is_over else {**item, "spec": {"suspend": True}, "status": {}}
            seen = Evidence(
                kind=owner_kind or kind.name, namespace=reader.namespace, name=name, now=now, job=job
            )
            return _complete(reader, replace(seen, workload=workload, profile=profile))
        kind, name = _OWNERS[owner_kind], owner
        item = reader.get(kind, name)
    job, pods = _job_and_pods(reader, kind, item)
    # Kueue has Workloads for the pods of a pipeline run, and for the Jobs of an experiment.
    owning = (job or item, *filter(is_gated, pods))
    workload = workload or next(filter(None, map(reader.workload, owning)), None)
    seen = Evidence(kind=kind.name, namespace=reader.namespace, name=name, now=now, job=job, pods=pods)
    return _complete(reader, replace(seen, workload=workload, profile=profile))


def _job_and_pods(reader: _Reader, kind: Kind, item: Object) -> tuple[Object | None, list[Object]]:
    """Return a workload in the form of a Job, and its pods; of an experiment, the first suspended trial."""
    if kind is POD:
        return None, [item]
    names = trials(item) if kind is EXPERIMENT else []
    pods = reader.items(POD.path, labelSelector=kind.pod_selector(item))
    jobs = reader.items(JOB.path) if names else []
    queued = (job for job in jobs if job["metadata"]["name"] in names and job["spec"].get("suspend"))
    return next(queued, kind.as_job(item)), pods


def _complete(reader: _Reader, evidence: Evidence) -> Evidence:
    """Add the events, the queues and the other workloads."""
    everywhere = reader.find(f"{API_PATH}/workloads")
    workloads: list[Object] = (
        reader.items(WORKLOAD.path) if everywhere is None else everywhere.get("items") or []
    )
    complete = replace(
        evidence,
        missing=reader.missing("/api/v1/namespaces/{}/configmaps", _maps(evidence.pods)),
        events=reader.items("/api/v1/namespaces/{}/events"),
        local_queues=reader.items(f"{API_PATH}/namespaces/{{}}/localqueues"),
        workloads=Workloads(workloads),
        is_complete=everywhere is not None,
    )
    return _with_queue(reader, complete, evidence.workload) if evidence.workload else complete


def _maps(pods: Sequence[Object]) -> list[str]:
    """Return the names of the ConfigMaps without which pods that have a node do not start."""
    starting = [pod for pod in pods if phase_of(pod) == "Pending" and not waits(pod)]
    sources = [part(volume, "configMap") for pod in starting for volume in parts(pod, "spec", "volumes")]
    return list(
        dict.fromkeys(text(source, "name") for source in sources if source and not source.get("optional"))
    )


def _with_queue(reader: _Reader, evidence: Evidence, workload: Object) -> Evidence:
    """Add the Trainer's schema, or the ClusterQueue, the position and the ProvisioningRequest."""
    if condition(workload, "Admitted"):
        schema = reader.find(_TRAINER) if evidence.kind == TRAIN_JOB.name else None
        known = "runtimePatches" in json.dumps(schema) if schema else None
        return replace(evidence, has_runtime_patches=known)
    uid, own = workload["metadata"]["uid"], workload["metadata"]["name"]
    requests = [
        item
        for item in reader.items(_REQUESTS)
        if any(owner.get("uid") == uid for owner in parts(item, "metadata", "ownerReferences"))
    ]
    cluster_queue = text(evidence.local_queue or {}, "spec", "clusterQueue")
    pending = reader.items(POSITIONS.format(reader.namespace, evidence.queue)) if evidence.queue else []
    ordered = sorted(pending, key=lambda item: int(item.get("positionInLocalQueue") or 0))
    names = [text(item, "metadata", "name") for item in ordered]
    place = names.index(own) if own in names else None
    owners = {item["metadata"]["name"]: owner_name(item, reader.namespace) for item in evidence.workloads}
    return replace(
        evidence,
        cluster_queue=reader.find(f"{API_PATH}/clusterqueues/{cluster_queue}") if cluster_queue else None,
        position=None if place is None else place + 1,
        ahead=[owners.get(name, name) for name in names[: place or 0]],
        request=max(requests, key=lambda item: item["metadata"]["creationTimestamp"], default=None),
    )
