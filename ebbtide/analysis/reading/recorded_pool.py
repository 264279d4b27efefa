"""A node pool, read from the inputs of its resource."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from ebbtide.declaration.catalog import Machine
from ebbtide.declaration.model.labels_and_taints import LabelsAndTaints
from ebbtide.declaration.model.resolved_pool import ResolvedPool

FindMachine: TypeAlias = Callable[[str], Machine | None]
"""Returns the machine type of a name; None if it is unknown."""


class RecordedPool(ResolvedPool):
    """A resolved pool of a recorded or deployed resource. Its labels and taints are those of the resource."""

    cluster: str
    """Name of its cluster."""
    urn: str = ""
    """Its resource; the cluster's for an inline pool."""
    inline: bool = False
    """True if it is part of its cluster's resource."""
    initial_nodes: int | None = None
    """Node count at creation; None if the cloud starts at the minimum."""
    run_limit: int | None = None
    """Maximum lifetime of a node in seconds; None for no limit."""
    billing: dict[str, str]
    """Billing labels, which Azure calls tags."""

    @property
    def max_run_seconds(self) -> int | None:
        """Maximum lifetime of a node in seconds, which overrides can set for any capacity type."""
        return self.run_limit

    @property
    def max_nodes(self) -> int:
        """Maximum number of nodes; the minimum if the maximum is unknown."""
        return super().max_nodes or self.idle_nodes

    @cached_property
    def labels_and_taints(self) -> LabelsAndTaints:
        """Labels and taints of its nodes."""
        return replace(super().labels_and_taints, labels=self.labels, taints=self.taints or ())
