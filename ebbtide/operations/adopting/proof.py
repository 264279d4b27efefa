"""The declaration of a found cluster, proved by going forward: recorded, and compared with what was found.

Every difference becomes an override, or is listed with its reason. A pool with a difference that would
replace it is left out; a cluster with one stays with its owner, and its pools are declared.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from ebbtide.analysis.changes.inputs import FieldChange, is_fixed, recreates_nodes
from ebbtide.analysis.changes.property_path import plain_path
from ebbtide.analysis.reading import aks, gke
from ebbtide.analysis.reading.facts import RecordedPool
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.analysis.recording.values import UNKNOWN, Plain, at, leaves, revealed
from ebbtide.analysis.review.difference import Change, compare
from ebbtide.declaration.model import declare
from ebbtide.declaration.model.faults import DeclarationError
from ebbtide.declaration.model.pool_inputs import field_by_input
from ebbtide.declaration.model.rules import overridable as override_rules
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide.operations.adopting import azure
from ebbtide.operations.adopting import declaration as writer
from ebbtide.operations.adopting.declaration import Fields
from ebbtide.operations.adopting.draft import Draft, draft_of, found_zones, keep_with_owner, without_faults
from ebbtide.operations.adopting.found import (
    CHANGED,
    CLUSTERS,
    DECLARED,
    LEFT,
    OVERRIDDEN,
    POOLS,
    Adoption,
    AdoptionError,
    FieldRow,
    Found,
    FoundResource,
    LeftOut,
    Status,
    UpdateRow,
    shown,
)
from ebbtide.values.cloud_kind import by_cloud
from ebbtide.values.paths import ancestors, is_within, path_keys

Record = Callable[[Fields], Recording]
"""Records the stack's program with a declaration. Raises `EbbtideError` if the program fails."""

_NAMES: Final = {
    **dict(by_cloud(gke=(gke.CLUSTER, "name"), aks=(aks.CLUSTER, "resourceName")).values()),
    **dict(by_cloud(gke=(gke.NODE_POOL, "name"), aks=(aks.AGENT_POOL, "agentPoolName")).values()),
    aks.MAINTENANCE: "configName",
}
"""The input with a resource's name in the cloud."""

_ROUNDS: Final = 6
_SHOWN: Final = 5
_ZEROES: Final = (False, 0)
_OTHER_SCHEDULE: Final = (
    "A declaration has one window for upgrades of Kubernetes and of node images, which recurs daily or "
    "weekly in UTC. This schedule stays as it is, outside of the stack."
)


def adopt(
    found: Found, top: Fields, cloud: Fields, record: Record, *, pools_only: bool, with_queues: bool = True
) -> Adoption:
    """Write the declaration of a found cluster, and prove it.

    Args:
        found: one cluster and its pools.
        top: other fields of the declaration: name, owner, queues.
        cloud: its `cloud`, for the whole cluster.
        record: records the program.
        pools_only: whether the cluster stays with its owner.
        with_queues: whether queues are adopted from Kueue's objects if there are any.

    Raises:
        AdoptionError: no pool can be adopted, or the declaration is invalid otherwise.
    """
    draft = draft_of(found, top, cloud, pools_only=pools_only, with_queues=with_queues)
    changes: tuple[Change, ...] = ()
    for _ in range(_ROUNDS + len(draft.pools)):
        while (recorded := _recorded(draft, record)) is None:
            pass  # each time, less of it is left
        recording = azure.with_separate_pools(recorded)
        before = _before(found, recording)
        compared = compare(before, recording, deployed=True)
        changes = tuple(_settled(draft, change) for change in compared)
        if not _improve(draft, changes, before, recording):
            return replace(_adoption(draft, changes, before, recording), recording=recorded)
    differing = [
        f"{_key(item.resource) or 'cluster'}: {field.path} is {shown(field.old)}, and "
        + _reason(draft, item.resource, field)
        for item in changes
        for field in item.fields
    ]
    alone = "" if pools_only else "Adopt its pools alone with --pools-only. "
    raise AdoptionError(
        "The declaration of the cluster does not settle: whenever it has the found values of some fields, "
        "others differ. At last:\n" + "\n".join(differing[:_SHOWN]) + f"\n{alone}Report these lines."
    )


