"""Reclaims of machines by the cloud, expired machines, and the sizes of fixed pools."""

import math
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase

from ebbtide.declaration.catalog import PREEMPTIBLE_SECONDS
from ebbtide_rehearsal.cloud.faults import InjectedFault
from ebbtide_rehearsal.cloud.nodes.cluster import ClusterSnapshot
from ebbtide_rehearsal.cloud.nodes.machines import Machine
from ebbtide_rehearsal.cloud.nodes.provisioning_requests import run_seconds
from ebbtide_rehearsal.cloud.pools import NodePool

RECLAIMABLE = ("spot", "preemptible")


def victims(fault: InjectedFault, snapshot: ClusterSnapshot) -> list[Machine]:
    """Return the machines that a fault reclaims, oldest first.

    On-demand machines are never reclaimed.
    """
    reclaimed: list[Machine] = []
    for pool in snapshot.pools:
        if pool.capacity not in RECLAIMABLE:
            continue
        if not any(fnmatchcase(name, fault.target) for name in (pool.name, pool.id)):
            continue
        running = _running(snapshot, pool.name)
        count = fault.details.get("count")
        number = math.ceil(len(running) * fault.details.get("share", 1)) if count is None else int(count)
        reclaimed += running[:number]
    count = fault.details.get("count")
    return reclaimed if count is None else sorted(reclaimed, key=_age)[: int(count)]


def _running(snapshot: ClusterSnapshot, pool: str) -> list[Machine]:
    return sorted(
        (machine for machine in snapshot.machines if machine.pool == pool and machine.state == "running"),
        key=_age,
    )


def _age(machine: Machine) -> tuple[float, str]:
    return machine.created, machine.name


def expired(snapshot: ClusterSnapshot) -> Iterator[tuple[Machine, str]]:
    """Yield expired machines with the reason: 24 hours for a preemptible one, the maximum run duration for a
    queued or flex-start one (GKE docs, preemptible-vms, dws-flex-start-training, 2026)."""
    requests = {request.id: request for request in snapshot.requests}
    for machine in snapshot.machines:
        pool = snapshot.pool(machine)
        if pool is None or machine.state != "running":
            continue
        limit = run_seconds(requests.get(machine.request), pool)
        if pool.capacity == "preemptible" and snapshot.now - machine.created >= PREEMPTIBLE_SECONDS:
            yield machine, "a preemptible machine runs for 24 hours at most"
        elif limit is not None and snapshot.now - machine.since >= limit:
            yield machine, f"its maximum run of {limit:.0f} s is over"


def is_recreated(machine: Machine, capacity: str) -> bool:
    """Return whether a reclaimed machine is recreated with its name: GKE's instance groups keep their size
    (GKE docs, spot-vms; Compute Engine docs, spot VMs in managed instance groups, 2026)."""
    return machine.cloud == "gke" and capacity in RECLAIMABLE


def surplus(snapshot: ClusterSnapshot) -> list[Machine]:
    """Return the machines above the size of fixed pools, newest first."""
    return [
        machine
        for pool in snapshot.pools
        if not pool.autoscaled and pool.capacity != "queued"
        for machine in _running(snapshot, pool.name)[pool.initial :]
    ]


def missing_machines(snapshot: ClusterSnapshot, known: Collection[str]) -> Iterator[tuple[NodePool, int]]:
    """Yield the number of machines that each pool lacks of its initial count if it is new, else of its
    minimum.

    Args:
        snapshot: snapshot of the cluster.
        known: pools whose initial nodes were ordered.
    """
    for pool in snapshot.pools:
        existing = sum(machine.pool == pool.name and not machine.is_leaving for machine in snapshot.machines)
        least = pool.minimum if pool.autoscaled else pool.initial
        desired = least if pool.name in known else max(pool.initial, least)
        if existing < desired:
            yield pool, desired - existing
