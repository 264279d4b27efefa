"""Machines of a cluster: order, start, stop and remove them, within quotas and with backoff.

Quotas: catalog/data/quotas.csv; Compute Engine docs, allocation-quotas (2026), for `GPUS_ALL_REGIONS`
and `SSD_TOTAL_GB`; azure-aks-docs, quotas-skus-regions (2026), for `cores`.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ebbtide.autoscaler.backoff import OUT_OF_RESOURCES, QUOTA_EXCEEDED, Backoff, NodeSettings
from ebbtide.autoscaler.nodes import NO_ZONE, Machine, NodePool, new_name, node_group
from ebbtide.declaration.catalog.machines import find_machine, quota_names
from ebbtide.text import several
from ebbtide.values.cloud_kind import CloudKind
from ebbtide_rehearsal.cloud.pools import all_machines, all_pools, drop, machines, put
from ebbtide_rehearsal.cloud.store import NO_STOCK, QUOTA, Store

GRANTED: Final = 100_000
"""Limit of a quota without a fault, high enough for everything."""

OF_PROJECT: Final = "GPUS_ALL_REGIONS"
"""Quota that counts over all regions."""

_CHEAPER: Final = ("spot", "preemptible", "flex-start", "queued")
"""Capacity kinds with separate quotas."""
_NO_STOCK: Final = {"gke": "GCE out of resources", "aks": "AllocationFailed"}
_NO_QUOTA: Final = {"gke": "GCE quota exceeded", "aks": "QuotaExceeded"}


def shares(pool: NodePool) -> dict[str, int]:
    """Return a node's share of each quota: vCPUs, accelerators, GB of SSD disks."""
    cloud = CloudKind(pool.cloud)
    machine = find_machine(cloud, pool.machine)
    if machine is None:
        return {}
    spot = pool.capacity in _CHEAPER
    cores = quota_names(cloud, machine.family, spot=spot)
    counts = dict.fromkeys(cores, machine.vcpus)
    match cloud:
        case CloudKind.GKE:
            if pool.accelerator is not None:
                kind, number = pool.accelerator
                of_kind = quota_names(cloud, machine.family, kind, spot=spot)
                names = [name for name in of_kind if name not in cores]
                counts |= dict.fromkeys(names, number)
                counts |= {OF_PROJECT: number} if "GPU" in "".join(names) else {}
            return {**counts, "SSD_TOTAL_GB": pool.ssd_gb} if pool.ssd_gb else counts
        case CloudKind.AKS:
            return counts if spot else {**counts, "cores": machine.vcpus}


def usage(store: Store, cloud: CloudKind, region: str, machines: Iterable[Machine]) -> Mapping[str, int]:
    """Return the used amount of each quota of a region, and of the project's quotas.

    Args:
        store: the fake cloud's store, with the pools of the machines.
        machines: machines that count.
    """
    pools = {pool.id: pool for pool in all_pools(store) if pool.cloud == cloud}
    used: Counter[str] = Counter()
    for machine in machines:
        pool = pools.get(machine.pool_id)
        for name, amount in shares(pool).items() if pool else ():
            if pool and (pool.region == region or name == OF_PROJECT):
                used[name] += amount
    return used


def limit(store: Store, name: str) -> float:
    """Return the limit of a quota: the lowest that a fault sets."""
    limits = (float(fault.details["limit"]) for fault in store.faults(QUOTA).values() if fault.matches(name))
    return min(limits, default=GRANTED)


