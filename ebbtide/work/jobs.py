"""Manifests of Jobs, whose retries exclude disruptions, from the profile."""

from typing import Any, Unpack

from ebbtide.placement import Profile
from ebbtide.work.capacity import check_capacity
from ebbtide.work.errors import Problems, WorkloadError
from ebbtide.work.names import LABEL_LENGTH
from ebbtide.work.placement import Placement, place
from ebbtide.work.secrets import (
    image_pull_references,
    secret_mounts,
    secret_variables,
    secret_volumes,
)
from ebbtide.work.shared_memory import memory_mounts, memory_volumes
from ebbtide.work.tasks import Task, TaskFields, check, check_free
from ebbtide.work.volumes import OUTPUTS, pod_volumes

Manifest = dict[str, Any]
CONTAINER = "work"
"""The container's name."""


def job(profile: Profile, **fields: Unpack[TaskFields]) -> Manifest:
    """Return the manifest of a Job on a pool or in a queue.

    A pod that a disruption ended (preemption, eviction, a drained node) is replaced without using a retry; an
    ordinary failure uses one; an exit code in `fail_on` fails the Job immediately. A pod is replaced only
    after it has terminated: otherwise two pods would write the same checkpoints and occupy two nodes. Source:
    Kubernetes docs, Jobs, pod failure policy and pod replacement policy (stable since 1.31 and 1.34).

    On a pool, pods have its tolerations and a required node affinity; in a queue they have neither, since the
    queue's flavor adds those of the selected pool.

    Args:
        profile: the cluster.
        **fields: fields of the Job; see `TaskFields`.

    Raises:
        WorkloadError: the Job cannot run as described; the message lists all problems.
    """
    task = Task(**fields)
    placement = placed(profile, task)
    return manifest(task, placement, fail="FailJob", backoffLimit=task.retries)


def placed(
    profile: Profile,
    task: Task,
    problems: Problems | None = None,
    *,
    name_length: int = LABEL_LENGTH,
    nodes: int = 1,
) -> Placement:
    """Return the placement of a valid task.

    Args:
        profile: the cluster.
        task: the task.
        problems: earlier problems.
        name_length: maximum length of the Job's name.
        nodes: number of pods that must run at once.

    Raises:
        WorkloadError: with all problems.
    """
    problems = problems or Problems()
    check(task, problems, name_length=name_length)
    if task.outputs:
        check_free(task, (OUTPUTS,), "--outputs", problems)
    try:
        placement = place(profile, task)
    except WorkloadError as error:
        raise problems.error(*error.problems) from None
    problems.check(
        task.run_as_user is not None or not profile.is_restricted(placement.namespace),
        f"In namespace {placement.namespace}, the API server refuses pods that may run as root: write "
        "run_as_user (--run-as-user), the id of a user that the image can run as.",
    )
    check_capacity(placement.pools, task, nodes, problems)
    problems.end()
    return placement


def manifest(task: Task, placement: Placement, *, fail: str, **spec: Any) -> Manifest:
    """Return a Job for a validated task.

    Args:
        task: the task.
        placement: its placement.
        fail: the failure policy's action for exit codes in `fail_on`.
        **spec: further fields of the Job's spec.
    """
    metadata: Manifest = {"name": task.name}
    for key, value in (
        ("namespace", placement.namespace),
        ("labels", placement.labels),
        ("annotations", placement.annotations),
    ):
        if value:
            metadata[key] = value
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            **({"suspend": True} if placement.suspended else {}),
            **spec,
            "podFailurePolicy": {"rules": _rules(task, fail)},
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": task.ttl_seconds,
            "template": {
                **({"metadata": placement.pod_metadata} if placement.pod_metadata else {}),
                "spec": _pod(task, placement),
            },
        },
    }


def _rules(task: Task, fail: str) -> list[Manifest]:
    """Return the rules of the pod failure policy; the first that matches applies."""
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    if not task.fail_on:
        return [ignored]
    codes = {"containerName": CONTAINER, "operator": "In", "values": sorted(set(task.fail_on))}
    return [{"action": fail, "onExitCodes": codes}, ignored]


def _pod(task: Task, placement: Placement) -> Manifest:
    # The time limit is the pod's, not the Job's, which would include the wait for a node.
    limit = task.max_run_seconds
    volumes = [*pod_volumes(placement.mounts), *memory_volumes(task), *secret_volumes(task.secret_volumes)]
    pull = image_pull_references(task.image_pull_secrets)
    # Cloud identities need no token of the Kubernetes API: GKE has its metadata server, and on AKS a webhook
    # mounts a separate token (Azure/azure-workload-identity, pkg/webhook/webhook.go, 2026).
    account: Manifest = (
        {"serviceAccountName": placement.service_account}
        if placement.service_account
        else {"automountServiceAccountToken": False}
    )
    return {
        "restartPolicy": "Never",
        **({"activeDeadlineSeconds": limit} if limit else {}),
        **account,
        **({"imagePullSecrets": pull} if pull else {}),
        "securityContext": pod_security(task),
        **placement.pod,
        "containers": [_container(task, placement)],
        **({"volumes": volumes} if volumes else {}),
    }


def _container(task: Task, placement: Placement) -> Manifest:
    requests = {"cpu": task.cpu, "memory": task.memory}
    limits = {"memory": task.memory}
    if placement.accelerator:
        requests[placement.accelerator] = limits[placement.accelerator] = str(task.gpu_count)
    resources = {
        kind: {name: amount for name, amount in amounts.items() if amount}
        for kind, amounts in (("requests", requests), ("limits", limits))
    }
    mounts = [mount.manifest() for mount in placement.mounts]
    outputs = [{"name": OUTPUTS, "value": task.outputs}] if task.outputs else []
    parts: Manifest = {
        "command": list(task.command),
        "args": list(task.args),
        "env": [
            *({"name": name, "value": value} for name, value in task.env.items()),
            *outputs,
            *secret_variables(task.secret_env),
        ],
        "resources": {kind: amounts for kind, amounts in resources.items() if amounts},
        "volumeMounts": [*mounts, *memory_mounts(task), *secret_mounts(task.secret_volumes)],
    }
    return {
        "name": CONTAINER,
        "image": task.image,
        **{name: part for name, part in parts.items() if part},
        "securityContext": container_security(task),
    }


def pod_security(task: Task) -> dict[str, Any]:
    """Return the security context of a task's pods. The group makes volumes writable for the user.

    It fully satisfies Pod Security `restricted` if the task declares a user other than root. By default it
    does not: the image is the user's own, many run as root, and `runAsNonRoot` would prevent their start
    (Kubernetes docs, Pod Security Standards, 2026).
    """
    context: dict[str, Any] = {"seccompProfile": {"type": "RuntimeDefault"}}
    if task.run_as_user is None:
        return context
    user = {"runAsNonRoot": True, "runAsUser": task.run_as_user, "runAsGroup": task.run_as_user}
    return {**user, "fsGroup": task.run_as_user, "fsGroupChangePolicy": "OnRootMismatch", **context}


def container_security(task: Task) -> dict[str, Any]:
    """Return the security context of a task's container.

    Root keeps its capabilities, without which it can neither install packages nor write other users' files on
    a shared volume. Only NET_RAW is dropped, with which a pod can impersonate another pod of its node (CIS
    Kubernetes Benchmark 1.10, NET_RAW).
    """
    dropped = "NET_RAW" if task.run_as_user is None else "ALL"
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": [dropped]}}
