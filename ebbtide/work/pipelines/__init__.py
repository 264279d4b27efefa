"""Steps of Kubeflow Pipelines that run on the pools and survive a preemption (kfp 2.17).

All checks happen at compile time: steps that cannot run raise a `WorkloadError` with all problems, and steps
that probably fail get a `PlacementWarning`. kfp is imported when the first step is placed; by then, the code
that created the step has loaded it.
"""

from ebbtide.work.pipelines.placement import PlacementWarning, use_pool, use_queue
from ebbtide.work.pipelines.steps import require
from ebbtide.work.pipelines.treatment import (
    every_step,
    retry_disruptions,
    use_identity,
    use_secrets,
    use_volume,
)

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
