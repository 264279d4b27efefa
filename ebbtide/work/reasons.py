"""Reasons why a Job is not running yet."""

from collections.abc import Sequence
from typing import Final

from ebbtide.work.objects import Object, condition, message_of, phase_of

_SCALING: Final = {
    "TriggeredScaleUp": "a node is being created for it",
    "FailedScaleUp": "",
    "NotTriggerScaleUp": "",
}
"""Texts for cluster-autoscaler's events of a pending pod, by reason; empty to use the event's message
(cluster-autoscaler FAQ, events, 1.36)."""


def queued_for(workload: Object | None) -> str:
    """Return why a Job is suspended, from Kueue's conditions (kueue docs, Workload, v1beta2).

    Args:
        workload: its Workload.
    """
    if workload is None:
        return "it is suspended, and Kueue has created no Workload for it yet"
    if workload["spec"].get("active") is False:
        return "it is deactivated"
    if not condition(workload, "QuotaReserved"):
        refused = condition(workload, "QuotaReserved", "False")
        return str(refused.get("message") or condition(workload, "Evicted").get("message") or "")
    checks: list[Object] = workload.get("status", {}).get("admissionChecks") or []
    open_ = [check for check in checks if check["state"] != "Ready"]
    states = [f"{check['name']}: {check.get('message') or check['state']}" for check in open_]
    return "; ".join(["its quota is reserved", *states])


def no_node(pod: Object, events: Sequence[Object]) -> str:
    """Return why a pod has no node: the autoscaler's reason, or else the scheduler's.

    Args:
        pod: the pod.
        events: events of the pod, possibly with others.
    """
    messages = [
        event
        for event in events
        if event.get("reason") in _SCALING and event["involvedObject"].get("uid") == pod["metadata"]["uid"]
    ]
    if messages:
        newest = max(messages, key=_when)
        return _SCALING[newest["reason"]] or message_of(newest).rstrip(".")
    return shortened(condition(pod, "PodScheduled", "False").get("message") or "")


def _when(event: Object) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"])


def shortened(message: str) -> str:
    """Remove the scheduler's second sentence, about claims and preemption."""
    first = message.partition(" no new claims to deallocate,")[0]
    return first.partition(" preemption:")[0].strip().rstrip(".")


def not_started(pods: Sequence[Object]) -> str:
    """Return why no container of a Job runs; empty if the containers are being created.

    Args:
        pods: the Job's pods, including finished ones.
    """
    pending = [pod for pod in pods if phase_of(pod) == "Pending"]
    if pods and not pending:
        return "waiting before the next try"
    for pod in pending:
        for container in _containers(pod):
            why: Object = container["state"].get("waiting") or {}
            reason: str = why.get("reason") or ""
            if reason not in {"", "ContainerCreating", "PodInitializing"}:
                return ": ".join(filter(None, (reason, why.get("message"))))
    return ""


def _containers(pod: Object) -> list[Object]:
    status = pod.get("status", {})
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
