"""What a program would create, as plain data: no Pulumi object, no future, nothing left to wait for."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from ebbtide.recording.values import UNKNOWN, Plain, Secret

__all__ = ["UNKNOWN", "Invocation", "Message", "Plain", "Recording", "Resource", "Secret", "Severity"]

Severity: TypeAlias = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One registered resource, with what the engine would have made of its options.

    Attributes:
        urn: as the engine builds it from parent, type and name.
        type: the type token, such as `gcp:container/nodePool:NodePool`.
        name: the logical name.
        custom: whether a provider manages it; a component is only a place in the tree.
        remote: whether the children of this component are made by its provider, out of sight of a preview.
        read: whether it exists already and is only looked at (`Cluster.get`).
        parent: the parent's URN; None for a resource directly under the stack.
        id: the cloud's name for it, assumed; None for a component.
        inputs: what was asked for, by the provider's names of the fields.
        outputs: the inputs with the assumed answers laid over them; a component's registered outputs.
        assumed: paths in `outputs` (and `id`) that stand for the cloud's answer, such as
            `masterAuth.clusterCaCertificate`.
        dependencies: URNs of the resources that it waits for, in order.
        property_dependencies: the same, by input.
        provider: URN of its explicit provider; None where the ambient default would be used.
        protect: whether the engine would refuse to delete it; inherited from the parent.
        deleted_with: URN of the resource whose deletion takes this one along; inherited from the parent.
        retain_on_delete: whether deleting it leaves it in the cloud; inherited from the parent.
        ignore_changes: property paths whose changes are ignored.
        replace_on_changes: property paths whose change replaces it.
        delete_before_replace: None where the provider decides.
        replace_with: URNs of the resources whose replacement replaces this one.
        aliases: former URNs, or `parent=… type=… name=…` for those that were given in parts.
        hooks: names of its hooks, by moment (`before_delete`).
        timeouts: custom timeouts, such as `{"create": "60m"}`.
        import_id: the id of the existing resource that it would adopt.
        version: the provider plugin's version that it asks for.
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
    """A function of a provider that the program called, and what it was told.

    Attributes:
        token: such as `gcp:container/getCluster:getCluster`.
        args: what it was called with.
        answer: all of it assumed.
        provider: URN of the explicit provider; None for the ambient default.
    """

    token: str
    args: Mapping[str, Plain]
    answer: Mapping[str, Plain]
    provider: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Something that the program said while it ran.

    Attributes:
        severity: `info` for what was printed or logged, `warning` and `error` as logged.
        text: with every known secret masked.
        urn: the resource that it speaks of, if any.
    """

    severity: Severity
    text: str
    urn: str | None = None


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One run of a program.

    Attributes:
        project: the Pulumi project's name.
        stack: the stack's name.
        resources: in the order of their registration, parents before children; the stack itself is not among
            them.
        outputs: the stack's.
        invocations: in the order of the calls.
        messages: in the order in which they were said.
    """

    project: str
    stack: str
    resources: tuple[Resource, ...] = ()
    outputs: Mapping[str, Plain] = field(default_factory=dict[str, Plain])
    invocations: tuple[Invocation, ...] = ()
    messages: tuple[Message, ...] = ()

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
        """The resource of that URN.

        Raises:
            KeyError: when there is none.
        """
        return self._by_urn[urn]

    def __contains__(self, urn: object) -> bool:
        return urn in self._by_urn

    def __iter__(self) -> Iterator[Resource]:
        return iter(self.resources)

    def __len__(self) -> int:
        return len(self.resources)

    def of_type(self, type_: str) -> tuple[Resource, ...]:
        """The resources of a type, in order."""
        return tuple(resource for resource in self.resources if resource.type == type_)

    def named(self, name: str, type_: str | None = None) -> Resource:
        """The one resource of that logical name, and of that type where names repeat.

        Raises:
            LookupError: when there is none, or more than one.
        """
        found = [r for r in self.resources if r.name == name and type_ in (None, r.type)]
        if len(found) != 1:
            what = f"named {name!r}" + (f" of type {type_}" if type_ else "")
            raise LookupError(f"{len(found) or 'no'} resources {what}")
        return found[0]

    def children(self, urn: str | None = None) -> tuple[Resource, ...]:
        """The children of a resource; of the stack, when no URN is given."""
        return tuple(self._by_parent.get(urn, ()))

    def ancestors(self, urn: str) -> tuple[Resource, ...]:
        """The resources above one, the nearest first."""
        above: list[Resource] = []
        parent = self[urn].parent
        while parent is not None:
            above.append(self[parent])
            parent = above[-1].parent
        return tuple(above)

    def says(self, severity: Severity) -> tuple[Message, ...]:
        """The messages of one severity."""
        return tuple(message for message in self.messages if message.severity == severity)
