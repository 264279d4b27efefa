"""A declaration for a replay: node pools, Kueue objects, and the pools of each queue and flavor."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import yaml

from ebbtide.analysis.costs.charges import node_price
from ebbtide.analysis.reading.facts import RecordedPool
from ebbtide.analysis.reading.pools import read_pools
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.catalog import CloudKind
from ebbtide.placement import NodeTaint
from ebbtide.placement.profile import PoolProfile, Profile
from ebbtide.placement.profile_sources import is_profile_text
from ebbtide_rehearsal.cloud.pools import NO_ZONE, NodePool, node_pool
from ebbtide_rehearsal.failures import RehearsalError
from ebbtide_rehearsal.replay.nodes import Shape
from ebbtide_rehearsal.report.cost import Rates, rates

_KUEUE: Final = "kubernetes:kueue.x-k8s.io/"
_NAMESPACE: Final = "kubernetes:core/v1:Namespace"
_CHART: Final = "kubernetes:helm.sh/v4:Chart"
_DEFAULTS: Final = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
"""The configuration of a Kueue that the stack does not install."""


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """A LocalQueue, or a pool for work in no queue.

    Attributes:
        name: namespace and name; a pool may have a namespace.
        cluster_queue: its ClusterQueue; empty for a pool.
        pools: names of the pools of its flavors, in order of preference.
    """

    name: str
    cluster_queue: str
    pools: tuple[str, ...]

    def __str__(self) -> str:
        """Return its kind and name."""
        return f"{'pool' if self.is_pool else 'queue'} {self.name}"

    @property
    def team(self) -> str:
        """Return the namespace of the team; `(none)` without one."""
        return self.name.rpartition("/")[0] or "(none)"

    @property
    def is_pool(self) -> bool:
        """Return whether it is a pool, whose pods wait for nodes alone."""
        return not self.cluster_queue


@dataclass(frozen=True, slots=True)
class Flavor:
    """A ResourceFlavor.

    Attributes:
        name: its name.
        pools: names of the pools whose nodes it selects.
        queued: whether they are provisioned by ProvisioningRequests.
        labels: node labels that it selects.
    """

    name: str
    pools: tuple[str, ...]
    queued: bool
    labels: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Declaration:
    """A declaration.

    Attributes:
        name: its name in the report.
        pools: its node pools.
        capacity: capacity of a node for pods, by pool.
        accelerators: type of accelerators, by pool; empty for none.
        objects: its Kueue objects.
        queues: its LocalQueues, by name.
        flavors: its ResourceFlavors, by name.
        priorities: values of its WorkloadPriorityClasses.
        rates: charges besides nodes.
        configuration: configuration of its Kueue.
        namespaces: labels of its namespaces.
        work_pools: names of the pools besides the system pool.
    """

    name: str
    pools: tuple[NodePool, ...]
    capacity: Mapping[str, Shape]
    accelerators: Mapping[str, str]
    objects: tuple[Mapping[str, Any], ...]
    queues: Mapping[str, LocalQueue]
    flavors: Mapping[str, Flavor]
    priorities: Mapping[str, int]
    rates: Rates = field(default_factory=Rates)
    configuration: Mapping[str, Any] = field(default_factory=_DEFAULTS.copy)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    work_pools: tuple[str, ...] = ()

    def pool(self, name: str) -> NodePool:
        """Return a pool by name."""
        return next(pool for pool in self.pools if pool.name == name)

    def pool_queue(self, name: str) -> LocalQueue | None:
        """Return the pool that work in no queue names, as `pool` or `namespace/pool`; None if it is none, or
        a LocalQueue of another namespace has its name."""
        namespace, _, pool = name.rpartition("/")
        is_queue = namespace and any(queue.endswith(f"/{pool}") for queue in self.queues)
        return LocalQueue(name, "", (pool,)) if pool in self.capacity and not is_queue else None

    def selector(self, pools: Iterable[str], accelerator: str) -> dict[str, str]:
        """Return the node labels that the flavors with an accelerator share, among those of some pools."""
        chosen = {pool for pool in pools if self.accelerators[pool] == accelerator}
        labels = [flavor.labels for flavor in self.flavors.values() if chosen & set(flavor.pools)]
        return (
            dict(set[tuple[str, str]].intersection(*(set(one.items()) for one in labels))) if labels else {}
        )


def declaration(name: str, recording: Recording) -> Declaration:
    """Read a declaration from a recorded program.

    Raises:
        RehearsalError: the program has no placement profile.
    """
    text = next((value for value in recording.outputs.values() if is_profile_text(str(value))), None)
    if text is None:
        raise RehearsalError(
            f"{name} has no placement profile among its outputs, so the capacity of its nodes is unknown. "
            "Export one, as the program of `ebbtide` projects does."
        )
    profiles = {pool.name: pool for pool in Profile.load(str(text)).pools}
    pools = tuple(_pool(pool, profiles[pool.name]) for pool in read_pools(recording) if pool.name in profiles)
    objects = tuple(
        cast("Mapping[str, Any]", resource.inputs)
        for resource in recording
        if resource.type.startswith(_KUEUE)
    )
    namespaces = {
        metadata["name"]: metadata.get("labels", {})
        for metadata in (
            cast("Any", resource.inputs)["metadata"] for resource in recording if resource.type == _NAMESPACE
        )
    }
    return assembled(
        name,
        pools,
        profiles,
        objects,
        rates=rates(recording),
        configuration=_configuration(recording),
        namespaces=namespaces,
    )


def assembled(
    name: str,
    pools: tuple[NodePool, ...],
    profiles: Mapping[str, PoolProfile],
    objects: tuple[Mapping[str, Any], ...],
    **others: Any,
) -> Declaration:
    """Return a declaration of node pools and Kueue's objects.

    Args:
        name: its name in the report.
        pools: its node pools.
        profiles: their profiles, by name.
        objects: its Kueue objects.
        others: further fields of the declaration.
    """
    flavors = {
        flavor["metadata"]["name"]: _flavor(flavor, pools, profiles)
        for flavor in _kind(objects, "ResourceFlavor")
    }
    return Declaration(
        name=name,
        pools=pools,
        capacity={pool.name: _capacity(pool, profiles[pool.name]) for pool in pools},
        accelerators={pool.name: pool.accelerator[0] if pool.accelerator else "" for pool in pools},
        objects=objects,
        queues=dict(_queues(objects, flavors)),
        flavors=flavors,
        priorities={
            item["metadata"]["name"]: int(item["value"]) for item in _kind(objects, "WorkloadPriorityClass")
        },
        work_pools=tuple(pool.name for pool in pools if profiles[pool.name].role != "system"),
        **others,
    )


def _configuration(recording: Recording) -> Mapping[str, Any]:
    """Return the configuration of Kueue's controller in the values of its chart."""
    for resource in recording:
        if resource.type == _CHART:
            values = cast("Mapping[str, Any]", resource.inputs.get("values") or {})
            if config := values.get("managerConfig"):
                return yaml.safe_load(config["controllerManagerConfigYaml"])
    return _DEFAULTS


