"""Waiting work that no pool of its queue can run, not even without other work."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from ebbtide.clients.kubernetes.parts import part, parts
from ebbtide.placement import PoolProfile
from ebbtide.text import several
from ebbtide.values import quantities
from ebbtide.values.pod_requests import pod_requests

_MEBIBYTE: Final = 1024 * 1024
_ACCELERATORS: Final = ("nvidia.com/", "google.com/tpu", "amd.com/gpu")
"""Prefixes of resources of accelerators; others may be those of a user's own device plugin."""


def misfit(workload: Mapping[str, Any], pools: Iterable[PoolProfile]) -> str:
    """Return why a Workload can never be admitted to pools; empty if it can.

    Kueue admits each pod set to one flavor, that is to one pool.

    Args:
        workload: Kueue's Workload.
        pools: the pools of its queue.
    """
    pools = tuple(pools)
    for pod_set in parts(workload, "spec", "podSets"):
        reasons = [next(_reasons(pod_set, pool), "") for pool in pools]
        if all(reasons):
            return "; ".join(dict.fromkeys(reasons)) or "its queue has no pool"
    return ""


def _reasons(pod_set: Mapping[str, Any], pool: PoolProfile) -> Iterator[str]:
    """Yield the reasons why a pool cannot run a pod set."""
    spec = part(pod_set, "template", "spec")
    for label, value in part(spec, "nodeSelector").items():
        if pool.labels.get(label, value) != value:
            yield f"its node selector {label}={value} excludes pool {pool.name}"
    node = offered(pool)
    fits: list[Decimal] = []
    for resource, request in pod_requests(spec).items():
        have = node.get(resource, Decimal(0) if resource.startswith(_ACCELERATORS) else None)
        if have is None or not request:
            continue
        if request > have:
            had = amount_text(resource, have) if have else "none"
            yield f"a pod needs {amount_text(resource, request)}, and a node of pool {pool.name} has {had}"
        else:
            fits.append(have // request)
    count = int(pod_set.get("minCount") or pod_set.get("count") or 1)
    if fits and (most := int(min(fits)) * pool.max_nodes) < count:
        yield f"it needs {several(count, 'pod')} at once, and pool {pool.name} has capacity for {most}"


def offered(pool: PoolProfile) -> Mapping[str, Decimal]:
    """Return the known resources of a node, in units of the API."""
    known = {"cpu": Decimal(pool.cpu_m) / 1000, "memory": Decimal(pool.memory_mib) * _MEBIBYTE}
    node = {resource: amount for resource, amount in known.items() if amount}
    if pool.accelerator:
        node[pool.accelerator.resource] = Decimal(pool.accelerator.count)
    return node


def amount_text(resource: str, amount: Decimal) -> str:
    """Format an amount: `4 nvidia.com/gpu`, `3500m CPU`, `40Gi memory`."""
    if resource == "cpu":
        return f"{quantities.cpu(int(amount * 1000))} CPU"
    if resource == "memory":
        return f"{quantities.memory(int(amount / _MEBIBYTE))} memory"
    return f"{amount.normalize():f} {resource}"
