"""Clusters, node pools and queues of a recording, on any cloud: accounts, admission and fallbacks, and the
Kueue queues of a pool: local queue, cluster queue, flavor, node labels (kueue.x-k8s.io, v1beta2).
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, assert_never

import yaml
from pydantic import TypeAdapter, ValidationError

from ebbtide.analysis.reading import aks, gke
from ebbtide.analysis.reading.facts import ClusterFacts, Inputs, QueueFacts, QuotaFacts, RecordedPool
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.analysis.recording.values import Plain, leaves
from ebbtide.declaration.catalog.clouds import CLOUD_SPECS
from ebbtide.declaration.catalog.machines import Machine, find_machine
from ebbtide.declaration.model.pool import Accelerator, MachineShape
from ebbtide.declaration.model.resolved_pool import ResolvedPool, declared_machine
from ebbtide.text import and_list
from ebbtide.values import quantities
from ebbtide.values.cloud_kind import CloudKind, by_cloud
from ebbtide.values.kueue_api import TYPES, flavors_of_queues, selects

TOPOLOGIES: Final = by_cloud(gke="ebbtide:gke:Topology", aks="ebbtide:aks:Topology")
"""Components of a cluster with its network and pools."""
_OF_POOL: Final = ("overrides", "machine")
_OF_CLUSTER: Final = ("poolOverrides", "poolMachine")
"""Inputs of the component of a pool, and of a cluster with a pool, with the pool's declared fields."""
_CLUSTERS: Final = dict(
    by_cloud(gke=(gke.CLUSTER, gke.read_cluster), aks=(aks.CLUSTER, aks.read_cluster)).values()
)
_CLOUDS: Final = {
    type_: cloud
    for cloud, types in by_cloud(gke=(gke.CLUSTER, gke.NODE_POOL), aks=(aks.CLUSTER, aks.AGENT_POOL)).items()
    for type_ in types
}
_PREFIXES: Final = by_cloud(gke="gcp:container/", aks="azure-native:containerservice")
_SOFT: Final = "PreferNoSchedule"
_DEVICES: Final = {"nvidia.com/gpu", "google.com/tpu"}
_CLASS: Final = "kubernetes:cloud.google.com/v1:ComputeClass"
_MAP: Final = "kubernetes:core/v1:ConfigMap"
_EXPANDER: Final = "cluster-autoscaler-priority-expander"
_PRIORITIES: Final = TypeAdapter(dict[int, list[str]])
_BYTES: Final = {"memory", "ephemeral-storage"}


def read_pools(recording: Recording) -> tuple[RecordedPool, ...]:
    """Return every node pool that the program creates, in order of registration, system pools first.

    Existing pools that are only read are omitted: their properties are not recorded.
    """
    return tuple(sorted(_pools(recording), key=lambda pool: not pool.is_system))


def read_clusters(recording: Recording) -> tuple[ClusterFacts, ...]:
    """Return every cluster that the program creates, in order of registration."""
    maintenance = [aks.read_maintenance(resource) for resource in recording.of_type(aks.MAINTENANCE)]
    return tuple(
        cluster.model_copy(
            update={
                "settings": (
                    *cluster.settings,
                    *(words for name, words in maintenance if name == cluster.name),
                ),
                "overrides": dict(leaves(_input(recording[cluster.urn], recording, "overrides"))),
            }
        )
        for cluster in (
            _CLUSTERS[resource.type](resource)
            for resource in recording
            if resource.type in _CLUSTERS and not resource.read
        )
    )


def read_resource_overrides(recording: Recording) -> dict[str, Plain]:
    """Return the declared overrides of resources beside clusters and pools, by path below `cloud`."""
    written = (
        resource.inputs.get("resources")
        for type_ in TOPOLOGIES.values()
        for resource in recording.of_type(type_)
    )
    return {
        path: value for resources in written if resources for path, value in leaves(resources, "resources")
    }


def _input(resource: Resource, recording: Recording, name: str) -> dict[str, Plain]:
    """Return an input of a resource's component; empty if it has none."""
    parent = recording[resource.parent] if resource.parent else None
    value = parent.inputs.get(name) if parent is not None else None
    return value if isinstance(value, dict) else {}


def _declared(
    resource: Resource, recording: Recording, cloud: CloudKind, overrides: str, machine: str
) -> dict[str, Any]:
    """Return the declared fields of a pool, from its component: overrides of its inputs, and a machine type
    that the catalog lacks."""
    own = declared_machine(cloud, _shape(Inputs(_input(resource, recording, machine))))

    def find(name: str) -> Machine | None:
        return own if own is not None and own.name == name else find_machine(cloud, name)

    return {"overrides": _input(resource, recording, overrides), "find": find}


def _shape(inputs: Inputs) -> MachineShape:
    accelerator = inputs.text("accelerators.type")
    count = inputs.number("accelerators.count") or 1
    return MachineShape.model_construct(
        type=inputs.text("type"),
        vcpus=inputs.number("vcpus"),
        memory_gib=inputs.amount("memoryGib"),
        accelerators=Accelerator.model_construct(type=accelerator, count=count) if accelerator else None,
    )