def _recorded(draft: Draft, record: Record) -> Recording | None:
    """Record the declaration; None if it was invalid, and a part of it has been left out."""
    if not draft.pools:
        reasons = "\n".join(f"{part.name}: {part.reason}" for part in draft.left_out)
        raise AdoptionError(f"No pool of the cluster can be adopted.\n{reasons}")
    declaration = draft.declaration()
    try:
        declare.declare(declaration)
    except DeclarationError as error:
        if not without_faults(draft, error.faults):
            raise
        return None
    return record(declaration)


def _before(found: Found, recording: Recording) -> Recording:
    """Return the recording of the found resources that the program creates, under its names."""
    by_name = {(item.type, item.name): item for item in found.resources}
    resources = [
        replace(resource, id=own.id, inputs=own.inputs)
        for resource in recording
        if (own := by_name.get((resource.type, name_of(resource)))) is not None and not resource.read
    ]
    return Recording(project=recording.project, stack=recording.stack, resources=tuple(resources))


def name_of(resource: Resource) -> str:
    """Return a resource's name in the cloud."""
    value = revealed(resource.inputs.get(_NAMES.get(resource.type, "")))
    return value if isinstance(value, str) else ""


def _improve(draft: Draft, changes: tuple[Change, ...], before: Recording, recording: Recording) -> bool:
    """Override differences, and leave out what would be replaced; false if nothing is left to do."""
    changed = False
    for change in changes:
        if change.old is None or change.new is None:
            continue
        name = _key(change.new)
        replacing: list[str] = []
        for item in change.fields:
            if _has_overrides(change.new) and _override(draft, name, item):
                changed = True
            elif item.replaces:
                replacing.append(f"{item.path}: {_reason(draft, change.new, item)}")
        if replacing and not changed:
            reason = f"It would be replaced. {' '.join(replacing)}"
            if name:
                draft.leave(name, reason)
            else:
                keep_with_owner(draft, reason)
            return True
    for resource in filter(_has_overrides, before) if not changed else ():
        changed |= _override_kept(draft, resource, recording[resource.urn])
    return changed


def _settled(draft: Draft, change: Change) -> Change:
    """Return a change without fields that the cloud does not tell from absent ones, and without taints that
    it adds by itself; a field that it refuses needs a new resource."""
    if change.old is None or change.new is None:
        return change
    fields = [
        replace(item, replaces=item.replaces or (item.new is not None and is_fixed(change.new.type, item)))
        for item in change.fields
        if not _is_default(change.resource.type, item)
    ]
    fields = [item for item in fields if item.replaces or not azure.is_kept(change.resource.type, item)]
    found = draft.read.get(_key(change.new))
    written = _written_pool(draft, change.new)
    if found and written and _taints(found) == _taints(written):
        fields = [item for item in fields if not is_within(item.path, "nodeConfig.taints")]
    return replace(change, fields=tuple(fields))


def _taints(pool: RecordedPool) -> set[str]:
    return {str(taint) for taint in pool.labels_and_taints.all_taints}


def _written_pool(draft: Draft, new: Resource) -> RecordedPool | None:
    """Return the pool that a recorded resource describes; None for a cluster."""
    name = _key(new)
    if not name:
        return None
    assert draft.found.cloud  # noqa: S101 - a found cluster is of a cloud
    (cluster,) = draft.found.clusters
    resource = FoundResource(type=new.type, id="", name=name, inputs=new.inputs)
    location = draft.read[name].site.location
    return writer.read_pool(resource, draft.found.cloud, location, found_zones(cluster))


