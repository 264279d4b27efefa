"""The Kueue queues of a node pool: local queue, cluster queue, flavor, node labels (kueue.x-k8s.io,
v1beta2).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ebbtide.reading.facts import PoolFacts
from ebbtide.reading.inputs import Inputs
from ebbtide.recording.recording import Recording

_GROUP: Final = "kubernetes:kueue.x-k8s.io/"


def read_queues(recording: Recording, pools: Sequence[PoolFacts]) -> list[tuple[str, ...]]:
    """Return the local queues, as `namespace/name`, of each pool, in the order of the pools."""
    labelled: dict[tuple[str, str], list[int]] = {}
    for number, pool in enumerate(pools):
        for label in pool.labels.items():
            labelled.setdefault(label, []).append(number)

    def matching_pools(labels: Mapping[str, str]) -> list[int]:
        # The rarest label of a flavor leaves few pools to check.
        candidates = [labelled[label] for label in labels.items() if label in labelled]
        rarest = min(candidates, key=len) if candidates else []
        return [number for number in rarest if _matches(labels, pools[number])]

    flavors = {
        item.text("metadata.name"): matching_pools(item.labels("spec.nodeLabels"))
        for item in _kind(recording, "ResourceFlavor")
    }
    queues = {item.text("metadata.name"): list(_flavors(item)) for item in _kind(recording, "ClusterQueue")}
    found: list[dict[str, None]] = [{} for _ in pools]
    for item in _kind(recording, "LocalQueue"):
        name = f"{item.text('metadata.namespace')}/{item.text('metadata.name')}"
        for flavor in queues.get(item.text("spec.clusterQueue"), []):
            for number in flavors.get(flavor, []):
                found[number][name] = None
    return [tuple(names) for names in found]


def _kind(recording: Recording, kind: str) -> Iterator[Inputs]:
    for resource in recording:
        if resource.type.startswith(_GROUP) and resource.type.endswith(f":{kind}"):
            yield Inputs(resource.inputs)


def _flavors(cluster_queue: Inputs) -> Iterator[str]:
    for group in cluster_queue.parts("spec.resourceGroups"):
        for flavor in group.parts("flavors"):
            yield flavor.text("name")


def _matches(node_labels: Mapping[str, str], pool: PoolFacts) -> bool:
    """Check that a flavor's labels match a pool's declared labels; those that the cloud adds are not known
    here.
    """
    shared = node_labels.keys() & pool.labels.keys()
    return bool(shared) and all(node_labels[key] == pool.labels[key] for key in shared)
