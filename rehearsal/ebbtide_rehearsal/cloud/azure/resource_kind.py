"""A resource type of Azure, and a resource requested of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ebbtide.recording.answers_azure import RESOURCES
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
        api_version: that azure-native 3.29 uses for it.
        parent: token of the type that it is below; empty for what is in a resource group or a scope.
        inside: properties that hold resources with a type of their own; where the program omits them,
            azure-native leaves them alone.
        unknown: paths in the inputs that only Azure knows.
    """

    api_version: str
    parent: str = ""
    inside: Sequence[str] = ()
    unknown: Sequence[str] = ()

    @property
    def path(self) -> str:
        """The form of its ids, with names of inputs; the last one names the resource."""
        return RESOURCES[self.type].id
