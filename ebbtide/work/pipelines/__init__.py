"""Steps of Kubeflow Pipelines that run on the pools and survive a preemption (kfp 2.17).

All checks happen at compile time: steps that cannot run raise a `WorkloadError` with all problems, and steps
that probably fail get a `PlacementWarning`. kfp is imported when the first step is placed; by then, the code
that created the step has loaded it.
"""

from ebbtide.work.pipelines.all_steps import every_step
from ebbtide.work.pipelines.pools import PlacementWarning, use_pool
from ebbtide.work.pipelines.queues import use_queue
from ebbtide.work.pipelines.retries import retry_disruptions
from ebbtide.work.pipelines.secrets import use_secrets
from ebbtide.work.pipelines.steps import require
from ebbtide.work.pipelines.storage import use_identity, use_volume

require()

__all__ = [
    "PlacementWarning",
    "every_step",
    "retry_disruptions",
    "use_identity",
    "use_pool",
    "use_queue",
    "use_secrets",
    "use_volume",
]
