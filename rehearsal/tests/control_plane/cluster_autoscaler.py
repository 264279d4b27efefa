"""The real cluster-autoscaler, with the fake cloud's node pools behind its `externalgrpc` provider."""

import threading
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import grpc

from ebbtide.autoscaler.nodes import UNINITIALIZED, Machine, NodePool, node_group, provider_id
from ebbtide_rehearsal.cloud.node_pools.actuator import Actuator, node
from ebbtide_rehearsal.cloud.node_pools.fleet import Fleet
from ebbtide_rehearsal.cloud.pools import pools
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.control_plane.plan import PortReservation
from ebbtide_rehearsal.control_plane.processes import Processes
from rehearsal.tests.control_plane.cluster import Object, wait
from rehearsal.tests.control_plane.external_grpc import MESSAGES, METHODS, SERVICE

_RUNNING: Final = 1
_CREATING: Final = 2
_DELETING: Final = 3
_STATES: Final = {"running": _RUNNING, "starting": _CREATING}
_GPU_LABEL: Final = {"gke": "cloud.google.com/gke-accelerator", "aks": "accelerator"}
"""Both providers' own (cluster-autoscaler, cloudprovider/gce and cloudprovider/azure, GPULabel)."""

_FLAGS: Final = (
    "--cloud-provider=externalgrpc",
    "--leader-elect=false",
    "--scan-interval=100ms",
    "--kube-client-qps=100",
    "--kube-client-burst=200",
    "--write-status-configmap=false",
    # Its default holds GPU pods back for 30 s and others for 2 s, so that the scheduler sees them first; the
    # tests wait for the scheduler themselves.
    "--bypassed-scheduler-names=none",
    "--skip-nodes-with-local-storage=false",
    # As the clouds' own providers compare node groups, which are similar but for their zone.
    "--balance-similar-node-groups",
    "--balancing-ignore-label=topology.gke.io/zone",
    "--scale-down-delay-after-add=0s",
    "--scale-down-unneeded-time=100ms",
    "--unremovable-node-recheck-timeout=100ms",
    "--node-delete-delay-after-taint=0s",
    "--record-duplicated-events=true",
    "--v=2",
)
_TIMEOUT: Final = "10m"
_ROUNDS: Final = 8
"""Loops after which it has decided; one starts every 100 ms, and nodes are removed after two or three."""


@dataclass
class Decisions:
    """Calls that change a node group.

    Attributes:
        rounds: loops that it has begun.
        increases: new nodes, by node group.
        refused: node groups that were refused, in order.
        deleted: names of deleted nodes.
        failures: calls that failed. The autoscaler takes a failed list of node groups for an empty one, and
            reports NotTriggerScaleUp without a reason for pods that wait for their new node
            (externalgrpc_cloud_provider.go, `NodeGroups`).
    """

    rounds: int = 0
    increases: Counter[str] = field(default_factory=Counter[str])
    refused: list[str] = field(default_factory=list[str])
    deleted: list[str] = field(default_factory=list[str])
    failures: list[str] = field(default_factory=list[str])


