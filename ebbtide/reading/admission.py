"""Pod admission to a pool, derived from its taints."""

from collections.abc import Iterable
from typing import Final

from ebbtide.catalog import CloudKind
from ebbtide.reading.facts import PoolFacts, TaintFacts

_SOFT: Final = "PreferNoSchedule"
_DEVICES: Final = {"nvidia.com/gpu", "google.com/tpu"}


def admits(pool: PoolFacts) -> str:
    """Describe which pods the scheduler admits to a pool, as a sentence without a full stop.

    On GKE, pods that request a device get the toleration of its taint automatically (admission controller
    `ExtendedResourceToleration`; GKE docs, gpus). No other known platform does this.
    """
    hard = [taint for taint in pool.taints if taint.effect != _SOFT]
    soft = [taint for taint in pool.taints if taint.effect == _SOFT]
    requested = [taint.key for taint in hard if pool.cloud is CloudKind.GKE and taint.key in _DEVICES]
    tolerated = [taint for taint in hard if taint.key not in requested]
    needs = [
        *([f"request {_joined(requested)}"] if requested else []),
        *([f"tolerate {_joined(tolerated)}"] if tolerated else []),
    ]
    sentence = f"only pods that {' and '.join(needs)}" if needs else "any pod"
    return f"{sentence}, rather those that tolerate {_joined(soft)}" if soft else sentence


def _joined(items: Iterable[str | TaintFacts]) -> str:
    *rest, last = map(str, items)
    return f"{', '.join(rest)} and {last}" if rest else last
