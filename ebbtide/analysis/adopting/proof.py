"""The declaration of a found cluster, proved by going forward: recorded, and compared with what was found.

Every difference becomes an override, or is listed with its reason. A pool with a difference that would
replace it is left out; a cluster with one stays with its owner, and its pools are declared.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from ebbtide.analysis.adopting import azure
from ebbtide.analysis.adopting import declaration as writer
from ebbtide.analysis.adopting.adoption import (
    DECLARED,
    LEFT,
    OVERRIDDEN,
    Adoption,
    FieldRow,
    Status,
    UpdateRow,
    shown,
)
from ebbtide.analysis.adopting.declaration import Fields
from ebbtide.analysis.adopting.found import CLUSTERS, POOLS, AdoptionError, Found, FoundResource, LeftOut
from ebbtide.analysis.adopting.kueue_objects import COMMAND
from ebbtide.analysis.providers.changes import FieldChange
from ebbtide.analysis.providers.property_path import plain_path
from ebbtide.analysis.reading import aks, gke
from ebbtide.analysis.reading.facts import RecordedPool
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.analysis.recording.values import UNKNOWN, Plain, at, leaves, revealed
from ebbtide.analysis.review.difference import Change, compare
from ebbtide.declaration.catalog.machines import spelled
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.declaration.model import declare
from ebbtide.declaration.model.addons import Addons
from ebbtide.declaration.model.capacity import Queued
from ebbtide.declaration.model.faults import DeclarationError, Fault
from ebbtide.declaration.model.pool import Role, field_by_input
from ebbtide.declaration.model.resolved_pool import NO_ADDONS
from ebbtide.declaration.model.rules import overrides as override_rules
from ebbtide.declaration.providers.constraints import constraints_of
from ebbtide.values.paths import ancestors, is_within, path_keys

Record = Callable[[Fields], Recording]
"""Records the stack's program with a declaration. Raises `EbbtideError` if the program fails."""

_NAMES: Final = {
    gke.CLUSTER: "name",
    gke.NODE_POOL: "name",
    aks.CLUSTER: "resourceName",
    aks.AGENT_POOL: "agentPoolName",
    aks.MAINTENANCE: "configName",
}
"""The input with a resource's name in the cloud."""

_ROUNDS: Final = 6


@dataclass(slots=True)
class _Draft:
    """A declaration that is being proved.

    Attributes:
        cloud: the declaration's `cloud`.
        addons: the declared add-ons.
        read: the found pools, by name.
        pools: the fields of each pool, by name.
        overrides: overrides by the name of a pool; of the cluster under an empty name.
        refused: reasons by resource and path for which a value cannot be overridden.
    """

    found: Found
    top: Fields
    cloud: Fields
    addons: Addons
    read: Mapping[str, RecordedPool]
    pools: dict[str, Fields]
    left_out: list[LeftOut]
    overrides: dict[str, Fields] = field(default_factory=dict[str, Fields])
    refused: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    @property
    def is_whole(self) -> bool:
        return "existing" not in self.cloud

    def declaration(self) -> Fields:
        """Return the object under `ebbtide:cluster`. Pools of a cluster that stays with its owner are
        protected, as a whole cluster is."""

        def with_overrides(fields: Fields, name: str) -> Fields:
            own = _without_empty(self.overrides.get(name, {}))
            return copy.deepcopy({**fields, "overrides": own} if own else fields)

        protection = {} if self.is_whole else {"protect": True}
        pools = [with_overrides({**fields, **protection}, name) for name, fields in self.pools.items()]
        return {**self.top, "cloud": with_overrides(self.cloud, ""), "pools": pools}

    def rules(self, name: str) -> override_rules.Overridable:
        """Return the rules of the overrides of a pool, or of the cluster under an empty name."""
        assert self.found.cloud  # noqa: S101 - a found cluster is of a cloud
        if name:
            return override_rules.POOLS[self.found.cloud].beside(self.top)
        declared = [*self.top, *(["cloud.maintenance"] if "maintenance" in self.cloud else [])]
        return override_rules.CLUSTERS[self.found.cloud].beside(declared)

    def leave(self, name: str, reason: str) -> None:
        """Leave a pool out."""
        del self.pools[name]
        self.overrides.pop(name, None)
        self.left_out.append(LeftOut(name=f"pool {name}", reason=reason))


