"""Rules for combinations of machines, accelerators, disks and images."""

from typing import Final

from ebbtide.analysis.reading.gke import DEFAULT_MACHINE
from ebbtide.declaration.catalog import (
    CloudKind,
    attachable_counts,
    attachable_types,
    boot_disk_types,
    is_tpu,
    local_ssds,
    machine_series,
    partitions,
)
from ebbtide_rehearsal.cloud.gcp.pool_rules.rule import PoolRequest, pool_rule
from ebbtide_rehearsal.cloud.gcp.request import last
from ebbtide_rehearsal.cloud.regions import locations

_IMAGES: Final = (
    "COS_CONTAINERD",
    "UBUNTU_CONTAINERD",
    "COS",
    "UBUNTU",
    "WINDOWS_LTSC_CONTAINERD",
    "WINDOWS_SAC_CONTAINERD",
)
_LARGEST_DISK: Final = 65536
_FEWEST_CLIENTS: Final = 2
_MOST_CLIENTS: Final = 48


def _machine(pool: PoolRequest) -> str | None:
    if pool.machine is not None:
        return None
    name = pool.fields.text("nodeConfig.machineType")
    return (
        f'Machine type with name "{name}" does not exist in zone "{pool.zones[0]}" (or the catalog of the '
        "rehearsal does not have it)."
    )


def _is_offered(pool: PoolRequest) -> str | None:
    """Reject an accelerator or machine family that a zone does not have."""
    machine, known = pool.machine, locations(pool.request.cloud.store, CloudKind.GKE)
    if machine is None:
        return None
    attached = next(
        (last(accelerator.text("type")) for accelerator in pool.fields.parts("nodeConfig.guestAccelerators")),
        "",
    )
    offering = known.offering(machine.family, attached or machine.accelerator)
    for zone in pool.zones:
        if offering is None or known.offers(offering, zone, machine.name):
            continue
        if offering.item == attached:
            return f'Accelerator type "{attached}" does not exist in zone {zone}.'
        return f'Invalid machine type "{machine.name}" in zone "{zone}": GCE_NOT_FOUND'
    return None


def _default_machine(pool: PoolRequest) -> str | None:
    attached = pool.fields.parts("nodeConfig.guestAccelerators")
    if attached and not pool.fields.text("nodeConfig.machineType"):
        return (
            f"Cannot use default machine type ({DEFAULT_MACHINE}) with GPUs; choose a different machine type."
        )
    return None


def _accelerator(pool: PoolRequest) -> str | None:
    """Accelerators are attached to N1 in certain counts; a machine's built-in ones must be declared as they
    are."""
    machine = pool.machine
    for attached in pool.fields.parts("nodeConfig.guestAccelerators"):
        kind, count = last(attached.text("type")), attached.number("count") or 0
        if machine is None:
            return None
        if is_tpu(kind):
            return f"Accelerator type {kind} is not a GPU: TPUs are part of their machine type."
        if machine.accelerator:
            fits = (kind, count) == (machine.accelerator, machine.accelerator_count)
            own = f"{machine.accelerator_count} {machine.accelerator}"
            if not fits:
                return f"Machine type {machine.name} has {own}, and cannot be used with {count} {kind}."
        elif kind not in attachable_types() or not machine.attachable:
            return f"[{kind}, {machine.name}] features are not compatible for creating instance."
        elif count not in attachable_counts(machine, kind):
            return (
                f"The number of GPU cards ({count} {kind}) is not supported for machine type {machine.name}: "
                "Number of guest accelerator cards and machine shape do not go together."
            )
    return None


def _driver(pool: PoolRequest) -> str | None:
    ubuntu = pool.fields.text("nodeConfig.imageType").upper().startswith("UBUNTU")
    for attached in pool.fields.parts("nodeConfig.guestAccelerators"):
        if ubuntu and attached.text("gpuDriverInstallationConfig.gpuDriverVersion") == "LATEST":
            return "GPU driver version LATEST is only supported with Container-Optimized OS."
    return None


def _sharing(pool: PoolRequest) -> str | None:
    for attached in pool.fields.parts("nodeConfig.guestAccelerators"):
        kind, size = last(attached.text("type")), attached.text("gpuPartitionSize")
        if size and size not in partitions(CloudKind.GKE, kind):
            return f"GPU partition size {size} is not supported for accelerator type {kind}."
        clients = attached.number("gpuSharingConfig.maxSharedClientsPerGpu")
        if clients is not None and not _FEWEST_CLIENTS <= clients <= _MOST_CLIENTS:
            return f"Max shared clients per GPU must be {_FEWEST_CLIENTS} to {_MOST_CLIENTS}, got {clients}."
    return None


