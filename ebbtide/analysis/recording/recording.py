"""A recorded run as plain data, without Pulumi objects or futures."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from ebbtide.analysis.recording.values import UNKNOWN, Plain, Secret

__all__ = ["UNKNOWN", "Invocation", "Message", "Plain", "Recording", "Resource", "Secret", "Severity"]

Severity: TypeAlias = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A registered resource, with its options as the engine would resolve them.

    Attributes:
        urn: URN, built from parent, type and name like the engine's.
        type: the type token, such as `gcp:container/nodePool:NodePool`.
        name: the logical name.
        custom: true for a provider's resource, false for a component.
        remote: true for a component whose provider creates its children, which a preview cannot show.
        read: true for an existing resource that is only read (`Cluster.get`).
        parent: the parent's URN; None for a resource directly under the stack.
        id: the cloud's id, assumed; None for a component.
        inputs: declared values, by the provider's field names.
        outputs: the inputs merged with assumed responses; a component's registered outputs.
        assumed: paths in `outputs` (and `id`) that the cloud would determine, such as
            `masterAuth.clusterCaCertificate`.
        dependencies: URNs of the resources that it depends on, in order.
        property_dependencies: URNs of dependencies, by input.
        provider: URN of its explicit provider; None for the default provider.
        protect: true if the engine refuses deletion; inherited from the parent.
        deleted_with: URN of the resource whose deletion also deletes this one; inherited from the parent.
        retain_on_delete: true if deletion keeps it in the cloud; inherited from the parent.
        ignore_changes: property paths whose changes are ignored.
        hide_diffs: property paths whose changes Pulumi does not print.
        replace_on_changes: property paths whose change replaces the resource.
        delete_before_replace: None if the provider decides.
        replace_with: URNs of the resources whose replacement replaces this one.
        aliases: former URNs, or `parent=… type=… name=…` for aliases given in parts.
        hooks: names of its hooks, by event (`before_delete`).
        timeouts: custom timeouts, such as `{"create": "60m"}`.
        import_id: the id of the existing resource to import.
        version: the requested version of the provider plugin.
    """

    urn: str
    type: str
    name: str
    custom: bool = True
    remote: bool = False
    read: bool = False
    parent: str | None = None
    id: str | None = None
    inputs: Mapping[str, Plain] = field(default_factory=dict[str, Plain])
    outputs: Mapping[str, Plain] = field(default_factory=dict[str, Plain])
    assumed: tuple[str, ...] = ()
    dependencies: tuple[str, ...] = ()
    property_dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    provider: str | None = None
    protect: bool = False
    deleted_with: str | None = None
    retain_on_delete: bool = False
    ignore_changes: tuple[str, ...] = ()
    hide_diffs: tuple[str, ...] = ()
    replace_on_changes: tuple[str, ...] = ()
    delete_before_replace: bool | None = None
    replace_with: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    hooks: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    timeouts: Mapping[str, str] = field(default_factory=dict[str, str])
    import_id: str | None = None
    version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """A call of a provider function, with its assumed result.

    Attributes:
        token: such as `gcp:container/getCluster:getCluster`.
        args: its arguments.
        answer: its result, entirely assumed.
        provider: URN of the explicit provider; None for the default provider.
    """

    token: str
    args: Mapping[str, Plain]
    answer: Mapping[str, Plain]
    provider: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of a run.

    Attributes:
        severity: `info` for printed or logged text, `warning` and `error` as logged.
        text: text with every known secret masked.
        urn: URN of the resource that it concerns, if any.
    """

    severity: Severity
    text: str
    urn: str | None = None


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A single run of a program.

    Attributes:
        project: the Pulumi project's name.
        stack: the stack's name.
        resources: resources in order of registration, parents before children, without the stack itself.
        outputs: the stack's outputs.
        invocations: function calls in order.
        messages: messages in order of arrival.
        refusals: exceptions of the program's hooks before updates, if updates were passed.
    """

    project: str
    stack: str
    resources: tuple[Resource, ...] = ()
    outputs: Mapping[str, Plain] = field(default_factory=dict[str, Plain])
    invocations: tuple[Invocation, ...] = ()
    messages: tuple[Message, ...] = ()
    refusals: tuple[Message, ...] = ()

    @cached_property
    def _by_urn(self) -> dict[str, Resource]:
        return {resource.urn: resource for resource in self.resources}

    @cached_property
    def _by_parent(self) -> dict[str | None, list[Resource]]:
        by_parent: dict[str | None, list[Resource]] = {}
        for resource in self.resources:
            by_parent.setdefault(resource.parent, []).append(resource)
        return by_parent

    def __getitem__(self, urn: str) -> Resource:
        """Return the resource with a URN.

        Raises:
            KeyError: there is no such resource.
        """
        return self._by_urn[urn]

    def __contains__(self, urn: object) -> bool:
        return urn in self._by_urn

    def __iter__(self) -> Iterator[Resource]:
        return iter(self.resources)

    def __len__(self) -> int:
        return len(self.resources)

    def of_type(self, type_: str) -> tuple[Resource, ...]:
        """Return the resources of a type, in order."""
        return tuple(resource for resource in self.resources if resource.type == type_)

    def named(self, name: str, type_: str | None = None) -> Resource:
        """Return the only resource with a logical name, and of a type if names repeat.

        Raises:
            LookupError: there is none, or more than one.
        """
        matches = [r for r in self.resources if r.name == name and type_ in (None, r.type)]
        if len(matches) != 1:
            description = f"named {name!r}" + (f" of type {type_}" if type_ else "")
            raise LookupError(f"{len(matches) or 'no'} resources {description}")
        return matches[0]

    def children(self, urn: str | None = None) -> tuple[Resource, ...]:
        """Return the children of a resource, or of the stack if no URN is given."""
        return tuple(self._by_parent.get(urn, ()))

    def ancestors(self, urn: str) -> tuple[Resource, ...]:
        """Return the ancestors of a resource, nearest first."""
        resources: list[Resource] = []
        parent = self[urn].parent
        while parent is not None:
            resources.append(self[parent])
            parent = resources[-1].parent
        return tuple(resources)

    def says(self, severity: Severity) -> tuple[Message, ...]:
        """Return the messages of a severity."""
        return tuple(message for message in self.messages if message.severity == severity)