def _without_empty(overrides: Fields) -> Fields:
    """Return overrides without objects that have nothing left."""
    items = {
        key: _without_empty(cast("Fields", value)) if isinstance(value, dict) else value
        for key, value in overrides.items()
    }
    return {key: value for key, value in items.items() if value != {}}


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
    draft = _draft(found, top, cloud, pools_only=pools_only, with_queues=with_queues)
    for _ in range(_ROUNDS + len(draft.pools)):
        recorded = _recorded(draft, record)
        if recorded is None:
            continue
        recording = azure.with_separate_pools(recorded)
        before = _before(found, recording)
        compared = compare(before, recording, deployed=True)
        changes = tuple(_settled(draft, change) for change in compared)
        if not _improve(draft, changes, before, recording):
            return replace(_adoption(draft, changes, before, recording), recording=recorded)
    raise AdoptionError("The declaration of the cluster does not settle.")


def _draft(found: Found, top: Fields, cloud: Fields, *, pools_only: bool, with_queues: bool) -> _Draft:
    assert found.cloud  # noqa: S101 - a found cluster is of a cloud
    (cluster,) = found.clusters
    zones = found_zones(cluster)
    read = {
        resource.name: writer.read_pool(resource, found.cloud, cloud["location"], zones)
        for resource in found.pools
    }
    left_out = list(found.left_out)
    system = next(
        (name for rank in (_is_system, _can_be_system) for name, pool in read.items() if rank(pool)), None
    )
    if not pools_only and system is None:
        pools_only = True
        reason = "No pool can be the system pool: none always has a node and admits any pod."
        left_out.append(LeftOut(name="cluster", reason=reason))
    if not pools_only and found.cloud is CloudKind.AKS and (reason := azure.obstacle(found)):
        pools_only = True
        left_out.append(LeftOut(name="cluster", reason=reason))
    if not pools_only and found.objects:
        pools_only = True
        left_out.append(LeftOut(name="cluster", reason=_WITH_KUEUE))
    inline = {resource.name for resource in found.pools if resource.inline}
    addons = NO_ADDONS
    is_aks = found.cloud is CloudKind.AKS
    if any(pool.has_gpus and (is_aks or not pool.has_cloud_driver) for pool in read.values()):
        # Something else installs the driver, or the device plugin that AKS has not, and goes on to do so.
        addons = Addons(drivers="none")
        top = {**top, "addons": {"drivers": "none"}}
    is_queued = {name for name, pool in read.items() if isinstance(pool.capacity, Queued)}
    has_queues = bool(found.objects) and with_queues
    if is_queued and has_queues:
        top = {**top, "addons": {**top.get("addons", {}), "kueue": {"existing": True}}}
    pools: dict[str, Fields] = {}
    for name, pool in read.items():
        if pools_only and name in inline:
            left_out.append(LeftOut(name=f"pool {name}", reason=_OF_OWNER))
            continue
        if name in is_queued and not has_queues:
            reason = _WITHOUT_QUEUES if found.objects else _WITHOUT_KUEUE
            left_out.append(LeftOut(name=f"pool {name}", reason=reason))
            continue
        try:
            is_system = not pools_only and name == system
            pools[name] = writer.pool_fields(
                pool, is_system=is_system, cluster=cluster, cloud=cloud, addons=addons
            )
        except ValueError as error:
            left_out.append(LeftOut(name=f"pool {name}", reason=_one_line(error)))
    in_order = dict(sorted(pools.items(), key=lambda item: item[0] != system))
    fields = {key: value for key, value in cloud.items() if key != "overrides"}
    own = writer.existing_fields(fields, cluster.name) if pools_only else writer.cloud_fields(fields)
    overrides = {"": copy.deepcopy(cloud["overrides"])} if "overrides" in cloud and not pools_only else {}
    sizes = {item.name: str(item.inputs.get("vmSize", "")) for item in found.pools if item.name in pools}
    # The spelling is kept: for another one, the provider would replace the pool.
    overrides |= {name: {"vmSize": size} for name, size in sizes.items() if spelled(size) != size}
    return _Draft(
        found=found,
        top=top,
        cloud=own,
        addons=addons,
        read=read,
        pools=in_order,
        left_out=left_out,
        overrides=overrides,
    )


_OF_OWNER: Final = "It is part of the cluster, and stays with the cluster's owner."
_WITHOUT_KUEUE: Final = (
    "Its nodes are queued, and the stack would install Kueue for it. If the cluster has Kueue, add its "
    f"objects with --context, or with --from: `{COMMAND}`."
)
_WITHOUT_QUEUES: Final = (
    "Its nodes are queued, and need a queue of the stack, which no ClusterQueue of the cluster becomes."
)
_WITH_KUEUE: Final = "It has a Kueue of its owner's, and a stack installs Kueue on a whole cluster itself."
_GKE_MANAGED: Final = "components.gke.io/gke-managed-components"
"""A taint that GKE's own pods tolerate (GKE docs, isolate-workloads-dedicated-nodes, 2026)."""