def _disk(pool: PoolRequest) -> str | None:
    kind, machine = pool.fields.text("nodeConfig.diskType"), pool.machine
    if kind and machine is not None and kind not in boot_disk_types(CloudKind.GKE, machine.family):
        return f"{kind} disk type cannot be used by {machine.name} machine type."
    size = pool.fields.number("nodeConfig.diskSizeGb") or 0
    if size > _LARGEST_DISK:
        return f"Disk size {size} GB exceeds the maximum of {_LARGEST_DISK} GB."
    return None


def _local_ssds(pool: PoolRequest) -> str | None:
    uses = ("ephemeralStorageLocalSsdConfig", "localNvmeSsdBlockConfig")
    counts = [pool.fields.number(f"nodeConfig.{use}.localSsdCount") or 0 for use in uses]
    machine = pool.machine
    known = local_ssds(machine.name) if machine else None
    if machine is None or known is None or not sum(counts) or sum(counts) in known.counts:
        return None
    return f"Number of local SSDs {sum(counts)} is not supported for machine type {machine.name}."


def _gvnic(pool: PoolRequest) -> str | None:
    series = machine_series(pool.machine.name) if pool.machine else None
    off = pool.fields.has("nodeConfig.gvnic") and not pool.fields.flag("nodeConfig.gvnic.enabled")
    if series is None or not series.gvnic_only or not off:
        return None
    return f"[VIRTIO_NET, {series.name}] features are not compatible for creating instance."


def _preloading(pool: PoolRequest) -> str | None:
    for disk in pool.fields.parts("nodeConfig.secondaryBootDisks"):
        if "/" not in disk.text("diskImage"):
            return f"Secondary boot disk image {disk.text('diskImage')} is not a fully-qualified resource ID."
    modes = {disk.text("mode") for disk in pool.fields.parts("nodeConfig.secondaryBootDisks")}
    if "CONTAINER_IMAGE_CACHE" in modes and not pool.fields.flag("nodeConfig.gcfsConfig.enabled"):
        return "Secondary boot disks of mode CONTAINER_IMAGE_CACHE require image streaming to be enabled."
    ubuntu = pool.fields.text("nodeConfig.imageType").upper().startswith("UBUNTU")
    if ubuntu and pool.fields.flag("nodeConfig.gcfsConfig.enabled"):
        return "Image streaming is only supported with Container-Optimized OS."
    return None


def _image(pool: PoolRequest) -> str | None:
    image = pool.fields.text("nodeConfig.imageType").upper()
    if not image or image in _IMAGES:
        return None
    return f'Node image "{image}" is not supported. Supported images: {", ".join(_IMAGES)}.'


RULES: Final = (
    pool_rule("a machine type that there is", "ebbtide/declaration/catalog/data/machines.csv", _machine),
    pool_rule(
        "hardware that the zone has",
        "GoogleCloudPlatform/kubernetes-engine-samples#1738; keras-team/kinetic#305; "
        "catalog/data/offerings.csv",
        _is_offered,
    ),
    pool_rule("no GPUs on the default machine", "hashicorp/terraform-provider-google#8387", _default_machine),
    pool_rule(
        "accelerators that the machine carries",
        "skypilot-org/skypilot#212; terraform-google-modules/terraform-google-kubernetes-engine#2608; "
        "Compute docs, gpus (2026-11)",
        _accelerator,
    ),
    pool_rule(
        "GPUs that can be shared so",
        "GoogleCloudPlatform/cluster-autoscaler@7d250507 pkg/cloudprovider/gke/machinetypes/gpu.go",
        _sharing,
    ),
    pool_rule("the latest driver on COS alone", "GKE docs, gpus (2026)", _driver),
    pool_rule(
        "a boot disk of the machine family",
        "hashicorp/terraform-provider-google#19890; rancher/harvester-cloud#249",
        _disk,
    ),
    pool_rule("local SSDs of the machine", "Compute Engine docs, local-ssd (2026)", _local_ssds),
    pool_rule("a network interface of the machine", "Compute Engine docs, using-gvnic (2026)", _gvnic),
    pool_rule(
        "preloaded images are streamed",
        "GKE docs, data-container-image-preloading and image-streaming; GKE v1 API, SecondaryBootDisk (2026)",
        _preloading,
    ),
    pool_rule("an image", "GKE docs, node-images (2026)", _image),
)
