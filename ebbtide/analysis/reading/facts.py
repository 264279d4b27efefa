"""Facts about clusters, queues and pools, in common terms for both clouds, and the inputs that have them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from pydantic import Field

from ebbtide.analysis.recording.values import Plain, at, revealed
from ebbtide.declaration.catalog.machines import Machine
from ebbtide.declaration.model.base import Declared
from ebbtide.declaration.model.labels_and_taints import LabelsAndTaints
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.documents import DocumentPart

_Part = TypeVar("_Part", bound=Declared)
FindMachine: TypeAlias = Callable[[str], Machine | None]
"""Returns the machine type of a name; None if it is unknown."""


class QuotaFacts(DocumentPart):
    """A ClusterQueue's quota of a resource of a flavor."""

    flavor: str
    """Name of the ResourceFlavor."""
    pool: str = ""
    """Pool that the flavor selects; empty for alternative pools."""
    resource: str
    """`cpu`, or the resource name of an accelerator, such as `nvidia.com/gpu`."""
    nominal: float
    """Guaranteed quota."""
    cohort: float
    """Its own guarantee, and what the rest of the cohort lends."""
    borrowing_limit: float | None
    """Borrowing limit; null for no limit."""

    @property
    def most(self) -> float:
        """The maximum that the queue can use: its guarantee, and what it may borrow."""
        borrowed = self.cohort - self.nominal
        return self.nominal + (
            borrowed if self.borrowing_limit is None else min(borrowed, self.borrowing_limit)
        )


class QueueFacts(DocumentPart):
    """A ClusterQueue."""

    name: str
    """Name."""
    local_queues: tuple[str, ...]
    """LocalQueues, as `namespace/name`."""
    cohort: str
    """Cohort; empty for none."""
    weight: str
    """Weight in fair sharing."""
    quotas: tuple[QuotaFacts, ...]
    """Quotas of CPU and accelerators, in order of preference."""


class ClusterFacts(DocumentPart):
    """A cluster, as its resource has it."""

    name: str
    """Name in the cloud."""
    cloud: CloudKind
    """`gke` or `aks`."""
    location: str
    """Zone or region."""
    settings: tuple[str, ...] = ()
    """Remarks for a reviewer, of a few words each."""
    overrides: dict[str, Any] = Field(default_factory=dict)
    """Inputs of the cluster's resource that the declaration overrides, by path."""
    urn: str
    """The cluster's resource."""


class Inputs:
    """The inputs of a resource, or of a part of it, by property path."""

    def __init__(self, values: Mapping[str, Plain]) -> None:
        self._values = dict(values)

    def value(self, path: str) -> Plain:
        """Return a value; None if absent."""
        return revealed(at(self._values, path))

    def text(self, path: str) -> str:
        """Return text; empty if absent or unknown."""
        value = self.value(path)
        return value if isinstance(value, str) else ""

    def number(self, path: str) -> int | None:
        """Return an integer; None if absent."""
        value = self.value(path)
        return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def amount(self, path: str) -> float | None:
        """Return a number; None if absent."""
        value = self.value(path)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def flag(self, path: str) -> bool:
        """Return a boolean; false if absent."""
        return self.value(path) is True

    def is_false(self, path: str) -> bool:
        """Return whether the value is a boolean false; false if absent."""
        return self.value(path) is False

    def has(self, path: str) -> bool:
        """Return whether the path exists."""
        return self.value(path) is not None

    def texts(self, path: str) -> tuple[str, ...]:
        """Return a list of text."""
        value = self.value(path)
        return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()

    def labels(self, path: str) -> dict[str, str]:
        """Return a map of text to text."""
        value = self.value(path)
        items = value.items() if isinstance(value, dict) else ()
        return {key: item for key, item in items if isinstance(item, str)}

    def parts(self, path: str) -> tuple["Inputs", ...]:
        """Return a list of objects."""
        return tuple(map(Inputs, self.objects(path)))

    def objects(self, path: str) -> tuple[dict[str, Plain], ...]:
        """Return a list of objects as they are."""
        value = self.value(path)
        return tuple(item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()


def part(model: type[_Part], values: Mapping[str, Any], **defaults: Any) -> _Part | None:
    """Return a part of a pool with the values that are present; None if there are none."""
    known = {name: value for name, value in values.items() if value is not None}
    return model.model_construct(**defaults | known) if known else None


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
