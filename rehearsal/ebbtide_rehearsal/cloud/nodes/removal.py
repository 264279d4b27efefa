"""Removal of machines, by draining or by a reclaim."""

import time
from typing import Final

from ebbtide_rehearsal.cloud.faults import RECLAIM
from ebbtide_rehearsal.cloud.nodes.actuator import Actuator
from ebbtide_rehearsal.cloud.nodes.cluster import ClusterSnapshot, Node
from ebbtide_rehearsal.cloud.nodes.fleet import Fleet
from ebbtide_rehearsal.cloud.nodes.machines import Machine
from ebbtide_rehearsal.cloud.nodes.message_ids import NOT_EVICTED
from ebbtide_rehearsal.cloud.nodes.pods import Pod
from ebbtide_rehearsal.cloud.nodes.processes import ProcessKubelet, is_process
from ebbtide_rehearsal.cloud.nodes.reclaiming import expired, is_recreated, surplus, victims
from ebbtide_rehearsal.cloud.nodes.settings import NodeSettings
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane.stages import KUBELET

POOL_DELETED: Final = "its node pool was deleted"


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
        deleted = snapshot.pool(machine) is None
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
