"""Machines of a cluster: order, start, stop and remove them, within quotas and with backoff.

Sources of message ids: GoogleCloudPlatform/cluster-autoscaler@7d250507, pkg/visibility/types/messages.go; of
backoff, with the same constants on both clouds: kubernetes/autoscaler@1959f5f6, utils/backoff/
exponential_backoff.go, and GoogleCloudPlatform/cluster-autoscaler@7d250507, pkg/backoff. A node group is a
scale set on AKS, and a pool's instance group in a zone on GKE. A success does not end a backoff; only time
does. Quotas: catalog/data/quotas.csv; Compute Engine docs, allocation-quotas (2026), for `GPUS_ALL_REGIONS`
and `SSD_TOTAL_GB`; azure-aks-docs, quotas-skus-regions (2026), for `cores`.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self, assert_never

from ebbtide.declaration.catalog.machines import find_machine, quota_names
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.text import several
from ebbtide_rehearsal.cloud.node_pools.machines import (
    Machine,
    all_machines,
    drop,
    machines,
    new_name,
    node_group,
    put,
)
from ebbtide_rehearsal.cloud.pools import NO_ZONE, NodePool, all_pools
from ebbtide_rehearsal.cloud.store import NO_STOCK, QUOTA, Store

_REACTION: Final = 8  # seconds of the wall clock, on a busy machine


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Durations with the clouds' defaults, in simulated seconds unless stated otherwise.

    For the cluster autoscaler, the source is the table of parameters in its FAQ (kubernetes/autoscaler,
    cluster-autoscaler/FAQ.md, 2026). For a cluster's own settings see `ebbtide_rehearsal.cloud.pools`.

    Attributes:
        startup_seconds: from the request for a node until it is ready. An assumption: no cloud promises a
            time.
        driver_seconds: from a node's being ready, with the driver and device plugin of its accelerators,
            until the accelerators are allocatable. An assumption.
        backoff_seconds: first backoff of a node group whose nodes did not start
            (`initial-node-group-backoff-duration`; GKE's is the same, GoogleCloudPlatform/
            cluster-autoscaler@7d250507, pkg/backoff/gke_mig_backoff.go).
        longest_backoff_seconds: maximum backoff; each further backoff is twice as long
            (`max-node-group-backoff-duration`).
        backoff_reset_seconds: time after a failure until the next backoff is a first one again
            (`node-group-backoff-reset-timeout`).
        cooldown_seconds: cooldown of a ComputeClass rule (ibid., NpcBackoffDuration).
        capacity_check_seconds: time that a request for a flex-start node that is not queued waits for stock
            before it is cancelled and the pool backs off (GoogleCloudPlatform/cluster-autoscaler@7d250507,
            pkg/cloudprovider/gke/gke_cloud_provider_impl.go, DefaultFlexStartCapacityCheckWaitTime).
        drain_seconds: maximum time that disruption budgets protect a deleted pool's pods (GKE docs,
            node-pools: an hour).
        dws_wait_seconds: time that a request for queued nodes waits for capacity. An assumption: GKE only
            documents that it may be days.
        booking_seconds: time that provisioned nodes wait for the pods of their request (GKE docs,
            provisioningrequest, 2026-04-08).
        notice_seconds: wall clock: from a spot node's notice to its end. 30 on both clouds (GKE docs,
            spot-vms; Azure docs, Scheduled Events, Preempt).
        pod_grace_seconds: wall clock: maximum part of it that GKE gives to pods other than system pods (GKE
            docs, spot-vms, 2026).
        least_idle_seconds: minimum time that an unneeded node remains, even if its cluster's settings have
            less. See `at`.
        step_seconds: wall clock: interval of the control loop.
    """

    startup_seconds: float = 90
    driver_seconds: float = 20
    backoff_seconds: float = 300
    longest_backoff_seconds: float = 1800
    backoff_reset_seconds: float = 10800
    cooldown_seconds: float = 300
    capacity_check_seconds: float = 900
    drain_seconds: float = 3600
    dws_wait_seconds: float = 600
    booking_seconds: float = 600
    notice_seconds: float = 30
    pod_grace_seconds: float = 15
    least_idle_seconds: float = 0
    step_seconds: float = 0.3

    @classmethod
    def at(cls, speed: float) -> Self:
        """Return the settings for a clock that runs `speed` times as fast. Waits for Kubernetes or Kueue,
        which use the wall clock, are long enough."""
        usual = cls()
        return cls(
            least_idle_seconds=_REACTION * speed,
            booking_seconds=max(usual.booking_seconds, 2 * _REACTION * speed),
        )


