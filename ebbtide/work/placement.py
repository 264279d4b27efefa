"""Placement of a task on a pool or in a queue, with the pods' fields; and work that no pool can run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Final

from ebbtide.clients.kubernetes.objects import part, parts
from ebbtide.placement import PoolProfile, Profile, ProfileError, QueueProfile
from ebbtide.placement.profile import (
    MAX_RUN_ANNOTATION,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    SAFE_TO_EVICT,
    GpuDirectProfile,
)
from ebbtide.text import several
from ebbtide.values import durations, quantities
from ebbtide.values.cloud_kind import CloudKind, by_cloud
from ebbtide.values.pod_requests import pod_requests
from ebbtide.work.arguments import MEBIBYTE
from ebbtide.work.errors import Problems, WorkloadError
from ebbtide.work.tasks import Sidecar, Task, check_shared_memory
from ebbtide.work.volumes import Mount, mounts_of

_QUEUED: Final = "queued"
BUCKET_MOUNTED: Final = {"gke-gcsfuse/volumes": "true"}
"""Annotation of pods that mount a bucket on GKE, without which the mount never becomes ready."""
KEPT: Final = {SAFE_TO_EVICT: "false"}
"""Annotation of pods that the cluster autoscaler does not evict: by default it removes a node that is less
than half used if its pods fit elsewhere, those of Jobs too (kubernetes/autoscaler, FAQ, 2026)."""
IDENTITY_LABELS: Final[Mapping[CloudKind, dict[str, str]]] = by_cloud(
    gke={}, aks={"azure.workload.identity/use": "true"}
)
"""Labels of pods that get a token of their service account's identity on AKS (Azure/azure-workload-identity,
docs, service account labels and annotations, 2026); GKE needs none."""
MOUNT_SIDECARS: Final[Mapping[CloudKind, tuple[Sidecar, ...]]] = by_cloud(
    gke=(Sidecar(name="the bucket mount", cpu_m=250, memory_mib=256),), aks=()
)
"""Default requests of GKE's sidecar for bucket mounts (GKE docs, Cloud Storage FUSE CSI driver, sidecar
container, 2026)."""
_SEVERAL: Final = "; `ebbtide run --nodes 2` starts two such pods, each on a node."
_ACCELERATORS: Final = ("nvidia.com/", "google.com/tpu", "amd.com/gpu")
"""Prefixes of resources of accelerators; others may be those of a user's own device plugin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Fields of a Job and its pods for a placement.

    Attributes:
        namespace: namespace of the Job; empty for kubectl's default.
        suspended: whether the Job is suspended until the queue starts it.
        pod: fields of the pod's spec.
        service_account: service account of the pods; empty for the namespace's default.
        mounts: volumes that outlive the pods.
        accelerator: the resource name of accelerators; empty if none are requested.
        pools: the pools whose nodes can run it; all pods run on one of them.
        gpu_direct: additions for GPUDirect; None for pods that do not use it.
    """

    namespace: str
    labels: dict[str, str] = field(default_factory=dict[str, str])
    annotations: dict[str, str] = field(default_factory=dict[str, str])
    suspended: bool = False
    pod: dict[str, Any] = field(default_factory=dict[str, Any])
    pod_annotations: dict[str, str] = field(default_factory=dict[str, str])
    pod_labels: dict[str, str] = field(default_factory=dict[str, str])
    service_account: str = ""
    mounts: tuple[Mount, ...] = ()
    accelerator: str = ""
    pools: tuple[PoolProfile, ...] = ()
    gpu_direct: GpuDirectProfile | None = None

    @property
    def pod_metadata(self) -> dict[str, dict[str, str]]:
        """Metadata of the pods' template; empty for none."""
        parts = (("labels", self.pod_labels), ("annotations", self.pod_annotations))
        return {key: dict(part) for key, part in parts if part}


def has_bucket_mount(cloud: CloudKind, task: Task) -> bool:
    """Check that GKE adds its sidecar for bucket mounts to the pod."""
    return bool(MOUNT_SIDECARS[cloud]) and bool(task.volume or task.outputs or task.mounts)


