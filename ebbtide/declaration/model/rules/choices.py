"""Rules for values that depend on the cloud or the machine type."""

from collections.abc import Iterator

from ebbtide.declaration.catalog import CLOUD_SPECS, CloudKind, boot_disk_types
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import PoolIn, pool_rule, service_name
from ebbtide.text import did_you_mean, or_list

_NO_POOL = "The node pool could not be created."


@pool_rule("known node image", "GKE docs, node-images (2026); azure-native 3.29.0, AgentPool.osSKU")
def _image(pool: PoolIn) -> Iterator[Fault]:
    images = CLOUD_SPECS[pool.site.cloud].images
    if pool.pool.image is not None and pool.pool.image not in images:
        yield Fault(
            pool.at("image"),
            f"{service_name(pool.site.cloud)} has no image {pool.pool.image}.",
            _NO_POOL,
            f"Write {or_list(images)}, or omit image for {images[0]}.",
        )


@pool_rule(
    "supported disk type",
    "Compute v1 API, AttachedDiskInitializeParams.diskType (2026); azure-native 3.29.0, AgentPool.osDiskType",
)
def _disk_type(pool: PoolIn) -> Iterator[Fault]:
    written, cloud = pool.pool.disk.type, pool.site.cloud
    machine = pool.machine
    types = boot_disk_types(cloud, machine.family if machine else "")
    if written is None or written in types:
        return
    of_cloud = boot_disk_types(cloud)
    if machine is not None and written in of_cloud:
        problem = f"{machine.name} cannot boot from a disk of type {written}."
    else:
        problem = f"{service_name(cloud)} has no disk type {written}{did_you_mean(written, of_cloud)}"
    yield Fault(
        pool.at("disk.type"), problem, _NO_POOL, f"Write {or_list(types)}, or omit it for {types[0]}."
    )


@pool_rule(
    "supported disk size",
    "GKE v1 API, NodeConfig.diskSizeGb: 10 at least; pulumi/pulumi-azure-native#663 (2021-03): 30 to 2048",
)
def _disk_size(pool: PoolIn) -> Iterator[Fault]:
    size = pool.pool.disk.size_gib
    least, most = CLOUD_SPECS[pool.site.cloud].boot_disk_gib
    if size is not None and not least <= size <= most:
        yield Fault(
            pool.at("disk.sizeGib"),
            f"{service_name(pool.site.cloud)} does not support a boot disk of {size} GiB.",
            _NO_POOL,
            f"Write a size from {least} to {most}.",
        )


@pool_rule("only default driver on AKS", "azure-aks-docs use-nvidia-gpu.md (2026-07-02)", CloudKind.AKS)
def _driver(pool: PoolIn) -> Iterator[Fault]:
    if pool.pool.accelerator is not None and pool.pool.accelerator.driver == "latest":
        yield Fault(
            pool.at("accelerator.driver"),
            "AKS has only the default driver.",
            "The nodes would get the default driver, not the latest.",
            "Write driver: default, or driver: none to install one with an add-on.",
        )


@pool_rule("latest driver needs cos", "pulumi-gcp 9.35.0, gpuDriverInstallationConfig", CloudKind.GKE)
def _latest_driver_needs_cos(pool: PoolIn) -> Iterator[Fault]:
    accelerator = pool.pool.accelerator
    if accelerator is not None and accelerator.driver == "latest" and pool.pool.image == "ubuntu":
        yield Fault(
            pool.at("accelerator.driver"),
            "GKE has the latest driver only for the image cos, and the image is ubuntu.",
            _NO_POOL,
            "Write driver: default, or image: cos.",
        )
