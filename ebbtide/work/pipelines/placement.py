"""Steps on a pool, or in a queue."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Unpack

from ebbtide.placement import LogsProfile, PoolProfile, Profile, ProfileError, QueueProfile
from ebbtide.values import durations
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.work.errors import Problems
from ebbtide.work.pipelines.steps import RequirementFields, Step, faults_of, lasting, requirements
from ebbtide.work.placement import gpu_direct_of, place
from ebbtide.work.tasks import Task

if TYPE_CHECKING:
    from kfp.dsl import PipelineTask

WEIGHT: Final = 50
"""Weight of a preferred pool, as in kfp 1.8."""
LONG: Final = 3600
"""Duration in seconds from which a step is long: an hour of work is worth a retry."""
_AGAIN: Final = "call retry_disruptions before it is placed"
NAMESPACE: Final = "kubeflow"
"""Namespace of steps, unless Kubeflow Pipelines is configured for several users."""


def use_pool(
    task: "PipelineTask",
    pool: PoolProfile | str,
    *,
    profile: Profile | None = None,
    hard: bool = True,
    fallback: Sequence[PoolProfile | str] = (),
    **needs: Unpack[RequirementFields],
) -> "PipelineTask":
    """Place a step on a pool: with tolerations of all of its declared taints, and a node affinity whose
    expressions must all match.

    A soft placement is only a preference of the scheduler among existing nodes. The cluster autoscaler
    ignores preferences (its FAQ, 2026): while an untainted node has free capacity, a pool at zero stays at
    zero. If the step fits no existing node, the autoscaler adds one of any pool that the step tolerates, in
    its own order. For "spot if available, otherwise on-demand" with pools at zero, declare a queue over both
    and place the step with `use_queue`.

    A step with a GPU limit falls back only to nodes with GPUs. Every work pool is tainted, so a soft
    placement must list each work pool that the step may use.

    Args:
        task: a step with its own container: from a function, a container component or a component file.
        pool: a pool of a profile, or its name.
        profile: the profile for pools by name. Default: the one in `EBBTIDE_PROFILE`.
        hard: whether the pool is required; otherwise it is preferred, as by default in kfp 1.8
            (`use_preemptible_nodepool`, `hard_constraint=False`).
        fallback: further pools for a soft placement, whose taints the step also tolerates. Untainted nodes
            need not be listed.
        **needs: requirements and duration of the step; see `RequirementFields`.

    Returns:
        The task.

    Raises:
        WorkloadError: the step cannot run there; the message lists all problems.
        ProfileError: the profile does not exist, or cannot be read.

    Warns: PlacementWarning: the step may not finish there.
    """
    step = Step(task)
    with faults_of(step) as problems:
        check_free(step, problems)
        needed = requirements(step, needs, problems)
        pools = _profiles((pool, *fallback), profile, problems)
        for item in pools:
            _check_fit(item, needed, problems)
        check_slices(pools, needed, problems)
        problems.check(
            not (hard and fallback),
            "fallback is for a soft placement, and this one is hard: write hard=False with it.",
        )
        resources = [item.accelerator.resource for item in pools if item.accelerator]
        check_kind(step, resources, needed, problems)
    first = pools[0]
    step.limit(needs, resources[0] if needed.gpus else "")
    step.tolerate(dict.fromkeys(toleration for item in pools for toleration in item.tolerations))
    step.lead(first.affinity, None if hard else WEIGHT)
    step.attach(gpu_direct_of(pools, needed))
    warn(step, pools, needs)
    return task


def _profiles(
    named: Sequence[PoolProfile | str], profile: Profile | None, problems: Problems
) -> list[PoolProfile]:
    """Return pools by name; names that do not exist are reported."""
    pools: list[PoolProfile] = []
    for item in named:
        if isinstance(item, PoolProfile):
            pools.append(item)
            continue
        profile = profile or Profile.load()
        try:
            pools.append(profile.pool(item))
        except ProfileError as error:
            problems.add(str(error))
    return pools


def check_free(step: Step, problems: Problems) -> None:
    """Report a step without a pod, or one that is already placed."""
    problems.check(
        step.has_pod,
        "it is a pipeline or an importer, and has no pod: place its steps where they are created.",
    )
    problems.check(
        not step.is_placed,
        "it is already placed. Node affinity terms are alternatives, and a queue adds its own: place it "
        "once.",
    )


def _check_fit(pool: PoolProfile, needed: Task, problems: Problems) -> None:
    """Report the reasons why a step does not run on a pool."""
    # A pool does not say, and a bucket mount has a sidecar on GKE alone.
    cloud = CloudKind.GKE if needed.volume else CloudKind.AKS
    alone = Profile("", cloud, "", pools=(pool,), queues=(), logs=LogsProfile("", ""))
    with problems.collecting():
        place(alone, replace(needed, pool=pool.name))


def check_slices(pools: Iterable[PoolProfile], needed: Task, problems: Problems) -> None:
    """Report multi-node TPU slices: a step has one pod, and the TPUs wait for a pod on each node."""
    for pool in pools:
        together = pool.accelerator.slice_nodes if pool.accelerator and needed.gpus else 1
        problems.check(
            together == 1,
            f"a TPU slice of pool {pool.name} is {together} nodes, and a step has one pod: use a TrainJob.",
        )


def check_kind(step: Step, resources: Iterable[str], needed: Task, problems: Problems) -> None:
    """Report accelerators of several kinds in the pools, or of another kind than the step's."""
    kinds = sorted(set(resources)) if needed.gpus else []
    problems.check(
        len(kinds) <= 1,
        f"its pools have accelerators of different kinds, {' and '.join(kinds)}, and a pod requests only "
        "one.",
    )
    problems.check(
        not (kinds and step.accelerator) or step.accelerator in kinds,
        f"its accelerators are {step.accelerator}, and those of its pool are {' and '.join(kinds)}: omit "
        "set_accelerator_type.",
    )


