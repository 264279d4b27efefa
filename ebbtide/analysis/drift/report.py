"""The document of `ebbtide drift --format json`."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias

from ebbtide.analysis.drift.differences import Maker
from ebbtide.values.documents import DocumentPart

VERSION: Final = "ebbtide.dev/drift/v1"

Action: TypeAlias = Literal["none", "update", "create", "replace", "delete", "refuse"]


class FieldDrift(DocumentPart):
    """A property that is not as in the state."""

    path: str
    """Property path, such as `nodeConfig.machineType`."""
    state: Any
    """Value in the state; null if absent, `[secret]` for a secret."""
    cloud: Any
    """Value in the cloud or the cluster; null if absent."""
    maker: Maker
    """Who makes such a change."""
    source: str
    """Why: the documentation of such a change, or the field manager; empty if no table has the property."""
    replaces: bool
    """True if setting it back forces the replacement of the resource."""
    kept: bool = False
    """True if a refresh takes it over, and no update sets it back."""


class ResourceDrift(DocumentPart):
    """A resource of the state that differs, or that was deleted."""

    type: str
    """Type token."""
    name: str
    """Logical name."""
    urn: str
    """URN."""
    id: str = ""
    """Id in the cloud; namespace and name of a Kubernetes object."""
    pool: str
    """Name of the node pool; empty for other resources."""
    deleted: bool
    """True if it no longer exists, which is a person's drift."""
    fields: tuple[FieldDrift, ...]
    """Its differences; empty for a deleted one."""
    action: Action
    """Action of an update once the state is refreshed; `none` if it keeps the differences, `refuse` if it
    fails."""

    @property
    def of_person(self) -> tuple[FieldDrift, ...]:
        """The differences that a person made."""
        return tuple(field for field in self.fields if field.maker == "person")

    @property
    def kept(self) -> tuple[FieldDrift, ...]:
        """A person's differences that a refresh takes over, and no update sets back."""
        return tuple(field for field in self.of_person if field.kept)

    @property
    def is_of_person(self) -> bool:
        """True if a person has changed or deleted the resource."""
        return self.deleted or bool(self.of_person)


class UnownedResource(DocumentPart):
    """A resource that exists in the stack's cluster or of its names, and is in no state of the backend."""

    kind: str
    """Kind, such as `node pool` or `ClusterQueue`."""
    name: str
    """Name, with its namespace if it has one."""
    id: str
    """Id in the cloud; path in the Kubernetes API."""
    effect: str
    """A sentence about its effect on the stack."""


class Drift(DocumentPart):
    """Differences between the state of a stack and what exists."""

    version: Literal["ebbtide.dev/drift/v1"] = VERSION
    """Version of the document format."""
    stack: str
    """Stack's name."""
    read: int
    """Number of resources that were read."""
    resources: tuple[ResourceDrift, ...]
    """Resources that differ, those of a person first."""
    unowned: tuple[UnownedResource, ...]
    """Resources that are in no state."""
    unread: tuple[str, ...]
    """Sentences about lists that were not read, and resources that can therefore be missing in `unowned`."""
    consequences: tuple[str, ...]
    """Effects on running work of an update that sets a person's changes back, as sentences."""
    fingerprint: str
    """Shape of a person's drift: numbers of resources by effect and type. It stays the same while names and
    values change; empty without a person's drift."""

    @property
    def of_person(self) -> tuple[ResourceDrift, ...]:
        """The resources that a person has changed or deleted."""
        return tuple(resource for resource in self.resources if resource.is_of_person)

    @property
    def is_found(self) -> bool:
        """True if a person has changed, deleted or added something."""
        return bool(self.of_person or self.unowned)


def fingerprint(resources: Iterable[ResourceDrift], unowned: Iterable[UnownedResource]) -> str:
    """Return the fingerprint of a person's drift; empty if there is none."""
    counts: Counter[tuple[str, str, str]] = Counter(
        (resource.action, "deleted" if resource.deleted else "changed", resource.type)
        for resource in resources
        if resource.is_of_person
    )
    counts.update(("unowned", "", resource.kind) for resource in unowned)
    shape = "\n".join(f"{number} {' '.join(key)}" for key, number in sorted(counts.items()))
    return hashlib.sha256(shape.encode()).hexdigest()[:16] if counts else ""