def _kind(objects: Sequence[Mapping[str, Any]], kind: str) -> Iterator[Mapping[str, Any]]:
    return (item for item in objects if item["kind"] == kind)


def _pool(pool: RecordedPool, profile: PoolProfile) -> NodePool:
    """Return a pool for the autoscaler's decisions; the profile has what its nodes offer to pods.

    A pool without its own zones has the cluster's zone, or the region, whose zones share its minimum and
    maximum.
    """
    default = NO_ZONE if pool.site.cloud is CloudKind.AKS else pool.site.location
    taints = pool.labels_and_taints.all_taints
    return node_pool(
        pool,
        cluster=pool.cluster,
        region=pool.site.region,
        zones=pool.zones or (default,),
        initial=pool.idle_nodes if pool.initial_nodes is None else pool.initial_nodes,
        labels=profile.labels,
        taints=tuple(NodeTaint(taint.key, taint.value, taint.effect.value) for taint in taints),
        allocatable={"cpu": f"{profile.cpu_m}m", "memory": f"{profile.memory_mib}Mi"},
        driver_installed=True,
        hourly=node_price(pool).known,
    )


def _capacity(pool: NodePool, profile: PoolProfile) -> Shape:
    gpus = profile.accelerator.count if profile.accelerator else 0
    return Shape(profile.cpu_m, profile.memory_mib, gpus, pool.accelerator_resource)


def _flavor(
    item: Mapping[str, Any], pools: Sequence[NodePool], profiles: Mapping[str, PoolProfile]
) -> Flavor:
    labels: Mapping[str, str] = item["spec"].get("nodeLabels", {})
    chosen = tuple(pool for pool in pools if _selects(labels, profiles[pool.name].labels))
    return Flavor(
        item["metadata"]["name"],
        tuple(pool.name for pool in chosen),
        any(pool.capacity == "queued" for pool in chosen),
        labels,
    )


def _selects(flavor: Mapping[str, str], pool: Mapping[str, str]) -> bool:
    """Return whether a flavor selects a pool; labels that the cloud adds need not be recorded."""
    shared = flavor.keys() & pool.keys()
    return bool(shared) and all(flavor[key] == pool[key] for key in shared)


def _queues(
    objects: Sequence[Mapping[str, Any]], flavors: Mapping[str, Flavor]
) -> Iterator[tuple[str, LocalQueue]]:
    cluster_queues = {item["metadata"]["name"]: item for item in _kind(objects, "ClusterQueue")}
    for item in _kind(objects, "LocalQueue"):
        name = f"{item['metadata']['namespace']}/{item['metadata']['name']}"
        cluster_queue = item["spec"]["clusterQueue"]
        groups = cluster_queues.get(cluster_queue, {}).get("spec", {}).get("resourceGroups", ())
        names = [flavor["name"] for group in groups for flavor in group["flavors"]]
        pools = dict.fromkeys(pool for flavor in names if flavor in flavors for pool in flavors[flavor].pools)
        yield name, LocalQueue(name, cluster_queue, tuple(pools))
