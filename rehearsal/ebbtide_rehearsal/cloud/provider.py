"""What a provider of the stand-in cloud is, in plain data: JSON, and `UNKNOWN` for what a preview cannot
know.
"""

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
    """Something was made or changed and is there, but is not as it should be: the engine records it all the
    same, and goes on with it the next time.
    """

    def __init__(
        self, message: str, identity: str, state: Properties, inputs: Properties | None = None
    ) -> None:
        """Say what is wrong, and what is there.

        Args:
            message: what the engine shows.
            identity: the provider's id of what is there.
            state: its outputs.
            inputs: what would have to be asked for to get it, of something that is read.
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
class Change:
    """What a change of inputs means for a resource.

    Attributes:
        changed: the top-level properties that differ.
        replaces: those of them that only a new resource can have.
        delete_first: whether the old one has to go before the new one comes.
    """

    changed: Sequence[str] = ()
    replaces: Sequence[str] = ()
    delete_first: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A resource that a call is about.

    Attributes:
        type: the type's token.
        name: its name in the program.
        urn: the engine's name for it.
        preview: whether nothing may be done yet: answer with what can be known.
        timeout: how long it may take, in seconds, where the program says so (`customTimeouts`).
        ignored: paths of properties whose changes the program ignores; what it gives for them is their old
            value.
        asked: in a read, the inputs that the engine has for it; empty for one that is only read.
    """

    type: str
    name: str
    urn: str
    preview: bool = False
    timeout: float | None = None
    ignored: Sequence[str] = ()
    asked: Properties = field(default_factory=dict[str, Plain])


@dataclass(frozen=True, slots=True)
class Made:
    """A resource that is there.

    Attributes:
        id: the provider's; empty in a preview.
        state: its outputs, all of its inputs among them as a rule.
    """

    id: str
    state: Properties = field(default_factory=dict[str, Plain])


@dataclass(frozen=True, slots=True)
class Read:
    """A resource as it is now.

    Attributes:
        id: the provider's.
        inputs: what would have to be asked for to get it.
        state: its outputs.
    """

    id: str
    inputs: Properties
    state: Properties


class Provider(Protocol):
    """A provider. Calls come at the same time, from several threads; what a method raises other than a
    `RefusedError` is a fault of ours."""

    package: str
    """The package whose provider it stands in for, such as `azure-native`."""

    version: str
    """Of that provider: what the SDK of the program asks for."""

    def configured(self, variables: Properties) -> "Provider":
        """The provider of an explicit or default provider resource: the one that answers all calls about its
        resources. `variables` are its inputs.
        """
        ...

    def check_config(self, variables: Properties) -> Sequence[Failure]:
        """What is wrong with the inputs of a provider resource."""
        ...

    def change_config(self, old: Properties, new: Properties) -> Change:
        """What a change of a provider resource's inputs means: replaced, everything made by it is, too."""
        ...

    def check(self, call: Call, old: Properties, new: Properties) -> tuple[Properties, Sequence[Failure]]:
        """The inputs of a resource, completed as the provider completes them, and what is wrong with them."""
        ...

    def diff(self, call: Call, identity: str, old: Read, new: Properties) -> Change:
        """What new inputs mean; changes that the program ignores are left out already."""
        ...

    def create(self, call: Call, inputs: Properties) -> Made:
        """Make a resource; raises RefusedError."""
        ...

    def read(self, call: Call, identity: str, known: Properties) -> Read | None:
        """A resource as it is; None where it is gone. `known` is its last known state, empty for one that is
        only read.
        """
        ...

    def update(self, call: Call, identity: str, old: Read, new: Properties) -> Properties:
        """Change a resource; its new state. Raises RefusedError."""
        ...

    def delete(self, call: Call, identity: str, known: Properties) -> None:
        """Remove a resource; one that is gone is no error. Raises RefusedError."""
        ...

    def invoke(self, token: str, arguments: Properties) -> Properties:
        """Answer a function; raises RefusedError."""
        ...
