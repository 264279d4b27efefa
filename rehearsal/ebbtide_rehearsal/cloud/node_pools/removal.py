"""Removal of machines: reclaims by the cloud, expired machines, sizes of fixed pools, drains."""

import math
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final, assert_never

from ebbtide.autoscaler.backoff import NOT_EVICTED, NodeSettings
from ebbtide.autoscaler.nodes import RECLAIMABLE, Machine, NodePool, is_recreated, node_group
from ebbtide.autoscaler.provisioning_requests import run_seconds
from ebbtide.autoscaler.scheduling import Pod
from ebbtide.autoscaler.snapshot import ClusterSnapshot, Node
from ebbtide.declaration.catalog.clouds import PREEMPTIBLE_SECONDS
from ebbtide_rehearsal.cloud.node_pools.actuator import Actuator
from ebbtide_rehearsal.cloud.node_pools.fleet import Fleet
from ebbtide_rehearsal.cloud.node_pools.pod_processes import ProcessKubelet, is_process
from ebbtide_rehearsal.cloud.store import RECLAIM, InjectedFault, Store
from ebbtide_rehearsal.control_plane.stages import KUBELET

POOL_DELETED: Final = "its node pool was deleted"
RECREATED: Final = "its node pool was changed, which recreates its nodes"


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
    queued or flex-start one, the end of its reservation (GKE docs, preemptible-vms, dws-flex-start-training,
    2026; Compute Engine docs, future-reservations-calendar-mode-overview, 2026)."""
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
        elif pool.reserved is not None and snapshot.now >= pool.reserved[1]:
            yield machine, "its reservation has ended"


def surplus(snapshot: ClusterSnapshot) -> list[Machine]:
    """Return the machines above the size of fixed pools, newest first."""
    return [
        machine
        for pool in snapshot.pools
        if not pool.autoscaled and pool.capacity != "queued" and not outdated(snapshot, pool)
        for machine in _running(snapshot, pool.name)[pool.initial :]
    ]


def outdated(snapshot: ClusterSnapshot, pool: NodePool) -> list[Machine]:
    """Return the running machines of a pool that a change recreates, oldest first."""
    return [machine for machine in _running(snapshot, pool.name) if machine.version < pool.version]


def is_upgraded(snapshot: ClusterSnapshot, pool: NodePool) -> bool:
    """Return whether a pool has machines of an earlier version."""
    own = (machine for machine in snapshot.machines if machine.pool == pool.name)
    return any(machine.version < pool.version for machine in own)


def recreated(snapshot: ClusterSnapshot, pool: NodePool) -> tuple[list[str], list[Machine]]:
    """Return the next step of a surge upgrade: the zones of new machines, or the machines that are drained
    once these run (GKE docs, node-pool-upgrade-strategies, 2026)."""
    old = outdated(snapshot, pool)
    own = [machine for machine in snapshot.machines if machine.pool == pool.name and not machine.is_leaving]
    if not old or any(machine.state == "starting" for machine in own):
        return [], []
    extra = len(own) - pool.size
    is_draining = any(machine.pool == pool.name and machine.is_leaving for machine in snapshot.machines)
    if extra > 0:
        return [], old[:extra]
    return ([], []) if is_draining else ([machine.zone for machine in old[: pool.surge]], [])


class NodeRemoval:
    """Drains and removes machines."""

    def __init__(
        self,
        actuator: Actuator,
        fleet: Fleet,
        processes: ProcessKubelet,
        store: Store,
        settings: NodeSettings,
    ) -> None:
        """Initialize for the machines of a cluster."""
        self._actuator, self._fleet, self._processes = actuator, fleet, processes
        self._store, self._settings = store, settings

    def start(self, snapshot: ClusterSnapshot) -> None:
        """Start the removals that the cloud, or a change of the pools, requires."""
        for number, fault in self._store.faults(RECLAIM).items():
            reclaimed = victims(fault, snapshot)
            if reclaimed:  # else the fault remains until there are machines to reclaim
                self._store.remove_fault(number)
            for machine in reclaimed:
                self._reclaim(
                    machine, snapshot, "reclaimed", graceful=bool(fault.details.get("graceful", True))
                )
        for machine, why in expired(snapshot):
            self._reclaim(machine, snapshot, why, graceful=True)
        for machine in snapshot.machines:
            if snapshot.pool(machine) is None and machine.state == "waiting":
                self._fleet.remove(machine, POOL_DELETED)
            elif snapshot.pool(machine) is None and not machine.is_leaving:
                self._drain(machine, snapshot, POOL_DELETED)
        for machine in surplus(snapshot):
            self._drain(machine, snapshot, "its node pool was made smaller")
        self._recreate(snapshot)

    def _recreate(self, snapshot: ClusterSnapshot) -> None:
        until = self._fleet.backoff.until
        for pool in snapshot.pools:
            zones, old = recreated(snapshot, pool)
            free = [zone for zone in zones if until.get(node_group(pool, zone), 0) <= snapshot.now]
            self._fleet.order(pool, free)
            for machine in old:
                self._drain(machine, snapshot, RECREATED)

    def proceed(self, snapshot: ClusterSnapshot) -> None:
        """Continue the removals in progress."""
        for machine in snapshot.machines:
            match machine.state:
                case "draining":
                    self._continue_drain(machine, snapshot)
                case "ending":
                    self._continue_reclaim(machine, snapshot)
                case "waiting" | "starting" | "running" | "stopped":
                    pass

    def _drain(self, machine: Machine, snapshot: ClusterSnapshot, why: str) -> None:
        if node := snapshot.nodes.get(machine.name):
            self._actuator.cordon(node)
        self._fleet.save(machine.having(state="draining", since=snapshot.now, why=why))

    def _continue_drain(self, machine: Machine, snapshot: ClusterSnapshot) -> None:
        node = snapshot.nodes.get(machine.name)
        has_kubelet = node is not None and KUBELET in node.annotations
        pods = [pod for pod in snapshot.on(machine.name) if not pod.of_node] if has_kubelet else []
        # Neither a deleted pool nor an upgrade waits for disruption budgets longer than an hour.
        deleted = snapshot.pool(machine) is None or machine.why == RECREATED
        refused = [pod for pod in pods if not pod.deleting and not self._actuator.evict(pod)]
        waited = snapshot.now - machine.since
        is_overdue = waited >= (
            self._settings.drain_seconds if deleted else snapshot.autoscaling.eviction_seconds
        )
        if node is not None and is_overdue and refused and not deleted:
            self._actuator.clean_to_be_deleted(node)
            self._fleet.save(machine.having(state="running", since=snapshot.now, why=""))
            names = ", ".join(pod.id for pod in refused)
            why = "could not be evicted in time"
            message = NOT_EVICTED if machine.cloud == "gke" else ""
            text = f"Node {node.name} stays: {names} {why}."
            self._store.log_event("held-node", text, node=node.name, why=why, message=message)
        elif not pods or is_overdue:
            self._remove(machine)
            self._fleet.remove(machine, machine.why)

    def _reclaim(self, machine: Machine, snapshot: ClusterSnapshot, why: str, *, graceful: bool) -> None:
        node, pods = snapshot.nodes.get(machine.name), snapshot.on(machine.name)
        notice_text = "with notice" if graceful else "without notice"
        self._store.log_event(
            "node-reclaimed",
            f"The cloud takes node {machine.name} of pool {machine.pool} {notice_text}, with {_work(pods)}: "
            f"{why}.",
            pool=machine.pool,
            node=machine.name,
            graceful=graceful,
            pods=[pod.id for pod in pods if not pod.of_node],
            why=why,
        )
        notice = self._settings.notice_seconds if graceful else 0
        self._fleet.save(machine.having(state="ending", since=time.time() + notice, why=why))
        for pod in pods:
            if not is_process(pod):
                self._actuator.prevent_completion(pod)
        if node is None or not graceful:
            return
        match machine.cloud:
            case "gke":
                self._actuator.stop_kubelet(node, "KubeletNotReady", "node is shutting down")
                self._processes.stop_all(node.name, self._settings.pod_grace_seconds)
            case "aks":
                self._actuator.cordon(node)
            case _:
                assert_never(machine.cloud)

    def _empty(self, machine: Machine, pods: list[Pod]) -> None:
        """Terminate the pods of a node with an eviction notice: GKE's kubelet terminates them, AKS evicts
        them (Azure docs, node-auto-drain)."""
        for pod in pods:
            match machine.cloud:
                case "gke":
                    if not is_process(pod):
                        self._actuator.end_containers(pod, {}, shutdown=True)
                case "aks":
                    if not (pod.of_node or pod.deleting):
                        self._actuator.evict(pod)
                case _:
                    assert_never(machine.cloud)

    def _continue_reclaim(self, machine: Machine, snapshot: ClusterSnapshot) -> None:
        pods = snapshot.on(machine.name)
        remaining = [pod for pod in pods if not pod.of_node]
        if machine.name not in snapshot.nodes or time.time() >= machine.since or not remaining:
            self._finish_reclaim(machine, snapshot)
        else:
            self._empty(machine, pods)

    def _finish_reclaim(self, machine: Machine, snapshot: ClusterSnapshot) -> None:
        """Remove a machine, even if pods are left on it."""
        pool = snapshot.pool(machine)
        if pool is not None and pool.deallocates:
            node = snapshot.nodes.get(machine.name)
            self._processes.lose(machine.name)
            if node is not None:
                self._stop_kubelet(node)
            self._fleet.stop(machine, machine.why)
            return
        self._remove(machine)
        self._fleet.remove(machine, machine.why)
        if pool is not None and is_recreated(machine, pool.capacity):
            self._fleet.restart(machine, pool)

    def _stop_kubelet(self, node: Node) -> None:
        self._actuator.cordon(node)
        self._actuator.stop_kubelet(node, "NodeStatusUnknown", "Kubelet stopped posting node status.")

    def _remove(self, machine: Machine) -> None:
        self._processes.lose(machine.name)
        self._actuator.delete_node(machine.name)


def _work(pods: list[Pod]) -> str:
    work = [pod.id for pod in pods if not pod.of_node]
    return ", ".join(work) if work else "no work on it"
