"""Manifests of Jobs, whose retries exclude disruptions, from the profile: of one pod, or of several that work
together.
"""

import re
from dataclasses import replace
from typing import Any, Final

from ebbtide.placement import Profile
from ebbtide.values.paths import Object
from ebbtide.work.arguments import LABEL_LENGTH
from ebbtide.work.errors import Problems, WorkloadError
from ebbtide.work.placement import Placement, check_capacity, place
from ebbtide.work.secrets import (
    secret_mounts,
    secret_variables,
    secret_volumes,
)
from ebbtide.work.tasks import Task, check, check_free, memory_mounts, memory_volumes, with_fields
from ebbtide.work.volumes import OUTPUTS

CONTAINER = "work"
"""The container's name."""
PORT: Final = 29500
"""Port of rank 0, torchrun's default (PyTorch docs, torchrun, 2026)."""
_RANK: Final = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
"""Field path of the pod's index annotation (Kubernetes docs, Jobs, completion mode, stable since 1.24). A
reference to JOB_COMPLETION_INDEX would not be resolved: the Job controller appends that variable, and
references resolve only to preceding variables."""
_SERVICE_NAME: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_RANKS: Final = ("RANK", "NODE_RANK", "PET_NODE_RANK")


def job_of(profile: Profile, task: Task) -> Object:
    """Return the manifest of a Job on a pool or in a queue.

    A pod that a disruption ended (preemption, eviction, a drained node) is replaced without using a retry; an
    ordinary failure uses one; an exit code in `fail_on` fails the Job immediately. A pod is replaced only
    after it has terminated: otherwise two pods would write the same checkpoints and occupy two nodes. Source:
    Kubernetes docs, Jobs, pod failure policy and pod replacement policy (stable since 1.31 and 1.34).

    On a pool, pods have its tolerations and a required node affinity; in a queue they have neither, since the
    queue's flavor adds those of the selected pool.

    Raises:
        WorkloadError: the Job cannot run as described; the message lists all problems.
    """
    placement = placed(profile, task)
    return manifest(task, placement, fail="FailJob", backoffLimit=task.retries)


job = with_fields(Task, job_of)
"""`job_of`, with the fields of a task by their names: `job(profile, name=…, image=…, pool=…)`."""


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


def manifest(task: Task, placement: Placement, *, fail: str, **spec: Any) -> Object:
    """Return a Job for a validated task.

    Args:
        fail: the failure policy's action for exit codes in `fail_on`.
        **spec: further fields of the Job's spec.
    """
    metadata: Object = {"name": task.name}
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


def _rules(task: Task, fail: str) -> list[Object]:
    """Return the rules of the pod failure policy; the first that matches applies."""
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    if not task.fail_on:
        return [ignored]
    codes = {"containerName": CONTAINER, "operator": "In", "values": sorted(set(task.fail_on))}
    return [{"action": fail, "onExitCodes": codes}, ignored]


def _pod(task: Task, placement: Placement) -> Object:
    # The time limit is the pod's, not the Job's, which would include the wait for a node.
    limit = task.max_run_seconds
    direct = placement.gpu_direct
    volumes = [
        *{mount.name: {"name": mount.name, **mount.source} for mount in placement.mounts}.values(),
        *memory_volumes(task),
        *secret_volumes(task.secret_volumes),
        *(direct.volumes if direct else ()),
    ]
    pull = [{"name": name} for name in task.image_pull_secrets]
    # Cloud identities need no token of the Kubernetes API: GKE has its metadata server, and on AKS a webhook
    # mounts a separate token (Azure/azure-workload-identity, pkg/webhook/webhook.go, 2026).
    account: Object = (
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
        **({"initContainers": list(direct.init_containers)} if direct and direct.init_containers else {}),
        "containers": [_container(task, placement)],
        **({"volumes": volumes} if volumes else {}),
    }


