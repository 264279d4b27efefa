"""Labels and taints that GKE adds to a pool's nodes.

Independent of `ebbtide.placement`, whose assumptions about GKE are tested against this. Sources: GKE docs,
spot-vms, preemptible-vms, provisioningrequest, dws-flex-start-training, gpus, tpus, prepare-arm-workloads
(2026); kubernetes.io/docs/reference/labels-annotations-taints (2026);
GoogleCloudPlatform/container-engine-accelerators@992db812 for the label of the driver's version."""

from collections.abc import Iterator
from typing import Final

from ebbtide.analysis.reading.facts import Inputs
from ebbtide.declaration.catalog import (
    ARCHITECTURE,
    ARM64,
    CloudKind,
    Machine,
    architecture,
    is_tpu,
    one_host_topology,
    resource_name,
)
from ebbtide.declaration.catalog.clouds import region_of
from ebbtide.declaration.model.capacity import CapacityKind
from ebbtide.placement import NodeTaint

_PREFIX: Final = "cloud.google.com/"
_EFFECTS: Final = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}
_API_EFFECTS: Final = {effect: api for api, effect in _EFFECTS.items()}
_KINDS: Final[dict[CapacityKind, tuple[str, ...]]] = {
    "on-demand": (),
    "reservation": (),
    "spot": ("gke-spot",),
    "preemptible": ("gke-preemptible",),
    "flex-start": ("gke-flex-start",),
    "queued": ("gke-flex-start",),
}
_PROVISIONING: Final[dict[CapacityKind, str]] = {
    "on-demand": "standard",
    "reservation": "standard",
    "spot": "spot",
    "preemptible": "preemptible",
    "flex-start": "flex-start",
    "queued": "flex-start",
}


def added_labels(
    fields: Inputs,
    machine: Machine,
    capacity: CapacityKind,
    accelerator: tuple[str, int] | None,
    zones: tuple[str, ...],
) -> dict[str, str]:
    """Return the labels that GKE adds to a pool's nodes, without those of a single node and its zone."""
    labels = {
        f"{_PREFIX}gke-nodepool": fields.text("name"),
        f"{_PREFIX}gke-provisioning": _PROVISIONING[capacity],
        f"{_PREFIX}gke-boot-disk": fields.text("nodeConfig.diskType") or "pd-balanced",
        f"{_PREFIX}gke-container-runtime": "containerd",
        f"{_PREFIX}gke-os-distribution": _distribution(fields),
        f"{_PREFIX}machine-family": machine.name.partition("-")[0],
        ARCHITECTURE: architecture(CloudKind.GKE, machine.name),
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": machine.name,
        "topology.kubernetes.io/region": region_of(zones[0]),
    }
    labels |= {f"{_PREFIX}{key}": "true" for key in _KINDS[capacity]}
    if fields.number("nodeConfig.ephemeralStorageLocalSsdConfig.localSsdCount"):
        labels[f"{_PREFIX}gke-ephemeral-storage-local-ssd"] = "true"
    if fields.number("nodeConfig.localNvmeSsdBlockConfig.localSsdCount"):
        labels[f"{_PREFIX}gke-local-nvme-ssd"] = "true"
    if accelerator is not None:
        labels |= _of_accelerator(fields, *accelerator)
    return labels


def _distribution(fields: Inputs) -> str:
    return "ubuntu" if fields.text("nodeConfig.imageType").upper().startswith("UBUNTU") else "cos"


def _of_accelerator(fields: Inputs, kind: str, count: int) -> dict[str, str]:
    if is_tpu(kind):
        labels = {f"{_PREFIX}gke-tpu-accelerator": kind, f"{_PREFIX}gke-accelerator-count": str(count)}
        topology = fields.text("placementPolicy.tpuTopology") or one_host_topology(kind, count)
        return labels | ({f"{_PREFIX}gke-tpu-topology": topology} if topology else {})
    labels = {f"{_PREFIX}gke-accelerator": kind}
    for attached in fields.parts("nodeConfig.guestAccelerators"):
        version = attached.text("gpuDriverInstallationConfig.gpuDriverVersion") or "DEFAULT"
        # The driver's DaemonSet does not run on nodes with this label.
        if version != "INSTALLATION_DISABLED":
            labels[f"{_PREFIX}gke-gpu-driver-version"] = version.lower()
        if size := attached.text("gpuPartitionSize"):
            labels[f"{_PREFIX}gke-gpu-partition-size"] = size
        if strategy := attached.text("gpuSharingConfig.gpuSharingStrategy"):
            clients = attached.number("gpuSharingConfig.maxSharedClientsPerGpu")
            labels[f"{_PREFIX}gke-gpu-sharing-strategy"] = strategy.lower().replace("_", "-")
            labels[f"{_PREFIX}gke-max-shared-clients-per-gpu"] = str(clients)
    return labels


def declared_taints(fields: Inputs) -> tuple[NodeTaint, ...]:
    """Return the requested taints, with effects as spelled in Kubernetes."""
    return tuple(
        NodeTaint(taint.text("key"), taint.text("value"), _EFFECTS[taint.text("effect")])
        for taint in fields.parts("nodeConfig.taints")
    )


def added_taints(
    fields: Inputs, machine: Machine, capacity: CapacityKind, accelerator: tuple[str, int] | None
) -> tuple[NodeTaint, ...]:
    """Return the taints that GKE adds unless requested: on queued nodes, on nodes with accelerators, and on
    Arm nodes. Spot nodes of a manually created pool get none."""
    request = {(taint.key, taint.effect) for taint in declared_taints(fields)}
    return tuple(
        taint for taint in _added(machine, capacity, accelerator) if (taint.key, taint.effect) not in request
    )


def _added(
    machine: Machine, capacity: CapacityKind, accelerator: tuple[str, int] | None
) -> Iterator[NodeTaint]:
    if capacity == "queued":
        yield NodeTaint(f"{_PREFIX}gke-queued", "true", "NoSchedule")
    if accelerator is not None:
        yield NodeTaint(resource_name(accelerator[0]), "present", "NoSchedule")
    if (processors := architecture(CloudKind.GKE, machine.name)) == ARM64:
        yield NodeTaint(ARCHITECTURE, processors, "NoSchedule")


def in_api_words(taint: NodeTaint) -> dict[str, str]:
    """Return a taint in the form of the API and the provider."""
    return {"key": taint.key, "value": taint.value, "effect": _API_EFFECTS[taint.effect]}
