"""Node pools, their machines and their nodes: names, labels, taints, capacity.

Machines exist, and are billed, before their node is registered and after it is deleted. Sources: GKE docs
(node names, node labels), Azure docs (AKS node labels, scale set names), Kubernetes docs (Well-Known Labels;
Cloud Controller Manager for the initial taint), and names in issues of GKE and AKS, such as
`gke-cluster-1-default-pool-d2eb6f2e-8w8x` and `aks-nodepool1-12345678-vmss000000` (2026).
"""

import hashlib
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, Literal, Self, assert_never

from ebbtide.autoscaler.scheduling import ZONE, NodeInfo, Pod, mismatch
from ebbtide.declaration.catalog.machines import ARCHITECTURE, architecture, find_machine
from ebbtide.declaration.model.capacity import CapacityKind
from ebbtide.placement import NodeTaint
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.pod_requests import amounts, total

Expander = Literal["random", "most-pods", "least-waste", "priority"]
NO_ZONE: Final = "0"
"""Zone label of nodes without a zone: Azure uses a fault domain (cloud-provider-azure docs,
topics/availability-zones)."""
State = Literal["waiting", "starting", "running", "draining", "ending", "stopped"]
_LONGEST: Final = 63
_DIGITS: Final = string.digits + string.ascii_lowercase
_HEX: Final = string.hexdigits[:16]
REQUEST_LABEL: Final = "autoscaling.gke.io/provisioning-request"
"""Label of a node that was created for a ProvisioningRequest that GKE had queued."""
UNINITIALIZED: Final = "node.cloudprovider.kubernetes.io/uninitialized"
"""Key of a new node's taint until the cloud's controller has initialized the node."""
NOT_READY: Final = "node.kubernetes.io/not-ready"
"""Key of Kubernetes' taint on a node until its kubelet is ready."""
_PODS: Final = {"gke": 110, "aks": 250}
RECLAIMABLE = ("spot", "preemptible")


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaling:
    """Settings of a cluster's autoscaler, with their defaults; times in simulated seconds.

    The defaults are those of the cluster autoscaler, which are also AKS' (azure-aks-docs, cluster-autoscaler,
    2026-07-30). GKE publishes no numbers for its two profiles, and `OPTIMIZE_UTILIZATION` is not a setting of
    the cluster autoscaler (kubernetes/autoscaler#2798): these defaults apply to both, so that nodes are not
    removed earlier than on GKE.

    Attributes:
        expander: chooses between node pools. GKE has its own.
        idle_seconds: time that a node is unneeded before its removal (`scale-down-unneeded-time`).
        delay_after_add_seconds: time without removals after a scale-up (`scale-down-delay-after-add`).
        utilization: maximum requested share of a node that may be removed
            (`scale-down-utilization-threshold`).
        daemons_count: whether pods of DaemonSets count towards the share (negation of
            `ignore-daemonsets-utilization`).
        eviction_seconds: time for the pods of a removed node to end (`max-graceful-termination-sec`).
        skip_local_storage: whether a pod with an emptyDir or hostPath keeps its node
            (`skip-nodes-with-local-storage`). Not on AKS, nor on GKE since 1.22.
        skip_system_pods: whether a pod of kube-system without a disruption budget keeps its node
            (`skip-nodes-with-system-pods`).
    """

    expander: Expander = "random"
    idle_seconds: float = 600
    delay_after_add_seconds: float = 600
    utilization: float = 0.5
    daemons_count: bool = True
    eviction_seconds: float = 600
    skip_local_storage: bool = False
    skip_system_pods: bool = True


