"""Nodes as the clouds create them: names, labels, taints, capacity.

Sources: GKE docs (node names, node labels), Azure docs (AKS node labels, scale set names), Kubernetes docs
(Well-Known Labels; Cloud Controller Manager for the initial taint); 2026.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

from ebbtide.declaration.catalog import ARCHITECTURE, CloudKind, architecture, find_machine
from ebbtide.values.pod_requests import amounts, total
from ebbtide_rehearsal.cloud.nodes.machines import Machine
from ebbtide_rehearsal.cloud.nodes.names import group, provider_id, resize_request
from ebbtide_rehearsal.cloud.nodes.pods import Pod
from ebbtide_rehearsal.cloud.nodes.scheduling import ZONE, NodeInfo, tolerates
from ebbtide_rehearsal.cloud.pools import NodePool
from ebbtide_rehearsal.control_plane.stages import FAKE, KUBELET

REQUEST_LABEL: Final = "autoscaling.gke.io/provisioning-request"
"""Label of a node that was created for a ProvisioningRequest that GKE had queued."""

UNINITIALIZED: Final = "node.cloudprovider.kubernetes.io/uninitialized"
"""Key of a new node's taint until the cloud's controller has initialized the node."""

NOT_READY: Final = "node.kubernetes.io/not-ready"
"""Key of Kubernetes' taint on a node until its kubelet is ready."""

_PODS: Final = {"gke": 110, "aks": 250}


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
    name = f"template-node-for-{group(pool, zone)}"
    node_labels = labels(pool, zone, name)
    offered = amounts(provides(pool))
    taken = total(*(pod.requests for pod in daemons if runs_on(pod, node_labels, pool)))
    free = {key: amount - taken.get(key, Decimal(0)) for key, amount in offered.items()}
    return NodeInfo(name, node_labels, pool.taints, free)


def runs_on(daemon: Pod, node_labels: dict[str, str], pool: NodePool) -> bool:
    """Return whether a DaemonSet has a pod on a pool's nodes."""
    return (
        all(node_labels.get(key) == value for key, value in daemon.selector.items())
        and (
            not daemon.affinity
            or any(
                term and all(requirement.holds(node_labels) for requirement in term)
                for term in daemon.affinity
            )
        )
        and all(
            tolerates(daemon.tolerations, taint)
            for taint in pool.taints
            if taint.effect != "PreferNoSchedule"
        )
    )


def node(pool: NodePool, machine: Machine, version: str) -> dict[str, Any]:
    """Return the Node object that the kubelet and the cloud's controller register.

    Args:
        pool: the machine's pool.
        machine: the machine.
        version: Kubernetes version of the API server.
    """
    node_labels = labels(pool, machine.zone, machine.name)
    if machine.request and pool.capacity == "queued":
        node_labels[REQUEST_LABEL] = resize_request(machine.request)
    accelerator = pool.accelerator_resource
    initial_taint = {"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}
    taints = [
        {"key": taint.key, "effect": taint.effect} | ({"value": taint.value} if taint.value else {})
        for taint in pool.taints
    ]
    allocatable = {key: value for key, value in provides(pool).items() if key != accelerator}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": machine.name, "labels": node_labels, "annotations": {KUBELET: FAKE}},
        "spec": {"providerID": provider_id(machine), "taints": [*taints, initial_taint]},
        "status": {
            "allocatable": allocatable,
            "capacity": capacity(pool),
            "nodeInfo": _information(node_labels[ARCHITECTURE], version),
        },
    }


def _information(arch: str, version: str) -> dict[str, str]:
    unknown = dict.fromkeys(
        ("bootID", "containerRuntimeVersion", "kernelVersion", "machineID", "osImage", "systemUUID"), ""
    )
    return {
        **unknown,
        "architecture": arch,
        "kubeProxyVersion": version,
        "kubeletVersion": version,
        "operatingSystem": "linux",
    }
