"""How a resource type of Google Cloud behaves, as a table's row: what is the same for all of them is in
`provider`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ebbtide_rehearsal.cloud.gcp.asked import Asked, World
from ebbtide_rehearsal.cloud.provider import Failure, Properties
from ebbtide_rehearsal.cloud.store import Resource


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that the API refuses when a resource is made or changed.

    Attributes:
        name: the rule, in a few words.
        source: where it is written down.
        says: the API's message, with its code; None where the rule is kept.
    """

    name: str
    source: str
    says: Callable[[Asked], str | None]


@dataclass(frozen=True, slots=True)
class Check:
    """Something that the provider itself refuses, before anything is planned.

    Attributes:
        path: the property that it looks at, without indices: `nodeConfig.taints.effect`.
        source: where it is written down.
        says: what is wrong with a value; None where nothing is.
    """

    path: str
    source: str
    says: Callable[[Any], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A resource type.

    Attributes:
        identity: its id in the provider.
        outputs: the state that is not asked for, laid over the inputs object by object.
        autonamed: the property that is made of the logical name where none is given; empty for none. A
            resource whose name is given goes before its replacement comes, since both cannot have it.
        defaults: what the provider fills in, by path; within an object only where that is there.
        replaces: paths, without indices, that only a new resource can have; the provider's ForceNew.
        blocks: paths of objects that cannot come or go later either, though what is in them may change.
        replaced_if: paths that a new resource has to have for some changes alone, by the old and new value.
        same: paths of references that are the same where they end in the same name.
        computed: top-level properties that the cloud decides where they are omitted: leaving one out changes
            nothing, and writing one is compared with the state (Terraform's Optional and Computed).
        maps: paths of maps that are read back whole, whatever the cloud has added to them.
        overlooked: whether a difference at a path is none, by the path, the old and the new value.
        checks: what the provider refuses.
        checked: what else it refuses, that several properties together break.
        refusals: what the API refuses.
        failing: what a message of the API is put behind when it refuses to make one, such as
            `Error creating Network`.
        taken: the message where there is one of that id already, by the id; None where making it again does
            nothing.
        leaving: why it cannot be deleted; None where it can.
        happens: what else happens when it is made or changed, by its id, just before it is there.
        unfinished: what is wrong with one that was made, and is there all the same, by its id; None where
            nothing is.
        gone: what else happens once it is deleted.
        current: the part of its state that changes by itself, as it is now.
        events: whether its coming and going stands in the timeline, and as what.
    """

    identity: Callable[[Asked], str]
    outputs: Callable[[Asked], Mapping[str, Any]] = lambda _asked: {}
    autonamed: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict[str, Any])
    replaces: frozenset[str] = frozenset()
    blocks: frozenset[str] = frozenset()
    replaced_if: Mapping[str, Callable[[Any, Any], bool]] = field(
        default_factory=dict[str, Callable[[Any, Any], bool]]
    )
    same: frozenset[str] = frozenset()
    computed: frozenset[str] = frozenset()
    maps: frozenset[str] = frozenset()
    overlooked: Callable[[str, Any, Any], bool] = lambda _path, _old, _new: False
    checks: Sequence[Check] = ()
    checked: Callable[[Properties], Iterator[Failure]] = lambda _inputs: iter(())
    refusals: Sequence[Refusal] = ()
    failing: str = ""
    taken: Callable[[str], str] | None = None
    leaving: Callable[[World, Resource], str | None] = lambda _world, _resource: None
    happens: Callable[[Asked, str], None] = lambda _asked, _identity: None
    unfinished: Callable[[Asked, str], str | None] = lambda _asked, _identity: None
    gone: Callable[[World, Resource], None] = lambda _world, _resource: None
    current: Callable[[World, Resource], Mapping[str, Any]] = lambda _world, _resource: {}
    events: str = ""


def one_of(path: str, *values: str, source: str) -> Check:
    """A property that has one of a few values (Terraform's `StringInSlice`)."""

    def says(value: Any) -> str | None:
        if value in values:
            return None
        listed = " ".join(f'"{one}"' for one in values)
        return f"expected {path} to be one of [{listed}], got {value}"

    return Check(path, source, says)


def at_least(path: str, least: int, *, source: str) -> Check:
    """A number that is not below another (Terraform's `IntAtLeast`)."""

    def says(value: Any) -> str | None:
        return None if float(value) >= least else f"expected {path} to be at least ({least}), got {value}"

    return Check(path, source, says)
