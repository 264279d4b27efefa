"""Steps of Kubeflow Pipelines that run on the pools and survive a preemption (kfp 2.17).

All checks happen at compile time: steps that cannot run raise a `WorkloadError` with all problems, and steps
that probably fail get a `PlacementWarning`. kfp is imported when the first step is placed; by then, the code
that created the step has loaded it.
"""

from ebbtide.workloads.pipelines.all_steps import every_step
from ebbtide.workloads.pipelines.pools import PlacementWarning, use_pool
from ebbtide.workloads.pipelines.queues import use_queue
from ebbtide.workloads.pipelines.retries import retry_disruptions
from ebbtide.workloads.pipelines.secrets import use_secrets
from ebbtide.workloads.pipelines.steps import require
from ebbtide.workloads.pipelines.storage import use_identity, use_volume

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
