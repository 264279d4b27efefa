"""Retries of steps that lost their node."""

import math
import os
import warnings
from datetime import timedelta
from typing import TYPE_CHECKING

from ebbtide.placement import Profile
from ebbtide.placement.profile import UNCONFIGURED, UNKNOWN
from ebbtide.placement.profile_sources import VARIABLE
from ebbtide.values import durations
from ebbtide.work.amounts import seconds
from ebbtide.work.pipelines.faults import faults_of
from ebbtide.work.pipelines.pools import PlacementWarning
from ebbtide.work.pipelines.steps import Step

if TYPE_CHECKING:
    from kfp.dsl import PipelineTask


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
