"""Pod admission to a pool, derived from its taints."""

from typing import Final

from ebbtide.declaration.catalog import CloudKind
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.text import and_list

_SOFT: Final = "PreferNoSchedule"
_DEVICES: Final = {"nvidia.com/gpu", "google.com/tpu"}


def admits(pool: ResolvedPool) -> str:
    """Describe which pods the scheduler admits to a pool, as a sentence without a full stop.

    On GKE, pods that request a device get the toleration of its taint automatically (admission controller
    `ExtendedResourceToleration`; GKE docs, gpus). No other known platform does this.
    """
    taints = pool.labels_and_taints.all_taints
    hard = [taint for taint in taints if taint.effect != _SOFT]
    soft = [taint for taint in taints if taint.effect == _SOFT]
    requested = [taint.key for taint in hard if pool.site.cloud is CloudKind.GKE and taint.key in _DEVICES]
    tolerated = [taint for taint in hard if taint.key not in requested]
    needs = [
        *([f"request {and_list(requested)}"] if requested else []),
        *([f"tolerate {and_list(tolerated)}"] if tolerated else []),
    ]
    sentence = f"only pods that {' and '.join(needs)}" if needs else "any pod"
    return f"{sentence}, rather those that tolerate {and_list(soft)}" if soft else sentence
