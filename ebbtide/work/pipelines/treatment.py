"""Retries, storage, identities and Secrets of steps, and the same treatment for all steps of a pipeline."""

import math
import os
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec

from ebbtide.placement import Profile
from ebbtide.placement.profile import UNCONFIGURED, UNKNOWN
from ebbtide.placement.profile_sources import VARIABLE
from ebbtide.values import durations
from ebbtide.work.arguments import seconds
from ebbtide.work.errors import Problems, WorkloadError
from ebbtide.work.pipelines.placement import PlacementWarning, use_pool, use_queue
from ebbtide.work.pipelines.steps import Step, faults_of
from ebbtide.work.placement import BUCKET_MOUNTED, IDENTITY_LABELS, MOUNT_SIDECARS
from ebbtide.work.secrets import check_image_pull_secrets, check_secrets
from ebbtide.work.tasks import is_subdomain

if TYPE_CHECKING:
    from kfp.dsl import PipelineTask

VOLUME: Final = "shared"
"""Name of the claim of a declared team."""
_NO_POD: Final = (
    "it is a pipeline or an importer, and has no pod: call this for its steps where they are created."
)
_P = ParamSpec("_P")


def retry_disruptions(
    task: "PipelineTask",
    attempts: int = 5,
    backoff: str | timedelta = "30s",
    *,
    factor: float = 1.0,
    longest: str | timedelta = "7d",
    profile: Profile | None = None,
) -> "PipelineTask":
    """Retry a step after a disruption.

    The defaults differ from kfp's in two ways. kfp doubles each wait, and stops an hour after the start of
    the first attempt, regardless of the remaining attempts: a training step that is preempted after 65
    minutes would not be retried at all (Argo, operator.go: the deadline counts from the first attempt's
    start).

    The cluster determines which failures are retried: a compiled pipeline has no field for it. With
    `addons.pipelines` declared, including for an existing installation, these are pods that were deleted,
    evicted or lost their node; with `retry: any`, all failures. The profile records this. Stock Kubeflow
    Pipelines 2.17.0 retries neither a graceful node shutdown nor an exit code (kubeflow/pipelines#13485,
    2026-06).

    In a step, a SIGTERM handler is not called in time: kfp's launcher ends first. Save checkpoints regularly.

    Args:
        task: a step with its own container.
        attempts: maximum number of retries.
        backoff: wait after a disruption; the wait for a node is added.
        factor: multiplier of each further wait.
        longest: limit from the start of the first attempt, including all waits and attempts.
        profile: profile of the cluster that runs the pipeline. Default: the one in `EBBTIDE_PROFILE`.

    Returns:
        The task.

    Raises:
        WorkloadError: with all problems.
        ProfileError: the profile cannot be read.

    Warns: PlacementWarning: the cluster may not retry a disrupted step.
    """
    step = Step(task)
    wait = until = 0
    with faults_of(step) as problems:
        problems.check(
            step.has_pod,
            "it is a pipeline or an importer: set the retries of its steps where they are created.",
        )
        problems.check(attempts >= 1, f"attempts is {attempts}; write 1 or more.")
        problems.check(
            factor >= 1 and math.isfinite(factor), f"factor is {factor}; write 1, for equal waits, or more."
        )
        with problems.collecting():
            wait = seconds("backoff", backoff)
        with problems.collecting():
            until = seconds("longest", longest)
        if not problems.all:
            begun = _begun(attempts, wait, factor, until)
            problems.check(
                begun == attempts,
                f"with waits from {durations.in_one_unit(wait)} on, each {factor:g} times the one before, "
                f"{begun} of {attempts} attempts begin within the {durations.in_one_unit(until)} in which "
                "it is retried: set a higher longest, or a shorter wait.",
            )
    step.retry(attempts, wait, factor, until)
    doubt = _doubt(profile)
    if doubt:
        warnings.warn(f"Step {step.name} {doubt}", PlacementWarning, stacklevel=2)
    return task


def _doubt(profile: Profile | None) -> str:
    """Return the reason why the cluster may not retry a disrupted step; empty if it does."""
    if profile is None and os.environ.get(VARIABLE, "").strip():
        profile = Profile.load()
    if profile is None:
        return (
            "has retries, but no profile records whether the cluster retries a preempted step: pass "
            f"profile=, or set {VARIABLE}."
        )
    if profile.pipeline_retries == UNKNOWN:
        return (
            f"has retries, but the profile of cluster {profile.cluster} does not record whether they survive "
            "preemption: an older Ebbtide wrote it. Write it again with `ebbtide profile`."
        )
    if profile.pipeline_retries == UNCONFIGURED:
        return (
            f"has retries, but they may not survive preemption: the stack of cluster {profile.cluster} does "
            "not configure Kubeflow Pipelines, and stock 2.17.0 does not retry a preempted step. Declare "
            "addons.pipelines, with existing: true for an existing installation."
        )
    return ""


