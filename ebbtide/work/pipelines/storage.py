"""Steps that use volumes and buckets."""

from typing import TYPE_CHECKING, Final

from ebbtide.placement import Profile
from ebbtide.work.pipelines.faults import faults_of
from ebbtide.work.pipelines.steps import Step
from ebbtide.work.placement import BUCKET_MOUNTED, identity_labels
from ebbtide.work.tasks import is_subdomain

if TYPE_CHECKING:
    from kfp.dsl import PipelineTask

VOLUME: Final = "shared"
"""Name of the claim of a declared team."""
_NO_POD: Final = (
    "it is a pipeline or an importer, and has no pod: call this for its steps where they are created."
)


def use_volume(
    task: "PipelineTask",
    volume: str = VOLUME,
    mount_path: str = "/checkpoints",
    *,
    profile: Profile | None = None,
) -> "PipelineTask":
    """Mount a claim of the pipeline's namespace in a step.

    On GKE it is treated as a bucket mount, as in a Job: the step's pod gets the annotation, and GKE adds a
    sidecar that requests 250m CPU and 256Mi of the node. Call this function before the step is placed, so
    that the sidecar is included. On either cloud, a bucket is mounted with the permissions of the run's
    service account.

    Args:
        task: a step with its own container.
        volume: name of the claim. Default: `shared`, a declared team's.
        mount_path: absolute path in the container.
        profile: the cluster. Default: the profile in `EBBTIDE_PROFILE`.

    Returns:
        The task.

    Raises:
        WorkloadError: with all problems.
        ProfileError: the profile does not exist, or cannot be read.
    """
    step = Step(task)
    cluster = profile or Profile.load()
    with faults_of(step) as problems:
        problems.check(step.has_pod, _NO_POD)
        problems.check(
            is_subdomain(volume),
            f"volume is {volume!r}, which is not a valid name of a PersistentVolumeClaim.",
        )
        problems.check(
            mount_path.startswith("/") and ":" not in mount_path,
            f"mount_path is {mount_path!r}; it is an absolute path in the container.",
        )
        problems.check(
            not (step.is_placed and cluster.cloud == "gke"),
            "it is already placed, and the resources of the bucket mount were not counted: call use_volume "
            "before it is placed.",
        )
    step.mount_claim(volume, mount_path)
    if cluster.cloud == "gke":
        step.annotate(BUCKET_MOUNTED)
    return task


def use_identity(task: "PipelineTask", *, profile: Profile | None = None) -> "PipelineTask":
    """Let a step use the cloud identity of its run's service account, for example for addresses in buckets.

    On AKS the pod gets a label; on GKE every pod has the identity, and nothing is changed.

    Args:
        task: a step with its own container.
        profile: the cluster. Default: the profile in `EBBTIDE_PROFILE`.

    Returns:
        The task.

    Raises:
        WorkloadError: the step has no pod.
        ProfileError: the profile does not exist, or cannot be read.
    """
    step = Step(task)
    with faults_of(step) as problems:
        problems.check(step.has_pod, _NO_POD)
    step.label(identity_labels((profile or Profile.load()).cloud))
    return task
