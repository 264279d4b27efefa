"""What goes on in a cluster's node pools, round by round."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Literal

from ebbtide.kubernetes_api import Api, ApiError
from ebbtide_rehearsal.cloud.nodes import system
from ebbtide_rehearsal.cloud.nodes.autoscaler import Autoscaler
from ebbtide_rehearsal.cloud.nodes.cluster import Seen
from ebbtide_rehearsal.cloud.nodes.departures import Departures
from ebbtide_rehearsal.cloud.nodes.drivers import driven
from ebbtide_rehearsal.cloud.nodes.fleet import Fleet
from ebbtide_rehearsal.cloud.nodes.hands import Hands
from ebbtide_rehearsal.cloud.nodes.machines import Machine
from ebbtide_rehearsal.cloud.nodes.names import group
from ebbtide_rehearsal.cloud.nodes.pods import Pod
from ebbtide_rehearsal.cloud.nodes.processes import ProcessKubelet, is_process
from ebbtide_rehearsal.cloud.nodes.reading import Reader
from ebbtide_rehearsal.cloud.nodes.reclaiming import lacking
from ebbtide_rehearsal.cloud.nodes.settings import Settings
from ebbtide_rehearsal.cloud.nodes.templates import UNINITIALIZED
from ebbtide_rehearsal.cloud.pools import NodePool
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane.stages import KUBELET


class Nodes:
    """The node pools of a cluster: machines and nodes, autoscaler, reclaims, pods that run as processes."""

    def __init__(
        self,
        cluster: str,
        cloud: Literal["gke", "aks"],
        api: Api,
        store: Store,
        directory: Path,
        settings: Settings,
    ) -> None:
        """See to the node pools of a cluster.

        Args:
            cluster: its id.
            cloud: whose it is.
            api: its API server, as an administrator.
            store: the cloud's memory, where its pools are.
            directory: for the files and logs of pods that run as processes.
            settings: how long things take.
        """
        self._cluster, self._api = cluster, api
        self._cloud: Literal["gke", "aks"] = cloud
        self._store, self._settings = store, settings
        hands = Hands(api)
        self._hands = hands
        self._reader = Reader(api, store, cluster)
        self._fleet = Fleet(cluster, store, settings)
        self._processes = ProcessKubelet(api, hands, directory, self._said)
        self._departures = Departures(hands, self._fleet, self._processes, store, settings)
        self._autoscaler = Autoscaler(cloud, hands, self._fleet, store, settings)
        self._pools: dict[str, NodePool] = {}
        self._driven: dict[str, float] = {}

    def run(self, ending: Event) -> None:
        """Go on until the event. The machines go with the cluster."""
        troubles = set[str]()
        installed = False
        try:
            while not ending.is_set():
                try:
                    if not installed:
                        system.install(self._api, self._cloud)
                        installed = True
                    self.step()
                except ApiError as error:  # the next round tries again
                    if str(error) not in troubles:
                        troubles.add(str(error))
                        self._store.say("node-trouble", f"The node pools' controllers were refused: {error}")
                ending.wait(self._settings.step_seconds)
        finally:
            self._processes.close()
            for machine in self._fleet.all():
                self._fleet.gone(machine, "its cluster is gone")

    def step(self) -> None:
        """One round."""
        seen = self._reader.look()
        self._change_pools(seen)
        self._departures.decided(seen)
        seen = self._refreshed(seen)
        self._departures.proceed(seen)
        for pool in seen.pools:
            if pool.capacity == "flex-start":
                self._fleet.look_for_stock(pool)
        self._arrive(seen)
        seen = self._refreshed(seen)
        self._fill(seen)
        seen = self._refreshed(seen)
        if self._autoscaler.requests(seen, self._reader):
            seen = self._refreshed(seen)
        self._autoscaler.grow(seen)
        self._autoscaler.shrink(self._refreshed(seen))
        self._kubelets(seen)

    def _refreshed(self, seen: Seen) -> Seen:
        return replace(seen, machines=self._fleet.all())

    def _change_pools(self, seen: Seen) -> None:
        """Labels and taints of a pool that were changed are changed on its nodes (GKE docs,
        update-node-pools; AKS docs, use-labels, use-node-taints; 2026)."""
        for pool in seen.pools:
            before = self._pools.get(pool.name, pool)
            if (before.labels, before.taints) != (pool.labels, pool.taints):
                for machine in seen.machines:
                    node = seen.nodes.get(machine.name)
                    if machine.pool == pool.name and node is not None:
                        self._hands.mark(node, before, pool)
        names = {pool.name for pool in seen.pools}
        self._pools = {name: pool for name, pool in self._pools.items() if name in names}

    def _fill(self, seen: Seen) -> None:
        """Pools get the nodes that they are born with, and never fall below their minimum."""
        for pool, count in lacking(seen, self._pools.keys()):
            zones = [
                zone
                for zone in _in_turns(pool, seen.machines, count)
                if self._fleet.backoff.until.get(group(pool, zone), 0) <= seen.now
            ]
            self._fleet.order(pool, zones)
        self._pools |= {pool.name: pool for pool in seen.pools}

    def _arrive(self, seen: Seen) -> None:
        """Machines that have started become nodes, and nodes become what they promise to be."""
        for machine in seen.machines:
            pool, node = seen.pool(machine), seen.nodes.get(machine.name)
            if pool is None:
                continue
            if machine.state == "starting" and machine.since <= seen.now:
                self._join(machine, pool, seen)
            elif machine.state == "running" and node is not None and node.ready:
                if any(taint.key == UNINITIALIZED for taint in node.taints):
                    self._hands.initialized(node)
                elif driven(node, pool, seen.on(node.name)):
                    since = self._driven.setdefault(node.name, seen.now)
                    if seen.now - since >= self._settings.driver_seconds:
                        self._hands.show(node, pool)
        known = {machine.name for machine in seen.machines}
        self._driven = {name: since for name, since in self._driven.items() if name in known}
        for name, node in seen.nodes.items():
            if name not in known and KUBELET in node.annotations:
                self._hands.remove(name)

    def _join(self, machine: Machine, pool: NodePool, seen: Seen) -> None:
        node = seen.nodes.get(machine.name)
        if node is not None:
            if node.cordoned or KUBELET not in node.annotations:
                self._hands.wake(node)
                return  # it has joined once that is seen
        elif any(not pod.of_node for pod in seen.on(machine.name)) or not self._hands.join(pool, machine):
            return  # pods of the node that had this name are still to be cleared away
        self._fleet.keep(machine.having(state="running", since=seen.now))
        self._store.say(
            "node-ready",
            f"Node {machine.name} of pool {machine.pool} has joined the cluster.",
            pool=machine.pool,
            node=machine.name,
        )

    def _kubelets(self, seen: Seen) -> None:
        """What kubelets do with pods that are to be deleted, where kwok leaves it at the deletion: a Job
        waits for the phase; and pods that run as processes."""
        alive = frozenset(name for name, node in seen.nodes.items() if KUBELET in node.annotations)
        ending = frozenset(machine.name for machine in seen.machines if machine.state == "ending")
        for pod in seen.pods:
            if pod.deleting and not pod.ended and pod.node in alive and not is_process(pod):
                self._hands.end(pod, {})
        self._processes.look(seen.pods, (alive | ending) & seen.nodes.keys())

    def _said(self, pod: Pod, text: str) -> None:
        self._store.say("pod-log", text, pod=pod.id, node=pod.node)


def _in_turns(pool: NodePool, machines: Sequence[Machine], count: int) -> list[str]:
    """The zones of so many new machines, where the pool has fewest first."""
    there = {
        zone: sum(each.zone == zone and each.pool == pool.name for each in machines) for zone in pool.zones
    }
    zones: list[str] = []
    for _ in range(count):
        zone = min(there, key=lambda each: (there[each], each))
        there[zone] += 1
        zones.append(zone)
    return zones
