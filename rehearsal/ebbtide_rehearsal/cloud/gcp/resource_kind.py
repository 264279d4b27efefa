"""Resource types of Google Cloud."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ebbtide_rehearsal.cloud.core import resource_kind
from ebbtide_rehearsal.cloud.gcp.request import GoogleCloud, Request
from ebbtide_rehearsal.cloud.provider import Failure, Properties

Rule: TypeAlias = resource_kind.Rule[Request]


@dataclass(frozen=True, kw_only=True)
class ResourceKind(resource_kind.ResourceKind[Request, GoogleCloud]):
    """A resource type of Google Cloud.

    Attributes:
        autonamed: property that defaults to a name derived from the logical name; empty for none.
        maps: paths of maps that are read back completely, including the cloud's additions.
        conflicts: returns the provider's refusals of combinations of properties.
        failing: prefix of the API's message if a resource is not created.
        already_exists: returns the message for an existing id; None if creating it again has no effect.
        unfinished: returns the error of a resource that was created nevertheless; None for none.
    """

    autonamed: str = ""
    maps: frozenset[str] = frozenset()
    conflicts: Callable[[Properties], Iterator[Failure]] = lambda _inputs: iter(())
    failing: str = ""
    already_exists: Callable[[str], str] | None = None
    unfinished: Callable[[Request], str | None] = lambda _request: None
