"""How machines leave: drained, since nobody needs them, or taken away."""

import time
from typing import Final

from ebbtide_rehearsal.cloud.faults import RECLAIM
from ebbtide_rehearsal.cloud.nodes.cluster import Node, Seen
from ebbtide_rehearsal.cloud.nodes.fleet import Fleet
from ebbtide_rehearsal.cloud.nodes.hands import Hands
from ebbtide_rehearsal.cloud.nodes.machines import Machine
from ebbtide_rehearsal.cloud.nodes.message_ids import NOT_EVICTED
from ebbtide_rehearsal.cloud.nodes.pods import Pod
from ebbtide_rehearsal.cloud.nodes.processes import ProcessKubelet, is_process
from ebbtide_rehearsal.cloud.nodes.reclaiming import comes_back, expired, surplus, victims
from ebbtide_rehearsal.cloud.nodes.settings import Settings
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane.stages import KUBELET

POOL_DELETED: Final = "its node pool was deleted"


class Departures:
    """Sees machines off."""

    def __init__(
        self, hands: Hands, fleet: Fleet, processes: ProcessKubelet, store: Store, settings: Settings
    ) -> None:
        """See the machines of a cluster off."""
        self._hands, self._fleet, self._processes = hands, fleet, processes
        self._store, self._settings = store, settings

    def decided(self, seen: Seen) -> None:
        """Begin what the cloud, or whoever owns the pools, has decided."""
        for number, fault in self._store.faults(RECLAIM).items():
            taken = victims(fault, seen)
            if taken:  # it waits for nodes that it can strike
                self._store.lift(number)
            for machine in taken:
                self._take(machine, seen, "reclaimed", graceful=bool(fault.details.get("graceful", True)))
        for machine, why in expired(seen):
            self._take(machine, seen, why, graceful=True)
        for machine in seen.machines:
            if seen.pool(machine) is None and machine.state == "waiting":
                self._fleet.gone(machine, POOL_DELETED)
            elif seen.pool(machine) is None and not machine.leaves:
                self._drain(machine, seen, POOL_DELETED)
        for machine in surplus(seen):
            self._drain(machine, seen, "its node pool was made smaller")

    def proceed(self, seen: Seen) -> None:
        """Go on with those that are under way."""
        for machine in seen.machines:
            match machine.state:
                case "draining":
                    self._drained(machine, seen)
                case "ending":
                    self._ended(machine, seen)
                case "waiting" | "starting" | "running" | "stopped":
                    pass

    def _drain(self, machine: Machine, seen: Seen, why: str) -> None:
        if node := seen.nodes.get(machine.name):
            self._hands.cordon(node)
        self._fleet.keep(machine.having(state="draining", since=seen.now, why=why))

    def _drained(self, machine: Machine, seen: Seen) -> None:
        node = seen.nodes.get(machine.name)
        alive = node is not None and KUBELET in node.annotations
        pods = [pod for pod in seen.on(machine.name) if not pod.of_node] if alive else []
        deleted = seen.pool(machine) is None
        refused = [pod for pod in pods if not pod.deleting and not self._hands.evict(pod)]
        waited = seen.now - machine.since
        late = waited >= (self._settings.drain_seconds if deleted else seen.told.eviction_seconds)
        if node is not None and late and refused and not deleted:
            self._hands.pardon(node)
            self._fleet.keep(machine.having(state="running", since=seen.now, why=""))
            names = ", ".join(pod.id for pod in refused)
            why = "could not be evicted in time"
            message = NOT_EVICTED if machine.cloud == "gke" else ""
            text = f"Node {node.name} stays: {names} {why}."
            self._store.say("held-node", text, node=node.name, why=why, message=message)
        elif not pods or late:
            self._remove(machine)
            self._fleet.gone(machine, machine.why)

    def _take(self, machine: Machine, seen: Seen, why: str, *, graceful: bool) -> None:
        node, pods = seen.nodes.get(machine.name), seen.on(machine.name)
        how = "with notice" if graceful else "without notice"
        self._store.say(
            "node-reclaimed",
            f"The cloud takes node {machine.name} of pool {machine.pool} {how}, with {_work(pods)}: {why}.",
            pool=machine.pool,
            node=machine.name,
            graceful=graceful,
            pods=[pod.id for pod in pods if not pod.of_node],
            why=why,
        )
        notice = self._settings.notice_seconds if graceful else 0
        self._fleet.keep(machine.having(state="ending", since=time.time() + notice, why=why))
        for pod in pods:
            if not is_process(pod):
                self._hands.halt(pod)
        if node is None or not graceful:
            return
        match machine.cloud:
            case "gke":
                self._hands.silence(node, "KubeletNotReady", "node is shutting down")
                self._processes.stop_all(node.name, self._settings.pod_grace_seconds)
            case "aks":
                self._hands.cordon(node)

    def _empty(self, machine: Machine, pods: list[Pod]) -> None:
        """What becomes of the pods of a node that was told of its end: on GKE its kubelet ends them, on AKS
        they are evicted (Azure docs, node-auto-drain)."""
        for pod in pods:
            match machine.cloud:
                case "gke":
                    if not is_process(pod):
                        self._hands.end(pod, {}, shutdown=True)
                case "aks":
                    if not (pod.of_node or pod.deleting):
                        self._hands.evict(pod)

    def _ended(self, machine: Machine, seen: Seen) -> None:
        pods = seen.on(machine.name)
        left = [pod for pod in pods if not pod.of_node]
        if machine.name not in seen.nodes or time.time() >= machine.since or not left:
            self._lost(machine, seen)
        else:
            self._empty(machine, pods)

    def _lost(self, machine: Machine, seen: Seen) -> None:
        """A machine is gone, whatever was still on it."""
        pool = seen.pool(machine)
        if pool is not None and pool.deallocates:
            node = seen.nodes.get(machine.name)
            self._processes.lose(machine.name)
            if node is not None:
                self._silent(node)
            self._fleet.stopped(machine, machine.why)
            return
        self._remove(machine)
        self._fleet.gone(machine, machine.why)
        if pool is not None and comes_back(machine, pool.capacity):
            self._fleet.again(machine, pool)

    def _silent(self, node: Node) -> None:
        self._hands.cordon(node)
        self._hands.silence(node, "NodeStatusUnknown", "Kubelet stopped posting node status.")

    def _remove(self, machine: Machine) -> None:
        self._processes.lose(machine.name)
        self._hands.remove(machine.name)


def _work(pods: list[Pod]) -> str:
    work = [pod.id for pod in pods if not pod.of_node]
    return ", ".join(work) if work else "no work on it"
