"""Implementation of the engine's calls that all fake providers share."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic

from ebbtide_rehearsal.cloud.core import check
from ebbtide_rehearsal.cloud.core.read_back import as_read
from ebbtide_rehearsal.cloud.core.resource_kind import CloudT, RequestT, ResourceKind, first_refusal
from ebbtide_rehearsal.cloud.provider import (
    Call,
    Created,
    DiffResult,
    Failure,
    Properties,
    Read,
    RefusedError,
    UnfinishedError,
)
from ebbtide_rehearsal.cloud.store import Resource


class FakeProvider(ABC, Generic[RequestT, CloudT]):
    """A provider whose resources are in the store.

    Refusals have the messages of the real provider or API.
    """

    package: str
    wording: ClassVar[check.Wording]
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
        return inputs, [
            *check.failures(self.wording, kind.constraints, call, inputs),
            *self.conflicts(kind, inputs),
        ]

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
        message = first_refusal(kind.rules, request)
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
        return kind.before_delete(self.cloud, resource)

    def remove(self, resource: Resource) -> None:
        """Remove a resource from the store."""
        self.cloud.store.remove(self.package, resource.id)

    def conflicts(self, kind: ResourceKind[RequestT, CloudT], inputs: Properties) -> Sequence[Failure]:
        """Return the provider's refusals of combinations of properties."""
        del kind, inputs
        return ()

    def refusal(self, kind: ResourceKind[RequestT, CloudT], request: RequestT, message: str) -> str:
        """Return the message of a broken rule in the provider's form."""
        del kind, request
        return message

    def unfinished(self, kind: ResourceKind[RequestT, CloudT], request: RequestT) -> str | None:
        """Return the error of a resource that was created nevertheless; None for none."""
        del kind, request

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