OUT_OF_RESOURCES: Final = "scale.up.error.out.of.resources"
QUOTA_EXCEEDED: Final = "scale.up.error.quota.exceeded"
SKIPPED: Final = "no.scale.up.mig.skipped"
FAILING_PREDICATE: Final = "no.scale.up.mig.failing.predicate"
SCALE_DOWN_DISABLED: Final = "no.scale.down.node.scale.down.disabled.annotation"
NO_PLACE: Final = "no.scale.down.node.no.place.to.move.pods"
NOT_SAFE_TO_EVICT: Final = "no.scale.down.node.pod.not.safe.to.evict.annotation"
NO_CONTROLLER: Final = "no.scale.down.node.pod.not.backed.by.controller"
SYSTEM_POD: Final = "no.scale.down.node.pod.kube.system.unmovable"
LOCAL_STORAGE: Final = "no.scale.down.node.pod.has.local.storage"
DISRUPTION_BUDGET: Final = "no.scale.down.node.pod.not.enough.pdb"
NOT_EVICTED: Final = "scale.down.error.failed.to.evict.pods"


def no_scale_up(reasons: Iterable[str], skipped: Iterable[str]) -> list[str]:
    """Return the ids of the reasons why no node group can grow for a pod.

    Args:
        reasons: reasons in the autoscaler's words.
        skipped: those for which a node group is not even considered.
    """
    passed_over = frozenset(skipped)
    return sorted({SKIPPED if reason in passed_over else FAILING_PREDICATE for reason in reasons})


@dataclass(frozen=True, slots=True)
class _Failure:
    """The last failed scale-up of a node group: its time and its backoff, in simulated seconds."""

    at: float
    seconds: float


class Backoff:
    """Backoffs of a cluster's node groups.

    Attributes:
        until: ends of the backoffs in simulated seconds, by node group.
    """

    def __init__(self, settings: NodeSettings) -> None:
        self.until: dict[str, float] = {}
        self._settings = settings
        self._failures: dict[str, _Failure] = {}

    def fail(self, group: str, now: float) -> float:
        """Back off a node group, twice as long as the last time unless that was long ago.

        Returns:
            The duration of the backoff in simulated seconds.
        """
        last, settings = self._failures.get(group), self._settings
        if last is None or now - last.at > settings.backoff_reset_seconds:
            seconds = settings.backoff_seconds
        elif self.until[group] >= now:
            seconds = last.seconds  # scale-ups that fail at the same time count once
        else:
            seconds = min(2 * last.seconds, settings.longest_backoff_seconds)
        self._failures[group] = _Failure(now, seconds)
        self.until[group] = max(now + seconds, self.until.get(group, 0))
        return seconds

    def cool(self, groups: Iterable[str], now: float) -> None:
        """Suspend the node groups of a ComputeClass rule for a fixed cooldown."""
        end = now + self._settings.cooldown_seconds
        for group in groups:
            self.until[group] = max(end, self.until.get(group, 0))


GRANTED: Final = 100_000
"""Limit of a quota without a fault, high enough for everything."""

OF_PROJECT: Final = "GPUS_ALL_REGIONS"
"""Quota that counts over all regions."""

_CHEAPER: Final = ("spot", "preemptible", "flex-start", "queued")
"""Capacity kinds with separate quotas."""


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
        case _:
            assert_never(cloud)


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


_NO_STOCK: Final = {"gke": "GCE out of resources", "aks": "AllocationFailed"}
_NO_QUOTA: Final = {"gke": "GCE quota exceeded", "aks": "QuotaExceeded"}


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
            )
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
        self._start(machine.having(state="starting", since=due, created=now, why=""))

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