def sidecars_of(cloud: CloudKind, task: Task) -> tuple[Sidecar, ...]:
    """Return the containers that run beside a task's own in its pod."""
    return (*task.sidecars, *(MOUNT_SIDECARS[cloud] if has_bucket_mount(cloud, task) else ()))


def place(profile: Profile, task: Task) -> Placement:
    """Return the placement of a task.

    Raises:
        WorkloadError: the task does not fit, or does not have exactly one of pool and queue.
    """
    if bool(task.pool) == bool(task.queue):
        problem = "Both a pool and a queue are named" if task.pool else "Neither a pool nor a queue is named"
        raise WorkloadError(
            f"{problem}; name one of them. {_known(profile)} A queue chooses among its pools; a pool is used "
            "directly."
        )
    try:
        placement = _on_pool(profile, task) if task.pool else _in_queue(profile, task)
    except ProfileError as error:
        raise WorkloadError(str(error)) from None
    problems = Problems()
    team = profile.team_of(placement.namespace) if task.outputs or task.mounts else None
    account = task.service_account or (team.service_account if team else "")
    mounts = mounts_of(profile, task, placement.namespace, problems)
    for address in task.mounts if not account else ():
        problems.add(
            f"mounts has {address}, which is read by the identity of the pods' service account, and they "
            "have none: name one with service_account (--service-account)."
        )
    problems.end()
    direct = gpu_direct_of(placement.pools, task)
    return replace(
        placement,
        gpu_direct=direct,
        pod_annotations={
            **(direct.annotations if direct else {}),
            **(KEPT if task.keep_node else {}),
            **(BUCKET_MOUNTED if has_bucket_mount(profile.cloud, task) else {}),
        },
        pod_labels=dict(IDENTITY_LABELS[profile.cloud]) if account else {},
        service_account=account,
        mounts=mounts,
    )


def gpu_direct_of(pools: Sequence[PoolProfile], task: Task) -> GpuDirectProfile | None:
    """Return the additions for GPUDirect, of pods that use all GPUs of a node, whose NICs pods cannot share.

    None for pods that may also run on a pool without these networks.
    """
    needs = [pool.gpu_direct for pool in pools]
    whole = all(pool.accelerator and task.gpu_count == pool.accelerator.count for pool in pools)
    return needs[0] if needs and whole and all(item == needs[0] for item in needs) else None


def _known(profile: Profile) -> str:
    kinds = (("Pools", profile.pools), ("queues", profile.queues))
    return (
        "; ".join(f"{kind}: {', '.join(item.name for item in items) or 'none'}" for kind, items in kinds)
        + "."
    )


def _on_pool(profile: Profile, task: Task) -> Placement:
    pool = profile.pool(task.pool)
    problems = Problems()
    check_shared_memory(task, problems)
    problems.check(
        not task.priority,
        f"priority is {task.priority}, which orders work in a queue: name a queue instead of pool "
        f"{pool.name}.",
    )
    if pool.capacity == _QUEUED:
        queues = " or ".join(f"queue {name}" for name in pool.queues) or "a queue over it"
        problems.add(
            f"Pool {pool.name} creates nodes only for work that was admitted from a queue: name {queues} "
            "instead."
        )
    elif required := _required_queues(profile, pool, task.namespace):
        problems.add(
            f"In namespace {task.namespace}, work must use pool {pool.name} through a queue, or the API "
            f"server refuses it: name queue {' or '.join(required)} instead."
        )
    for problem in _obstacles(pool, task, profile.cloud):
        problems.add(problem)
    _check_idle((pool,), task, f"pool {pool.name}", problems)
    problems.end()
    return Placement(
        namespace=task.namespace, pod=_pod(pool), accelerator=_accelerator((pool,), task), pools=(pool,)
    )


def _required_queues(profile: Profile, pool: PoolProfile, namespace: str) -> list[str]:
    """Return the queues that a namespace must use for a pool; empty if it may use the pool directly."""
    return [
        queue.name
        for queue in profile.queues
        if queue.name in pool.queues
        and any(local.required and local.namespace == namespace for local in queue.local_queues)
    ]


