"""Kueue's message about a pod set that it could assign to no flavor (kueue, pkg/scheduler/flavorassigner,
0.19.2)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from ebbtide.values import quantities

_SHORT: Final = re.compile(r"insufficient unused quota for (\S+) in flavor (\S+), (\S+) more needed")
_MAXIMUM: Final = re.compile(
    r"insufficient quota for (\S+) in flavor (\S+), previously considered podsets requests \(\S+\) \+ "
    r"current podset request \((\S+)\) > maximum capacity \((\S+)\)"
)
_TAINT: Final = re.compile(r"untolerated taint \{(\S+) (\S*) ?(\w+) \S+\} in flavor ([^\s,;.]+)")
_AFFINITY: Final = re.compile(r"flavor (\S+) doesn't match node affinity")
_UNKNOWN: Final = re.compile(r"resource (\S+) unavailable in ClusterQueue")
_PREEMPTED: Final = re.compile(r"Pending the preemption of (\d+) workload")


@dataclass(frozen=True, slots=True)
class Shortage:
    """Missing quota of a resource in a flavor."""

    resource: str
    flavor: str
    missing: Decimal


@dataclass(frozen=True, slots=True)
class Excess:
    """A request of a pod set that is larger than the whole quota of a flavor."""

    resource: str
    flavor: str
    request: Decimal
    maximum: Decimal


@dataclass(frozen=True, slots=True)
class Assignment:
    """The reasons of a message.

    Attributes:
        shortages: quota that other workloads use.
        excesses: requests larger than a whole flavor.
        taints: taints that it does not tolerate, by flavor.
        selected_away: flavors that its node selector or affinity excludes.
        unknown: resources that no flavor of the queue has.
        preempting: workloads that are being preempted for it.
    """

    shortages: tuple[Shortage, ...] = ()
    excesses: tuple[Excess, ...] = ()
    taints: Mapping[str, str] = field(default_factory=dict[str, str])
    selected_away: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    preempting: int = 0


def read_assignment(message: str) -> Assignment:
    """Parse the message of a Workload's condition `QuotaReserved`."""
    preempted = _PREEMPTED.search(message)
    return Assignment(
        shortages=tuple(
            Shortage(resource, flavor, quantities.parse(missing))
            for resource, flavor, missing in _SHORT.findall(message)
        ),
        excesses=tuple(
            Excess(resource, flavor, quantities.parse(request), quantities.parse(maximum))
            for resource, flavor, request, maximum in _MAXIMUM.findall(message)
        ),
        taints={
            flavor: f"{key}{'=' if value else ''}{value}:{effect}"
            for key, value, effect, flavor in _TAINT.findall(message)
        },
        selected_away=tuple(dict.fromkeys(_AFFINITY.findall(message))),
        unknown=tuple(dict.fromkeys(_UNKNOWN.findall(message))),
        preempting=int(preempted[1]) if preempted else 0,
    )
