"""A resource type of Google Cloud."""

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
        autonamed: the property that is made of the logical name where none is given; empty for none.
        maps: paths of maps that are read back whole, whatever the cloud has added to them.
        conflicts: what the provider refuses of several properties together.
        failing: what precedes a message of the API when a resource is not created.
        taken: the message for an id that exists; None where creating it again does nothing.
        unfinished: what is wrong with a resource that was created all the same; None for nothing.
    """

    autonamed: str = ""
    maps: frozenset[str] = frozenset()
    conflicts: Callable[[Properties], Iterator[Failure]] = lambda _inputs: iter(())
    failing: str = ""
    taken: Callable[[str], str] | None = None
    unfinished: Callable[[Request], str | None] = lambda _request: None
