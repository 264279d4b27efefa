"""Steps in a queue."""

from typing import TYPE_CHECKING, Final, Unpack

from ebbtide.placement import Profile, QueueProfile
from ebbtide.work.pipelines.faults import faults_of
from ebbtide.work.pipelines.pools import check_free, check_kind, check_slices, warn
from ebbtide.work.pipelines.requirements import RequirementFields, limit, requirements
from ebbtide.work.pipelines.steps import Step
from ebbtide.work.placement import place

if TYPE_CHECKING:
    from kfp.dsl import PipelineTask

NAMESPACE: Final = "kubeflow"
"""Namespace of steps, unless Kubeflow Pipelines is configured for several users."""


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
        **needs: requirements and duration of the step; see `Needs`. CPU and memory are required, here or in
            kfp, for the queue's quota.

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
        placement = place(cluster, needed.task(queue=name, namespace=namespace, priority=priority))
        check_kind(step, filter(None, [placement.accelerator]), needed, problems)
        check_slices(placement.pools, needed, problems)
    limit(step, needs, placement.accelerator)
    step.label(placement.labels)
    step.annotate(placement.annotations)
    warn(step, placement.pools, needed)
    return task
