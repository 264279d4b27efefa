"""The shortest declaration of what was found: only fields whose value is not the derived default."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from enum import Enum
from typing import Any, Final, cast

from pydantic import BaseModel

from ebbtide.analysis.reading import aks, gke
from ebbtide.analysis.reading.facts import Inputs, RecordedPool
from ebbtide.analysis.recording.values import Plain
from ebbtide.declaration.catalog.clouds import GKE_REGION_ZONES, is_gke_zone
from ebbtide.declaration.catalog.machines import find_machine
from ebbtide.declaration.model.addons import Addons
from ebbtide.declaration.model.cloud import Aks, Gke
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.resolved_pool import resolve
from ebbtide.declaration.model.site import Site
from ebbtide.operations.adopting.found import FoundResource
from ebbtide.values import durations
from ebbtide.values.cloud_kind import CloudKind, by_cloud

Fields = dict[str, Any]

_UNWRITTEN: Final = {"role", "overrides", "drain_timeout"}
_KEPT: Final = {"name", "machine", "kind"}
"""Fields that are always written."""

_DEFAULT_PODS: Final = 110
"""Pods of a node of a cluster that declares no number (GKE docs, flexible-pod-cidr, 2026)."""


def read_pool(resource: FoundResource, cloud: CloudKind, location: str, zones: Sequence[str]) -> RecordedPool:
    """Return a found pool as the pool that its inputs describe.

    Args:
        location: zone or region of its cluster.
        zones: zones of its cluster, as far as known.
    """
    inputs = Inputs(resource.inputs)
    match cloud:
        case CloudKind.GKE:
            return gke.read_pool(inputs, location, default_zones=tuple(zones), cluster="")
        case CloudKind.AKS:
            subnet = inputs.text("vnetSubnetID") or None
            return aks.read_pool(inputs, location, name=resource.name, cluster="", subnet=subnet)


def pool_fields(
    pool: RecordedPool, *, is_system: bool, cluster: FoundResource, cloud: Fields, addons: Addons
) -> Fields:
    """Return the declaration of a pool.

    Args:
        addons: the declared add-ons, from which defaults follow.
        is_system: whether it is the system pool.
        cluster: its cluster, for the defaults that it has for its pools.
        cloud: the declared cloud, whose subnet pools have by default.
    """
    fields: Fields = {"name": pool.name}
    if is_system:
        fields["role"] = "system"
    for name, field in Pool.model_fields.items():
        value = _written(getattr(pool, name))
        if name not in _UNWRITTEN and value not in (None, {}):
            fields[field.alias or name] = value
    fields["machine"] = _machine(pool)
    # An empty list is declared, too: without it, Ebbtide's own taint is derived.
    fields["taints"] = _written(pool.taints or ())
    if pool.site.cloud is CloudKind.GKE:
        fields = _without_cluster_defaults(fields, pool.site, cluster)
    if fields.get("subnet") == cloud.get("network", {}).get("subnet"):
        fields.pop("subnet", None)
    with suppress(ValueError):  # the rules say what is wrong with it
        fields = pruned(fields, lambda candidate: _resolved(candidate, pool.site, addons))
    return shorthand(fields)


def inherited(cluster: FoundResource) -> Mapping[str, tuple[Plain, ...]]:
    """Return the values that a pool without its own has from its cluster, by path in the pool's inputs."""
    inputs = Inputs(cluster.inputs)
    if cluster.type != gke.CLUSTER:
        return {}
    return {
        "nodeLocations": inputs.texts("nodeLocations") or (inputs.text("location"),),
        "maxPodsPerNode": (inputs.number("defaultMaxPodsPerNode") or _DEFAULT_PODS,),
        "networkConfig.podRange": (inputs.text("ipAllocationPolicy.clusterSecondaryRangeName"),),
        "networkConfig.enablePrivateNodes": (inputs.flag("privateClusterConfig.enablePrivateNodes"),),
    }


def is_region(cluster: FoundResource) -> bool:
    """Return whether a GKE cluster has as many zones as its region gives it by default."""
    return len(inherited(cluster).get("nodeLocations", ())) == GKE_REGION_ZONES


def _without_cluster_defaults(fields: Fields, site: Site, cluster: FoundResource) -> Fields:
    """Return a GKE pool's fields without what it has from its cluster: its zones, and the number of pods."""
    from_cluster = inherited(cluster)
    zones = from_cluster["nodeLocations"]
    assumed = 1 if is_gke_zone(site.location) else GKE_REGION_ZONES
    own = {
        key: value for key, value in fields.items() if value or key in ("taints", "autoRepair", "autoUpgrade")
    }
    if set(zones) == set(fields.get("zones", ())) and len(zones) == assumed:
        own.pop("zones", None)
    if fields.get("maxPodsPerNode") in from_cluster["maxPodsPerNode"]:
        own.pop("maxPodsPerNode")
    return own


