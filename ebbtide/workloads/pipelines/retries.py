"""Steps that run again when their node was taken away."""

import math
from datetime import timedelta
from typing import TYPE_CHECKING

from ebbtide.workloads.amounts import in_words, seconds
from ebbtide.workloads.pipelines.faults import faults_of
from ebbtide.workloads.pipelines.steps import Step

if TYPE_CHECKING:
    from kfp.dsl import PipelineTask


def retry_disruptions(
    task: "PipelineTask",
    attempts: int = 5,
    backoff: str | timedelta = "30s",
    *,
    factor: float = 1.0,
    longest: str | timedelta = "7d",
) -> "PipelineTask":
    """Run a step again when it was disrupted.

    The defaults differ from kfp's own in two ways. kfp doubles each wait, and gives up an hour after the
    first attempt began, however often it may still try: a training step that is preempted after 65 minutes
    would not be run again at all (Argo, operator.go: the deadline counts from the first attempt's start).

    What counts as a disruption is the cluster's to say: a compiled pipeline has no place for it. Where
    Ebbtide installs Kubeflow Pipelines, it is a pod that vanished or whose node was shut down or evicted it,
    and ordinary failures too where `addons.pipelines` says `retry: any`. Kubeflow Pipelines 2.17.0 as it
    comes retries neither a node's shutdown in order nor an exit code (kubeflow/pipelines#13485, 2026-06).

    In a step, no handler for SIGTERM is told in time: kfp's launcher ends first. Save checkpoints as it goes.

    Args:
        task: a step with a container of its own.
        attempts: how often it is run again.
        backoff: how long after a disruption; waiting for a node comes on top.
        factor: what each further wait is multiplied with.
        longest: for how long after the first attempt began; all waits and all work lie in it.

    Returns:
        The task.

    Raises:
        WorkloadError: with all that is wrong.
    """
    step = Step(task)
    wait = until = 0
    with faults_of(step) as problems:
        problems.check(
            step.has_pod, "it is a pipeline or an importer: set the retries of its steps where they are made."
        )
        problems.check(attempts >= 1, f"attempts is {attempts}; write 1 or more.")
        problems.check(
            factor >= 1 and math.isfinite(factor), f"factor is {factor}; write 1, for equal waits, or more."
        )
        with problems.collecting():
            wait = seconds("backoff", backoff)
        with problems.collecting():
            until = seconds("longest", longest)
        if not problems.found:
            begun = _begun(attempts, wait, factor, until)
            problems.check(
                begun == attempts,
                f"with waits from {in_words(wait)} on, each {factor:g} times the one before, {begun} of "
                f"{attempts} attempts begin within the {in_words(until)} in which it is retried: say a "
                "higher longest, or wait less.",
            )
    step.retry(attempts, wait, factor, until)
    return task


def _begun(attempts: int, wait: float, factor: float, until: int) -> int:
    """How many attempts begin in time, were no time spent on any of them."""
    passed = 0.0
    for begun in range(attempts):
        passed += wait
        if passed >= until:
            return begun
        wait *= factor
    return attempts