def _pools(recording: Recording) -> Iterator[RecordedPool]:
    # Separate pools have no location.
    clusters = map(aks.read_cluster, recording.of_type(aks.CLUSTER))
    locations = {cluster.name: cluster.location for cluster in clusters}
    written = (topology.inputs.get("location") for topology in recording.of_type(TOPOLOGIES[CloudKind.AKS]))
    elsewhere = next((str(location) for location in written if location), "")
    requests = recording.of_type(gke.FUTURE_RESERVATION)
    periods = dict(gke.read_period(Inputs(resource.inputs)) for resource in requests)
    reserving = frozenset(
        aks.group_of(Inputs(resource.inputs)) for resource in recording.of_type(aks.CAPACITY_RESERVATION)
    )
    for resource in recording:
        cloud, is_cluster = _CLOUDS.get(resource.type), resource.type in _CLUSTERS
        if cloud is None or resource.read:
            continue
        declared = _declared(resource, recording, cloud, *(_OF_CLUSTER if is_cluster else _OF_POOL))
        match cloud:
            case CloudKind.GKE if is_cluster:
                yield from gke.read_inline_pools(resource, **declared)
            case CloudKind.GKE:
                yield gke.read_node_pool(resource, periods=periods, **declared)
            case CloudKind.AKS if is_cluster:
                yield from aks.read_inline_pools(resource, reserving=reserving, **declared)
            case CloudKind.AKS:
                yield aks.read_agent_pool(resource, locations, elsewhere, reserving=reserving, **declared)
            case _:
                assert_never(cloud)


def read_accounts(recording: Recording, cloud: CloudKind, config: Mapping[str, str]) -> list[str]:
    """Return the projects, or on Azure the subscriptions, of a cloud's clusters and pools.

    Args:
        config: the stack's configuration, for resources without a project or subscription.
    """
    key = CLOUD_SPECS[cloud].account_config
    field = key.partition(":")[2]
    providers = {resource.urn: resource for resource in recording}

    def accounts(resource: Resource) -> Iterator[object]:
        provider = providers.get(resource.provider or "")
        yield resource.inputs.get(field)
        yield provider.inputs.get(field) if provider else None
        yield config.get(key)

    own = (resource for resource in recording if resource.type.startswith(_PREFIXES[cloud]))
    first = (next((str(value) for value in accounts(resource) if value), "") for resource in own)
    return sorted({account for account in first if account})


def admits(pool: ResolvedPool) -> str:
    """Describe which pods the scheduler admits to a pool, as a sentence without a full stop.

    On GKE, pods that request a device get the toleration of its taint automatically (admission controller
    `ExtendedResourceToleration`; GKE docs, gpus). No other known platform does this.
    """
    taints = pool.labels_and_taints.all_taints
    hard = pool.labels_and_taints.repelling
    soft = [taint for taint in taints if taint.effect == _SOFT]
    requested = [taint.key for taint in hard if pool.site.cloud is CloudKind.GKE and taint.key in _DEVICES]
    tolerated = [taint for taint in hard if taint.key not in requested]
    needs = [
        *([f"request {and_list(requested)}"] if requested else []),
        *([f"tolerate {and_list(tolerated)}"] if tolerated else []),
    ]
    sentence = f"only pods that {' and '.join(needs)}" if needs else "any pod"
    return f"{sentence}, rather those that tolerate {and_list(soft)}" if soft else sentence