def _machine(pool: RecordedPool) -> Fields | None:
    """Return the machine type, with its resources if the catalog does not have it."""
    if pool.machine is None:
        return None
    shape: Fields = {"type": pool.machine.type}
    if pool.hardware is not None and find_machine(pool.site.cloud, pool.machine.type) is None:
        shape |= {"vcpus": pool.hardware.vcpus, "memoryGib": pool.hardware.memory_gib}
    return shape


def cloud_fields(fields: Fields) -> Fields:
    """Return a `cloud` without its defaults."""
    model, given = by_cloud(gke=Gke, aks=Aks)[fields["kind"]], _given(fields)
    with suppress(ValueError):  # the rules say what is wrong with it
        return pruned(given, lambda candidate: _written(model.model_validate(candidate)))
    return given


def _given(fields: Fields) -> Fields:
    """Return an object without empty values, at any depth."""
    inner = {
        key: _given(cast("Fields", value)) if isinstance(value, dict) else value
        for key, value in fields.items()
    }
    return {key: value for key, value in inner.items() if value not in (None, "", {}, [])}


def existing_fields(cloud: Fields, name: str) -> Fields:
    """Return the `cloud` of a cluster that stays with its owner: pools are added to it."""
    of_cluster = ("kind", "project", "subscription", "resourceGroup", "location", "regions")
    fields: Fields = {key: cloud[key] for key in of_cluster if key in cloud}
    keys = cast("Fields", cloud.get("keys") or {})
    if keys.get("disks"):
        fields["keys"] = {"disks": keys["disks"], "grant": False}
    subnet = cast("Fields", cloud.get("network") or {}).get("subnet")
    if subnet and cloud["kind"] == CloudKind.AKS.value:
        fields["network"] = {"subnet": subnet}  # of new pools, too: AKS wants all in one network
    return fields | {"existing": {"name": name}}


def shorthand(fields: Fields) -> Fields:
    """Return a pool with names instead of objects that have nothing else."""
    result = dict(fields)
    for name, key in (("machine", "type"), ("capacity", "kind")):
        if isinstance(result.get(name), dict) and list(result[name]) == [key]:
            result[name] = result[name][key]
    return result


def _resolved(fields: Fields, site: Site, addons: Addons) -> object:
    """Return the properties of a pool's nodes, which its declaration determines."""
    pool = resolve(Pool.model_validate(fields), site, addons)
    derived = pool.labels_and_taints
    shown = {
        name: _written(getattr(pool, name)) for name in Pool.model_fields if name not in ("labels", "taints")
    }
    return shown, dict(derived.labels), {str(taint) for taint in derived.all_taints}


def pruned(fields: Fields, meaning: Callable[[Fields], object]) -> Fields:
    """Return an object without the fields, at any depth, that change nothing of its meaning.

    Args:
        meaning: returns an object's meaning, and raises `ValueError` for an invalid object.

    Raises:
        ValueError: the object is invalid.
    """
    wanted, result = meaning(fields), fields
    for keys in list(_paths(fields)):
        shorter = _without(result, keys)
        if shorter is None:
            continue
        try:
            if meaning(shorter) == wanted:
                result = shorter
        except ValueError:
            continue
    return result


def _paths(fields: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the keys of all values that may be omitted, those of an object before those in it."""
    for key, value in fields.items():
        if key not in _KEPT:
            yield (*above, key)
        if isinstance(value, dict):
            yield from _paths(cast("Fields", value), (*above, key))


def _without(fields: Fields, keys: tuple[str, ...]) -> Fields | None:
    """Return a copy without the value at keys; None if there is none."""
    result = copy.deepcopy(fields)
    holder: Any = result
    for key in keys[:-1]:
        holder = cast("Fields", holder).get(key)
        if not isinstance(holder, dict):
            return None
    return None if cast("Fields", holder).pop(keys[-1], None) is None else result


def _written(value: Any) -> Any:
    """Return a value of the model as YAML has it, without absent fields."""
    match value:
        case BaseModel():
            fields = type(value).model_fields
            items = {field.alias or name: _written(getattr(value, name)) for name, field in fields.items()}
            return {key: item for key, item in items.items() if item is not None}
        case timedelta():
            return durations.in_one_unit(value)
        case Enum():
            return value.value
        case tuple() | list():
            return [_written(item) for item in cast("Sequence[Any]", value)]
        case dict():
            return {key: _written(item) for key, item in cast("Fields", value).items()}
        case _:
            return value
