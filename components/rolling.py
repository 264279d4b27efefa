"""Node pools that `ebbtide up` replaces without ending their work.

For one run of the engine it adds `ebbtide:replacements` to the stack's configuration: for each pool, the
replacement's name in the cloud, and the nodes and inputs that the pool has. In that run the program declares
the pool as it is, without its autoscaler, and the replacement beside it. Both have the same labels and
taints, so that queues and work accept the nodes of both.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from ebbtide.model import Pool
from ebbtide.placement.replacements import CONFIG, NAMESPACE
from ebbtide.provider_schema import properties


@dataclass(frozen=True, slots=True)
class Replacement:
    """A replacement of a node pool.

    Attributes:
        name: the replacement's name in the cloud.
        nodes: the number of nodes that the replaced pool has.
        inputs: inputs of the replaced pool's component. The engine keeps a component's inputs in the state,
            whatever changes are ignored (run with pulumi 3.259), and they tell that it is replaced.
    """

    name: str
    nodes: int
    inputs: Mapping[str, Any]


def replacements() -> Mapping[str, Replacement]:
    """Return the replacements of this run, by pool; none in a run without that configuration."""
    configured: Mapping[str, Mapping[str, Any]] = pulumi.Config(NAMESPACE).get_object(CONFIG) or {}
    return {pool: Replacement(**item) for pool, item in configured.items()}


def drain_input(pool: Pool) -> dict[str, Any]:
    """Return the component's input that `ebbtide up` reads: the time for work to finish."""
    seconds = None if pool.drain_timeout is None else int(pool.drain_timeout.total_seconds())
    return {} if seconds is None else {"drainTimeoutSeconds": seconds}


def all_but(token: str, kept: frozenset[str]) -> list[str]:
    """Return the inputs of a resource type without some of them, for `ignore_changes`."""
    return sorted(properties(token).keys() - kept)
