"""Everything that is in a cluster, to compare before and after."""

from collections.abc import Iterator
from typing import Final

from ebbtide.kubernetes_api import Api

_OF_ITSELF: Final = frozenset(
    {"CSINode", "ComponentStatus", "Endpoints", "EndpointSlice", "Event", "Lease", "Node", "Pod"}
)
"""Kinds whose objects Kubernetes and the cloud make and remove by themselves."""


def inventory(api: Api) -> frozenset[str]:
    """All objects: kind, namespace and name of each.

    Raises:
        ApiError: something of the API does not answer.
    """
    return frozenset(_objects(api))


def _objects(api: Api) -> Iterator[str]:
    groups = [group["preferredVersion"]["groupVersion"] for group in api.get("/apis")["groups"]]
    for root in ("/api/v1", *(f"/apis/{group}" for group in groups)):
        for resource in api.get(root)["resources"]:
            if "list" not in resource["verbs"] or resource["kind"] in _OF_ITSELF:
                continue
            for one in api.items(f"{root}/{resource['name']}"):
                metadata = one["metadata"]
                # What a controller made for another object goes with that: a Deployment's ReplicaSets.
                if any(owner.get("controller") for owner in metadata.get("ownerReferences", ())):
                    continue
                where = f" in {metadata['namespace']}" if "namespace" in metadata else ""
                yield f"{resource['kind']} {metadata['name']}{where}"