def _pod(pool: PoolProfile) -> dict[str, Any]:
    """Return a pool's tolerations and node affinity for a pod: one term, whose expressions must all match. Of
    several terms, one match would suffice."""
    spec: dict[str, Any] = {}
    if pool.tolerations:
        spec["tolerations"] = [item.manifest() for item in pool.tolerations]
    term = {"matchExpressions": [item.manifest() for item in pool.affinity]}
    required = {"nodeSelectorTerms": [term]}
    spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return spec


def _in_queue(profile: Profile, task: Task) -> Placement:
    queue, task = queue_of(profile, task)
    problems = Problems()
    check_shared_memory(task, problems)
    _check_priority(profile, task, problems)
    pools = [profile.pool(name) for name in queue.pools]
    malformed = Problems()
    for amount in ("cpu_m", "memory_b", "max_run_seconds"):
        with malformed.collecting():
            getattr(task, amount)
    fitting = [
        pool for pool in pools if {*_obstacles(pool, task, profile.cloud, run=False)} <= {*malformed.all}
    ]
    for pool in fitting or pools:
        for problem in _obstacles(pool, task, profile.cloud):
            problems.add(problem)
    problems.check(fitting, f"No pool of queue {task.queue} can run this.")
    problems.check(
        (task.cpu and task.memory) or not fitting,  # `run` derives them from a pool that fits
        "cpu and memory are both required in a queue: it counts requests, and would otherwise admit more "
        "than the nodes can run.",
    )
    _check_idle(fitting or pools, task, f"queue {task.queue}", problems)
    namespace, label, accelerator, annotations = "", "", "", dict[str, str]()
    with problems.collecting():
        namespace, label = _local_queue(queue, task)
    with problems.collecting():
        accelerator = _accelerator(fitting, task)
    with problems.collecting():
        annotations = _max_run(fitting, task)
    problems.end()
    return Placement(
        namespace=namespace,
        labels={QUEUE_LABEL: label, **({PRIORITY_LABEL: task.priority} if task.priority else {})},
        annotations=annotations,
        suspended=True,
        accelerator=accelerator,
        pools=tuple(fitting),
    )


def _check_priority(profile: Profile, task: Task, problems: Problems) -> None:
    """Report a priority that the cluster does not have; Kueue would not admit the workload (0.19.2,
    pkg/util/priority)."""
    known = ", ".join(profile.priorities)
    fix = (
        f"write one of {known}"
        if known
        else ("its profile lists none: write the profile again, or omit priority")
    )
    problems.check(
        not task.priority or task.priority in profile.priorities,
        f"priority is {task.priority!r}, which is not a WorkloadPriorityClass of cluster {profile.cluster}: "
        f"{fix}.",
    )


def queue_of(profile: Profile, task: Task) -> tuple[QueueProfile, Task]:
    """Return a task's queue, and the task in its namespace.

    Raises:
        ProfileError: the cluster has no such queue, or several.
    """
    queue, namespace = profile.find_queue(task.queue, task.namespace)
    return queue, replace(task, namespace=namespace)


def _local_queue(queue: QueueProfile, task: Task) -> tuple[str, str]:
    """Return the namespace and the name of a queue's LocalQueue."""
    by_namespace = {local.namespace: local.name for local in reversed(queue.local_queues)}
    if task.namespace in by_namespace:
        return task.namespace, by_namespace[task.namespace]
    places = ", ".join(sorted(by_namespace)) or "none"
    if task.namespace:
        raise WorkloadError(f"Queue {queue.name} is not in namespace {task.namespace}; it is in: {places}.")
    if len(by_namespace) != 1:
        raise WorkloadError(f"namespace is needed: queue {queue.name} is in {places}.")
    return next(iter(by_namespace.items()))


