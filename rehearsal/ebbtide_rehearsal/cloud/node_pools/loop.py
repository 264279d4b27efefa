"""Control loop of a cluster's node pools: the clouds' own workloads, the autoscaler, drains and reclaims.

Requests of the clouds' workloads in kube-system are the catalog's footprints `gke`, `gke-node`, `aks` and
`aks-node`, whose sources name the parts. GKE's kube-dns has no PodDisruptionBudget unless the user creates
one (GKE docs, cluster-autoscaler, 2026); AKS installs `coredns-pdb`, `konnectivity-agent` and
`metrics-server-pdb`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event
from typing import Any, Final, Literal

from ebbtide.autoscaler.backoff import NodeSettings, no_scale_up
from ebbtide.autoscaler.expander import cooldown_groups
from ebbtide.autoscaler.nodes import UNINITIALIZED, Machine, NodePool, node_group
from ebbtide.autoscaler.provisioning_requests import decide, ordered
from ebbtide.autoscaler.scale_down import UNNEEDED, ScaleDownReview, idle_seconds, movable, review
from ebbtide.autoscaler.scale_up import (
    BACKED_OFF,
    FULL,
    NoScaleUpInfo,
    ScaleUp,
    expansion_options,
    ignored,
    missing_machines,
    scale_up,
)
from ebbtide.autoscaler.scheduling import Pod
from ebbtide.autoscaler.snapshot import (
    ATOMIC,
    ClusterSnapshot,
    Node,
    Order,
    ProvisioningRequest,
    RequestCondition,
    booked,
)
from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.clients.kubernetes.objects import parts, text
from ebbtide.declaration.catalog.resources import footprint
from ebbtide.text import several
from ebbtide_rehearsal.cloud.node_pools.actuator import Actuator
from ebbtide_rehearsal.cloud.node_pools.fleet import Fleet, is_quota
from ebbtide_rehearsal.cloud.node_pools.pod_processes import ProcessKubelet, is_process
from ebbtide_rehearsal.cloud.node_pools.removal import NodeRemoval, is_upgraded
from ebbtide_rehearsal.cloud.node_pools.snapshot import SnapshotReader
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane.stages import KUBELET

_NAMESPACE: Final = "kube-system"
_IMAGE: Final = "registry.k8s.io/pause:3.10"
_EVERYTHING: Final[tuple[dict[str, str], ...]] = ({"operator": "Exists"},)
_ADDON: Final[Mapping[str, tuple[dict[str, str], ...]]] = {
    "gke": (
        {"key": "CriticalAddonsOnly", "operator": "Exists"},
        {"key": "components.gke.io/gke-managed-components", "operator": "Exists"},
    ),
    "aks": ({"key": "CriticalAddonsOnly", "operator": "Exists"},),
}
NO_PLUGIN: Final = "gke-no-default-nvidia-gpu-device-plugin"
"""Label of GKE nodes on which GKE's own device plugin does not run (GKE docs, gpu-operator)."""
_INSTALLER: Final = "nvidia-installer"
"""Common part of the driver installers' image names on GKE, `cos-nvidia-installer` and
`gke-nvidia-installer`, in any DaemonSet (container-engine-accelerators, nvidia-driver-installer,
daemonset-preloaded.yaml). These nodes have GKE's device plugin."""
_PLUGINS: Final = {"nvidia.com/gpu": "nvidia-device-plugin", "amd.com/gpu": "device-plugin"}
"""Common part of the DaemonSet names of a vendor's device plugin, standalone or of its GPU operator, by
resource (NVIDIA's k8s-device-plugin and gpu-operator; ROCm's k8s-device-plugin and gpu-operator). AKS
installs NVIDIA's driver; the operators' plugins wait for the operators' drivers."""


@dataclass(frozen=True, slots=True)
class _Addon:
    """A Deployment: number of pods, requests of each (millicores, MiB), and name of its budget, or empty."""

    name: str
    pods: int
    cpu_m: int
    memory_mib: int
    budget: str = ""


_ADDONS: Final[Mapping[str, tuple[_Addon, ...]]] = {
    "gke": (
        _Addon("kube-dns", 1, 260, 110),
        _Addon("konnectivity-agent", 1, 15, 60),
        _Addon("metrics-server", 1, 125, 160),
    ),
    "aks": (
        _Addon("coredns", 2, 100, 70, "coredns-pdb"),
        _Addon("konnectivity-agent", 2, 80, 35, "konnectivity-agent"),
        _Addon("metrics-server", 2, 200, 110, "metrics-server-pdb"),
    ),
}


