"""A resource type of a fake cloud: data, and functions for what data cannot express."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from ebbtide.providers.constraints import Constraints, constraints_of
from ebbtide.reading.inputs import Inputs
from ebbtide_rehearsal.cloud.clusters import Clusters
from ebbtide_rehearsal.cloud.store import Resource, Store


class Cloud(Protocol):
    """A fake cloud."""

    @property
    def store(self) -> Store:
        """The resources in it."""
        ...

    @property
    def clusters(self) -> Clusters:
        """The control planes of its clusters."""
        ...


CloudT = TypeVar("CloudT", bound=Cloud)
SubjectT = TypeVar("SubjectT")
SubjectT_contra = TypeVar("SubjectT_contra", contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseRequest(Generic[CloudT]):
    """A resource to be created or updated.

    Attributes:
        cloud: the fake cloud.
        type: token of the type.
        id: the resource's id; empty in a preview.
        urn: the engine's name of it; empty where the engine does not know it.
        inputs: as the cloud receives them.
        old: the existing resource, where it is updated.
    """

    cloud: CloudT
    type: str
    id: str = ""
    urn: str = ""
    inputs: Mapping[str, Any]
    old: Resource | None = None

    @property
    def fields(self) -> Inputs:
        """The inputs, to be read by path."""
        return Inputs(self.inputs)


RequestT = TypeVar("RequestT", bound=BaseRequest[Any])


@dataclass(frozen=True)  # not slotted, since an alias of it is called
class Rule(Generic[SubjectT_contra]):
    """A refusal of the cloud's API when a resource is created or updated.

    Attributes:
        name: the rule, in a few words.
        source: where it is documented.
        refusal: returns the API's message; None where the rule is kept.
    """

    name: str
    source: str
    refusal: Callable[[SubjectT_contra], str | None]


def first_refusal(rules: Sequence[Rule[SubjectT]], subject: SubjectT) -> str | None:
    """Return the message of the first rule that is broken; None for none."""
    return next((message for rule in rules if (message := rule.refusal(subject)) is not None), None)


def _nothing(*_: Any) -> None:
    return


def _no_properties(*_: Any) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, kw_only=True)
class ResourceKind(Generic[RequestT, CloudT]):
    """A resource type.

    Attributes:
        type: its token, such as `gcp:container/nodePool:NodePool`.
        rules: what the API refuses, in the order in which it looks.
        outputs: the state that is not among the inputs, of a request.
        apply: what else happens when a resource is created or updated, once it is stored; what it raises
            undoes the change.
        current: the part of the state that changes by itself.
        before_delete: why a resource cannot be deleted, or what happens before it is; None where it can be.
        after_delete: what else goes with a resource.
        events: the noun under which its changes are in the timeline; empty where they are not.
    """

    type: str
    rules: Sequence[Rule[RequestT]] = ()
    outputs: Callable[[RequestT], Mapping[str, Any]] = _no_properties
    apply: Callable[[RequestT, Resource], None] = _nothing
    current: Callable[[CloudT, Resource], Mapping[str, Any]] = _no_properties
    before_delete: Callable[[CloudT, Resource], str | None] = _nothing
    after_delete: Callable[[CloudT, Resource], None] = _nothing
    events: str = ""

    @property
    def constraints(self) -> Constraints:
        """The constraints of its properties."""
        return constraints_of(self.type)
