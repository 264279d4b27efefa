"""What a type of Azure's resources is here: a row of data, and functions for what data cannot say."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ebbtide_rehearsal.cloud.azure.arm import Arm
from ebbtide_rehearsal.cloud.provider import RefusedError
from ebbtide_rehearsal.cloud.store import Resource


@dataclass(frozen=True, slots=True)
class Limit:
    """What azure-native's schema says of a value. It is checked before anything is planned.

    Attributes:
        pattern: of a text; empty for any.
        shortest: characters.
        longest: characters; None for no end.
        least: of a number.
        most: of a number.
    """

    pattern: str = ""
    shortest: int = 0
    longest: int | None = None
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """What a resource is asked to be.

    Attributes:
        id: in Azure Resource Manager's form.
        urn: the engine's name for it.
        inputs: what was asked for, as far as the schema has it.
        was: as it is; None where it is to be made.
    """

    id: str
    urn: str
    inputs: Mapping[str, Any]
    was: Resource | None = None

    def kept(self, name: str, make: Callable[[], Any]) -> Any:
        """What Azure gave it when it was made; made now where it is new."""
        return self.was.state[name] if self.was is not None and name in self.was.state else make()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that Azure refuses when a resource is made or changed.

    Attributes:
        name: the rule, in a few words.
        source: where it is written down.
        says: Azure's error; None where the rule is kept.
    """

    name: str
    source: str
    says: Callable[[Arm, Wish], RefusedError | None]


def _nothing(_arm: Arm, _wish: Wish) -> Mapping[str, Any]:
    return {}


def _happens(_arm: Arm, _wish: Wish, _made: Resource) -> None:
    return


def _leaving(_arm: Arm, _resource: Resource) -> None:
    return


def _as_it_is(_arm: Arm, resource: Resource) -> Mapping[str, Any]:
    return resource.state


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A type of resources.

    Attributes:
        token: the engine's name of it, such as `azure-native:network:Subnet`.
        api_version: that azure-native 3.29 speaks for it.
        path: form of its ids, with names of inputs; the last one names the resource.
        parent: token of the type that it is below; empty for what is in a resource group or a scope.
        needed: properties that Azure needs and the SDK does not.
        replaces: paths of properties for which azure-native makes the resource anew, beside those in the
            path; `[]` stands for an item of a list.
        limits: by path, likewise.
        defaults: what Azure takes what is left out for.
        inside: properties that hold resources with a type of their own; where the program leaves them out,
            azure-native leaves them alone.
        unknown: paths in it that only Azure knows, though what they are in is asked for.
        refusals: what Azure refuses, the first that applies.
        outputs: the state that is not asked for.
        happens: what else happens when it is made or changed, once it is there.
        leaving: what else happens before it goes; raises RefusedError where it cannot.
        seen: its state when it is read.
        events: as what its coming and going stands in the timeline; empty where it does not.
    """

    token: str
    api_version: str
    path: str
    parent: str = ""
    needed: Sequence[str] = ()
    replaces: frozenset[str] = frozenset()
    limits: Mapping[str, Limit] = field(default_factory=dict[str, Limit])
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    inside: Sequence[str] = ()
    unknown: Sequence[str] = ()
    refusals: Sequence[Refusal] = ()
    outputs: Callable[[Arm, Wish], Mapping[str, Any]] = _nothing
    happens: Callable[[Arm, Wish, Resource], None] = _happens
    leaving: Callable[[Arm, Resource], None] = _leaving
    seen: Callable[[Arm, Resource], Mapping[str, Any]] = _as_it_is
    events: str = ""