def _is_system(pool: RecordedPool) -> bool:
    return pool.role is Role.SYSTEM


def _can_be_system(pool: RecordedPool) -> bool:
    """Return whether a pool always has a node, and repels none of GKE's own pods."""
    always = bool(pool.nodes.count or pool.nodes.min)
    repelling = {taint.key for taint in pool.labels_and_taints.repelling}
    return always and pool.accelerator is None and repelling == {_GKE_MANAGED}


def found_zones(cluster: FoundResource) -> tuple[str, ...]:
    """Return the zones of a cluster, as far as it has them."""
    zones = cluster.inputs.get("nodeLocations")
    return tuple(str(zone) for zone in zones) if isinstance(zones, list) else ()


def _one_line(error: ValueError) -> str:
    return " ".join(str(error).split())


def _recorded(draft: _Draft, record: Record) -> Recording | None:
    """Record the declaration; None if it was invalid, and a part of it has been left out."""
    if not draft.pools:
        reasons = "\n".join(f"{part.name}: {part.reason}" for part in draft.left_out)
        raise AdoptionError(f"No pool of the cluster can be adopted.\n{reasons}")
    declaration = draft.declaration()
    try:
        declare.declare(declaration)
    except DeclarationError as error:
        if not _without_faults(draft, error.faults):
            raise
        return None
    return record(declaration)


def _without_faults(draft: _Draft, faults: tuple[Fault, ...]) -> bool:
    """Leave out what the rules refuse: overrides, pools, or the cluster; false if that is not possible."""
    names, changed = list(draft.pools), False
    for fault in faults:
        keys = path_keys(fault.path)
        reason = f"{fault.problem} {fault.consequence}"
        match keys:
            case ("pools", int(index), "machine") if names[index] in draft.pools:
                machine = draft.read[names[index]].machine
                reason = _MACHINE.format(machine.type) if machine and not machine.vcpus else ""
                draft.leave(names[index], f"{fault.problem} {reason or fault.consequence}")
                changed = True
            case ("pools", int(index), "overrides", *rest):
                changed |= _refuse(draft, names[index], [str(key) for key in rest], reason)
            case ("pools", int(index), *_):
                if names[index] in draft.pools:
                    draft.leave(names[index], reason)
                changed = True
            case ("cloud", "overrides", *rest):
                changed |= _refuse(draft, "", [str(key) for key in rest], reason)
            case _ if draft.is_whole:
                _keep_with_owner(draft, reason)
                return True
            case _:
                pass
    return changed


_MACHINE: Final = (
    "The document does not have its size. To adopt the pool, declare it with `machine: {{type: {}, vcpus: …, "
    "memoryGib: …}}`, and with `accelerators: {{type: …, count: …}}` in it for GPUs; and add its type, name "
    "and id to the file of the resources."
)


def _refuse(draft: _Draft, name: str, keys: list[str], reason: str) -> bool:
    """Remove an override."""
    while keys:
        holder: Any = draft.overrides.get(name, {})
        for key in keys[:-1]:
            holder = cast("Fields", holder).get(key) if isinstance(holder, dict) else None
        if isinstance(holder, dict) and cast("Fields", holder).pop(keys[-1], None) is not None:
            draft.refused[name, ".".join(keys)] = reason
            return True
        keys = keys[:-1]
    return False


def _keep_with_owner(draft: _Draft, reason: str) -> None:
    """Declare pools alone."""
    (cluster,) = draft.found.clusters
    draft.left_out.append(LeftOut(name="cluster", reason=reason))
    draft.cloud = writer.existing_fields(draft.cloud, cluster.name)
    draft.overrides.pop("", None)
    for resource in draft.found.pools:
        if resource.inline and resource.name in draft.pools:
            draft.leave(resource.name, _OF_OWNER)
    for name in draft.pools:
        draft.pools[name] = writer.pool_fields(
            draft.read[name], is_system=False, cluster=cluster, cloud=draft.cloud, addons=draft.addons
        )


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


def _improve(draft: _Draft, changes: tuple[Change, ...], before: Recording, recording: Recording) -> bool:
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
                _keep_with_owner(draft, reason)
            return True
    for resource in filter(_has_overrides, before) if not changed else ():
        changed |= _override_kept(draft, resource, recording[resource.urn])
    return changed