def _is_default(token: str, item: FieldChange) -> bool:
    """Return whether a value is absent before or after, and the other is what the cloud has for an absent
    one."""
    if item.old is not None and item.new is not None:
        return False
    fills = constraints_of(token).fills
    return all(
        value in _ZEROES or value == fills.get(plain_path(path))
        for path, value in leaves(item.new if item.old is None else item.old, item.path)
    )


def _override_kept(draft: Draft, old: Resource, new: Resource) -> bool:
    """Override inputs that the program omits and the provider would keep, so that the declaration has all of
    them; false if there are none."""
    changed = False
    for path, value in leaves(dict(old.inputs)):
        if at(dict(new.inputs), path) is None and not _kept(draft, new, path, value):
            changed |= _override(draft, _key(new), FieldChange(path, value, None, replaces=False))
    return changed


def _kept(draft: Draft, new: Resource, path: str, value: Plain) -> tuple[Status, str] | None:
    """Return status and reason of an input that the program omits; None if it should be declared."""
    constraints, plain = constraints_of(new.type), plain_path(path)
    if any(is_within(path, ignored) for ignored in new.ignore_changes):
        return LEFT, "Later values are ignored: it stays as it is."
    if plain in (*constraints.defaults, *constraints.fills):
        defaults = {**constraints.fills, **constraints.defaults}
        return (DECLARED, "") if value == defaults[plain] else None
    if value in _ZEROES and plain not in constraints.computed:
        return DECLARED, ""
    (cluster,) = draft.found.clusters
    if not _key(new) and plain == "nodeLocations" and writer.is_region(cluster):
        return DECLARED, ""
    if _key(new) and value in writer.inherited(cluster).get(plain, ()):
        return (DECLARED, "") if draft.is_whole else (LEFT, "The cluster's own default.")
    return None


def _key(resource: Resource) -> str:
    """Return the name of a pool; empty for other resources."""
    return name_of(resource) if resource.type in POOLS.values() else ""


def _has_overrides(resource: Resource) -> bool:
    return resource.type in (*CLUSTERS.values(), *POOLS.values())


def _override(draft: Draft, name: str, change: FieldChange) -> bool:
    """Add an override of a found value; false if it is not possible. An absent value stays absent, by null,
    if Ebbtide's would recreate nodes or the resource, and the cloud keeps its own."""
    value, path = change.old, change.path
    if not name and not draft.is_whole:
        return False
    rules = draft.rules(name)
    if "[" in path:
        path = path.partition("[")[0]
        resources = (
            item
            for item in draft.found.resources
            if ((item.type in CLUSTERS.values()) if not name else item.name == name)
        )
        value = at(dict(next(resources).inputs), path)
    plain, constraints = plain_path(path), constraints_of(rules.token)
    if value in (None, UNKNOWN) and change.replaces:
        value = constraints.defaults.get(plain)
    is_left = plain in constraints.computed and (
        change.replaces or recreates_nodes(rules.token, path, change.old, change.new)
    )
    if (value is None and not is_left) or value is UNKNOWN:
        return False
    if _obstacle(rules, path, value) or (name, path) in draft.refused:
        return False
    holder = draft.overrides.setdefault(name, {})
    *parents, last = [str(key) for key in path_keys(path)]
    for parent in parents:
        holder = holder.setdefault(parent, {})
    if last in holder and holder[last] == value:
        return False
    holder[last] = copy.deepcopy(value)
    return True


def _obstacle(rules: override_rules.Overridable, path: str, value: Plain) -> str:
    """Return why an input cannot have a value by an override; empty if it can."""
    plain = plain_path(path)
    for parent in (plain, *ancestors(plain)):
        if (known := rules.derived.get(parent)) is not None:
            return f"it follows from {known}"
        relied = rules.relied_on.get(parent)
        if relied is not None and value != relied.value:
            return relied.otherwise
    if value is None:
        return next((item.otherwise for key, item in rules.relied_on.items() if is_within(key, plain)), "")
    return ""