def _check_idle(pools: Sequence[PoolProfile], task: Task, target: str, problems: Problems) -> None:
    """Report a task that would occupy nodes with accelerators without declaring a number of accelerators."""
    accelerators = [pool.accelerator for pool in pools if pool.accelerator is not None]
    if task.gpus is not None or not accelerators or len(accelerators) < len(pools):
        return
    most = max(item.most for item in accelerators)
    counts = "gpus=1" if most == 1 else f"gpus=1 to gpus={most}"
    kinds = " or ".join(dict.fromkeys(map(str, accelerators)))
    problems.add(
        f"gpus is missing, and {target} has only nodes with {kinds}, which would be paid for without being "
        f"used. Write {counts} (--gpus), or gpus=0 for work that needs such a node but not its accelerators."
    )


def _max_run(pools: Sequence[PoolProfile], task: Task) -> dict[str, str]:
    """Return the annotation with the requested duration of nodes: an attempt's time limit, or else the
    pool's."""
    limits = [pool.max_run_seconds for pool in pools if pool.capacity == _QUEUED]
    if not limits:
        return {}
    known = [limit for limit in limits if limit is not None]
    seconds = task.max_run_seconds or (min(known) if known else None)
    return {MAX_RUN_ANNOTATION: str(seconds)} if seconds else {}


def _accelerator(pools: Sequence[PoolProfile], task: Task) -> str:
    if not task.gpu_count:
        return ""
    kinds = sorted({pool.accelerator.resource for pool in pools if pool.accelerator is not None})
    if len(kinds) > 1:
        raise WorkloadError(
            f"Queue {task.queue} has accelerators of different kinds, {' and '.join(kinds)}, and a pod "
            "requests only one: name a queue with one kind."
        )
    return kinds[0] if kinds else ""


def _obstacles(pool: PoolProfile, task: Task, cloud: CloudKind, *, run: bool = True) -> tuple[str, ...]:
    """Return the reasons why no node of a pool can run a task; with `run`, including its duration. Invalid
    amounts are reported again, with the same text."""
    problems = Problems()
    node = f"a node of pool {pool.name}"
    problems.check(
        task.gpu_count <= (pool.accelerator.count if pool.accelerator else 0),
        f"gpus is {task.gpus}, and {node} has {pool.accelerator or 'no accelerators'}."
        + (f" Write at most {pool.accelerator.count}{_SEVERAL}" if pool.accelerator else ""),
    )
    problems.check(
        pool.accelerator is None or not pool.accelerator.most < task.gpu_count <= pool.accelerator.count,
        f"gpus is {task.gpus}, and the GPUs of pool {pool.name} are shared: a container that requests more "
        f"than {pool.accelerator.most if pool.accelerator else 0} fails. Write gpus=1.",
    )
    sidecars = sidecars_of(cloud, task)
    sidecar_text = f" beside {' and '.join(item.name for item in sidecars)}" if sidecars else ""
    with problems.collecting():
        free = pool.cpu_m - sum(item.cpu_m for item in sidecars)
        problems.check(
            not pool.cpu_m or task.cpu_m <= free,
            f"cpu is {task.cpu}, and {node} ({pool.machine}) offers pods {free}m{sidecar_text}.",
        )
    with problems.collecting():
        free = pool.memory_mib - sum(item.memory_mib for item in sidecars)
        problems.check(
            not pool.memory_mib or task.memory_b <= free * MEBIBYTE,
            f"memory is {task.memory}, and {node} ({pool.machine}) offers pods {free}Mi{sidecar_text}.",
        )
    limit = pool.max_run_seconds if run else None
    with problems.collecting():
        requested = task.max_run_seconds
        if limit is not None and requested is not None and requested > limit:
            problems.add(
                f"max_run is {durations.in_one_unit(requested)}, and {node} lives at most "
                f"{durations.in_one_unit(limit)}: save checkpoints, and write at most that."
            )
    return problems.all


