"""The default scenario of a stack, built from its declaration."""

from typing import Any

from ebbtide.declaration.model import Cluster
from ebbtide_rehearsal.scenarios.model import Scenario

_STARTING = 240.0  # wall-clock seconds for each Job, including node startup
_IDLE = 120.0  # wall-clock seconds until every work pool is scaled down to zero


def general(cluster: Cluster) -> Scenario:
    """Build the scenario: up, refresh and up without changes, a Job on every work pool, scale-down of all
    pools to their minimum, destroy.

    Args:
        cluster: the declaration.
    """
    work = [pool for pool in cluster.pools if not pool.is_system]
    steps: list[dict[str, Any]] = [{"do": "up"}, {"do": "up", "unchanged": True, "refresh": True}]
    if work:
        steps += [
            {"do": "every-pool"},
            {"do": "expect", "within": _STARTING, "that": {"jobs": {"succeeded": len(work)}}},
            {
                "do": "expect",
                "within": _IDLE,
                "that": {"nodes": {pool.name: pool.nodes.min for pool in work}},
            },
        ]
    if cluster.lifetime is None:
        steps += [
            {"do": "destroy", "refused": "protect"},
            {"do": "up", "change": {"lifetime": {"hours": 1}}},
        ]
    steps += [{"do": "destroy"}]
    return Scenario.model_validate(
        {
            "title": f"{cluster.name} is created, runs a Job on every work pool, and is destroyed",
            "steps": steps,
        }
    )
