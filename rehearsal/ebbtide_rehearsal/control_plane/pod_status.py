"""Statuses of pods as a kubelet reports them, as strategic merge patches."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from ebbtide.autoscaler.scheduling import Object
from ebbtide.clients.kubernetes.objects import part, parts

SHUTDOWN: Final = "Pod was terminated in response to imminent node shutdown."
"""Status message of a pod that is terminated because its node shuts down (kubernetes v1.36,
pkg/kubelet/nodeshutdown)."""

TERMINATED: Final = 143
"""Exit status of a program terminated by SIGTERM."""


@dataclass(frozen=True, slots=True)
class End:
    """End of a container.

    Attributes:
        code: exit status.
        began: start in Kubernetes' time format; empty if it never started.
        reason: reason in one word; empty if it follows from the exit status.
        message: message as a sentence.
    """

    code: int
    began: str = ""
    reason: str = ""
    message: str = ""


def now() -> str:
    """Return the current time in Kubernetes' format."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def new_condition(kind: str, *, status: bool, reason: str = "", message: str = "") -> dict[str, Any]:
    """Build a condition of a pod or a node."""
    details = {"reason": reason, "message": message} if reason else {}
    return {"type": kind, "status": str(status), "lastTransitionTime": now(), **details}


def ended(raw: Object, ends: Mapping[str, End], *, shutdown: bool) -> dict[str, Any]:
    """Return what changes in the status of a pod whose containers ended.

    Args:
        ends: end of each container, by name; a missing one was terminated by SIGTERM.
        shutdown: True if it ended because its node shuts down.
    """
    containers = [
        _ended(raw, container, ends.get(container["name"])) for container in parts(raw, "spec", "containers")
    ]
    failed = shutdown or any(container["state"]["terminated"]["exitCode"] for container in containers)
    new = _ready(ready=False, reason="PodFailed" if failed else "PodCompleted")
    details: dict[str, str] = {}
    if shutdown:
        details = {"reason": "Terminated", "message": SHUTDOWN}
        new.append(
            new_condition("DisruptionTarget", status=True, reason="TerminationByKubelet", message=SHUTDOWN)
        )
    return {
        "phase": "Failed" if failed else "Succeeded",
        "conditions": new,
        "containerStatuses": containers,
        **details,
    }


def _ended(raw: Object, container: Object, end: End | None) -> dict[str, Any]:
    before = _status(raw, container["name"])
    began = part(before, "state", "running").get("startedAt") or part(raw, "status").get("startTime") or now()
    end = end or End(TERMINATED)
    terminated = {
        "exitCode": end.code,
        "reason": end.reason or ("Error" if end.code else "Completed"),
        "message": end.message,
        "startedAt": end.began or began,
        "finishedAt": now(),
    }
    restarts, image = before.get("restartCount", 0), before.get("imageID", "")
    return _container(container, {"terminated": terminated}, ready=False, restarts=restarts, image_id=image)


def _status(raw: Object, name: str) -> Object:
    return next(
        (container for container in parts(raw, "status", "containerStatuses") if container["name"] == name),
        dict[str, Any](),
    )


def running(
    raw: Object,
    *,
    restarts: int,
    last: End | None = None,
    ready: bool = True,
    began: str = "",
    address: str = "",
) -> dict[str, Any]:
    """Return what changes in the status of a pod that runs after `restarts` restarts.

    Args:
        last: its last end.
        began: start of its containers; empty for now.
        address: its address, unless kwok assigns one.
    """
    details: dict[str, Any] = {}
    if last:
        ending = {"exitCode": last.code, "reason": "Error", "finishedAt": now()}
        details = {"lastState": {"terminated": ending}}
    moment = began or now()
    state = {"running": {"startedAt": moment}}
    return {
        "phase": "Running",
        "startTime": part(raw, "status").get("startTime") or moment,
        **({"podIP": address, "podIPs": [{"ip": address}]} if address else {}),
        "conditions": [new_condition("Initialized", status=True), *_ready(ready=ready)],
        "initContainerStatuses": [
            _ended(raw, container, End(0, moment)) for container in parts(raw, "spec", "initContainers")
        ],
        "containerStatuses": [
            _container(container, state, ready=ready, restarts=restarts) | details
            for container in parts(raw, "spec", "containers")
        ],
    }


def waiting(raw: Object, reason: str, message: str, *, restarts: int = 0) -> dict[str, Any]:
    """Return the status of a pod whose first container cannot start, or is in backoff."""
    (first, *_) = parts(raw, "spec", "containers")
    state = {"waiting": {"reason": reason, "message": message}}
    return {
        "phase": "Pending",
        "conditions": _ready(ready=False),
        "containerStatuses": [_container(first, state, ready=False, restarts=restarts)],
    }


def _ready(*, ready: bool, reason: str = "") -> list[dict[str, Any]]:
    return [new_condition(kind, status=ready, reason=reason) for kind in ("Ready", "ContainersReady")]


def _container(
    container: Object, state: Mapping[str, Any], *, ready: bool, restarts: int, image_id: str = ""
) -> dict[str, Any]:
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": image_id,
        "restartCount": restarts,
        "ready": ready,
        "started": ready,
        "state": dict(state),
    }