def _settled(draft: _Draft, change: Change) -> Change:
    """Return a change without fields that the cloud does not tell from absent ones, and without taints that
    it adds by itself; a field that it refuses needs a new resource."""
    if change.old is None or change.new is None:
        return change
    fields = [
        replace(item, replaces=item.replaces or azure.is_refused(change.resource.type, item))
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


def _written_pool(draft: _Draft, new: Resource) -> RecordedPool | None:
    """Return the pool that a recorded resource describes; None for a cluster."""
    name = _key(new)
    if not name:
        return None
    assert draft.found.cloud  # noqa: S101 - a found cluster is of a cloud
    (cluster,) = draft.found.clusters
    resource = FoundResource(type=new.type, id="", name=name, inputs=new.inputs)
    location = draft.read[name].site.location
    return writer.read_pool(resource, draft.found.cloud, location, found_zones(cluster))


_ZEROES: Final = (False, 0)


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


def _override_kept(draft: _Draft, old: Resource, new: Resource) -> bool:
    """Override inputs that the program omits and the provider would keep, so that the declaration has all of
    them; false if there are none."""
    changed = False
    for path, value in leaves(dict(old.inputs)):
        if at(dict(new.inputs), path) is None and not _kept(draft, new, path, value):
            changed |= _override(draft, _key(new), FieldChange(path, value, None, replaces=False))
    return changed


def _kept(draft: _Draft, new: Resource, path: str, value: Plain) -> tuple[Status, str] | None:
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


_RECREATING: Final = ("nodeConfig.kubeletConfig", "nodeConfig.linuxNodeConfig")
"""Inputs of GKE's pools whose change recreates their nodes (GKE docs, node-system-config, 2026), which the
first update should not."""


def _override(draft: _Draft, name: str, change: FieldChange) -> bool:
    """Add an override of a found value; false if it is not possible."""
    value, path = change.old, change.path
    if not name and not draft.is_whole:
        return False
    rules = draft.rules(name)
    if "[" in path:
        path = path.partition("[")[0]
        resources = (item for item in draft.found.resources if _is(item, name))
        value = at(dict(next(resources).inputs), path)
    plain, constraints = plain_path(path), constraints_of(rules.token)
    if value in (None, UNKNOWN) and change.replaces:
        value = constraints.defaults.get(plain)
    elif value is None and plain in constraints.fills and any(is_within(path, item) for item in _RECREATING):
        value = constraints.fills[plain]
    if value is None or _obstacle(rules, path, value) or (name, path) in draft.refused:
        return False
    holder = draft.overrides.setdefault(name, {})
    *parents, last = [str(key) for key in path_keys(path)]
    for parent in parents:
        holder = holder.setdefault(parent, {})
    if holder.get(last) == value:
        return False
    holder[last] = copy.deepcopy(value)
    return True


def _is(resource: FoundResource, name: str) -> bool:
    return (resource.type in CLUSTERS.values()) if not name else resource.name == name


def _obstacle(rules: override_rules.Overridable, path: str, value: Plain) -> str:
    """Return why an input cannot have a value by an override; empty if it can."""
    plain = plain_path(path)
    for parent in (plain, *ancestors(plain)):
        if (known := rules.derived.get(parent)) is not None:
            return f"it follows from {known}"
        relied = rules.relied_on.get(parent)
        if relied is not None and value != relied.value:
            return relied.otherwise
    return ""


def _reason(draft: _Draft, resource: Resource, change: FieldChange) -> str:
    """Return why a difference remains, as a sentence."""
    name = _key(resource)
    rules = draft.rules(name)
    obstacle = draft.refused.get((name, change.path)) or _obstacle(rules, change.path, change.old)
    new = "removes it" if change.new is None else f"sets {shown(change.new)}"
    return f"Ebbtide {new}{': ' if obstacle else ''}{obstacle}".rstrip(".") + "."


def _adoption(
    draft: _Draft, changes: tuple[Change, ...], before: Recording, recording: Recording
) -> Adoption:
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
            UpdateRow(resource=name_of(new), path=item.path, old=item.old, new=item.new) for item in fields
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


_OTHER_SCHEDULE: Final = (
    "A declaration has one window for upgrades of Kubernetes and of node images, which recurs daily or "
    "weekly in UTC. This schedule stays as it is, outside of the stack."
)


def _rows(
    draft: _Draft, old: Resource, new: Resource, changes: tuple[FieldChange, ...]
) -> Iterator[FieldRow]:
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
            status, reason = LEFT, _reason(draft, new, change)
        elif at(own, path) is not None:
            status = OVERRIDDEN
        elif at(dict(new.inputs), path) is None:
            status, reason = _kept(draft, new, path, value) or (LEFT, "The cloud's own value, which stays.")
        yield FieldRow(resource=name_of(new), path=path, value=value, status=status, reason=reason)


def _spelled_otherwise(draft: _Draft, name: str, new: Resource) -> tuple[str, ...]:
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
