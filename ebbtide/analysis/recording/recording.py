"""A recorded run as plain data, without Pulumi objects or futures.

URNs are Pulumi's: `urn:pulumi:STACK::PROJECT::TYPES::NAME` (Pulumi docs, resource names, 2026-08).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, TypeAlias

from ebbtide.analysis.recording.values import Plain
from ebbtide.values.documents import DocumentPart

STACK_TYPE: Final = "pulumi:pulumi:Stack"
_PREFIX: Final = "urn:pulumi:"
Severity: TypeAlias = Literal["info", "warning", "error"]
_PART: Final = re.compile(r"(parent|type|name|project|stack)=(.*?)(?= (?:parent|type|name|project|stack)=|$)")
_NO_PARENT: Final = "the stack"


def urn_of(stack: str, project: str, parent: str | None, type_: str, name: str) -> str:
    """Build a resource's URN as the engine does: with the types of all parents except the stack.

    Args:
        stack: the stack's name.
        project: the project's name.
        parent: the parent's URN; None or empty if there is none.
        name: its logical name.
    """
    types = parent.split("::")[2] if parent else STACK_TYPE
    qualified = type_ if types == STACK_TYPE else f"{types}${type_}"
    return f"{_PREFIX}{stack}::{project}::{qualified}::{name}"


def urn_name(urn: str) -> str:
    """Return the logical name in a URN; it may contain `::`."""
    return urn.split("::", 3)[-1]


def stack_and_project(urn: str) -> tuple[str, str]:
    """Return the stack and the project of a URN; the project is empty if the URN is malformed."""
    stack, project = f"{urn.removeprefix(_PREFIX)}::".split("::")[:2]
    return stack, project


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


class Message(DocumentPart):
    """A message of a run."""

    severity: Severity
    """`info` for printed or logged text, `warning` and `error` as logged."""
    text: str
    """Text, with the configuration's secrets masked."""
    urn: str | None = None
    """URN of its resource, if any."""


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


Updates: TypeAlias = Callable[[Recording], Iterable[tuple[Resource, Resource]]]
"""Function that returns the updated resources of a recording, before and after."""


def former_resources(before: Recording, after: Recording) -> dict[str, Resource]:
    """Return the resources of `before` that are also in `after`, by their URN in `after`.

    A child of a resource with an alias is found below its parent's former URN, and by its former name if that
    starts with the parent's (pulumi, `inheritedChildAlias`).
    """
    former: dict[str, Resource] = {}
    for resource in after:
        urns = (urn for urn in _candidates(resource, after, former) if urn in before)
        if (urn := next(urns, None)) is not None:
            former[resource.urn] = before[urn]
    return former


def _candidates(resource: Resource, after: Recording, former: dict[str, Resource]) -> Iterator[str]:
    """Yield the possible former URNs of a resource, its current one first."""
    yield resource.urn
    parent = former.get(resource.parent or "")
    parents = [resource.parent, parent.urn] if parent else [resource.parent]
    for parent_urn in parents:
        yield _urn(resource, after, {"parent": parent_urn or _NO_PARENT})
        for alias in resource.aliases:
            if alias.startswith("urn:"):
                yield alias
            else:
                parts = dict(_PART.findall(alias))
                yield _urn(resource, after, {"parent": parent_urn or _NO_PARENT, **parts})
    if parent and resource.parent:
        name = after[resource.parent].name
        if resource.name.startswith(name):
            renamed = parent.name + resource.name.removeprefix(name)
            yield _urn(resource, after, {"parent": parent.urn, "name": renamed})


def _urn(resource: Resource, after: Recording, parts: dict[str, str]) -> str:
    parent = parts["parent"]
    return urn_of(
        parts.get("stack", after.stack),
        parts.get("project", after.project),
        None if parent == _NO_PARENT else parent,
        parts.get("type", resource.type),
        parts.get("name", resource.name),
    )
