"""Answers of API servers about Jobs, reduced to the parts that are read: Kubernetes 1.36, Kueue 0.19."""

from datetime import UTC, datetime
from typing import Any

from ebbtide.values.paths import Object
from ebbtide.work.evidence import Evidence

NO_NODE = (
    "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated "
    "taint(s). preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
)
_BEGAN = "2026-11-20T10:00:00Z"


def job(*, spec: Object | None = None, conditions: tuple[Object, ...] = (), **status: Any) -> Object:
    """A Job."""
    template = {"spec": {"containers": [{"name": "work", "image": "busybox"}]}}
    return {
        "metadata": {"name": "train", "namespace": "vision", "uid": "j", "creationTimestamp": _BEGAN},
        "spec": {"completions": 1, "parallelism": 1, "backoffLimit": 3, "template": template, **(spec or {})},
        "status": {**status, "conditions": list(conditions)},
    }


def sweep(points: int, *, conditions: tuple[Object, ...] = (), **status: Any) -> Object:
    """An Indexed Job with retries for each index, as ours is."""
    spec = {"completions": points, "completionMode": "Indexed", "backoffLimitPerIndex": 1}
    return job(spec=spec, conditions=conditions, **status)


def condition(kind: str, status: str = "True", *, at: str = "2026-11-20T10:02:05Z", **more: str) -> Object:
    """A condition."""
    return {"type": kind, "status": status, "lastTransitionTime": at, **more}


def pod(uid: str, phase: str, *, node: str = "n", index: int | None = None, **more: Any) -> Object:
    """A pod of a Job; `more` are fields of its status, or `metadata`."""
    metadata: Object = {"name": f"train-{uid}", "uid": uid, "creationTimestamp": _BEGAN}
    if index is not None:
        metadata["annotations"] = {"batch.kubernetes.io/job-completion-index": str(index)}
    return {
        "metadata": metadata | more.pop("metadata", {}),
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": phase, **more},
    }


def unscheduled(uid: str) -> Object:
    """A pod that the scheduler has looked at."""
    refused = condition("PodScheduled", "False", reason="Unschedulable", message=NO_NODE)
    return pod(uid, "Pending", node="", conditions=[refused])


def preempted(uid: str, *, index: int | None = None) -> Object:
    """A pod whose node was taken away, as GKE leaves it."""
    return pod(
        uid,
        "Failed",
        index=index,
        reason="Terminated",
        message="Pod was terminated in response to imminent node shutdown.",
        conditions=[condition("DisruptionTarget", reason="TerminationByKubelet")],
    )


def exited(uid: str, code: int, *, index: int | None = None, reason: str = "Error") -> Object:
    """A pod whose container failed."""
    state = {"terminated": {"exitCode": code, "reason": reason}}
    return pod(uid, "Failed", index=index, containerStatuses=[{"name": "work", "state": state}])


def event(uid: str, reason: str, message: str = "", *, at: str = _BEGAN) -> Object:
    """An event of a pod."""
    return {
        "metadata": {"creationTimestamp": at},
        "involvedObject": {"kind": "Pod", "uid": uid},
        "reason": reason,
        "message": message,
        "lastTimestamp": at,
    }


def look_at(made: Object, *pods: Object, **more: Any) -> Evidence:
    """The objects of Job train."""
    now = datetime(2026, 11, 20, 10, 10, tzinfo=UTC)
    return Evidence(kind="Job", namespace="vision", name="train", now=now, job=made, pods=pods, **more)
