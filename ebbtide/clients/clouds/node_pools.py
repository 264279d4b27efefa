"""Sizes of node pools on Google Cloud."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class NodePoolSize:
    """The size of a GKE node pool when its cluster runs.

    Attributes:
        name: the pool's name.
        autoscaling: the API's `NodePoolAutoscaling`; empty for a fixed count.
        count: nodes in each zone to start with.
    """

    name: str
    autoscaling: Mapping[str, Any] = field(default_factory=dict[str, Any])
    count: int = 0