def read_fallbacks(
    recording: Recording, pools: Sequence[ResolvedPool], queues: Sequence[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """Return the names of each pool's fallback pools for a stockout, next first.

    They are in GKE's ComputeClasses (cloud.google.com, v1), and in the ConfigMap of AKS's priority expander.

    Args:
        recording: the recorded resources.
        queues: the queues of each pool (see `read_queues`): pools of different queues are never fallbacks for
            one another, whatever the autoscaler's priorities.
    """
    classes = (Inputs(item.inputs).parts("spec.priorities") for item in recording.of_type(_CLASS))
    chains = [
        *(tuple(pool for rule in rules for pool in rule.texts("nodepools")) for rules in classes),
        *_expanded(recording, pools, queues),
    ]
    return [
        next((chain[chain.index(pool.name) + 1 :] for chain in chains if pool.name in chain), ())
        for pool in pools
    ]


def _expanded(
    recording: Recording, pools: Sequence[ResolvedPool], queues: Sequence[tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    for resource in recording.of_type(_MAP):
        inputs = Inputs(resource.inputs)
        if inputs.text("metadata.name") != _EXPANDER:
            continue
        ranks = _ranks(_priorities(inputs.text("data.priorities")), pools)
        queued = [(pool.name, names) for pool, names in zip(pools, queues, strict=True) if names]
        for _, group in groupby(sorted(queued, key=itemgetter(1)), itemgetter(1)):
            chain = sorted((name for name, _ in group), key=lambda name: -ranks[name])
            if len({ranks[name] for name in chain}) == len(chain):
                yield tuple(chain)


def _priorities(text: str) -> dict[int, list[str]]:
    """Return patterns by priority; none if the expander could not parse the text, which it then ignores."""
    try:
        return _PRIORITIES.validate_python(yaml.safe_load(text))
    except (yaml.YAMLError, ValidationError):
        return {}


def _ranks(priorities: Mapping[int, list[str]], pools: Sequence[ResolvedPool]) -> dict[str, int]:
    """Return the highest priority whose pattern matches the name of the pool's scale set."""
    return {
        pool.name: max(
            (
                rank
                for rank, patterns in priorities.items()
                if any(re.search(pattern, f"aks-{pool.name}-00000000-vmss") for pattern in patterns)
            ),
            default=0,
        )
        for pool in pools
    }


def read_flavors(recording: Recording, pools: Sequence[ResolvedPool]) -> dict[str, list[int]]:
    """Return the pools of each flavor, as positions in `pools`."""
    labelled: dict[tuple[str, str], list[int]] = {}
    for number, pool in enumerate(pools):
        for label in pool.labels.items():
            labelled.setdefault(label, []).append(number)

    def matching_pools(labels: Mapping[str, str]) -> list[int]:
        # The rarest label of a flavor leaves few pools to check.
        candidates = [labelled[label] for label in labels.items() if label in labelled]
        rarest = min(candidates, key=len) if candidates else []
        return [number for number in rarest if selects(labels, pools[number].labels)]

    return {
        item.text("metadata.name"): matching_pools(item.labels("spec.nodeLabels"))
        for item in _kind(recording, "ResourceFlavor")
    }


def read_queues(
    recording: Recording, pools: Sequence[ResolvedPool], flavors: Mapping[str, Sequence[int]]
) -> list[tuple[str, ...]]:
    """Return the local queues, as `namespace/name`, of each pool, in the order of the pools."""
    names_by_pool: list[dict[str, None]] = [{} for _ in pools]
    manifests = [item.inputs for item in recording if item.type.startswith(TYPES)]
    for name, (_, names) in flavors_of_queues(manifests).items():
        for flavor in names:
            for number in flavors.get(flavor, []):
                names_by_pool[number][name] = None
    return [tuple(names) for names in names_by_pool]


def _kind(recording: Recording, kind: str) -> Iterator[Inputs]:
    for resource in recording:
        if resource.type.startswith(TYPES) and resource.type.endswith(f":{kind}"):
            yield Inputs(resource.inputs)


def read_cluster_queues(recording: Recording) -> list[QueueFacts]:
    """Return the ClusterQueues that have a LocalQueue, in order of registration."""
    local_queues: dict[str, list[str]] = {}
    for item in _kind(recording, "LocalQueue"):
        name = f"{item.text('metadata.namespace')}/{item.text('metadata.name')}"
        local_queues.setdefault(item.text("spec.clusterQueue"), []).append(name)
    cluster_queues = list(_kind(recording, "ClusterQueue"))
    lent: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    for cohort, item in (
        *((item.text("metadata.name"), item) for item in _kind(recording, "Cohort")),
        *((item.text("spec.cohortName"), item) for item in cluster_queues),
    ):
        for flavor, resource in _quotas(item):
            lent[cohort, flavor, resource.text("name")] += _lendable(resource)
    queues: list[QueueFacts] = []
    for item in cluster_queues:
        name, cohort = item.text("metadata.name"), item.text("spec.cohortName")
        quotas: list[QuotaFacts] = []
        for flavor, resource in _quotas(item):
            nominal = _amount(resource, "nominalQuota") or 0.0
            borrowed = lent[cohort, flavor, resource.text("name")] - _lendable(resource) if cohort else 0.0
            quotas.append(
                QuotaFacts(
                    flavor=flavor,
                    resource=resource.text("name"),
                    nominal=nominal,
                    cohort=nominal + borrowed,
                    borrowing_limit=_amount(resource, "borrowingLimit"),
                )
            )
        if name in local_queues:
            weight = item.text("spec.fairSharing.weight") or "1"
            own = tuple(local_queues[name])
            queues.append(
                QueueFacts(name=name, local_queues=own, cohort=cohort, weight=weight, quotas=tuple(quotas))
            )
    return queues


def _quotas(item: Inputs) -> Iterator[tuple[str, Inputs]]:
    """Yield flavor and quota of each countable resource, excluding those measured in bytes."""
    for group in item.parts("spec.resourceGroups"):
        for flavor in group.parts("flavors"):
            for resource in flavor.parts("resources"):
                if resource.text("name") not in _BYTES:
                    yield flavor.text("name"), resource


def _lendable(resource: Inputs) -> float:
    limit = _amount(resource, "lendingLimit")
    return (_amount(resource, "nominalQuota") or 0.0) if limit is None else limit


def _amount(resource: Inputs, path: str) -> float | None:
    """Parse a quantity; None if absent."""
    text = resource.text(path)
    return float(quantities.parse(text)) if text else None
