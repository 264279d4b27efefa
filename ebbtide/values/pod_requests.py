"""Requests of a pod, as the scheduler counts them, and its share of a node.

It uses only the standard library and `quantities`, which the cost recorder has in its pod.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

from ebbtide.values import quantities

Amounts: TypeAlias = Mapping[str, Decimal]


def pod_requests(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """Return the requests of a pod by resource, from the specification of a pod or a template.

    Containers and sidecars count together, or the largest init container with the sidecars before it if that
    is more. Requests of the pod itself replace those sums, and the overhead is added (Kubernetes 1.36,
    component-helpers/resource, PodRequests). A limit is the request where none is given, as the API server
    sets it for containers, and for a pod whose containers request nothing.
    """
    largest: dict[str, Decimal] = {}
    sidecars: dict[str, Decimal] = {}
    for container in spec.get("initContainers") or ():
        together = total(sidecars, _requests(container))
        largest = most(largest, together)
        if container.get("restartPolicy") == "Always":
            sidecars = together
    containers = most(largest, total(sidecars, *map(_requests, spec.get("containers") or ())))
    of_pod: Mapping[str, Any] = spec.get("resources") or {}
    replaced = amounts(of_pod.get("limits")) | containers | amounts(of_pod.get("requests"))
    return total(replaced, amounts(spec.get("overhead")))


def node_share(requests: Amounts, node: Amounts, accelerator: str = "") -> float | None:
    """Return the share of a node that requests have: of its accelerators, or else the mean of CPU and memory,
    so that the shares of all pods are at most 1.

    Args:
        requests: the pod's requests.
        node: what the node offers.
        accelerator: resource of the node's accelerators; empty without any.

    Returns:
        The share, at most 1; None if the node's amount is unknown.
    """
    resources = (accelerator,) if accelerator else ("cpu", "memory")
    if not all(node.get(name) for name in resources):
        return None
    shares = [float(requests.get(name, 0) / node[name]) for name in resources]
    return min(1.0, sum(shares) / len(shares))


def amounts(resources: Mapping[str, Any] | None) -> dict[str, Decimal]:
    """Parse the quantities of resources."""
    return {name: quantities.parse(amount) for name, amount in (resources or {}).items()}


def total(*addends: Amounts) -> dict[str, Decimal]:
    """Add up amounts."""
    return {
        name: sum((item.get(name, Decimal(0)) for item in addends), Decimal(0)) for name in _names(addends)
    }


def most(*candidates: Amounts) -> dict[str, Decimal]:
    """Return the maximum of each amount."""
    return {name: max(item[name] for item in candidates if name in item) for name in _names(candidates)}


def _names(many: Iterable[Amounts]) -> dict[str, None]:
    return dict.fromkeys(name for item in many for name in item)


def _requests(container: Mapping[str, Any]) -> dict[str, Decimal]:
    resources: Mapping[str, Any] = container.get("resources") or {}
    return amounts(resources.get("limits")) | amounts(resources.get("requests"))
