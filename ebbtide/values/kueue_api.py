"""The version of Kueue's API (Kueue 0.19; v1beta1 is removed in 0.20), and references between its objects."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ebbtide.values.paths import Manifest

API_VERSION: Final = "kueue.x-k8s.io/v1beta2"
API_PATH: Final = f"/apis/{API_VERSION}"
CLUSTER_QUEUES: Final = f"{API_PATH}/clusterqueues"
GROUP: Final = API_VERSION.partition("/")[0]
TYPES: Final = f"kubernetes:{GROUP}/"
"""Prefix of the provider's types of Kueue's objects."""
CONFIGURATION: Final = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
"""Kueue's own configuration, without any setting."""
ASLEEP: Final = "ebbtide.dev/asleep"
"""Annotation of a ClusterQueue that is held while its stack sleeps."""


def plural(kind: str) -> str:
    """Return the name of a kind in paths of the API."""
    name = kind.lower()
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}es" if name.endswith("s") else f"{name}s"


def object_path(token: str, identity: str) -> str:
    """Return the path of an object in the API.

    Args:
        token: type of the provider's resource, such as `kubernetes:core/v1:Namespace`.
        identity: its name, or `namespace/name`.
    """
    _, version, kind = token.split(":")
    namespace, _, name = identity.rpartition("/")
    core = version.removeprefix("core/")
    root = f"/api/{core}" if core != version else f"/apis/{version}"
    return f"{root}/{f'namespaces/{namespace}/' * bool(namespace)}{plural(kind)}/{name}"


def of_kind(objects: Sequence[Manifest], kind: str) -> Iterator[Manifest]:
    """Yield the objects of a kind."""
    return (item for item in objects if item["kind"] == kind)


def flavor_names(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the flavors in the spec of a ClusterQueue or a Cohort, in order of preference."""
    groups = spec.get("resourceGroups") or ()
    return tuple(dict.fromkeys(str(flavor["name"]) for group in groups for flavor in group["flavors"]))


def flavors_of_queues(objects: Sequence[Manifest]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the ClusterQueue of each LocalQueue, by `namespace/name`, and the names of its flavors. Those
    that the provider has imported have no spec in a state, and are omitted."""
    queues = of_kind(objects, "ClusterQueue")
    flavors = {item["metadata"]["name"]: flavor_names(item.get("spec", {})) for item in queues}
    return {
        f"{item['metadata']['namespace']}/{item['metadata']['name']}": (queue, flavors.get(queue, ()))
        for item in of_kind(objects, "LocalQueue")
        if (queue := item.get("spec", {}).get("clusterQueue"))
    }


def selects(flavor: Mapping[str, str], node: Mapping[str, str]) -> bool:
    """Return whether the node labels of a flavor select nodes by their declared labels; those that the cloud
    adds need not be declared."""
    shared = flavor.keys() & node.keys()
    return bool(shared) and all(flavor[key] == node[key] for key in shared)
