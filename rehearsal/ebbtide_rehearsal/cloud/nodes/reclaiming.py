"""Which machines the cloud takes back, and when."""

import math
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

from ebbtide.catalog import PREEMPTIBLE_SECONDS
from ebbtide_rehearsal.cloud.faults import Fault
from ebbtide_rehearsal.cloud.nodes.cluster import Seen
from ebbtide_rehearsal.cloud.nodes.machines import Machine
from ebbtide_rehearsal.cloud.nodes.queueing import run_seconds
from ebbtide_rehearsal.cloud.pools import NodePool

RECLAIMABLE = ("spot", "preemptible")


def victims(fault: Fault, seen: Seen) -> list[Machine]:
    """The machines that a fault takes, those that are longest there first.

    On-demand machines are never taken: whoever asks for it gets none.
    """
    taken: list[Machine] = []
    for pool in seen.pools:
        if pool.capacity not in RECLAIMABLE:
            continue
        if not any(fnmatchcase(each, fault.target) for each in (pool.name, pool.id)):
            continue
        there = _running(seen, pool.name)
        count = fault.details.get("count")
        number = math.ceil(len(there) * fault.details.get("share", 1)) if count is None else int(count)
        taken += there[:number]
    count = fault.details.get("count")
    return taken if count is None else sorted(taken, key=_age)[: int(count)]


def _running(seen: Seen, pool: str) -> list[Machine]:
    return sorted((each for each in seen.machines if each.pool == pool and each.state == "running"), key=_age)


def _age(machine: Machine) -> tuple[float, str]:
    return machine.born, machine.name


def expired(seen: Seen) -> Iterator[tuple[Machine, str]]:
    """Machines whose time is over, and why: a preemptible one lives 24 hours at most, a queued or flex-start
    one for its maximum run (GKE docs, preemptible-vms, dws-flex-start-training, 2026)."""
    requests = {request.id: request for request in seen.requests}
    for machine in seen.machines:
        pool = seen.pool(machine)
        if pool is None or machine.state != "running":
            continue
        limit = run_seconds(requests.get(machine.request), pool)
        if pool.capacity == "preemptible" and seen.now - machine.born >= PREEMPTIBLE_SECONDS:
            yield machine, "a preemptible machine runs for 24 hours at most"
        elif limit is not None and seen.now - machine.since >= limit:
            yield machine, f"its maximum run of {limit:.0f} s is over"


def comes_back(machine: Machine, capacity: str) -> bool:
    """Whether a machine that was taken is made anew under its name: GKE's instance groups keep their size
    (GKE docs, spot-vms; Compute Engine docs, spot VMs in managed instance groups, 2026)."""
    return machine.cloud == "gke" and capacity in RECLAIMABLE


def surplus(seen: Seen) -> list[Machine]:
    """The machines of pools of a fixed size that are too many, the newest first: the size was changed."""
    return [
        machine
        for pool in seen.pools
        if not pool.autoscaled and pool.capacity != "queued"
        for machine in _running(seen, pool.name)[pool.initial :]
    ]


def lacking(seen: Seen, known: Collection[str]) -> Iterator[tuple[NodePool, int]]:
    """How many machines pools lack: those they are born with, and later those below their minimum.

    Args:
        seen: the cluster.
        known: pools that were born already.
    """
    for pool in seen.pools:
        there = sum(each.pool == pool.name and not each.leaves for each in seen.machines)
        least = pool.minimum if pool.autoscaled else pool.initial
        wanted = least if pool.name in known else max(pool.initial, least)
        if there < wanted:
            yield pool, wanted - there
