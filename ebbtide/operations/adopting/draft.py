"""A declaration that is being proved: its first version, and what is left out of it."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from ebbtide.analysis.reading.facts import RecordedPool
from ebbtide.declaration.catalog.clouds import is_gke_zone, region_of
from ebbtide.declaration.catalog.machines import spelled
from ebbtide.declaration.model.addons import Addons
from ebbtide.declaration.model.capacity import Queued
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool import Role
from ebbtide.declaration.model.resolved_pool import NO_ADDONS
from ebbtide.declaration.model.rules import overridable as override_rules
from ebbtide.operations.adopting import azure
from ebbtide.operations.adopting import declaration as writer
from ebbtide.operations.adopting.declaration import Fields
from ebbtide.operations.adopting.found import Found, FoundResource, LeftOut
from ebbtide.operations.adopting.kueue_objects import COMMAND
from ebbtide.values.cloud_kind import CloudKind, by_cloud
from ebbtide.values.paths import path_keys, path_text, value_at

_WITHHELD: Final = "It holds a secret, which no file of the stack may have: it stays as it is in the cloud."
_EMPTY: Final = (
    "It has neither nodes nor an autoscaler, and a declared pool has one of them. Give it a node, or switch "
    "its autoscaler on, and adopt again"
)
_AUTOSCALE: Final = by_cloud(
    gke="gcloud container clusters update {cluster} --project {project} --location {location} --node-pool "
    "{pool} --enable-autoscaling --min-nodes 0 --max-nodes N",
    aks="az aks nodepool update --resource-group {resourceGroupName} --cluster-name {cluster} --name {pool} "
    "--enable-cluster-autoscaler --min-count 0 --max-count N",
)
"""Commands that switch the autoscaler of a pool on (GKE docs, cluster-autoscaler; azure-aks-docs,
cluster-autoscaler; 2026)."""
_OF_OWNER: Final = "It is part of the cluster, and stays with the cluster's owner."
_WITHOUT_KUEUE: Final = (
    "Its nodes are queued, and the stack would install Kueue for it. If the cluster has Kueue, add its "
    f"objects with --context, or with --from: `{COMMAND}`."
)
_WITHOUT_QUEUES: Final = (
    "Its nodes are queued, and need a queue of the stack, which no ClusterQueue of the cluster becomes."
)
_NO_SYSTEM_POOL: Final = "No pool can be the system pool: none always has a node and admits any pod."
_WITH_KUEUE: Final = "It has a Kueue of its owner's, and a stack installs Kueue on a whole cluster itself."
_GKE_MANAGED: Final = "components.gke.io/gke-managed-components"
"""A taint that GKE's own pods tolerate (GKE docs, isolate-workloads-dedicated-nodes, 2026)."""
_MACHINE: Final = (
    "The document does not have its size. To adopt the pool, declare it with `machine: {{type: {}, vcpus: …, "
    "memoryGib: …}}`, and with `accelerators: {{type: …, count: …}}` in it for GPUs; and add its type, name "
    "and id to the file of the resources."
)
_OPTIONAL: Final = ("kubernetesVersion", "maintenance", "consolidation")
"""Fields of `cloud` without which it is the same cluster, as it is."""
_OF_NODES: Final = (
    "labels",
    "taints",
    "networkTags",
    "billing",
    "upgrade",
    "locationPolicy",
    "shutdownGrace",
)
"""Fields of a pool without which it is the same pool."""
_REMOVED: Final = {
    "labels": "The first update removes it from the nodes, and pods that select it no longer start there.",
    "taints": "The first update removes it from the nodes, and pods without its toleration start there, too.",
}
"""Consequences for the nodes of a pool, by the field of which a part is left out."""
_CHANGED: Final = "The first update changes it."


