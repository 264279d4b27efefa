"""Control loop of a cluster's node pools."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Literal

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide_rehearsal.cloud.nodes import system
from ebbtide_rehearsal.cloud.nodes.actuator import Actuator
from ebbtide_rehearsal.cloud.nodes.autoscaler import Autoscaler
from ebbtide_rehearsal.cloud.nodes.cluster import ClusterSnapshot
from ebbtide_rehearsal.cloud.nodes.fleet import Fleet
from ebbtide_rehearsal.cloud.nodes.machines import Machine
from ebbtide_rehearsal.cloud.nodes.names import group
from ebbtide_rehearsal.cloud.nodes.pods import Pod
from ebbtide_rehearsal.cloud.nodes.processes import ProcessKubelet, is_process
from ebbtide_rehearsal.cloud.nodes.reclaiming import missing_machines
from ebbtide_rehearsal.cloud.nodes.removal import NodeRemoval
from ebbtide_rehearsal.cloud.nodes.settings import NodeSettings
from ebbtide_rehearsal.cloud.nodes.snapshot_reader import SnapshotReader
from ebbtide_rehearsal.cloud.nodes.system import has_driver
from ebbtide_rehearsal.cloud.nodes.templates import UNINITIALIZED
from ebbtide_rehearsal.cloud.pools import NodePool
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane.stages import KUBELET


class NodeLoop:
    """The node pools of a cluster: machines and nodes, autoscaler, reclaims, pods that run as processes."""

    def __init__(
        self,
        cluster: str,
        cloud: Literal["gke", "aks"],
        api: Api,
        store: Store,
        directory: Path,
        settings: NodeSettings,
    ) -> None:
        """Run the node pools of a cluster.

        Args:
            cluster: id of the cluster.
            cloud: its cloud.
            api: its API server, as an administrator.
            store: the fake cloud's state, with the pools.
            directory: directory for files and logs of pods that run as processes.
            settings: durations.
        """
        self._cluster, self._api = cluster, api
        self._cloud: Literal["gke", "aks"] = cloud
        self._store, self._settings = store, settings
        actuator = Actuator(api)
        self._actuator = actuator
        self._reader = SnapshotReader(api, store, cluster)
        self._fleet = Fleet(cluster, store, settings)
        self._processes = ProcessKubelet(api, actuator, directory, self._log)
        self._removal = NodeRemoval(actuator, self._fleet, self._processes, store, settings)
        self._autoscaler = Autoscaler(cloud, actuator, self._fleet, store, settings)
        self._pools: dict[str, NodePool] = {}
        self._driver_since: dict[str, float] = {}

    def run(self, ending: Event) -> None:
        """Run rounds until the event, then remove the cluster's machines."""
        errors = set[str]()
        installed = False
        try:
            while not ending.is_set():
                try:
                    if not installed:
                        system.install(self._api, self._cloud)
                        installed = True
                    self.step()
                except ApiError as error:  # the next round tries again
                    if str(error) not in errors:
                        errors.add(str(error))
                        self._store.log_event(
                            "node-trouble", f"The node pools' controllers were refused: {error}"
                        )
                ending.wait(self._settings.step_seconds)
        finally:
            self._processes.close()
            for machine in self._fleet.all():
                self._fleet.remove(machine, "its cluster is gone")

    def step(self) -> None:
        """Run one round."""
        snapshot = self._reader.snapshot()
        self._change_pools(snapshot)
        self._removal.start(snapshot)
        snapshot = self._refreshed(snapshot)
        self._removal.proceed(snapshot)
        for pool in snapshot.pools:
            if pool.capacity == "flex-start":
                self._fleet.recheck_stock(pool)
        self._register_nodes(snapshot)
        snapshot = self._refreshed(snapshot)
        self._order_missing(snapshot)
        snapshot = self._refreshed(snapshot)
        if self._autoscaler.requests(snapshot, self._reader):
            snapshot = self._refreshed(snapshot)
        self._autoscaler.scale_up(snapshot)
        self._autoscaler.scale_down(self._refreshed(snapshot))
        self._kubelets(snapshot)

    def _refreshed(self, snapshot: ClusterSnapshot) -> ClusterSnapshot:
        return replace(snapshot, machines=self._fleet.all())

    def _change_pools(self, snapshot: ClusterSnapshot) -> None:
        """Apply a pool's changed labels and taints to its nodes (GKE docs, update-node-pools; AKS docs,
        use-labels, use-node-taints; 2026)."""
        for pool in snapshot.pools:
            before = self._pools.get(pool.name, pool)
            if (before.labels, before.taints) != (pool.labels, pool.taints):
                for machine in snapshot.machines:
                    node = snapshot.nodes.get(machine.name)
                    if machine.pool == pool.name and node is not None:
                        self._actuator.relabel(node, before, pool)
        names = {pool.name for pool in snapshot.pools}
        self._pools = {name: pool for name, pool in self._pools.items() if name in names}

    def _order_missing(self, snapshot: ClusterSnapshot) -> None:
        """Order the initial nodes of new pools, and missing nodes up to the pools' minimum."""
        for pool, count in missing_machines(snapshot, self._pools.keys()):
            zones = [
                zone
                for zone in _spread(pool, snapshot.machines, count)
                if self._fleet.backoff.until.get(group(pool, zone), 0) <= snapshot.now
            ]
            self._fleet.order(pool, zones)
        self._pools |= {pool.name: pool for pool in snapshot.pools}

    def _register_nodes(self, snapshot: ClusterSnapshot) -> None:
        """Register started machines as nodes, and mark nodes initialized and their accelerators
        allocatable."""
        for machine in snapshot.machines:
            pool, node = snapshot.pool(machine), snapshot.nodes.get(machine.name)
            if pool is None:
                continue
            if machine.state == "starting" and machine.since <= snapshot.now:
                self._join(machine, pool, snapshot)
            elif machine.state == "running" and node is not None and node.ready:
                if any(taint.key == UNINITIALIZED for taint in node.taints):
                    self._actuator.remove_uninitialized_taint(node)
                elif has_driver(node, pool, snapshot.on(node.name)):
                    since = self._driver_since.setdefault(node.name, snapshot.now)
                    if snapshot.now - since >= self._settings.driver_seconds:
                        self._actuator.add_accelerators(node, pool)
        known = {machine.name for machine in snapshot.machines}
        self._driver_since = {name: since for name, since in self._driver_since.items() if name in known}
        for name, node in snapshot.nodes.items():
            if name not in known and KUBELET in node.annotations:
                self._actuator.delete_node(name)

    def _join(self, machine: Machine, pool: NodePool, snapshot: ClusterSnapshot) -> None:
        node = snapshot.nodes.get(machine.name)
        if node is not None:
            if node.cordoned or KUBELET not in node.annotations:
                self._actuator.restart_kubelet(node)
                return  # it has joined once it is ready in the next snapshot
        elif any(not pod.of_node for pod in snapshot.on(machine.name)) or not self._actuator.register(
            pool, machine
        ):
            return  # pods of an earlier node with this name are not deleted yet
        self._fleet.save(machine.having(state="running", since=snapshot.now))
        self._store.log_event(
            "node-ready",
            f"Node {machine.name} of pool {machine.pool} has joined the cluster.",
            pool=machine.pool,
            node=machine.name,
        )

    def _kubelets(self, snapshot: ClusterSnapshot) -> None:
        """Terminate pods that are being deleted, as kubelets do and kwok does not: a Job waits for the phase.
        Then update the pods that run as processes."""
        running = frozenset(name for name, node in snapshot.nodes.items() if KUBELET in node.annotations)
        ending = frozenset(machine.name for machine in snapshot.machines if machine.state == "ending")
        for pod in snapshot.pods:
            if pod.deleting and not pod.ended and pod.node in running and not is_process(pod):
                self._actuator.end_containers(pod, {})
        self._processes.sync(snapshot.pods, (running | ending) & snapshot.nodes.keys())

    def _log(self, pod: Pod, text: str) -> None:
        self._store.log_event("pod-log", text, pod=pod.id, node=pod.node)


def _spread(pool: NodePool, machines: Sequence[Machine], count: int) -> list[str]:
    """Spread `count` new machines over zones, least-populated first."""
    existing = {
        zone: sum(machine.zone == zone and machine.pool == pool.name for machine in machines)
        for zone in pool.zones
    }
    zones: list[str] = []
    for _ in range(count):
        zone = min(existing, key=lambda name: (existing[name], name))
        existing[zone] += 1
        zones.append(zone)
    return zones
