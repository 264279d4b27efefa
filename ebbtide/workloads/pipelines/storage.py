"""Steps that use volumes and buckets."""

from typing import TYPE_CHECKING, Final

from ebbtide.placement import Profile
from ebbtide.workloads.pipelines.faults import faults_of
from ebbtide.workloads.pipelines.steps import Step
from ebbtide.workloads.placing import BUCKET_MOUNTED, identity_labels
from ebbtide.workloads.tasks import is_subdomain

if TYPE_CHECKING:
    from kfp.dsl import PipelineTask

VOLUME: Final = "shared"
"""Name of the claim that a declared team has."""
_NO_POD: Final = (
    "it is a pipeline or an importer, and has no pod: call this for its steps where they are made."
)


def use_volume(
    task: "PipelineTask",
    volume: str = VOLUME,
    mount_path: str = "/checkpoints",
    *,
    profile: Profile | None = None,
) -> "PipelineTask":
    """Mount a claim in a step. It is one of the namespace that the pipeline runs in.

    On GKE it is taken for a bucket mount, as in a Job: the step's pod is annotated for it, and GKE adds a
    container that takes 250m CPU and 256Mi of the node. Call it before the step is placed, so that this is
    counted. On either cloud a bucket is mounted with the rights of the service account that the run has.

    Args:
        task: a step with a container of its own.
        volume: the claim's name; a declared team's own is called `shared`.
        mount_path: absolute path in the container.
        profile: the cluster; left out, the one that `EBBTIDE_PROFILE` names.

    Returns:
        The task.

    Raises:
        WorkloadError: with all that is wrong.
        ProfileError: there is no profile, or it cannot be read.
    """
    step = Step(task)
    cluster = profile or Profile.load()
    with faults_of(step) as problems:
        problems.check(step.has_pod, _NO_POD)
        problems.check(is_subdomain(volume), f"volume is {volume!r}, which can be no claim's name.")
        problems.check(
            mount_path.startswith("/") and ":" not in mount_path,
            f"mount_path is {mount_path!r}; it is an absolute path in the container.",
        )
        problems.check(
            not (step.is_placed and cluster.cloud == "gke"),
            "it is placed already, and what a bucket mount takes of a node was not counted: call use_volume "
            "before it is placed.",
        )
    step.mount_claim(volume, mount_path)
    if cluster.cloud == "gke":
        step.annotate(BUCKET_MOUNTED)
    return task


def use_identity(task: "PipelineTask", *, profile: Profile | None = None) -> "PipelineTask":
    """Let a step use the cloud as the identity of its run's service account, as for addresses in buckets.

    On AKS the pod is labelled for it; on GKE every pod has it, and nothing is done.

    Args:
        task: a step with a container of its own.
        profile: the cluster; left out, the one that `EBBTIDE_PROFILE` names.

    Returns:
        The task.

    Raises:
        WorkloadError: it has no pod.
        ProfileError: there is no profile, or it cannot be read.
    """
    step = Step(task)
    with faults_of(step) as problems:
        problems.check(step.has_pod, _NO_POD)
    step.label(identity_labels((profile or Profile.load()).cloud))
    return task
