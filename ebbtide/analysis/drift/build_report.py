"""Build the document of a stack's drift: differences by maker, and what an update would do to a person's."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, cast

from ebbtide.analysis.drift.differences import ReadResource, differences_of
from ebbtide.analysis.drift.report import (
    Action,
    Drift,
    FieldDrift,
    ResourceDrift,
    UnownedResource,
    fingerprint,
)
from ebbtide.analysis.reading.state import recording_of
from ebbtide.analysis.recording.recording import Recording, urn_name
from ebbtide.analysis.recording.values import SECRET_TEXT
from ebbtide.analysis.review.baseline import Baseline
from ebbtide.analysis.review.build_report import new_pools_beside, review_of
from ebbtide.analysis.review.report import ChangeReport, DifferenceReport, FieldChangeReport
from ebbtide.values.paths import is_within

_ORDER: Final[Sequence[Action]] = ("refuse", "replace", "delete", "create", "update", "none")
"""Effects, the most disruptive first."""


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


def baseline_of(document: Mapping[str, Any], *, project: str, stack: str) -> Baseline:
    """Return an exported state as a version to compare the program with."""
    recording = recording_of(json.dumps(document), project=project, stack=stack, file="The state")
    return Baseline("state", recording, deployed=True)


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
        drift = _drift(resource, pools.get(resource.urn, ""), action, change.fields if change else ())
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
    resource: ReadResource, pool: str, action: Action, changed: Collection[FieldChangeReport]
) -> ResourceDrift | None:
    """Return the drift of a resource; None if it is as in the state.

    Args:
        changed: what an update changes of it once the state is refreshed.
    """
    replacing = {field.path for field in changed if field.replaces}

    def is_kept(path: str) -> bool:
        others = (field.path for field in changed)
        return action in ("none", "update") and not any(
            is_within(path, other) or is_within(other, path) for other in others
        )

    fields = [
        FieldDrift(
            path=item.path,
            state=item.old,
            cloud=item.new,
            maker=item.maker,
            source=item.source,
            replaces=item.path in replacing,
            kept=is_kept(item.path),
        )
        for item in differences_of(resource)
    ]
    if not fields and not resource.is_deleted:
        return None
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
        return "none"
    is_refused = any(f" {change.name} is protected" in text for text in difference.refusals)
    if is_refused:
        return "refuse"
    return "create" if change.action == "adopt" else change.action
