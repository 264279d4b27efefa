"""Steps of Kubeflow Pipelines that land on the pools and survive a preemption (kfp 2.17).

Everything happens when the pipeline is compiled: what cannot run there is a `WorkloadError` with all that is
wrong, and what will probably not end well is a `PlacementWarning`. kfp itself is imported when the first step
is placed, by which time the code that made the step has loaded it.
"""

from ebbtide.workloads.pipelines.installed import require
from ebbtide.workloads.pipelines.pools import use_pool
from ebbtide.workloads.pipelines.queues import use_queue
from ebbtide.workloads.pipelines.retries import retry_disruptions
from ebbtide.workloads.pipelines.secrets import use_secrets
from ebbtide.workloads.pipelines.storage import use_identity, use_volume
from ebbtide.workloads.pipelines.warned import PlacementWarning
from ebbtide.workloads.pipelines.whole import every_step

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
