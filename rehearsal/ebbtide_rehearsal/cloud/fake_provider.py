"""Core of the fake providers: resource types, validation, changes, and the engine's calls.

`schemas/read_back.csv` has the clouds' changes between a write and a read: `empties` (the response omits the
property if it has the other one that the row names), `uppers` (upper case); the values that a cloud fills in
are constraints of the type. If a refresh finds another value than the program's, every update shows a
difference.
"""

import csv
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from ebbtide.analysis.providers.property_path import (
    differences,
    replaced,
    top_level,
    values_at,
    with_defaults,
)
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.recording.values import Plain
from ebbtide.declaration.providers.constraints import Constraints, constraints_of
from ebbtide_rehearsal.cloud.provider import (
    Call,
    Clusters,
    Created,
    DiffResult,
    Failure,
    Properties,
    Read,
    RefusedError,
    UnfinishedError,
)
from ebbtide_rehearsal.cloud.references import Reference, referred, referring
from ebbtide_rehearsal.cloud.schema import SchemaViolation, schema_violations
from ebbtide_rehearsal.cloud.store import Resource, Store


def as_read(token: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return a resource's state as returned by its cloud."""
    result = with_defaults(state, constraints_of(token).fills)
    for path, change, value in _changes().get(token, ()):
        parent, _, name = path.rpartition(".")
        own = partial(_changed, change, value, name)
        result = replaced(result, parent, own) if parent else own(result)
    return result


def rows_of(token: str) -> tuple[str, ...]:
    """Return the properties of a type that a cloud changes, by path without indices."""
    return tuple(path for path, _, _ in _changes().get(token, ()))


def _changed(change: str, beside: str, name: str, properties: dict[str, Any]) -> dict[str, Any]:
    match change:
        case "empties" if beside in properties:
            return properties | {name: ""}
        case "uppers" if name in properties:
            return properties | {name: str(properties[name]).upper()}
        case _:
            return properties


@cache
def _changes() -> dict[str, list[tuple[str, str, str]]]:
    """Return property, change and value of each row, by type."""
    result: dict[str, list[tuple[str, str, str]]] = {}
    text = (resources.files("ebbtide_rehearsal.cloud") / "schemas" / "read_back.csv").read_text()
    for row in csv.DictReader(text.splitlines()):
        result.setdefault(row["type"], []).append((row["property"], row["change"], row["value"]))
    return result


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
        is_seeded: True to create a resource whose references do not exist.
    """

    type: str
    rules: Sequence[Rule[RequestT]] = ()
    outputs: Callable[[RequestT], Mapping[str, Any]] = _no_properties
    apply: Callable[[RequestT, Resource], None] = _nothing
    current: Callable[[CloudT, Resource], Mapping[str, Any]] = _no_properties
    before_delete: Callable[[CloudT, Resource], str | None] = _nothing
    after_delete: Callable[[CloudT, Resource], None] = _nothing
    events: str = ""
    is_seeded: bool = False

    @property
    def constraints(self) -> Constraints:
        """Constraints of its properties."""
        return constraints_of(self.type)


def change(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    *,
    is_same: Callable[[str, Plain, Plain], bool],
    needs_new: Callable[[str, Plain, Plain], bool],
    keeps_name: bool,
) -> DiffResult:
    """Return the top-level properties that differ, and those that require a replacement.

    Args:
        old: old inputs, or the values to compare with.
        new: new inputs.
        is_same: returns whether the provider ignores the difference of two values at a path.
        needs_new: returns whether the difference requires a replacement.
        keeps_name: True if both cannot exist at once, so that the old resource is deleted first.
    """
    changed: dict[str, bool] = {}
    for path, before, after in differences(dict(old), dict(new)):
        if not is_same(path, before, after):
            top = top_level(path)
            changed[top] = changed.get(top, False) or needs_new(path, before, after)
    replaces = tuple(top for top, is_replaced in changed.items() if is_replaced)
    return DiffResult(tuple(changed), replaces, delete_first=bool(replaces) and keeps_name)


class FakeProvider(ABC, Generic[RequestT, CloudT]):
    """A provider whose resources are in the store.

    Refusals have the messages of the real API; those of the provider's schema name property and limit.
    """

    package: str
    refuses_unknown: ClassVar[bool] = True
    """False for a provider that drops properties which its schema does not have."""
    kinds: ClassVar[Mapping[str, ResourceKind[Any, Any]]]

    def __init__(self, cloud: CloudT) -> None:
        """Serve a cloud as configured for a provider resource."""
        self.cloud = cloud

    def kind(self, token: str) -> ResourceKind[RequestT, CloudT]:
        """Return the kind of a type.

        Raises:
            RefusedError: the fake cloud does not have it.
        """
        kind = self.kinds.get(token)
        if kind is None:
            raise RefusedError(f"The fake cloud does not implement resources of type {token}.")
        return kind

    def check_config(self, variables: Properties) -> Sequence[Failure]:
        """See `Provider.check_config`: anything is accepted."""
        del variables
        return ()

    def change_config(self, old: Properties, new: Properties) -> DiffResult:
        """See `Provider.change_config`: nothing is replaced, since resources keep their own project or id."""
        return DiffResult(tuple(key for key in sorted({*old, *new}) if old.get(key) != new.get(key)))

    def check(self, call: Call, old: Properties, new: Properties) -> tuple[Properties, Sequence[Failure]]:
        """See `Provider.check`."""
        kind = self.kind(call.type)
        inputs = self.completed(kind, call, old, new)
        return inputs, list(self._failures(kind.constraints, call, inputs))

    def _failures(self, constraints: Constraints, call: Call, inputs: Mapping[str, Any]) -> Iterator[Failure]:
        """Yield the refusals of completed inputs by the provider's schema."""
        required = (name for name in constraints.required if inputs.get(name) is None)
        missing = (SchemaViolation(name, "missing") for name in required)
        for violation in (*schema_violations(call.type, inputs), *missing):
            if violation.problem != "unknown" or self.refuses_unknown:
                wrong = f"no {violation.expected}" if violation.problem == "type" else violation.problem
                yield Failure(violation.path, f"{call.name}: {violation.path} is {wrong}")
        for limit in constraints.limits:
            for where, value in values_at(dict(inputs), limit.path):
                if not limit.allows(value):
                    reason = f"{call.name}: {where} is {value}, against its limit: {limit.name} {limit.value}"
                    yield Failure(where, reason)

    def create(self, call: Call, inputs: Properties) -> Created:
        """See `Provider.create`."""
        kind = self.kind(call.type)
        if call.preview:
            return Created("", self.preview(kind, self.request(call, inputs)))
        request = self.request(call, inputs, self.identity(call.type, inputs))
        existing = self.find(request.id)
        message = self.already_exists(kind, existing) if existing is not None else None
        if message is not None:
            raise RefusedError(message)
        state = self.put(kind, request)
        message = self.unfinished(kind, request)
        if message is not None:
            raise UnfinishedError(message, request.id, state)
        return Created(request.id, state)

    def read(self, call: Call, identity: str, known: Properties) -> Read | None:
        """See `Provider.read`."""
        kind, resource = self.kind(call.type), self.find(identity)
        if resource is None:
            return None
        state = self.state(kind, resource)
        return Read(resource.id, self.inputs_of(kind, call, resource, known, state), state)

    def update(self, call: Call, identity: str, old: Read, new: Properties) -> Properties:
        """See `Provider.update`."""
        kind, existing = self.kind(call.type), self.find(identity)
        request = self.request(call, new, identity, existing)
        if call.preview:
            return self.preview(kind, request, old)
        return self.put(kind, request)

    def delete(self, call: Call, identity: str, known: Properties) -> None:
        """See `Provider.delete`."""
        del known
        kind, resource = self.kind(call.type), self.find(identity)
        if resource is None:
            return
        message = self.delete_refusal(kind, resource)
        if message is not None:
            raise RefusedError(message)
        self.remove(resource)
        kind.after_delete(self.cloud, resource)
        self._record(kind, resource.id, "deleted")

    def put(self, kind: ResourceKind[RequestT, CloudT], request: RequestT) -> Properties:
        """Create or update a resource, and return its state.

        Raises:
            RefusedError: it breaks a rule; nothing has changed.
        """
        message = self._missing(kind, request) or first_refusal(kind.rules, request)
        if message is not None:
            raise RefusedError(self.refusal(kind, request, message))
        store = self.cloud.store
        state = self.new_state(kind, request)
        resource = Resource(self.package, request.id, kind.type, request.urn, request.inputs, state)
        store.put(resource)
        try:
            kind.apply(request, resource)
        except BaseException:
            if request.old is None:
                store.remove(self.package, request.id)
            else:
                store.put(request.old)
            raise
        self._record(kind, request.id, "created" if request.old is None else "changed")
        return self.written_state(kind, self.find(request.id) or resource)

    def _missing(self, kind: ResourceKind[RequestT, CloudT], request: RequestT) -> str | None:
        """Return the message for the first reference to a resource that does not exist; those that the
        existing resource has already are not checked again."""
        if kind.is_seeded:
            return None
        existing = set(referred(request.type, request.old.inputs if request.old else {}))
        for reference, text in referred(request.type, request.inputs):
            if (reference, text) not in existing and self.lacks(reference, text):
                return self.not_found(text)
        return None

    def written_state(self, kind: ResourceKind[RequestT, CloudT], resource: Resource) -> dict[str, Any]:
        """Return the state after a creation or update."""
        return self.state(kind, resource)

    def state(self, kind: ResourceKind[RequestT, CloudT], resource: Resource) -> dict[str, Any]:
        """Return the current state of a resource as returned by its cloud."""
        return as_read(kind.type, {**resource.state, **kind.current(self.cloud, resource)})

    def _record(self, kind: ResourceKind[RequestT, CloudT], identity: str, change: str) -> None:
        if kind.events:
            name = identity.rpartition("/")[2]
            text = f"The {kind.events.replace('-', ' ')} {name} was {change}."
            self.cloud.store.log_event(f"{kind.events}-{change}", text, id=identity)

    def find(self, identity: str) -> Resource | None:
        """Return the resource of an id."""
        return self.cloud.store.get(self.package, identity)

    def delete_refusal(self, kind: ResourceKind[RequestT, CloudT], resource: Resource) -> str | None:
        """Return why a resource cannot be deleted; None if it can be."""
        for user in referring(self.cloud.store, resource, "uses"):
            return self.in_use(resource, user)
        return kind.before_delete(self.cloud, resource)

    def remove(self, resource: Resource) -> None:
        """Remove a resource and its parts from the store."""
        for part in (resource, *referring(self.cloud.store, resource, "part")):
            self.cloud.store.remove(self.package, part.id)

    def refusal(self, kind: ResourceKind[RequestT, CloudT], request: RequestT, message: str) -> str:
        """Return the message of a broken rule in the provider's form."""
        del kind, request
        return message

    def unfinished(self, kind: ResourceKind[RequestT, CloudT], request: RequestT) -> str | None:
        """Return the error of a resource that was created nevertheless; None for none."""
        del kind, request

    @abstractmethod
    def lacks(self, reference: Reference, text: str) -> bool:
        """Return whether a referenced resource is known not to exist."""

    @abstractmethod
    def not_found(self, text: str) -> str:
        """Return the message for a reference to a resource that does not exist."""

    @abstractmethod
    def in_use(self, resource: Resource, user: Resource) -> str:
        """Return the message for the deletion of a resource that another one uses."""

    @abstractmethod
    def identity(self, token: str, inputs: Properties) -> str:
        """Return the id of the resource with these inputs."""

    @abstractmethod
    def request(
        self, call: Call, inputs: Properties, identity: str = "", old: Resource | None = None
    ) -> RequestT:
        """Return the request that the cloud receives for a call."""

    @abstractmethod
    def completed(
        self, kind: ResourceKind[RequestT, CloudT], call: Call, old: Properties, new: Properties
    ) -> dict[str, Any]:
        """Return inputs with a name and defaults."""

    @abstractmethod
    def preview(
        self, kind: ResourceKind[RequestT, CloudT], request: RequestT, old: Read | None = None
    ) -> dict[str, Any]:
        """Return the outputs that a preview can know."""

    @abstractmethod
    def already_exists(self, kind: ResourceKind[RequestT, CloudT], existing: Resource) -> str | None:
        """Return the refusal of an existing id; None if creating it again has no effect."""

    @abstractmethod
    def new_state(self, kind: ResourceKind[RequestT, CloudT], request: RequestT) -> dict[str, Any]:
        """Return the state of a created or updated resource."""

    @abstractmethod
    def inputs_of(
        self,
        kind: ResourceKind[RequestT, CloudT],
        call: Call,
        resource: Resource,
        known: Properties,
        state: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return the inputs that correspond to a state as read."""
