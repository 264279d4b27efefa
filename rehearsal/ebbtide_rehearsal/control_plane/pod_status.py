"""The status of a pod with one container."""

from datetime import UTC, datetime
from typing import Any

from ebbtide.kubernetes_api import Object


def now() -> str:
    """Return the current time in Kubernetes' format."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def waiting(pod: Object, reason: str, message: str, *, restarts: int = 0) -> dict[str, Any]:
    """Return the status of a container that is waiting, or in backoff."""
    state = {"waiting": {"reason": reason, "message": message}}
    return {
        "phase": "Pending",
        "conditions": _conditions(pod, ready=False),
        "containerStatuses": [_container(pod, state, ready=False, restarts=restarts)],
    }


def running(pod: Object, address: str, *, ready: bool, restarts: int) -> dict[str, Any]:
    """Return the status of a running container, ready or not."""
    began = pod.get("status", {}).get("startTime") or now()
    return {
        "phase": "Running",
        "startTime": began,
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": _conditions(pod, ready=ready),
        "containerStatuses": [
            _container(pod, {"running": {"startedAt": began}}, ready=ready, restarts=restarts)
        ],
    }


def _conditions(pod: Object, *, ready: bool) -> list[dict[str, Any]]:
    scheduled = [
        item for item in pod.get("status", {}).get("conditions", []) if item["type"] == "PodScheduled"
    ]
    values = {"Initialized": True, "ContainersReady": ready, "Ready": ready}
    return [
        *scheduled,
        *(
            {"type": kind, "status": str(value), "lastTransitionTime": now()}
            for kind, value in values.items()
        ),
    ]


def _container(pod: Object, state: dict[str, Any], *, ready: bool, restarts: int) -> dict[str, Any]:
    (container,) = pod["spec"]["containers"]
    return {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": ready,
        "started": ready,
        "restartCount": restarts,
        "state": state,
    }