def _reason(draft: Draft, resource: Resource, change: FieldChange) -> str:
    """Return why a difference remains, as a sentence."""
    obstacle = _why(draft, resource, change)
    new = "removes it" if change.new is None else f"sets {shown(change.new)}"
    return f"Ebbtide {new}{': ' if obstacle else ''}{obstacle}".rstrip(".") + "."


def _why(draft: Draft, resource: Resource, change: FieldChange) -> str:
    """Return why a found value cannot be declared; empty if Ebbtide always sets its own."""
    name = _key(resource)
    refused = draft.refused.get((name, change.path))
    return refused or (
        _obstacle(draft.rules(name), change.path, change.old) if _has_overrides(resource) else ""
    )


def _adoption(draft: Draft, changes: tuple[Change, ...], before: Recording, recording: Recording) -> Adoption:
    by_urn = {change.new.urn: change for change in changes if change.new}
    adopted = {(item.type, name_of(item)) for item in before}
    schedules = [
        LeftOut(name=f"maintenance schedule {item.name}", reason=_OTHER_SCHEDULE)
        for item in draft.found.resources
        if item.type == aks.MAINTENANCE and draft.is_whole and (item.type, item.name) not in adopted
    ]
    rows: list[FieldRow] = []
    updates: list[UpdateRow] = []
    inline = {item.name for item in draft.found.pools if item.inline}
    for resource in before:
        new, change = recording[resource.urn], by_urn.get(resource.urn)
        fields = change.fields if change else ()
        rows += _rows(draft, resource, new, fields)
        updates += [
            UpdateRow(
                resource=name_of(new),
                path=item.path,
                old=item.old,
                new=item.new,
                recreates=recreates_nodes(new.type, item.path, item.old, item.new),
                reason=_why(draft, new, item),
            )
            for item in fields
        ]
    return Adoption(
        declaration=draft.declaration(),
        fields=tuple(rows),
        updates=tuple(updates),
        created=tuple(
            (change.new.type, change.new.name)
            for change in changes
            if change.new and not change.old and not change.new.type.startswith("pulumi:")
        ),
        left_out=(*draft.left_out, *schedules),
        resources=tuple(
            {"type": resource.type, "name": resource.name, "id": resource.id or ""}
            for resource in before
            if _key(resource) not in inline
        ),
        output_only={item.name: len(item.output_only) for item in draft.found.resources},
        before=before,
        recording=recording,
    )


def _rows(draft: Draft, old: Resource, new: Resource, changes: tuple[FieldChange, ...]) -> Iterator[FieldRow]:
    name = _key(new)
    own = draft.overrides.get(name, {}) if _has_overrides(new) else {}
    spelled = _spelled_otherwise(draft, name, new)
    for path, value in leaves(dict(old.inputs)):
        change = next((item for item in changes if item.old is not None and is_within(path, item.path)), None)
        status: Status = DECLARED
        reason = ""
        if any(is_within(path, item) for item in spelled):
            pass
        elif change is not None:
            status, reason = CHANGED, _reason(draft, new, change)
        elif at(own, path) is not None:
            status = OVERRIDDEN
        elif at(dict(new.inputs), path) is None:
            status, reason = _kept(draft, new, path, value) or (LEFT, "The cloud's own value, which stays.")
        yield FieldRow(resource=name_of(new), path=path, value=value, status=status, reason=reason)


def _spelled_otherwise(draft: Draft, name: str, new: Resource) -> tuple[str, ...]:
    """Return the paths of inputs whose declared field means the same as the found one: limits for each zone
    instead of totals, taints that the cloud adds, and the first day of a window that recurs."""
    written = _written_pool(draft, new)
    if written is None:
        window = "maintenancePolicy.recurringWindow"
        return (f"{window}.startTime", f"{window}.endTime") if "maintenance" in draft.cloud else ()
    assert draft.found.cloud  # noqa: S101 - a found cluster is of a cloud
    found = draft.read[name]
    same = {"nodes": found.nodes == written.nodes, "taints": _taints(found) == _taints(written)}
    fields = field_by_input(draft.found.cloud)
    return tuple(path for path, name in fields.items() if same.get(name))
