"""The statuses that a kubelet leaves behind when pods end."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from ebbtide.kubernetes_api.parts import part, parts
from ebbtide_rehearsal.cloud.nodes.objects import Object

SHUTDOWN: Final = "Pod was terminated in response to imminent node shutdown."
"""What kubelet says of a pod that it ends since its node is shut down (kubernetes v1.36,
pkg/kubelet/nodeshutdown)."""

TERMINATED: Final = 143
"""Exit status of a program that SIGTERM ended."""


@dataclass(frozen=True, slots=True)
class End:
    """How a container ended.

    Attributes:
        code: its exit status.
        began: when it started, as Kubernetes writes it; empty where it never did.
        reason: a word where the exit status does not tell.
        message: a sentence.
    """

    code: int
    began: str = ""
    reason: str = ""
    message: str = ""


def now() -> str:
    """The present moment, as Kubernetes writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(kind: str, *, status: bool, reason: str = "", message: str = "") -> dict[str, Any]:
    """A condition of a pod or a node."""
    about = {"reason": reason, "message": message} if reason else {}
    return {"type": kind, "status": str(status), "lastTransitionTime": now(), **about}


def with_conditions(raw: Object, *new: dict[str, Any]) -> list[Any]:
    """An object's conditions with some put in the place of those of their kind."""
    kinds = {each["type"] for each in new}
    return [*(each for each in parts(raw, "status", "conditions") if each["type"] not in kinds), *new]


def ended(raw: Object, ends: Mapping[str, End], *, shutdown: bool) -> dict[str, Any]:
    """The status of a pod whose containers ended.

    Args:
        raw: the pod.
        ends: how each ended, by name; one that is left out was ended by SIGTERM.
        shutdown: whether it was ended since its node is shut down.
    """
    containers = [_ended(raw, each, ends.get(each["name"])) for each in parts(raw, "spec", "containers")]
    failed = shutdown or any(each["state"]["terminated"]["exitCode"] for each in containers)
    why = {"reason": "PodFailed" if failed else "PodCompleted"}
    new = [
        condition("Ready", status=False, **why),
        condition("ContainersReady", status=False, **why),
    ]
    told: dict[str, str] = {}
    if shutdown:
        told = {"reason": "Terminated", "message": SHUTDOWN}
        new.append(
            condition("DisruptionTarget", status=True, reason="TerminationByKubelet", message=SHUTDOWN)
        )
    return {
        "phase": "Failed" if failed else "Succeeded",
        "conditions": with_conditions(raw, *new),
        "containerStatuses": containers,
        **told,
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
        (each for each in parts(raw, "status", "containerStatuses") if each["name"] == name), dict[str, Any]()
    )


def running(raw: Object, *, restarts: int, last: End | None) -> dict[str, Any]:
    """The status of a pod whose containers run, after so many restarts; its init containers have ended."""
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
            *(condition(kind, status=True) for kind in ("Initialized", "ContainersReady", "Ready")),
        ),
        "initContainerStatuses": [
            _ended(raw, each, End(0, moment)) for each in parts(raw, "spec", "initContainers")
        ],
        "containerStatuses": [
            {
                "name": each["name"],
                "image": each["image"],
                "imageID": "",
                "restartCount": restarts,
                "ready": True,
                "started": True,
                "state": {"running": {"startedAt": moment}},
                **before,
            }
            for each in parts(raw, "spec", "containers")
        ],
    }


def waiting(raw: Object, reason: str, message: str) -> dict[str, Any]:
    """The status of a pod whose first container cannot start."""
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