class PlacementWarning(UserWarning):
    """A step can run, but may not finish on its pools."""


def warn(step: Step, pools: Iterable[PoolProfile], needs: RequirementFields) -> None:
    """Warn about the consequences of a step's expected duration on its pools, without duplicates."""
    if (lasts := lasting(needs)) is None:
        return
    messages = [text for pool in pools for text in _on(pool, step, needs, lasts)]
    # The call of use_pool or use_queue is two frames up.
    for text in dict.fromkeys((*messages, *_retried(step, lasts))):
        warnings.warn(f"Step {step.name} {text}", PlacementWarning, stacklevel=3)


def _on(pool: PoolProfile, step: Step, needs: RequirementFields, lasts: int) -> Iterator[str]:
    length, checkpoints = durations.in_one_unit(lasts), needs.get("checkpoints", False)
    if pool.interruptible and lasts >= LONG and not (step.has_retries or checkpoints):
        yield (
            f"lasts {length} on {pool.capacity} pool {pool.name} without retries or checkpoints, so a "
            f"preemption ends the run: {_AGAIN}, and set checkpoints=True once it saves them."
        )
    limit = pool.max_run_seconds
    if limit is not None and lasts > limit and not (step.has_retries and checkpoints):
        yield (
            f"lasts {length}, and a node of pool {pool.name} lives at most {durations.in_one_unit(limit)}: "
            f"save checkpoints, set checkpoints=True, and {_AGAIN}."
        )


def _retried(step: Step, lasts: int) -> Iterator[str]:
    until = step.retried_seconds
    if until is not None and lasts > until:
        yield (
            f"lasts {durations.in_one_unit(lasts)}, and is retried no longer than "
            f"{durations.in_one_unit(until)} after its first attempt began: set a higher longest to "
            "retry_disruptions, or backoff_max_duration to set_retry."
        )


def use_queue(
    task: "PipelineTask",
    queue: QueueProfile | str,
    *,
    profile: Profile | None = None,
    namespace: str = NAMESPACE,
    priority: str = "",
    **needs: Unpack[RequirementFields],
) -> "PipelineTask":
    """Place a step in a queue.

    Kueue has no integration for pipelines, but one for pods (on by default since 0.16): the step's pod is
    gated until the queue admits it, and gets the labels and tolerations of the selected pool. So it has the
    queue's name, and neither tolerations nor an affinity; the requested duration of a queued node is an
    annotation (Kueue 0.19.2, jobframework/utils.go). The drivers of Kubeflow Pipelines are not queued. A
    preempted pod is deleted: use retries.

    Args:
        task: a step with its own container.
        queue: a queue of the profile, or its name.
        profile: the cluster. Default: the profile in `EBBTIDE_PROFILE`.
        namespace: namespace of the pipeline's pods.
        priority: the WorkloadPriorityClass, one of the profile's `priorities`. Default: priority 0.
        **needs: requirements and duration of the step; see `RequirementFields`. CPU and memory are required,
            here or in kfp, for the queue's quota.

    Returns:
        The task.

    Raises:
        WorkloadError: the step cannot run there; the message lists all problems.
        ProfileError: the profile does not exist, or cannot be read.

    Warns: PlacementWarning: the step may not finish on one of the queue's pools.
    """
    step = Step(task)
    cluster = profile or Profile.load()
    name = queue if isinstance(queue, str) else queue.name
    with faults_of(step) as problems:
        check_free(step, problems)
        needed = requirements(step, needs, problems)
        placement = place(cluster, replace(needed, queue=name, namespace=namespace, priority=priority))
        check_kind(step, filter(None, [placement.accelerator]), needed, problems)
        check_slices(placement.pools, needed, problems)
    step.limit(needs, placement.accelerator)
    step.label(placement.labels)
    step.annotate(placement.annotations)
    step.attach(placement.gpu_direct)
    warn(step, placement.pools, needs)
    return task