@dataclass(frozen=True, slots=True)
class NodePool:
    """A node pool.

    Attributes:
        cluster: id of the cluster in `Clusters`.
        name: name, unique in its cluster.
        zones: zones that nodes are spread over.
        labels: labels of each node: requested ones and those that the cloud adds, without those for its name
            or zone.
        taints: taints of each node, requested or added by the cloud.
        allocatable: allocatable resources of each node as Kubernetes quantities, without accelerators.
        accelerator: type and count of each node's accelerators; None for none.
        accelerator_resource: their resource name, such as `nvidia.com/gpu`; empty for none.
        driver_installed: True if the cloud itself installs the accelerators' driver and device plugin;
            otherwise they are allocatable once DaemonSets that install them run on the node.
        minimum: minimum node count, over all zones.
        maximum: maximum node count, over all zones.
        initial: initial node count, over all zones.
        autoscaled: True if the cloud's autoscaler sizes it; otherwise it stays at `initial`.
        hourly: price of a node, USD per hour; None if a part of it is unknown.
        max_run_seconds: lifetime after which the cloud removes a node; None for no limit.
        deallocates: True if an evicted node is stopped, not deleted (AKS, eviction policy `Deallocate`).
        shares: amount of the accelerator resource per accelerator.
        together: number of nodes of a TPU slice, which are created and deleted together.
        ssd_gb: size of each node's boot disk, if it counts towards the quota of SSD disks.
        reserved: begin and end of the reservation of its nodes, in simulated seconds, outside of which the
            cloud has none; None for no period.
        version: number of changes that recreate its nodes.
        size: number of its machines at the last such change.
        surge: number of nodes that are recreated at once.
    """

    cluster: str
    name: str
    cloud: Literal["gke", "aks"]
    machine: str
    capacity: CapacityKind
    region: str
    zones: tuple[str, ...]
    labels: Mapping[str, str]
    taints: tuple[NodeTaint, ...]
    allocatable: Mapping[str, str]
    accelerator: tuple[str, int] | None
    accelerator_resource: str
    driver_installed: bool
    minimum: int
    maximum: int
    initial: int
    autoscaled: bool
    hourly: float | None
    max_run_seconds: int | None = None
    deallocates: bool = False
    shares: int = 1
    together: int = 1
    ssd_gb: int = 0
    reserved: tuple[float, float] | None = None
    version: int = 0
    size: int = 0
    surge: int = 1

    @property
    def accelerators(self) -> dict[str, str]:
        """Accelerators of a node as allocatable resources, once their driver runs."""
        if self.accelerator is None:
            return {}
        return {self.accelerator_resource: str(self.accelerator[1] * self.shares)}

    @property
    def id(self) -> str:
        """Id, unique among the pools of all clusters."""
        return f"{self.cluster}/{self.name}"

    def having(self, **changes: Any) -> Self:
        """Return the pool with some fields changed."""
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine of a node pool.

    Attributes:
        hourly: price, USD per hour; None if it is unknown.
        created: creation time, in simulated seconds.
        state: `waiting` for stock, unbilled, until `since` at the latest; `starting` until `since`;
            `draining`: its pods are being evicted, since then; `ending`: it has an eviction notice, and is
            deleted at `since` on the wall clock; `stopped`: evicted, but not deleted (AKS, `Deallocate`).
        since: see `state`; for a running machine its start, in simulated seconds.
        request: its ProvisioningRequest, as `namespace/name`; empty for none.
        why: reason for its removal; empty if it is not being removed.
        version: that of its pool when it was created.
    """

    cluster: str
    pool: str
    name: str
    zone: str
    cloud: Literal["gke", "aks"]
    hourly: float | None
    created: float
    state: State
    since: float
    request: str = ""
    why: str = ""
    version: int = 0

    @property
    def id(self) -> str:
        """Id, unique in the cloud."""
        return f"{self.cluster}/nodes/{self.name}"

    @property
    def is_leaving(self) -> bool:
        """Return whether its removal has begun."""
        return self.state in ("draining", "ending")

    @property
    def pool_id(self) -> str:
        """Id of the pool."""
        return f"{self.cluster}/{self.pool}"

    def having(self, **changes: Any) -> Self:
        """Return the machine with some fields changed."""
        return replace(self, **changes)


def billed_count(machines: Iterable[Machine], pool: NodePool) -> int:
    """Return the number of machines that count towards a pool's maximum: those that are not being removed."""
    return sum(machine.pool == pool.name and not machine.is_leaving for machine in machines)


def _hash(text: str, length: int, digits: str) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:16])
    return _digits(number, digits)[-length:].rjust(length, digits[0])


def _digits(number: int, digits: str) -> str:
    head, last = divmod(number, len(digits))
    return (_digits(head, digits) if head else "") + digits[last]


def node_group(pool: NodePool, zone: str) -> str:
    """Return the name of the instance group or scale set of a pool's nodes in a zone."""
    match pool.cloud:
        case "gke":
            # The length to which GKE truncates long names is not documented.
            stem = f"gke-{_last(pool.cluster)}-{pool.name}"[: _LONGEST - 14]
            return f"{stem}-{_hash(f'{pool.id}/{zone}', 8, _HEX)}"
        case "aks":
            return f"aks-{pool.name}-{_hash(pool.cluster, 8, string.digits)}-vmss"