def _container(task: Task, placement: Placement) -> Object:
    requests = {"cpu": task.cpu, "memory": task.memory}
    limits = {"memory": task.memory}
    if placement.accelerator:
        requests[placement.accelerator] = limits[placement.accelerator] = str(task.gpu_count)
    resources = {
        kind: {name: amount for name, amount in amounts.items() if amount}
        for kind, amounts in (("requests", requests), ("limits", limits))
    }
    mounts = [mount.manifest() for mount in placement.mounts]
    direct = placement.gpu_direct
    outputs = [{"name": OUTPUTS, "value": task.outputs}] if task.outputs else []
    parts: Object = {
        "command": list(task.command),
        "args": list(task.args),
        "env": [
            *(
                {"name": name, "value": value}
                for name, value in {**(direct.env if direct else {}), **task.env}.items()
            ),
            *outputs,
            *secret_variables(task.secret_env),
        ],
        "resources": {kind: amounts for kind, amounts in resources.items() if amounts},
        "volumeMounts": [
            *mounts,
            *memory_mounts(task),
            *secret_mounts(task.secret_volumes),
            *(direct.mounts if direct else ()),
        ],
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


def job_over_nodes_of(profile: Profile, nodes: int, task: Task) -> tuple[Object, Object]:
    """Return the manifests of an Indexed Job whose pods work together, and of its headless Service.

    It is no JobSet: that needs a controller, which comes with Kubeflow Trainer; if Trainer is installed, a
    TrainJob is the better choice (`ebbtide.work.training`). The disadvantage: a JobSet can restart all pods
    when one is lost, an Indexed Job restarts only those that ended.

    Every pod gets MASTER_ADDR, MASTER_PORT, NNODES, WORLD_SIZE, NODE_RANK and RANK, for one process per pod,
    and the same as `PET_*`, which torchrun reads as its options, so that `torchrun train.py` needs none
    (Trainer 2.2.1 sets these, pkg/constants). A pod's host name is the Job's name with its index, in the
    Service's domain.

    In a queue, all pods are admitted at once. On a pool, each waits for a node separately, and those with a
    node occupy it.

    A pod that a disruption ended is replaced with the same index, host name and rank, and uses no retry. The
    others usually fail as well, since they lose their connection: each such failure uses one retry of its
    index. When an index has no retries left, the whole Job fails, and all of its pods are terminated.

    Args:
        nodes: number of pods, 2 or more.
        task: the Job's task; its `retries` are per index.

    Returns:
        The Job and the Service. Created together, the Service should have the Job as its owner.

    Raises:
        WorkloadError: the Job cannot run as described; the message lists all problems.
    """
    problems = Problems()
    variables = _variables(task, nodes)
    check_free(task, (*variables, *_RANKS), "a Job over several nodes", problems)
    problems.check(nodes > 1, f"nodes is {nodes}; write 2 or more, or create an ordinary Job.")
    problems.check(
        _SERVICE_NAME.fullmatch(task.name),
        f"name is {task.name!r}; over several nodes, it is also the name of a Service, and must begin with "
        "a letter.",
    )
    # A pod's host name is the Job's name with the index, and must be a DNS label.
    length = LABEL_LENGTH - len(f"-{max(0, nodes - 1)}")
    placement = placed(profile, task, problems, name_length=length, nodes=nodes)
    job = manifest(
        replace(task, env={**variables, **task.env}),
        placement,
        fail="FailJob",
        completionMode="Indexed",
        completions=nodes,
        parallelism=nodes,
        backoffLimitPerIndex=task.retries,
        maxFailedIndexes=0,
    )
    return _connected(job, task.name), _service(task.name, placement.namespace)


job_over_nodes = with_fields(Task, job_over_nodes_of)
"""`job_over_nodes_of`, with the fields of a task by their names: `job_over_nodes(profile, 4, name=…, …)`."""


def _variables(task: Task, nodes: int) -> dict[str, str]:
    """Return the environment variables that are the same in every pod."""
    shared = {"MASTER_ADDR": f"{task.name}-0.{task.name}", "MASTER_PORT": str(PORT), "NNODES": str(nodes)}
    processes = {"NPROC_PER_NODE": str(task.gpu_count)} if task.gpu_count else {}
    torchrun = {f"PET_{name}": value for name, value in (shared | processes).items()}
    return {**shared, "WORLD_SIZE": str(nodes), **torchrun}


def _connected(job: Object, service: str) -> Object:
    """Set a Job's subdomain and the pods' rank variables."""
    template: Object = job["spec"]["template"]
    pod: Object = template["spec"]
    ranks = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": _RANK}}} for name in _RANKS]
    (container,) = pod["containers"]
    container = {**container, "env": [*ranks, *container["env"]]}
    connected = {**template, "spec": {**pod, "subdomain": service, "containers": [container]}}
    return {**job, "spec": {**job["spec"], "template": connected}}


def _service(name: str, namespace: str) -> Object:
    """Return a headless Service: a DNS record for each pod, even before the pod is ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"batch.kubernetes.io/job-name": name},
            "ports": [{"name": "master", "port": PORT}],
        },
    }
