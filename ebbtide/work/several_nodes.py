"""Multi-node Jobs: an Indexed Job whose pods find each other through a headless Service.

Not a JobSet: that needs a controller, which comes with Kubeflow Trainer; if Trainer is installed, a TrainJob
is the better choice (`ebbtide.work.training`). An Indexed Job runs on every cluster. The disadvantage: a
JobSet can restart all pods when one is lost, an Indexed Job restarts only those that ended.
"""

import re
from dataclasses import replace
from typing import Final, Unpack

from ebbtide.placement import Profile
from ebbtide.work.errors import Problems
from ebbtide.work.jobs import Manifest, manifest, placed
from ebbtide.work.names import LABEL_LENGTH
from ebbtide.work.tasks import Task, TaskFields, check_free

PORT: Final = 29500
"""Port of rank 0, torchrun's default (PyTorch docs, torchrun, 2026)."""
_RANK: Final = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
"""Field path of the pod's index annotation (Kubernetes docs, Jobs, completion mode, stable since 1.24). A
reference to JOB_COMPLETION_INDEX would not be resolved: the Job controller appends that variable, and
references resolve only to preceding variables."""
_SERVICE_NAME: Final = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_RANKS: Final = ("RANK", "NODE_RANK", "PET_NODE_RANK")


def job_over_nodes(profile: Profile, nodes: int, **fields: Unpack[TaskFields]) -> tuple[Manifest, Manifest]:
    """Return the manifests of a Job whose pods work together, and of its headless Service.

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
        profile: the cluster.
        nodes: number of pods, 2 or more.
        **fields: fields of the Job; see `TaskFields`. `retries` are per index.

    Returns:
        The Job and the Service. Created together, the Service should have the Job as its owner.

    Raises:
        WorkloadError: the Job cannot run as described; the message lists all problems.
    """
    task, problems = Task(**fields), Problems()
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


def _variables(task: Task, nodes: int) -> dict[str, str]:
    """Return the environment variables that are the same in every pod."""
    shared = {"MASTER_ADDR": f"{task.name}-0.{task.name}", "MASTER_PORT": str(PORT), "NNODES": str(nodes)}
    processes = {"NPROC_PER_NODE": str(task.gpu_count)} if task.gpu_count else {}
    torchrun = {f"PET_{name}": value for name, value in (shared | processes).items()}
    return {**shared, "WORLD_SIZE": str(nodes), **torchrun}


def _connected(job: Manifest, service: str) -> Manifest:
    """Set a Job's subdomain and the pods' rank variables."""
    template: Manifest = job["spec"]["template"]
    pod: Manifest = template["spec"]
    ranks = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": _RANK}}} for name in _RANKS]
    (container,) = pod["containers"]
    container = {**container, "env": [*ranks, *container["env"]]}
    connected = {**template, "spec": {**pod, "subdomain": service, "containers": [container]}}
    return {**job, "spec": {**job["spec"], "template": connected}}


def _service(name: str, namespace: str) -> Manifest:
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