def new_name(pool: NodePool, zone: str, number: int, since: float) -> str:
    """Return the name of a new node.

    Args:
        number: number of earlier nodes of the pool, so that no name is used twice.
        since: start time of the fake cloud, so that two clouds use different names.
    """
    stem = node_group(pool, zone)
    match pool.cloud:
        case "gke":
            return f"{stem}-{_hash(f'{stem}/{number}/{since}', 4, _DIGITS)}"
        case "aks":
            return stem + _digits(number, _DIGITS).rjust(6, "0")


def provider_id(machine: Machine) -> str:
    """Return a machine's provider id, with project or subscription if the cluster's id has them."""
    words = machine.cluster.strip("/").split("/")
    path = dict(zip(words[::2], words[1::2], strict=False))
    match machine.cloud:
        case "gke":
            return f"gce://{path.get('projects', 'rehearsal')}/{machine.zone}/{machine.name}"
        case "aks":
            scale_set, number = machine.name[:-6], int(machine.name[-6:], 36)
            return (
                f"azure:///subscriptions/{path.get('subscriptions', 'rehearsal')}/resourceGroups/"
                f"mc_{path.get('resourceGroups', 'rehearsal')}_{_last(machine.cluster)}/providers/"
                f"Microsoft.Compute/virtualMachineScaleSets/{scale_set}/virtualMachines/{number}"
            )


def _last(identity: str) -> str:
    return identity.rstrip("/").rsplit("/", 1)[-1]


def resize_request(request: str) -> str:
    """Return the name of GKE's resize request for a ProvisioningRequest."""
    return f"gke-{_hash(request, 16, _HEX)}"


def labels(pool: NodePool, zone: str, name: str) -> dict[str, str]:
    """Return the labels of a node: its pool's, and those for its name, machine and zone."""
    region = zone.rsplit("-", 1)[0]
    arch = architecture(CloudKind(pool.cloud), pool.machine)
    own = {
        "kubernetes.io/hostname": name,
        ARCHITECTURE: arch,
        "kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": arch,
        "beta.kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": pool.machine,
        "beta.kubernetes.io/instance-type": pool.machine,
        "topology.kubernetes.io/region": region,
        ZONE: zone,
        "failure-domain.beta.kubernetes.io/region": region,
        "failure-domain.beta.kubernetes.io/zone": zone,
    }
    match pool.cloud:
        case "gke":
            own |= {"cloud.google.com/gke-nodepool": pool.name, "topology.gke.io/zone": zone}
        case "aks":
            own |= {
                "agentpool": pool.name,
                "kubernetes.azure.com/agentpool": pool.name,
                "kubernetes.azure.com/role": "agent",
                "topology.disk.csi.azure.com/zone": zone,
            }
        case _:
            assert_never(pool.cloud)
    return {**own, **pool.labels}


def provides(pool: NodePool) -> dict[str, str]:
    """Return a node's allocatable resources once its accelerators are ready."""
    return {"pods": str(_PODS[pool.cloud]), **pool.allocatable, **pool.accelerators}


def capacity(pool: NodePool) -> dict[str, str]:
    """Return a node's capacity, as far as the catalog knows its machine type, without accelerators."""
    machine = find_machine(CloudKind(pool.cloud), pool.machine)
    known = {"cpu": str(machine.vcpus), "memory": f"{int(machine.memory_gib * 1024)}Mi"} if machine else {}
    return {"pods": str(_PODS[pool.cloud]), **pool.allocatable, **known}


def node_info(pool: NodePool, zone: str, daemons: Sequence[Pod]) -> NodeInfo:
    """Return a new node of a pool, with the requests of DaemonSets subtracted."""
    name = f"template-node-for-{node_group(pool, zone)}"
    node_labels = labels(pool, zone, name)
    offered = amounts(provides(pool))
    taken = total(*(pod.requests for pod in daemons if not mismatch(pod, node_labels, pool.taints)))
    free = {key: amount - taken.get(key, Decimal(0)) for key, amount in offered.items()}
    return NodeInfo(name, node_labels, pool.taints, free)


def is_recreated(machine: Machine, capacity: str) -> bool:
    """Return whether a reclaimed machine is recreated with its name: GKE's instance groups keep their size
    (GKE docs, spot-vms; Compute Engine docs, spot VMs in managed instance groups, 2026)."""
    return machine.cloud == "gke" and capacity in RECLAIMABLE