@dataclass(slots=True)
class Draft:
    """A declaration that is being proved.

    Attributes:
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
        """Whether the cluster itself is declared, and not its pools alone."""
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


def draft_of(found: Found, top: Fields, cloud: Fields, *, pools_only: bool, with_queues: bool) -> Draft:
    """Return the first declaration of a found cluster; arguments as for `proof.adopt`."""
    assert found.cloud  # noqa: S101 - a found cluster is of a cloud
    (cluster,) = found.clusters
    zones = found_zones(cluster)
    read = {
        resource.name: writer.read_pool(resource, found.cloud, cloud["location"], zones)
        for resource in found.pools
    }
    left_out = [
        *found.left_out,
        *(
            LeftOut(name=f"{path} of {item.name}", reason=_WITHHELD)
            for item in found.resources
            for path in item.withheld
        ),
    ]
    declared = (name for name, pool in read.items() if pool.role is Role.SYSTEM)
    others = (name for name, pool in read.items() if _can_be_system(pool))
    system = next(declared, None) or next(others, None)
    is_aks = found.cloud is CloudKind.AKS
    obstacles = (
        _NO_SYSTEM_POOL if system is None else "",
        azure.obstacle(found) if is_aks else "",
        _WITH_KUEUE if found.objects else "",
    )
    if not pools_only and (reason := next(filter(None, obstacles), "")):
        pools_only = True
        left_out.append(LeftOut(name="cluster", reason=reason))
    inline = {resource.name for resource in found.pools if resource.inline}
    addons = NO_ADDONS
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
            reason = _OF_OWNER
        elif name in is_queued and not has_queues:
            reason = _WITHOUT_QUEUES if found.objects else _WITHOUT_KUEUE
        elif pool.nodes.count == 0:
            place = {**cluster.inputs, "cluster": cluster.name, "pool": name}
            reason = f"{_EMPTY}: {_AUTOSCALE[found.cloud].format_map(place)}"
        else:
            is_system = not pools_only and name == system
            pools[name] = writer.pool_fields(
                pool, is_system=is_system, cluster=cluster, cloud=cloud, addons=addons
            )
            continue
        left_out.append(LeftOut(name=f"pool {name}", reason=reason))
    in_order = dict(sorted(pools.items(), key=lambda item: item[0] != system))
    fields = {key: value for key, value in cloud.items() if key != "overrides"}
    own = writer.existing_fields(fields, cluster.name) if pools_only else writer.cloud_fields(fields)
    overrides = {"": copy.deepcopy(cloud["overrides"])} if "overrides" in cloud and not pools_only else {}
    sizes = {item.name: str(item.inputs.get("vmSize", "")) for item in found.pools if item.name in pools}
    # The spelling is kept: for another one, the provider would replace the pool.
    overrides |= {name: {"vmSize": size} for name, size in sizes.items() if spelled(size) != size}
    return Draft(
        found=found,
        top=top,
        cloud=own,
        addons=addons,
        read=read,
        pools=in_order,
        left_out=left_out,
        overrides=overrides,
    )


def _can_be_system(pool: RecordedPool) -> bool:
    """Return whether a pool always has a node, and repels none of GKE's own pods."""
    always = bool(pool.nodes.count or pool.nodes.min)
    repelling = {taint.key for taint in pool.labels_and_taints.repelling}
    return always and pool.accelerator is None and repelling == {_GKE_MANAGED}


def found_zones(cluster: FoundResource) -> tuple[str, ...]:
    """Return the zones of a cluster, as far as it has them."""
    zones = cluster.inputs.get("nodeLocations")
    return tuple(str(zone) for zone in zones) if isinstance(zones, list) else ()


def without_faults(draft: Draft, faults: tuple[Fault, ...]) -> bool:
    """Leave out what the rules refuse: overrides, pools, or the cluster; false if that is not possible."""
    names, changed = list(draft.pools), False
    for fault in reversed(faults):  # of a list, the last item first
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
            case ("pools", int(index), str(field), *rest):
                without = f"{fault.problem} {_REMOVED.get(field, _CHANGED)}"
                if names[index] in draft.pools and not _drop(draft, names[index], (field, *rest), without):
                    draft.leave(names[index], reason)
                changed = True
            case ("cloud", "overrides", *rest):
                changed |= _refuse(draft, "", [str(key) for key in rest], reason)
            case ("cloud", "location") if "regions" not in draft.cloud:
                draft.cloud["regions"] = [_region(draft)]
                changed = True
            case ("cloud", str(field)) if (
                draft.is_whole and field in _OPTIONAL and draft.cloud.pop(field, None)
            ):
                draft.left_out.append(LeftOut(name=f"{field} of the cluster", reason=reason))
                changed = True
            case _ if draft.is_whole:
                keep_with_owner(draft, reason)
                return True
            case _:
                pass
    return changed


def _region(draft: Draft) -> Fields:
    """Return the region of the cluster, which is newer than the tables, with the zones of its pools."""
    location: str = draft.cloud["location"]
    pools = (zone for pool in draft.read.values() for zone in pool.zones)
    zones = dict.fromkeys((*found_zones(draft.found.clusters[0]), *pools))
    if is_gke_zone(location):
        zones[location] = None
    return {"name": region_of(location), **({"zones": list(zones)} if zones else {})}


def _drop(draft: Draft, name: str, keys: tuple[str | int, ...], reason: str) -> bool:
    """Leave a field of a pool out, or a part of it; false if the pool would be another one without it."""
    if keys[0] not in _OF_NODES:
        return False
    *above, last = keys
    if isinstance(last, str) and isinstance(value_at(draft.pools[name], path_text(above)), list):
        above, last = above[:-1], above[-1]
    while above and isinstance(above[-1], int):  # a key of a taint: the taint
        *above, last = above
    holder = value_at(draft.pools[name], path_text(above)) if above else draft.pools[name]
    if isinstance(holder, dict) and last in holder:
        del cast("Fields", holder)[str(last)]
    elif isinstance(holder, list) and isinstance(last, int):
        del cast("list[Any]", holder)[last]
    else:
        return False
    draft.left_out.append(LeftOut(name=f"{path_text(keys)} of pool {name}", reason=reason))
    return True


def _refuse(draft: Draft, name: str, keys: list[str], reason: str) -> bool:
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


def keep_with_owner(draft: Draft, reason: str) -> None:
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
