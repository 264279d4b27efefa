"""Pod statuses as a kubelet reports them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from ebbtide.clients.kubernetes.objects import part, parts
from ebbtide_rehearsal.cloud.nodes.objects import Object

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


def with_conditions(raw: Object, *new: dict[str, Any]) -> list[Any]:
    """Return an object's conditions with those of the same types replaced."""
    kinds = {replacement["type"] for replacement in new}
    return [
        *(existing for existing in parts(raw, "status", "conditions") if existing["type"] not in kinds),
        *new,
    ]


def ended(raw: Object, ends: Mapping[str, End], *, shutdown: bool) -> dict[str, Any]:
    """Return the status of a pod whose containers ended.

    Args:
        raw: the pod.
        ends: end of each container, by name; a missing one was terminated by SIGTERM.
        shutdown: True if it ended because its node shuts down.
    """
    containers = [
        _ended(raw, container, ends.get(container["name"])) for container in parts(raw, "spec", "containers")
    ]
    failed = shutdown or any(container["state"]["terminated"]["exitCode"] for container in containers)
    why = {"reason": "PodFailed" if failed else "PodCompleted"}
    new = [
        new_condition("Ready", status=False, **why),
        new_condition("ContainersReady", status=False, **why),
    ]
    details: dict[str, str] = {}
    if shutdown:
        details = {"reason": "Terminated", "message": SHUTDOWN}
        new.append(
            new_condition("DisruptionTarget", status=True, reason="TerminationByKubelet", message=SHUTDOWN)
        )
    return {
        "phase": "Failed" if failed else "Succeeded",
        "conditions": with_conditions(raw, *new),
        "containerStatuses": containers,
        **details,
    }


def _ended(raw: Object, container: Object, end: End | None) -> dict[str, Any]:
    before = _status(raw, container["name"])
    began = part(before, "state", "running").get("startedAt") or part(raw, "status").get("startTime") or now()
    end = end or End(TERMINATED)
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": before.get("imageID", ""),
        "restartCount": before.get("restartCount", 0),
        "ready": False,
        "started": False,
        "state": {
            "terminated": {
                "exitCode": end.code,
                "reason": end.reason or ("Error" if end.code else "Completed"),
                "message": end.message,
                "startedAt": end.began or began,
                "finishedAt": now(),
            }
        },
    }


def _status(raw: Object, name: str) -> Object:
    return next(
        (container for container in parts(raw, "status", "containerStatuses") if container["name"] == name),
        dict[str, Any](),
    )


def running(raw: Object, *, restarts: int, last: End | None) -> dict[str, Any]:
    """Return the status of a running pod after `restarts` restarts; its init containers have ended."""
    before = (
        {"lastState": {"terminated": {"exitCode": last.code, "reason": "Error", "finishedAt": now()}}}
        if last
        else {}
    )
    moment = now()
    return {
        "phase": "Running",
        "startTime": part(raw, "status").get("startTime") or moment,
        "conditions": with_conditions(
            raw,
            *(new_condition(kind, status=True) for kind in ("Initialized", "ContainersReady", "Ready")),
        ),
        "initContainerStatuses": [
            _ended(raw, container, End(0, moment)) for container in parts(raw, "spec", "initContainers")
        ],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "restartCount": restarts,
                "ready": True,
                "started": True,
                "state": {"running": {"startedAt": moment}},
                **before,
            }
            for container in parts(raw, "spec", "containers")
        ],
    }


def waiting(raw: Object, reason: str, message: str) -> dict[str, Any]:
    """Return the status of a pod whose first container cannot start."""
    (first, *_) = parts(raw, "spec", "containers")
    return {
        "phase": "Pending",
        "containerStatuses": [
            {
                "name": first["name"],
                "image": first["image"],
                "imageID": "",
                "restartCount": 0,
                "ready": False,
                "started": False,
                "state": {"waiting": {"reason": reason, "message": message}},
            }
        ],
    }
