"""Security contexts of workloads' pods.

They fully satisfy Pod Security `restricted` if the task declares a user other than root. By default they do
not: the image is the user's own, many run as root, and `runAsNonRoot` would prevent their start. For the same
reason root keeps its capabilities, without which it can neither install packages nor write other users' files
on a shared volume. Only NET_RAW is dropped, with which a pod can impersonate another pod of its node (CIS
Kubernetes Benchmark 1.10, NET_RAW). Source: Kubernetes docs, Pod Security Standards (2026).
"""

from typing import Any

from ebbtide.workloads.tasks import Task


def pod_security(task: Task) -> dict[str, Any]:
    """Return the security context of a task's pods. The group makes volumes writable for the user."""
    context: dict[str, Any] = {"seccompProfile": {"type": "RuntimeDefault"}}
    if task.run_as_user is None:
        return context
    user = {"runAsNonRoot": True, "runAsUser": task.run_as_user, "runAsGroup": task.run_as_user}
    return {**user, "fsGroup": task.run_as_user, "fsGroupChangePolicy": "OnRootMismatch", **context}


def container_security(task: Task) -> dict[str, Any]:
    """Return the security context of a task's container."""
    dropped = "NET_RAW" if task.run_as_user is None else "ALL"
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": [dropped]}}
