"""Resource types of Azure, and requests for their resources."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ebbtide.analysis.recording.assumed_azure import RESOURCES
from ebbtide_rehearsal.cloud.azure.arm import Arm
from ebbtide_rehearsal.cloud.core import resource_kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(resource_kind.BaseRequest[Arm]):
    """A resource to be created or updated on Azure."""

    def preserved(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the value that Azure chose at creation; for a new resource, choose it."""
        return self.old.state[name] if self.old is not None and name in self.old.state else make()


Rule: TypeAlias = resource_kind.Rule[Request]


@dataclass(frozen=True, kw_only=True)
class ResourceKind(resource_kind.ResourceKind[Request, Arm]):
    """A resource type of Azure.

    Attributes:
        api_version: API version in azure-native 3.29.
        parent: token of the parent's type; empty for a resource in a resource group or a scope.
        inside: properties with resources that also have a separate type; azure-native does not change them
            if the program omits them.
        unknown: paths in the inputs that only Azure knows.
    """

    api_version: str
    parent: str = ""
    inside: Sequence[str] = ()
    unknown: Sequence[str] = ()

    @property
    def path(self) -> str:
        """Template of its ids, with names of inputs; the last one is the resource's name."""
        return RESOURCES[self.type].id
