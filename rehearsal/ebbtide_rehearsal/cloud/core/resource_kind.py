"""Resource types of a fake cloud: data, and functions where data does not suffice."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from ebbtide.analysis.reading.facts import Inputs
from ebbtide.declaration.providers.constraints import Constraints, constraints_of
from ebbtide_rehearsal.cloud.clusters import Clusters
from ebbtide_rehearsal.cloud.store import Resource, Store


class Cloud(Protocol):
    """A fake cloud."""

    @property
    def store(self) -> Store:
        """Store of its resources."""
        ...

    @property
    def clusters(self) -> Clusters:
        """Control planes of its clusters."""
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
        id: id of the resource; empty in a preview.
        urn: URN of the resource; empty if the engine does not know it.
        inputs: inputs as received by the cloud.
        old: the existing resource of an update, else None.
    """

    cloud: CloudT
    type: str
    id: str = ""
    urn: str = ""
    inputs: Mapping[str, Any]
    old: Resource | None = None

    @property
    def fields(self) -> Inputs:
        """Inputs, for access by path."""
        return Inputs(self.inputs)


RequestT = TypeVar("RequestT", bound=BaseRequest[Any])


@dataclass(frozen=True)  # not slotted, since an alias of it is called
class Rule(Generic[SubjectT_contra]):
    """A refusal of the cloud's API when a resource is created or updated.

    Attributes:
        name: short statement of the rule.
        source: its documentation.
        refusal: returns the API's message; None if the rule is satisfied.
    """

    name: str
    source: str
    refusal: Callable[[SubjectT_contra], str | None]


def first_refusal(rules: Sequence[Rule[SubjectT]], subject: SubjectT) -> str | None:
    """Return the message of the first broken rule; None for none."""
    return next((message for rule in rules if (message := rule.refusal(subject)) is not None), None)


def _nothing(*_: Any) -> None:
    return


def _no_properties(*_: Any) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, kw_only=True)
class ResourceKind(Generic[RequestT, CloudT]):
    """A resource type.

    Attributes:
        type: type token, such as `gcp:container/nodePool:NodePool`.
        rules: rules of the API, in the order of their check.
        outputs: returns the part of the state that is not among the inputs.
        apply: further effects of a creation or update, called once the resource is stored; an exception
            reverts the change.
        current: returns the part of the state that changes by itself.
        before_delete: returns why a resource cannot be deleted; else prepares the deletion and returns None.
        after_delete: further effects of a deletion.
        events: noun for its changes in the timeline; empty for no events.
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
        """Constraints of its properties."""
        return constraints_of(self.type)
