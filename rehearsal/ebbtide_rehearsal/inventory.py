"""Inventory of a cluster, for comparison before and after."""

from collections.abc import Iterator
from typing import Final

from ebbtide.kubernetes_api import Api

_OF_ITSELF: Final = frozenset(
    {"CSINode", "ComponentStatus", "Endpoints", "EndpointSlice", "Event", "Lease", "Node", "Pod"}
)
"""Kinds that Kubernetes and the cloud manage themselves."""


def inventory(api: Api) -> frozenset[str]:
    """List all objects: kind, namespace and name.

    Raises:
        ApiError: a part of the API does not answer.
    """
    return frozenset(_objects(api))


def _objects(api: Api) -> Iterator[str]:
    groups = [group["preferredVersion"]["groupVersion"] for group in api.get("/apis")["groups"]]
    for root in ("/api/v1", *(f"/apis/{group}" for group in groups)):
        for resource in api.get(root)["resources"]:
            if "list" not in resource["verbs"] or resource["kind"] in _OF_ITSELF:
                continue
            for item in api.items(f"{root}/{resource['name']}"):
                metadata = item["metadata"]
                # Objects with a controller, such as a Deployment's ReplicaSets, are deleted with it.
                if any(owner.get("controller") for owner in metadata.get("ownerReferences", ())):
                    continue
                where = f" in {metadata['namespace']}" if "namespace" in metadata else ""
                yield f"{resource['kind']} {metadata['name']}{where}"
