"""Warnings during the compilation of a pipeline."""

import warnings
from collections.abc import Iterable, Iterator
from typing import Final

from ebbtide import durations
from ebbtide.placement import PoolProfile
from ebbtide.workloads.pipelines.requirements import Requirements
from ebbtide.workloads.pipelines.steps import Step

LONG: Final = 3600
"""Duration in seconds from which a step is long: an hour of work is worth a retry."""
_AGAIN: Final = "call retry_disruptions before it is placed"


class PlacementWarning(UserWarning):
    """A step can run, but may not finish on its pools."""


def warn(step: Step, pools: Iterable[PoolProfile], requirements: Requirements) -> None:
    """Warn about the consequences of a step's expected duration on its pools, without duplicates."""
    if requirements.lasts is None:
        return
    messages = [text for pool in pools for text in _on(pool, step, requirements, requirements.lasts)]
    # The call of use_pool or use_queue is two frames up.
    for text in dict.fromkeys((*messages, *_retried(step, requirements.lasts))):
        warnings.warn(f"Step {step.name} {text}", PlacementWarning, stacklevel=3)


def _on(pool: PoolProfile, step: Step, requirements: Requirements, lasts: int) -> Iterator[str]:
    length = durations.in_one_unit(lasts)
    if pool.interruptible and lasts >= LONG and not (step.has_retries or requirements.checkpoints):
        yield (
            f"lasts {length} on {pool.capacity} pool {pool.name} without retries or checkpoints, so a "
            f"preemption ends the run: {_AGAIN}, and set checkpoints=True once it saves them."
        )
    limit = pool.max_run_seconds
    if limit is not None and lasts > limit and not (step.has_retries and requirements.checkpoints):
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