class NodeGroups:
    """The node groups of a fake cloud's cluster: one for each pool on AKS, for each pool and zone on GKE."""

    def __init__(self, cluster: str, store: Store, actuator: Actuator, fleet: Fleet) -> None:
        self._cluster, self._store, self._actuator, self._fleet = cluster, store, actuator, fleet
        self._lock = threading.RLock()
        self.decisions = Decisions()

    def groups(self) -> dict[str, tuple[NodePool, str]]:
        """Pools with a zone, by name of their node group."""
        scaled = [pool for pool in pools(self._store, self._cluster) if pool.autoscaled]
        return {
            node_group(pool, zone): (pool, zone)
            for pool in scaled
            for zone in (pool.zones if pool.cloud == "gke" else pool.zones[:1])
        }

    def machines(self, identity: str) -> list[Machine]:
        """The machines of a node group."""
        pool, zone = self.groups()[identity]
        return [
            machine
            for machine in self._fleet.all()
            if machine.pool == pool.name and (pool.cloud == "aks" or machine.zone == zone)
        ]

    def call(self, method: str, request: Any, context: grpc.ServicerContext) -> Any:
        """Answer a method of the service."""
        with self._lock:
            try:
                return getattr(self, f"_{method}")(request, context)
            except Exception as error:
                if method != "NodeGroupIncreaseSize":  # which may be refused
                    self.decisions.failures.append(f"{method}: {error!r}")
                raise

    def _message(self, identity: str) -> Any:
        pool, _ = self.groups()[identity]
        here = len(self.machines(identity))
        others = sum(machine.pool == pool.name for machine in self._fleet.all()) - here
        least, most = max(0, pool.minimum - others), pool.maximum - others
        return MESSAGES["NodeGroup"](id=identity, minSize=least, maxSize=most, debug=pool.name)

    def _NodeGroups(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return MESSAGES["NodeGroups"](nodeGroups=[self._message(identity) for identity in self.groups()])

    def _NodeGroupForNode(self, request: Any, _context: Any) -> Any:  # noqa: N802
        for identity in self.groups():
            # A node that has not registered yet has the machine's id for a name.
            if any(provider_id(machine) == request.node.providerID for machine in self.machines(identity)):
                return MESSAGES["NodeGroupForNodeResponse"](nodeGroup=self._message(identity))
        return MESSAGES["NodeGroupForNodeResponse"]()

    def _GPULabel(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        clouds = [pool.cloud for pool in pools(self._store, self._cluster)]
        return MESSAGES["GPULabelResponse"](label=_GPU_LABEL[clouds[0]])

    def _GetAvailableGPUTypes(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        answer = MESSAGES["GetAvailableGPUTypesResponse"]()
        for pool, _ in self.groups().values():
            if pool.accelerator:
                answer.gpuTypes[pool.accelerator[0]].type_url = ""
        return answer

    def _Cleanup(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        return MESSAGES["Empty"]()

    def _Refresh(self, _request: Any, _context: Any) -> Any:  # noqa: N802
        self.decisions.rounds += 1
        return MESSAGES["Empty"]()

    def _NodeGroupTargetSize(self, request: Any, _context: Any) -> Any:  # noqa: N802
        return MESSAGES["TargetSize"](targetSize=len(self.machines(request.id)))

    def _NodeGroupIncreaseSize(self, request: Any, context: grpc.ServicerContext) -> Any:  # noqa: N802
        pool, zone = self.groups()[request.id]
        if refusals := self._fleet.order(pool, [zone] * request.delta):
            self.decisions.refused.append(request.id)
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, refusals[zone])
        self.decisions.increases[request.id] += request.delta
        return MESSAGES["Empty"]()

    def _NodeGroupDeleteNodes(self, request: Any, _context: Any) -> Any:  # noqa: N802
        identities = {node.providerID for node in request.nodes}
        for machine in self.machines(request.id):
            if provider_id(machine) in identities:
                self.decisions.deleted.append(machine.name)
                self._actuator.delete_node(machine.name)
                self._fleet.remove(machine, "the cluster autoscaler deleted it")
        return MESSAGES["Empty"]()

    def _NodeGroupDecreaseTargetSize(self, request: Any, _context: Any) -> Any:  # noqa: N802
        starting = [machine for machine in self.machines(request.id) if machine.state == "starting"]
        for machine in starting[: -request.delta]:
            self._fleet.remove(machine, "the cluster autoscaler no longer needs it")
        return MESSAGES["Empty"]()

    def _NodeGroupNodes(self, request: Any, _context: Any) -> Any:  # noqa: N802
        return MESSAGES["Instances"](
            instances=[
                {
                    "id": provider_id(machine),
                    "status": {"instanceState": _STATES.get(machine.state, _DELETING)},
                }
                for machine in self.machines(request.id)
            ]
        )

    def _NodeGroupTemplateNodeInfo(self, request: Any, _context: Any) -> Any:  # noqa: N802
        pool, zone = self.groups()[request.id]
        return MESSAGES["TemplateNodeInfo"](nodeInfo=template(pool, zone, request.id))


def template(pool: NodePool, zone: str, identity: str) -> dict[str, Any]:
    """A new node of a pool, complete with its accelerators, as fields of the message `Node`."""
    name = f"template-node-for-{identity}"
    machine = Machine(
        pool.cluster, pool.name, name + "000000", zone, pool.cloud, pool.hourly, 0, "starting", 0
    )
    raw = node(pool, machine, "")
    taints = [taint for taint in raw["spec"]["taints"] if taint["key"] != UNINITIALIZED]
    return {
        "metadata": {"name": name, "labels": {**raw["metadata"]["labels"], "kubernetes.io/hostname": name}},
        "spec": {"taints": taints},
        "status": {
            "capacity": _quantities({**raw["status"]["capacity"], **pool.accelerators}),
            "allocatable": _quantities({**raw["status"]["allocatable"], **pool.accelerators}),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _quantities(amounts: Mapping[str, str]) -> dict[str, Object]:
    return {name: {"string": amount} for name, amount in amounts.items()}


def _server(groups: NodeGroups) -> tuple[grpc.Server, int]:
    def handler(method: str, request: str, response: str) -> "grpc.RpcMethodHandler[Any, Any]":
        return grpc.unary_unary_rpc_method_handler(
            partial(groups.call, method),
            request_deserializer=MESSAGES[request].FromString,
            response_serializer=MESSAGES[response].SerializeToString,
        )

    handlers = {method: handler(method, *kinds) for method, kinds in METHODS.items()}
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(SERVICE, handlers)])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


class Real:
    """A running cluster-autoscaler.

    Attributes:
        decisions: its decisions so far.
    """

    def __init__(self, decisions: Decisions, processes: Processes) -> None:
        self.decisions, self._processes = decisions, processes

    @property
    def memory(self) -> int:
        """Resident bytes of its process."""
        return self._processes.memory()

    def settled(self) -> Decisions:
        """Return the autoscaler's decisions after several rounds without a change."""
        before: tuple[Any, ...] = ()
        while (now := self._changes()) != before:
            before, since = now, self.decisions.rounds
            wait(lambda: self.decisions.rounds, lambda rounds: rounds >= since + _ROUNDS)  # noqa: B023
        return self.decisions

    def _changes(self) -> tuple[Any, ...]:
        decisions = self.decisions
        return (True, decisions.increases.total(), len(decisions.refused), len(decisions.deleted))


@contextmanager
def deciding(
    control_plane: ControlPlane, program: Path, groups: NodeGroups, directory: Path, flags: Sequence[str] = ()
) -> Generator[Real]:
    """Run cluster-autoscaler on the node groups until the end of the block."""
    server, port = _server(groups)
    config = directory / "cloud-config.yaml"
    # Its default of five seconds may pass on a busy machine; a call that fails is an empty answer to it.
    config.write_text(f"address: 127.0.0.1:{port}\ngrpc_timeout: {_TIMEOUT}\n")
    with ExitStack() as ending:
        # The server ends last: without it, the autoscaler's last loops would have no node groups.
        ending.callback(lambda: server.stop(None).wait())
        processes, metrics = ending.enter_context(Processes()), ending.enter_context(PortReservation(1))
        arguments = [
            f"--kubeconfig={control_plane.plan.kubeconfig}",
            f"--cloud-config={config}",
            f"--address=127.0.0.1:{metrics.ports[0]}",
            *_FLAGS,
            *flags,
        ]
        metrics.release()
        processes.start(
            "cluster-autoscaler",
            [program, *arguments],
            log=directory / "cluster-autoscaler.log",
            directory=directory,
        )
        yield Real(groups.decisions, processes)
    assert not groups.decisions.failures
