"""The Kueue queues of a node pool: local queue, cluster queue, flavor, node labels (kueue.x-k8s.io,
v1beta2).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ebbtide.analysis.reading.facts import Inputs, QueueFacts, QuotaFacts
from ebbtide.analysis.recording.recording import Recording
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.values import quantities
from ebbtide.values.kueue_api import TYPES, flavors_of_queues, selects

_BYTES: Final = {"memory", "ephemeral-storage"}


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
