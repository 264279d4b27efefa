"""Interface of the fake cloud's providers, in plain data: JSON, and `UNKNOWN` for a value that a preview does
not know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from ebbtide.recording.values import Plain

Properties: TypeAlias = Mapping[str, Plain]


class RefusedError(Exception):
    """The cloud refuses a call. The message is what the engine shows; it is the real API's kind of message,
    with its code, such as `googleapi: Error 409: Already exists: …, alreadyExists`.
    """


class UnfinishedError(RefusedError):
    """A resource was created or changed, but not completely: the engine records it all the same, and
    continues with it the next time."""

    def __init__(
        self, message: str, identity: str, state: Properties, inputs: Properties | None = None
    ) -> None:
        """Describe the failure and the present resource.

        Args:
            message: the engine's message.
            identity: the provider's id of the resource.
            state: its outputs.
            inputs: the inputs of a resource that is read.
        """
        super().__init__(message)
        self.identity = identity
        self.state = state
        self.inputs = inputs


@dataclass(frozen=True, slots=True)
class Failure:
    """A property that a provider's check refuses, before anything is planned.

    Attributes:
        property: the path of it.
        reason: what is wrong, in the provider's own words.
    """

    property: str
    reason: str


@dataclass(frozen=True, slots=True)
class DiffResult:
    """Effect of changed inputs on a resource.

    Attributes:
        changed: the top-level properties that differ.
        replaces: those of them that need a replacement.
        delete_first: whether the old resource is deleted first.
    """

    changed: Sequence[str] = ()
    replaces: Sequence[str] = ()
    delete_first: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call about a resource.

    Attributes:
        type: the type's token.
        name: its name in the program.
        urn: the engine's name for it.
        preview: whether the call is a preview, which changes nothing and answers with what is known.
        timeout: its timeout in seconds (`customTimeouts`); None for the default.
        ignored: paths of properties whose changes the program ignores; their new value is their old
            one.
        inputs: in a read, the engine's inputs of the resource; empty for one that is imported.
    """

    type: str
    name: str
    urn: str
    preview: bool = False
    timeout: float | None = None
    ignored: Sequence[str] = ()
    inputs: Properties = field(default_factory=dict[str, Plain])


@dataclass(frozen=True, slots=True)
class Made:
    """A created resource.

    Attributes:
        id: the provider's id; empty in a preview.
        state: its outputs, all of its inputs among them as a rule.
    """

    id: str
    state: Properties = field(default_factory=dict[str, Plain])


@dataclass(frozen=True, slots=True)
class Read:
    """A resource as read.

    Attributes:
        id: the provider's id.
        inputs: its inputs.
        state: its outputs.
    """

    id: str
    inputs: Properties
    state: Properties


class Provider(Protocol):
    """A provider. Calls come at the same time, from several threads; what a method raises other than a
    `RefusedError` is a fault of ours."""

    package: str
    """The emulated provider's package, such as `azure-native`."""

    version: str
    """The emulated provider's version, as the program's SDK requests it."""

    def configured(self, variables: Properties) -> "Provider":
        """Return the provider of an explicit or default provider resource, for all calls about its resources.
        `variables` are its inputs."""
        ...

    def check_config(self, variables: Properties) -> Sequence[Failure]:
        """Validate the inputs of a provider resource."""
        ...

    def change_config(self, old: Properties, new: Properties) -> DiffResult:
        """Compare the inputs of a provider resource. A replacement also replaces all of its resources."""
        ...

    def check(self, call: Call, old: Properties, new: Properties) -> tuple[Properties, Sequence[Failure]]:
        """Complete and validate the inputs of a resource."""
        ...

    def diff(self, call: Call, identity: str, old: Read, new: Properties) -> DiffResult:
        """Compare the inputs of a resource, without the changes that the program ignores."""
        ...

    def create(self, call: Call, inputs: Properties) -> Made:
        """Create a resource; raises RefusedError."""
        ...

    def read(self, call: Call, identity: str, known: Properties) -> Read | None:
        """Read a resource; None if it is gone. `known` is its last known state, empty for one that is
        imported."""
        ...

    def update(self, call: Call, identity: str, old: Read, new: Properties) -> Properties:
        """Change a resource and return its new state; raises RefusedError."""
        ...

    def delete(self, call: Call, identity: str, known: Properties) -> None:
        """Delete a resource, unless it is gone; raises RefusedError."""
        ...

    def invoke(self, token: str, arguments: Properties) -> Properties:
        """Call a function; raises RefusedError."""
        ...