def _begun(attempts: int, wait: float, factor: float, until: int) -> int:
    """Return the number of attempts that start within the limit, if none of them takes time."""
    passed = 0.0
    for begun in range(attempts):
        passed += wait
        if passed >= until:
            return begun
        wait *= factor
    return attempts


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
            not (step.is_placed and MOUNT_SIDECARS[cluster.cloud]),
            "it is already placed, and the resources of the bucket mount were not counted: call use_volume "
            "before it is placed.",
        )
    step.mount_claim(volume, mount_path)
    if MOUNT_SIDECARS[cluster.cloud]:
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
    step.label(IDENTITY_LABELS[(profile or Profile.load()).cloud])
    return task


def use_secrets(
    task: "PipelineTask",
    *,
    env: Mapping[str, str] | None = None,
    volumes: Mapping[str, str] | None = None,
    image_pull_secrets: Sequence[str] = (),
) -> "PipelineTask":
    """Use Secrets of the pipeline's namespace in a step: by reference, and never as a parameter of the run,
    which Kubeflow Pipelines displays and stores.

    Args:
        task: a step with its own container.
        env: environment variables from keys of Secrets: `{"WANDB_API_KEY": "tracker/api-key"}`.
        volumes: Secrets to mount, a file for each key, by name: `{"tracker": "/secrets/tracker"}`.
        image_pull_secrets: Secrets for pulling the step's image.

    Returns:
        The task.

    Raises:
        WorkloadError: with all problems.
    """
    step = Step(task)
    env, volumes = env or {}, volumes or {}
    with faults_of(step) as problems:
        problems.check(
            step.has_pod,
            "it is a pipeline or an importer: give its steps their Secrets where they are created.",
        )
        problems.check(
            env or volumes or image_pull_secrets,
            "no Secret is named: write env, volumes or image_pull_secrets.",
        )
        check_secrets(env, volumes, problems)
        check_image_pull_secrets(image_pull_secrets, problems)
    step.use_secrets(env, volumes, image_pull_secrets)
    return task


_EXEMPT: Final[Mapping[Callable[..., Any], Callable[[Step], bool]]] = {
    use_pool: attrgetter("is_placed"),
    use_queue: attrgetter("is_placed"),
    retry_disruptions: attrgetter("has_retries"),
}
"""Functions that check that a step was treated individually."""


@contextmanager
def every_step(
    treat: "Callable[Concatenate[PipelineTask, _P], object]", *args: _P.args, **kwargs: _P.kwargs
) -> Generator[None]:
    """Apply a function to every step of a pipeline, or of a part of it: placement, retries, or both.

    As a decorator below `dsl.pipeline`, it applies to the whole pipeline; as a `with` block, to the steps
    that are created in the block:

        @dsl.pipeline
        @every_step(use_pool, "spot", cpu="2")
        @every_step(retry_disruptions, 5, backoff="5m")
        def training(): ...

    A step with its own placement or retries is not changed: for an exception, call `use_pool`, `use_queue` or
    `retry_disruptions` on that step. Pipelines used as steps, and importers, have no pod and are skipped: a
    nested pipeline's steps are treated where they are created.

    Args:
        treat: `use_pool`, `use_queue` or `retry_disruptions`; any other function of a task is called for
            every step.
        *args: its arguments, after the task.
        **kwargs: its keyword arguments.

    Raises:
        WorkloadError: with the problems of all steps, or if no pipeline is being defined.
    """
    before = frozenset(_tasks())
    yield
    problems = Problems()
    is_exempt = _EXEMPT.get(treat)
    for name, task in _tasks().items():
        step = Step(task)
        if name not in before and step.has_pod and not (is_exempt and is_exempt(step)):
            with problems.collecting():
                treat(task, *args, **kwargs)
    problems.end()


def _tasks() -> "Mapping[str, PipelineTask]":
    """Return the tasks of the pipeline that is being defined, by name.

    Raises:
        WorkloadError: no pipeline is being defined.
    """
    from kfp.dsl.pipeline_context import Pipeline  # noqa: PLC0415

    pipeline = Pipeline.get_default_pipeline()
    if pipeline is None:
        raise WorkloadError(
            "every_step treats the steps of a pipeline: use it inside of a function that dsl.pipeline "
            "decorates, or as a decorator below dsl.pipeline."
        )
    return pipeline.tasks