class Fleet:
    """The machines of a cluster.

    Attributes:
        backoff: backoffs of node groups whose machines did not start.
    """

    def __init__(self, cluster: str, store: Store, settings: NodeSettings) -> None:
        """Use the machines of a cluster, by its id."""
        self._cluster, self._store, self._settings = cluster, store, settings
        self.backoff = Backoff(settings)
        self._refusals: dict[tuple[str, str], str] = {}

    def all(self) -> list[Machine]:
        """Return all machines."""
        return machines(self._store, self._cluster)

    def order(self, pool: NodePool, zones: Sequence[str], request: str = "") -> dict[str, str]:
        """Request machines, all or none of each node group.

        Stopped machines are started first. Flex-start machines that are not queued wait for stock for a
        limited time.

        Args:
            zones: zone of each machine.
            request: ProvisioningRequest of the machines.

        Returns:
            The cloud's reasons for refusals, by zone; empty if there are none.
        """
        refusals: dict[str, str] = {}
        for name in dict.fromkeys(node_group(pool, zone) for zone in zones):
            own = [zone for zone in zones if node_group(pool, zone) == name]
            if refusal := self._order(pool, own, request):
                refusals |= dict.fromkeys(own, refusal)
        return refusals

    def _order(self, pool: NodePool, zones: Sequence[str], request: str) -> str:
        refusal = self._refusal(pool, zones)
        waits = pool.capacity == "flex-start" and refusal == _no_stock(pool)
        if refusal and not waits:
            self._back_off(pool, zones, refusal)
            return refusal
        now = self._store.clock.now()
        existing = self.all()
        stopped = [
            machine for machine in existing if machine.pool == pool.name and machine.state == "stopped"
        ]
        due = now + self._settings.startup_seconds
        for machine in stopped[: len(zones)]:
            self._start(machine.having(state="starting", since=due))
        before = self._store.events(kind="node-added")
        number = sum(
            (event.facts["cluster"], event.facts["pool"]) == (self._cluster, pool.name) for event in before
        )
        names_in_use = {machine.name for machine in existing}
        numbers = itertools.count(number)
        for zone in zones[len(stopped) :]:
            names = (new_name(pool, zone, count, self._store.clock.started) for count in numbers)
            name = next(name for name in names if name not in names_in_use)
            machine = Machine(
                self._cluster, pool.name, name, zone, pool.cloud, pool.hourly, now, "starting", due, request
            ).having(version=pool.version)
            if waits:
                until = now + self._settings.capacity_check_seconds
                put(self._store, machine.having(state="waiting", since=until))
            else:
                self._start(machine)
        if waits:
            self._report_waiting(pool, len(zones), refusal)
        return ""

    def recheck_stock(self, pool: NodePool) -> None:
        """Start the machines of a pool that wait for stock; cancel those that have waited too long."""
        now = self._store.clock.now()
        waiting = [
            machine for machine in self.all() if machine.pool == pool.name and machine.state == "waiting"
        ]
        faults = self._store.faults(NO_STOCK).values()
        expired: list[Machine] = []
        for machine in waiting:
            if not any(fault.matches(name) for fault in faults for name in _targets(pool, machine.zone)):
                due = now + self._settings.startup_seconds
                self._start(machine.having(state="starting", since=due, created=now))
            elif machine.since <= now:
                drop(self._store, machine)
                expired.append(machine)
        for zone, count in Counter(machine.zone for machine in expired).items():
            self._back_off(pool, [zone] * count, _no_stock(pool))

    def restart(self, machine: Machine, pool: NodePool) -> None:
        """Restart a reclaimed machine, if the cloud has stock."""
        if refusal := self._refusal(pool, [machine.zone]):
            self._back_off(pool, [machine.zone], refusal)
            return
        now = self._store.clock.now()
        due = now + self._settings.startup_seconds
        self._start(machine.having(state="starting", since=due, created=now, why="", version=pool.version))

    def save(self, machine: Machine) -> None:
        """Save a machine's changes."""
        put(self._store, machine)

    def remove(self, machine: Machine, why: str) -> None:
        """Remove a machine."""
        drop(self._store, machine)
        if machine.state != "waiting":
            self._report_removal(machine, why)

    def stop(self, machine: Machine, why: str) -> None:
        """Stop a machine without deleting it: only its disk is billed, and it counts towards its quota (Azure
        docs, spot-node-pool, eviction policy Deallocate)."""
        put(self._store, machine.having(state="stopped", since=self._store.clock.now()))
        self._report_removal(machine, f"{why}; it stays, stopped, and counts against quota")

    def _start(self, machine: Machine) -> None:
        self._refusals = {key: text for key, text in self._refusals.items() if key[0] != machine.pool}
        put(self._store, machine)
        where = "" if machine.zone == NO_ZONE else f" in {machine.zone}"
        self._store.log_event(
            "node-added",
            f"Node {machine.name} of pool {machine.pool} starts{where}: "
            f"{'unknown price' if machine.hourly is None else f'${machine.hourly:.3f}/h'}.",
            cluster=machine.cluster,
            pool=machine.pool,
            node=machine.name,
            zone=machine.zone,
            hourly=machine.hourly,
            request=machine.request,
        )

    def _report_removal(self, machine: Machine, why: str) -> None:
        self._store.log_event(
            "node-removed",
            f"Node {machine.name} of pool {machine.pool} is gone: {why}.",
            cluster=machine.cluster,
            pool=machine.pool,
            node=machine.name,
            why=why,
        )

    def _back_off(self, pool: NodePool, zones: Sequence[str], refusal: str) -> None:
        name, count = node_group(pool, zones[0]), len(zones)
        seconds = self.backoff.fail(name, self._store.clock.now())
        if self._refusals.get((pool.name, name)) == refusal:
            return  # reported only once, not for every retry
        self._refusals[pool.name, name] = refusal
        where = f" in {zones[0]}" if pool.cloud == "gke" else ""
        self._store.log_event(
            "no-node",
            f"Pool {pool.name} gets none of {several(count, 'node')}{where}: {refusal}. It is tried again in "
            f"{seconds / 60:.0f} min, then less often.",
            cluster=self._cluster,
            pool=pool.name,
            zones=sorted(set(zones)),
            count=count,
            why=refusal,
            message=_message(refusal) if pool.cloud == "gke" else "",
        )

    def _report_waiting(self, pool: NodePool, count: int, why: str) -> None:
        minutes = self._settings.capacity_check_seconds / 60
        self._store.log_event(
            "no-stock-yet",
            f"Pool {pool.name} waits for {several(count, 'node')}, up to {minutes:.0f} min: {why}.",
            cluster=self._cluster,
            pool=pool.name,
            count=count,
            why=why,
        )

    def _refusal(self, pool: NodePool, zones: Sequence[str]) -> str:
        if quota := self._exceeded_quota(pool, len(zones)):
            return f"{_NO_QUOTA[pool.cloud]} ({quota})"
        now = self._store.clock.now()
        if pool.reserved and not pool.reserved[0] <= now < pool.reserved[1]:
            return _no_stock(pool)
        fault = self._store.strike(NO_STOCK, *_targets(pool, zones[0]))
        return _no_stock(pool) if fault is not None else ""

    def _exceeded_quota(self, pool: NodePool, count: int) -> str:
        """Return the quota that `count` more nodes would exceed; empty for none."""
        if not self._store.faults(QUOTA):
            return ""
        used = usage(self._store, CloudKind(pool.cloud), pool.region, all_machines(self._store))
        for name, amount in shares(pool).items():
            if used.get(name, 0) + amount * count > limit(self._store, name):
                self._store.strike(QUOTA, name)
                return name
        return ""


def is_quota(refusal: str) -> bool:
    """Return whether a refusal is due to a quota, which applies to the whole region."""
    return refusal.startswith(tuple(_NO_QUOTA.values()))


def _message(refusal: str) -> str:
    return QUOTA_EXCEEDED if is_quota(refusal) else OUT_OF_RESOURCES


def _targets(pool: NodePool, zone: str) -> tuple[str, ...]:
    """Return the fault targets that match machines of a pool in a zone."""
    return (pool.name, pool.id, f"{pool.name}/{zone}", f"{pool.id}/{zone}")


def _no_stock(pool: NodePool) -> str:
    return f"{_NO_STOCK[pool.cloud]} ({pool.machine})"