def install(api: Api, cloud: Literal["gke", "aks"]) -> None:
    """Install the cloud's own workloads into a cluster."""
    for path, body in objects(cloud):
        api.apply(path, body)


def objects(cloud: Literal["gke", "aks"]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the cloud's own workloads, with their paths in the API."""
    each_node = footprint(f"{cloud}-node").requests
    agents = _pod("node-agents", each_node.cpu_m, each_node.memory_mib, _EVERYTHING, "system-node-critical")
    yield _object("apps/v1", "DaemonSet", "node-agents", _selecting("node-agents") | {"template": agents})
    for addon in _ADDONS[cloud]:
        template = _pod(addon.name, addon.cpu_m, addon.memory_mib, _ADDON[cloud], "system-cluster-critical")
        body = _selecting(addon.name) | {"replicas": addon.pods, "template": template}
        yield _object("apps/v1", "Deployment", addon.name, body)
        if addon.budget:
            spec = _selecting(addon.name) | {"minAvailable": 1}
            yield _object("policy/v1", "PodDisruptionBudget", addon.budget, spec)


def _selecting(name: str) -> dict[str, Any]:
    return {"selector": {"matchLabels": {"k8s-app": name}}}


def _object(version: str, kind: str, name: str, spec: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    path = f"/apis/{version}/namespaces/{_NAMESPACE}/{kind.lower()}s/{name}"
    metadata = {"name": name, "namespace": _NAMESPACE}
    return path, {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _pod(
    name: str, cpu_m: float, memory_mib: float, tolerations: tuple[dict[str, str], ...], priority: str
) -> dict[str, Any]:
    requests = {"cpu": f"{cpu_m:.0f}m", "memory": f"{memory_mib:.0f}Mi"}
    return {
        "metadata": {"labels": {"k8s-app": name}},
        "spec": {
            "priorityClassName": priority,
            "tolerations": [*tolerations],
            "containers": [{"name": name, "image": _IMAGE, "resources": {"requests": requests}}],
        },
    }


def has_driver(node: Node, pool: NodePool, pods: Sequence[Pod]) -> bool:
    """Return whether driver and device plugin of a node's accelerators run."""
    if pool.accelerator is None or pool.accelerator_resource in node.allocatable:
        return False
    plugin = _PLUGINS.get(pool.accelerator_resource)
    if pool.driver_installed or plugin is None:
        return True
    own = pool.cloud == "gke" and node.labels.get(NO_PLUGIN) != "true"
    running = [pod for pod in pods if pod.phase == "Running"]
    return any(_installs(pod) for pod in running) if own else any(plugin in _daemon(pod) for pod in running)


def _installs(pod: Pod) -> bool:
    return any(
        _INSTALLER in text(container, "image") for container in parts(pod.raw, "spec", "initContainers")
    )


def _daemon(pod: Pod) -> str:
    owners = parts(pod.raw, "metadata", "ownerReferences")
    return next((text(owner, "name") for owner in owners if owner.get("kind") == "DaemonSet"), "")


class Autoscaler:
    """Cluster autoscaler of one cluster. As with a real one, its state is lost on a restart."""

    def __init__(
        self,
        cloud: Literal["gke", "aks"],
        actuator: Actuator,
        fleet: Fleet,
        store: Store,
        settings: NodeSettings,
    ) -> None:
        """Initialize without history."""
        self._cloud, self._actuator, self._fleet = cloud, actuator, fleet
        self._store, self._settings = store, settings
        self._review = ScaleDownReview({}, {}, (), ())
        self._empty: dict[str, bool] = {}
        self._last_scale_up: float | None = None
        self._messages: dict[str, str] = {}
        self._reported: set[tuple[str, str, str]] = set()
        self._since: dict[str, float] = {}

    def requests(self, snapshot: ClusterSnapshot, reader: SnapshotReader) -> bool:
        """Process ProvisioningRequests until one is handled; return whether free capacity has changed."""
        for request in snapshot.requests:
            since = self._since.setdefault(request.uid, snapshot.now)
            match decide(request, snapshot, since, self._fleet.backoff.until, self._settings):
                case None:
                    pass
                case RequestCondition() as new:
                    self._set_condition(request, reader, new, snapshot.now)
                    if new.kind == "Provisioned":
                        return True  # what is free has changed
                case Order() as order:
                    is_ordered = self._order(request, order, snapshot)
                    if request.kind == ATOMIC and (condition := ordered(request, came=is_ordered)):
                        self._set_condition(request, reader, condition, snapshot.now)
                    if is_ordered:
                        return True
        return False

    def _set_condition(
        self, request: ProvisioningRequest, reader: SnapshotReader, new: RequestCondition, now: float
    ) -> None:
        self._since[request.uid] = now
        self._actuator.set_condition(request, reader.raw_request(request), new)
        self._store.log_event(
            "provisioning-request",
            f"ProvisioningRequest {request.id} {new.sentence}",
            request=request.id,
            condition=new.kind,
            status=new.status,
            reason=new.reason,
        )

    def _order(self, request: ProvisioningRequest, order: Order, snapshot: ClusterSnapshot) -> bool:
        backoff = self._fleet.backoff.until
        if any(backoff.get(node_group(order.pool, zone), 0) > snapshot.now for zone in order.zones):
            return False
        is_ordered = not self._fleet.order(order.pool, order.zones, request.id)
        if is_ordered:
            self._last_scale_up = snapshot.now
        return is_ordered

    def scale_up(self, snapshot: ClusterSnapshot) -> None:
        """Order nodes for pending pods."""
        offered = list(expansion_options(snapshot, self._fleet.backoff.until))
        planned, unschedulable = scale_up(snapshot, offered)
        self._report_unschedulable(unschedulable)
        for pod, message in ignored(snapshot):
            if self._messages.get(pod.uid) != message:
                self._messages[pod.uid] = message
                self._actuator.create_event(pod, "Normal", "", message)
        if planned is not None:
            self._apply_scale_up(planned, snapshot)

    def _apply_scale_up(self, planned: ScaleUp, snapshot: ClusterSnapshot) -> None:
        pool, count = planned.pool, len(planned.zones)
        self._store.log_event(
            "scale-up",
            f"Pool {pool.name} is to grow from {planned.before} to "
            f"{several(planned.before + count, 'node')} for {several(len(planned.pods), 'pending pod')}, "
            f"{planned.pods[0].id} among them.",
            pool=pool.name,
            before=planned.before,
            after=planned.before + count,
            pods=[pod.id for pod in planned.pods],
        )
        refusals = self._fleet.order(pool, planned.zones)
        is_ordered = not set(planned.zones) <= refusals.keys()
        if is_ordered:
            self._last_scale_up = snapshot.now
        for pod in planned.pods:
            self._messages.pop(pod.uid, None)
            if is_ordered:
                self._actuator.create_event(pod, "Normal", "TriggeredScaleUp", planned.message)
        if refusals and self._cloud == "gke":
            self._report_failure(planned, refusals, snapshot)

    def _report_failure(
        self, planned: ScaleUp, refusals: Mapping[str, str], snapshot: ClusterSnapshot
    ) -> None:
        """Report refusals to pods as GKE does, and suspend the node groups of the pool's ComputeClass
        rule."""
        zones, regional = sorted(refusals), any(is_quota(refusal) for refusal in refusals.values())
        self._fleet.backoff.cool(
            cooldown_groups(planned.pool, zones, snapshot, regional=regional), snapshot.now
        )
        reasons = ", ".join(dict.fromkeys(refusal.partition(" (")[0] for refusal in refusals.values()))
        message = (
            f"Node scale up in zones {', '.join(zones)} associated with this pod failed: {reasons}. Pod is "
            "at risk of not being scheduled."
        )
        for pod in planned.pods:
            self._actuator.create_event(pod, "Warning", "FailedScaleUp", message)

    def _report_unschedulable(self, unschedulable: list[NoScaleUpInfo]) -> None:
        """Report to pods why no pool can grow for them: one event per pod and reason, one log entry per
        reason."""
        new = [info for info in unschedulable if self._messages.get(info.pod.uid) != info.message]
        by_message: dict[str, list[str]] = {}
        reasons = {info.message: info.reasons for info in new}
        for info in new:
            self._messages[info.pod.uid] = info.message
            self._actuator.create_event(info.pod, "Normal", "NotTriggerScaleUp", info.message)
            by_message.setdefault(info.message, []).append(info.pod.id)
        for message, pods in by_message.items():
            others = f" and {len(pods) - 1} others" if len(pods) > 1 else ""
            why = message.partition(": ")[2] or "no node pool is autoscaled"
            messages = no_scale_up(reasons[message], (BACKED_OFF, FULL)) if self._cloud == "gke" else []
            text = f"No pool can grow for pod {pods[0]}{others}: {why}."
            self._store.log_event("no-scale-up", text, pods=pods, why=why, messages=messages)

    def scale_down(self, snapshot: ClusterSnapshot) -> None:
        """Remove unneeded nodes, and log the reasons that keep the others."""
        self._review = review(snapshot, self._review, booked(snapshot), self._last_scale_up, self._settings)
        for held in self._review.unremovable:
            key = held.node, held.pod, held.why
            if key not in self._reported:
                self._reported.add(key)
                message = held.message if self._cloud == "gke" else ""
                facts = {"node": held.node, "pod": held.pod, "why": held.why, "message": message}
                self._store.log_event("held-node", held.sentence, **facts)
        # An assumption: new nodes of an upgrade stay until the pods of the old ones have come.
        upgraded = {pool.name for pool in snapshot.pools if is_upgraded(snapshot, pool)}
        for machine in snapshot.machines:
            node = snapshot.nodes.get(machine.name)
            if machine.state == "running" and machine.pool not in upgraded and node:
                self._remove_unneeded(machine, node, snapshot)

    def _remove_unneeded(self, machine: Machine, node: Node, snapshot: ClusterSnapshot) -> None:
        """Taint a node that can be removed, and in the next loop drain it if it still can be; no pod may have
        come to an empty one before its taint (kubernetes/autoscaler@1959f5f6, core/scaledown/actuation/
        actuator.go, deleteNodesAsync)."""
        is_removable = node.name in self._review.removable
        if not node.is_to_be_deleted:
            if is_removable:
                self._empty[node.name] = not movable(snapshot, node.name)
                self._actuator.mark_to_be_deleted(node)
        elif is_removable and not (self._empty.pop(node.name, False) and movable(snapshot, node.name)):
            idle = idle_seconds(snapshot, self._settings, snapshot.pool(machine))
            why = f"{UNNEEDED} {idle / 60:.0f} min"
            self._fleet.save(machine.having(state="draining", since=snapshot.now, why=why))
        else:
            self._actuator.clean_to_be_deleted(node)


class NodeLoop:
    """The node pools of a cluster: machines and nodes, autoscaler, reclaims, pods that run as processes."""

    def __init__(
        self,
        cluster: str,
        cloud: Literal["gke", "aks"],
        api: Api,
        store: Store,
        directory: Path,
        sessions: Path,
        settings: NodeSettings,
    ) -> None:
        """Run the node pools of a cluster.

        Args:
            api: its API server, as an administrator.
            store: the fake cloud's state, with the pools.
            directory: directory for files and logs of pods that run as processes.
            sessions: directory of the streaming server.
        """
        self._cluster, self._api = cluster, api
        self._cloud: Literal["gke", "aks"] = cloud
        self._store, self._settings = store, settings
        actuator = Actuator(api)
        self._actuator = actuator
        self._reader = SnapshotReader(api, store, cluster)
        self._fleet = Fleet(cluster, store, settings)
        self._processes = ProcessKubelet(api, actuator, directory, sessions, self._log)
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
                        install(self._api, self._cloud)
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
                    is_current = machine.pool == pool.name and machine.version == pool.version
                    if is_current and node is not None:
                        self._actuator.relabel(node, before, pool)
        names = {pool.name for pool in snapshot.pools}
        self._pools = {name: pool for name, pool in self._pools.items() if name in names}

    def _order_missing(self, snapshot: ClusterSnapshot) -> None:
        """Order the initial nodes of new pools, and missing nodes up to the pools' minimum."""
        for pool, count in missing_machines(snapshot, self._pools.keys()):
            zones = [
                zone
                for zone in _spread(pool, snapshot.machines, count)
                if self._fleet.backoff.until.get(node_group(pool, zone), 0) <= snapshot.now
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
