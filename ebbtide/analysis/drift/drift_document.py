"""The document of `ebbtide drift --format json`: differences by maker, and what an update would do to a
person's.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

from ebbtide.analysis.drift.differences import Maker, ReadResource, differences_of
from ebbtide.analysis.recording.recording import Recording, urn_name
from ebbtide.analysis.recording.values import SECRET_TEXT
from ebbtide.analysis.review.baseline import Baseline
from ebbtide.analysis.review.build_review import new_pools_beside, review_of
from ebbtide.analysis.review.review_document import ChangeReport, DifferenceReport, FieldChangeReport
from ebbtide.values.documents import DocumentPart
from ebbtide.values.paths import is_within, value_at

VERSION: Final = "ebbtide.dev/drift/v1"

Action: TypeAlias = Literal["none", "update", "create", "replace", "delete", "refuse"]
_ORDER: Final[Sequence[Action]] = ("refuse", "replace", "delete", "create", "update", "none")
"""Effects, the most disruptive first."""


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


def refreshed(document: Mapping[str, Any], resources: Iterable[ReadResource]) -> dict[str, Any]:
    """Return an exported state as a refresh would write it.

    Args:
        document: the output of `pulumi stack export`.
        resources: its resources as read. Secrets, which a read hides, stay as they are.
    """
    read = {resource.urn: resource for resource in resources}
    deployment = cast("Mapping[str, Any]", document["deployment"])
    kept = [
        _refreshed(item, read[item["urn"]]) if item["urn"] in read else item
        for item in deployment.get("resources") or ()
        if item["urn"] not in read or not read[item["urn"]].is_deleted
    ]
    return {**document, "deployment": {**deployment, "resources": kept}}


def _refreshed(item: Mapping[str, Any], resource: ReadResource) -> Mapping[str, Any]:
    return {
        **item,
        "inputs": _with_secrets(resource.read_inputs, item.get("inputs")),
        "outputs": _with_secrets(resource.read_outputs, item.get("outputs")),
    }


def _with_secrets(value: Any, old: Any) -> Any:
    """Return a value as read, with the encrypted secrets of an old one."""
    if value == SECRET_TEXT:
        return old
    if isinstance(value, dict):
        before = cast("dict[str, Any]", old if isinstance(old, dict) else {})
        items = cast("Mapping[str, Any]", value).items()
        return {key: _with_secrets(item, before.get(key)) for key, item in items}
    if isinstance(value, list):
        items = cast("list[Any]", value)
        listed = cast("list[Any]", old) if isinstance(old, list) else []
        return [
            _with_secrets(item, listed[index] if index < len(listed) else None)
            for index, item in enumerate(items)
        ]
    return value


def drift_of(
    resources: Sequence[ReadResource],
    after: Recording,
    state: Baseline,
    cloud: Baseline,
    *,
    unowned: Sequence[UnownedResource] = (),
    unread: Sequence[str] = (),
) -> Drift:
    """Build the document.

    Args:
        resources: the stack's resources, as in the state and as read.
        after: the recorded program, with its hooks called for an update of `cloud`.
        state: the state.
        cloud: the state as a refresh would write it.
        unowned: resources that are in no state.
        unread: sentences about lists that were not read.
    """
    review = review_of(after, cloud)
    planned, difference = review_of(after, state).difference, review.difference
    assert difference is not None  # noqa: S101 - there is an earlier version
    pools = {pool.urn: pool.name for pool in review.preview.pools if not pool.inline}
    changes = {change.urn: change for change in difference.changes}
    drifted: list[ResourceDrift] = []
    for resource in resources:
        change = changes.get(resource.urn)
        action = _action(resource, after, difference, change)
        made = resource.urn not in after and change is None
        changed = None if made else change.fields if change else ()
        drift = _drift(resource, pools.get(resource.urn, ""), action, changed)
        drifted += [drift] if drift else []
    drifted.sort(key=lambda item: (not item.is_of_person, _ORDER.index(item.action), item.urn))
    own = planned.consequences if planned else ()
    found = any(item.is_of_person for item in drifted)
    return Drift(
        stack=after.stack,
        read=len(resources),
        resources=tuple(drifted),
        unowned=tuple(unowned),
        unread=tuple(unread),
        consequences=tuple(text for text in difference.consequences if text not in own) if found else (),
        fingerprint=fingerprint(drifted, unowned),
    )


def _drift(
    resource: ReadResource, pool: str, action: Action, changed: Collection[FieldChangeReport] | None
) -> ResourceDrift | None:
    """Return the drift of a resource; None if it is as in the state.

    Args:
        changed: what an update changes of it once the state is refreshed; None for an object that a chart or
            directory makes, of which an update sets all of its inputs.
    """
    replacing = {field.path for field in changed or () if field.replaces}

    def is_omitted(path: str) -> bool:
        if changed is None:
            return value_at(resource.inputs, path) is None
        others = (field.path for field in changed)
        return action in ("none", "update") and not any(
            is_within(path, other) or is_within(other, path) for other in others
        )

    found = [(item, is_omitted(item.path)) for item in differences_of(resource)]
    if not found and not resource.is_deleted:
        return None
    fields = [
        FieldDrift(
            path=item.path,
            state=item.old,
            cloud=item.new,
            maker=item.maker,
            source=item.source,
            replaces=item.path in replacing,
            kept=omitted or item.is_conflict,
        )
        for item, omitted in found
    ]
    if changed is None and found:
        is_set_back = any(item.maker == "person" and not omitted for item, omitted in found)
        action = "update" if is_set_back else "none"
    if any(item.is_conflict and not omitted for item, omitted in found):
        action = "refuse"
    return ResourceDrift(
        type=resource.type,
        name=urn_name(resource.urn),
        urn=resource.urn,
        id=resource.id,
        pool=pool,
        deleted=resource.is_deleted,
        fields=tuple(sorted(fields, key=lambda field: not field.replaces)),
        action=action,
    )


def _action(
    resource: ReadResource, after: Recording, difference: DifferenceReport, change: ChangeReport | None
) -> Action:
    """Return what an update does to a resource once the state is refreshed."""
    parent = after[resource.urn].parent if resource.urn in after else None
    if parent is not None and parent in {message.urn for message in new_pools_beside(after)}:
        return "replace"
    if parent is not None and parent in {message.urn for message in after.refusals}:
        return "refuse"
    if change is None:
        return "create" if resource.is_deleted and resource.urn not in after else "none"
    is_refused = any(f" {change.name} is protected" in text for text in difference.refusals)
    if is_refused:
        return "refuse"
    return "create" if change.action == "adopt" else change.action