def check_capacity(pools: Iterable[PoolProfile], task: Task, nodes: int, problems: Problems) -> None:
    """Report more pods than can run at once: they would wait for each other while occupying nodes.

    A queue admits all of them to one of its pools. Its quota is the maximum capacity of its pools, so no
    other limit applies.

    Args:
        pools: the pools that can run one of the pods.
        task: the requests of each pod.
        nodes: number of pods.
    """
    pools = list(pools)
    for pool in pools:
        together = pool.accelerator.slice_nodes if pool.accelerator and task.gpu_count else 1
        problems.check(
            together in (1, nodes),
            f"nodes is {nodes}, and a TPU slice of pool {pool.name} is {together} nodes, which run one Job "
            f"together: write {together} nodes (--nodes).",
        )
    most = {pool.name: _most_pods(pool, task) for pool in pools}
    known = {name: count for name, count in most.items() if count is not None}
    largest = max(known, key=lambda name: known[name], default="")
    problems.check(
        len(known) < len(most) or nodes <= known[largest],
        f"nodes is {nodes}, and pool {largest} has capacity for {known.get(largest)} such pods: the pods "
        "would wait for each other. Write fewer nodes, or raise the pool's largest size.",
    )


def _most_pods(pool: PoolProfile, task: Task) -> int | None:
    """Return the number of such pods that fit on a pool at its maximum; None if their requests are
    unknown."""
    offered = (
        (pool.accelerator.count if pool.accelerator else 0, task.gpu_count),
        (pool.cpu_m, task.cpu_m),
        (pool.memory_mib * MEBIBYTE, task.memory_b),
    )
    per_node = [have // request for have, request in offered if have and request > 0]
    return pool.max_nodes * min(per_node) if per_node else None


def misfit(workload: Mapping[str, Any], pools: Iterable[PoolProfile]) -> str:
    """Return why a Workload can never be admitted to pools; empty if it can.

    Kueue admits each pod set to one flavor, that is to one pool.

    Args:
        workload: Kueue's Workload.
        pools: the pools of its queue.
    """
    pools = tuple(pools)
    for pod_set in parts(workload, "spec", "podSets"):
        reasons = [next(_reasons(pod_set, pool), "") for pool in pools]
        if all(reasons):
            return "; ".join(dict.fromkeys(reasons)) or "its queue has no pool"
    return ""


def _reasons(pod_set: Mapping[str, Any], pool: PoolProfile) -> Iterator[str]:
    """Yield the reasons why a pool cannot run a pod set."""
    spec = part(pod_set, "template", "spec")
    for label, value in part(spec, "nodeSelector").items():
        if pool.labels.get(label, value) != value:
            yield f"its node selector {label}={value} excludes pool {pool.name}"
    node = offered(pool)
    fits: list[Decimal] = []
    for resource, request in pod_requests(spec).items():
        have = node.get(resource, Decimal(0) if resource.startswith(_ACCELERATORS) else None)
        if have is None or not request:
            continue
        if request > have:
            had = amount_text(resource, have) if have else "none"
            yield f"a pod needs {amount_text(resource, request)}, and a node of pool {pool.name} has {had}"
        else:
            fits.append(have // request)
    count = int(pod_set.get("minCount") or pod_set.get("count") or 1)
    if fits and (most := int(min(fits)) * pool.max_nodes) < count:
        yield f"it needs {several(count, 'pod')} at once, and pool {pool.name} has capacity for {most}"


def offered(pool: PoolProfile) -> Mapping[str, Decimal]:
    """Return the known resources of a node, in units of the API."""
    known = {"cpu": Decimal(pool.cpu_m) / 1000, "memory": Decimal(pool.memory_mib) * MEBIBYTE}
    node = {resource: amount for resource, amount in known.items() if amount}
    if pool.accelerator:
        node[pool.accelerator.resource] = Decimal(pool.accelerator.count)
    return node


def amount_text(resource: str, amount: Decimal) -> str:
    """Format an amount: `4 nvidia.com/gpu`, `3500m CPU`, `40Gi memory`."""
    if resource == "cpu":
        return f"{quantities.cpu(int(amount * 1000))} CPU"
    if resource == "memory":
        return f"{quantities.memory(int(amount / MEBIBYTE))} memory"
    return f"{amount.normalize():f} {resource}"
