"""Interfaces of the fake cloud's providers and control planes, with plain data: JSON, and `UNKNOWN` in a
preview.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeAlias

from ebbtide.analysis.recording.values import Plain

BEHIND: Final = "behind"
"""Cloud in the store of resources that are not the clouds' own."""
CLUSTER: Final = "rehearsal:cluster"
"""Type of a control plane, with its administrator's `kubeconfig`."""
DISK: Final = "rehearsal:disk"
"""Type of a disk that remains after its cluster was deleted."""
Properties: TypeAlias = Mapping[str, Plain]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Endpoint of a cluster's control plane.

    Attributes:
        host: host and port, such as `localhost:40123`; https.
        certificate_authority: CA of its certificate, PEM in base64 as in a kubeconfig.
    """

    host: str
    certificate_authority: str


class Clusters(Protocol):
    """Control planes on this machine, by cluster id."""

    def create(self, identity: str, cloud: Literal["gke", "aks"]) -> Endpoint:
        """Start the control plane of a cluster and the controllers of its node pools, and wait until it is
        ready.

        Raises:
            ToolError: one of its programs does not start.
        """
        ...

    def endpoint(self, identity: str) -> Endpoint:
        """Return the endpoint of a cluster's control plane.

        Raises:
            KeyError: there is no such cluster.
        """
        ...

    def delete(self, identity: str) -> None:
        """Stop a control plane and delete its data; a missing one is not an error."""
        ...


class RefusedError(Exception):
    """The cloud rejects a call. The engine shows the message, which has the form of the real API's, with its
    code, such as `googleapi: Error 409: Already exists: …, alreadyExists`.
    """


class UnfinishedError(RefusedError):
    """A resource was created or changed incompletely: the engine records it nevertheless, and continues with
    it in the next update."""

    def __init__(self, message: str, identity: str, state: Properties) -> None:
        """Describe the failure, and the resource as it is: its provider id and outputs."""
        super().__init__(message)
        self.identity, self.state = identity, state


@dataclass(frozen=True, slots=True)
class Failure:
    """A property that a provider's check rejects, before planning.

    Attributes:
        reason: the provider's message.
    """

    property: str
    reason: str


@dataclass(frozen=True, slots=True)
class DiffResult:
    """Effect of changed inputs on a resource.

    Attributes:
        changed: top-level properties that differ.
        replaces: those that require a replacement.
        delete_first: True if the old resource is deleted first.
    """

    changed: Sequence[str] = ()
    replaces: Sequence[str] = ()
    delete_first: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call about a resource.

    Attributes:
        name: name in the program.
        preview: True for a preview, which changes nothing and returns the known values.
        ignored: paths of properties whose changes the program ignores; their new value is the old one.
        inputs: for a read, the inputs in the engine's state; empty for an imported resource.
    """

    type: str
    name: str
    urn: str
    preview: bool = False
    ignored: Sequence[str] = ()
    inputs: Properties = field(default_factory=dict[str, Plain])


@dataclass(frozen=True, slots=True)
class Created:
    """A created resource.

    Attributes:
        id: provider id; empty in a preview.
        state: outputs, usually including all of its inputs.
    """

    id: str
    state: Properties = field(default_factory=dict[str, Plain])


@dataclass(frozen=True, slots=True)
class Read:
    """A resource as read.

    Attributes:
        id: provider id.
    """

    id: str
    inputs: Properties
    state: Properties


class Provider(Protocol):
    """A provider. Calls are concurrent, from several threads; any exception other than `RefusedError` is a
    bug."""

    @property
    def package(self) -> str:
        """Package of the emulated provider, such as `azure-native`."""
        ...

    @property
    def version(self) -> str:
        """Version of the emulated provider, as requested by the program's SDK."""
        ...

    def configured(self, variables: Properties) -> "Provider":
        """Return the provider for an explicit or default provider resource with the inputs `variables`, for
        all calls about its resources."""
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

    def create(self, call: Call, inputs: Properties) -> Created:
        """Create a resource; raises RefusedError."""
        ...

    def read(self, call: Call, identity: str, known: Properties) -> Read | None:
        """Read a resource; None if it does not exist. `known` is its last state, empty for an import."""
        ...

    def update(self, call: Call, identity: str, old: Read, new: Properties) -> Properties:
        """Change a resource and return its new state; raises RefusedError."""
        ...

    def delete(self, call: Call, identity: str, known: Properties) -> None:
        """Delete a resource; a missing one is not an error. Raises RefusedError."""
        ...

    def invoke(self, token: str, arguments: Properties) -> Properties:
        """Call a function; raises RefusedError."""
        ...
