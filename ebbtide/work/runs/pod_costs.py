"""The cost of pods, from the pools that they select and the profile's prices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from ebbtide.clients.kubernetes.parts import part, parts, text, words
from ebbtide.placement import PoolProfile, Profile
from ebbtide.values.pod_requests import node_share, pod_requests
from ebbtide.work.objects import Object, condition, phase_of
from ebbtide.work.unplaceable import offered

_POOL_LABELS: Final = ("ebbtide.dev/pool", "cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool")
_HOUR: Final = 3600


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a workload's pods, at the profile's list prices.

    Attributes:
        amount: its amount: of each pod the share of its node's price, from the pod's start to its end. The
            start of nodes and their idle time are not included.
        currency: currency, as in ISO 4217.
        complete: False if pods are gone whose times are unknown, which makes it a lower bound.
        seconds: time of all pods.
    """

    amount: float
    currency: str
    complete: bool
    seconds: int

    def __str__(self) -> str:
        """Format the amount: `$0.42`."""
        return f"{'$' if self.currency == 'USD' else f'{self.currency} '}{self.amount:.2f}"


def cost_of(
    pods: Sequence[tuple[Object, datetime]], profile: Profile | None, *, complete: bool
) -> Cost | None:
    """Return the cost of pods until now, or until they were missing."""
    amount, currencies, total = 0.0, set[str](), 0
    for pod, until in pods:
        started = text(pod, "status", "startTime")
        if not started:
            continue
        names = selected_pools(part(pod, "spec"), profile)
        pool = next((item for item in profile.pools if [item.name] == names), None) if profile else None
        share = _share(pod, pool) if pool else None
        if pool is None or share is None or pool.price.per_hour is None:
            return None
        seconds = seconds_between(datetime.fromisoformat(started), _end(pod, until))
        amount += pool.price.per_hour * share * seconds / _HOUR
        currencies.add(pool.price.currency)
        total += seconds
    return Cost(round(amount, 6), currencies.pop(), complete, total) if len(currencies) == 1 else None


def _end(pod: Object, now: datetime) -> datetime:
    """Return the end of a pod: of its last container, or of a disrupted pod the disruption; else now."""
    if phase_of(pod) not in {"Succeeded", "Failed"}:
        return now
    statuses = parts(pod, "status", "containerStatuses")
    ends = [text(item, "state", "terminated", "finishedAt") for item in statuses]
    last = max(
        filter(None, (*ends, condition(pod, "DisruptionTarget").get("lastTransitionTime"))), default=""
    )
    return datetime.fromisoformat(last) if last else now


def _share(pod: Object, pool: PoolProfile) -> float | None:
    """Return a pod's share of a node; None if the machine or an amount is unknown."""
    resource = pool.accelerator.resource if pool.accelerator else ""
    try:
        return node_share(pod_requests(part(pod, "spec")), offered(pool), resource)
    except ValueError:
        return None


def selected_pools(spec: Mapping[str, Any], profile: Profile | None) -> list[str]:
    """Return the pools that a pod selects, by its node selector and required node affinity."""
    selected = {key: {str(value)} for key, value in part(spec, "nodeSelector").items()}
    required = part(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = parts(required, "nodeSelectorTerms")
    for expression in parts(terms[0], "matchExpressions") if len(terms) == 1 else ():
        if expression["operator"] == "In":
            selected[expression["key"]] = set(words(expression, "values"))
    named = next((sorted(selected[label]) for label in _POOL_LABELS if label in selected), list[str]())
    if named or profile is None or not selected:
        return named
    matching = [
        pool.name
        for pool in profile.pools
        if all(pool.labels.get(key) in values for key, values in selected.items())
    ]
    return matching if len(matching) == 1 else []


def seconds_between(begin: datetime, end: datetime) -> int:
    """Return the whole seconds from one time to a later one."""
    return max(0, round((end - begin).total_seconds()))
