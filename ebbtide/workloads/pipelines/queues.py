"""Steps in a queue."""

from typing import TYPE_CHECKING, Final, Unpack

from ebbtide.placement import Profile, QueueProfile
from ebbtide.workloads.pipelines.faults import faults_of
from ebbtide.workloads.pipelines.needs import Needs, limit, requirements
from ebbtide.workloads.pipelines.pools import check_free, check_kind, check_slices
from ebbtide.workloads.pipelines.steps import Step
from ebbtide.workloads.pipelines.warned import warn
from ebbtide.workloads.placing import place

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
    **needs: Unpack[Needs],
) -> "PipelineTask":
    """Let a step wait in a queue for a node.

    Kueue knows no pipelines, but pods (its pod integration, on by default since 0.16): the pod of the step is
    held back until the queue admits it, and gets the labels and tolerations of the pool that the queue chose.
    So it carries the queue's name, and neither tolerations nor an affinity; for how long a queued node is
    asked for is an annotation (Kueue 0.19.2, jobframework/utils.go). The drivers of Kubeflow Pipelines wait
    in no queue. A pod that makes way for another is deleted: let the step be retried.

    Args:
        task: a step with a container of its own.
        queue: a queue of the profile, or its name there.
        profile: the cluster; left out, the one that `EBBTIDE_PROFILE` names.
        namespace: where the pipeline's pods are.
        priority: the WorkloadPriorityClass, one of the profile's `priorities`. Default: priority 0.
        **needs: what it needs of a node, and how long; see `Needs`. CPU and memory must be said, here or to
            kfp: the queue counts them.

    Returns:
        The task.

    Raises:
        WorkloadError: the step cannot run there; with all that is wrong.
        ProfileError: there is no profile, or it cannot be read.

    Warns:
        PlacementWarning: it may not end on one of the queue's pools.
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
    warn(step, map(cluster.pool, cluster.queue(name).pools), needed)
    return task
