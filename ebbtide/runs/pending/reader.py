"""Reader of the objects of a waiting workload, with the rights of its user."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from ebbtide.kubernetes_api import Api, ApiError
from ebbtide.kubernetes_api.parts import parts, text
from ebbtide.kueue_api import API_PATH
from ebbtide.placement import Profile
from ebbtide.runs.pending.evidence import Evidence
from ebbtide.runs.pending.queue_causes import owner_name
from ebbtide.workloads.cluster import ClusterError
from ebbtide.workloads.kinds import EXPERIMENT, JOB, LISTED, TRAIN_JOB, Kind, kind_of, lost, trials
from ebbtide.workloads.objects import Object, condition
from ebbtide.workloads.submission import JOB_UID

POSITIONS: Final = "/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/{}/localqueues/{}/pendingworkloads"
_REQUESTS: Final = "/apis/autoscaling.x-k8s.io/v1/namespaces/{}/provisioningrequests"
_TRAINER: Final = "/openapi/v3/apis/trainer.kubeflow.org/v1alpha1"


def _unchanged(item: Object) -> Object:
    return item


def _by_name(item: Object) -> str:
    return f"metadata.name={item['metadata']['name']}"


POD: Final = Kind("pod", "/api/v1/namespaces/{}/pods", _by_name, _unchanged)
WORKLOAD: Final = Kind("Workload", f"{API_PATH}/namespaces/{{}}/workloads", _by_name, _unchanged)
_KINDS: Final = (*LISTED, POD, WORKLOAD)
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


def _read(reader: _Reader, kind: Kind, name: str, now: datetime, profile: Profile | None) -> Evidence:
    item = reader.get(kind, name)
    workload: Object | None = None
    if kind is WORKLOAD:
        workload = item
        owners = parts(item, "metadata", "ownerReferences")
        owner, owner_kind = (text(owners[0], key) if owners else "" for key in ("name", "kind"))
        if owner_kind not in _OWNERS:
            shown = {**item, "spec": {"suspend": not condition(item, "Finished")}, "status": {}}
            return _evidence(reader, owner_kind or kind.name, shown, [], workload, now, profile)
        kind = _OWNERS[owner_kind]
        item = reader.get(kind, owner)
    if workload is None:
        selector = f"{JOB_UID}={item['metadata']['uid']}"
        workload = next(reversed(reader.items(WORKLOAD.path, labelSelector=selector)), None)
    if kind is POD:
        return _evidence(reader, kind.name, item, [item], workload, now, profile)
    has_none = kind is EXPERIMENT and not trials(item)
    pods = [] if has_none else reader.items(POD.path, labelSelector=kind.pod_label(item))
    return _evidence(reader, kind.name, kind.as_job(item), pods, workload, now, profile)


def _evidence(
    reader: _Reader,
    kind: str,
    item: Object,
    pods: list[Object],
    workload: Object | None,
    now: datetime,
    profile: Profile | None,
) -> Evidence:
    everywhere = reader.find(f"{API_PATH}/workloads")
    workloads: list[Object] = (
        reader.items(WORKLOAD.path) if everywhere is None else everywhere.get("items") or []
    )
    evidence = Evidence(
        kind=kind,
        namespace=reader.namespace,
        name=item["metadata"]["name"],
        now=now,
        job=None if kind == POD.name else item,
        pods=pods,
        events=reader.items("/api/v1/namespaces/{}/events"),
        workload=workload,
        local_queues=reader.items(f"{API_PATH}/namespaces/{{}}/localqueues"),
        workloads=workloads,
        is_complete=everywhere is not None,
        profile=profile,
    )
    return _with_queue(reader, evidence, workload) if workload else evidence


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
