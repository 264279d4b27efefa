"""AKS rules for machines of node pools: size, disk, pods, driver, Kubernetes version."""

import re
from typing import Final

from ebbtide.declaration.catalog import (
    AMD,
    LARGEST_EPHEMERAL_GIB,
    CloudKind,
    ephemeral_gib,
    has_temporary_disk,
    partitions,
    retirement,
    vendor,
)
from ebbtide_rehearsal.cloud.azure.aks.machines import machine
from ebbtide_rehearsal.cloud.azure.aks.pool_request import PoolRequest, PoolRule
from ebbtide_rehearsal.cloud.azure.errors import invalid, refused
from ebbtide_rehearsal.cloud.azure.values import inner
from ebbtide_rehearsal.cloud.regions import locations

_SYSTEM: Final = "azure-aks-docs, use-system-pools (2026-04)"
_LEAST_DISK: Final = 30
_MOST_DISK: Final = 2048
_LEAST_PODS: Final = 10
_SYSTEM_PODS: Final = 30
_MOST_PODS: Final = 250
_LEAST_VCPUS: Final = 2
_LEAST_MEMORY_GIB: Final = 4


def _size_is_sold(pool: PoolRequest) -> str | None:
    size = str(pool.properties["vmSize"])
    machine_type, known = machine(pool.cloud.store, size), locations(pool.cloud.store, CloudKind.AKS)
    offering = known.offering(machine_type.family, "") if machine_type else None
    retired = retirement(CloudKind.AKS, size)
    region = str(pool.location).replace(" ", "").lower()
    is_here = offering is None or known.offers(offering, region, size)
    if machine_type is not None and is_here and not (retired and retired.is_past):
        return None
    return refused(
        "BadRequest",
        f"The VM size of {size} is not allowed in your subscription in location '{pool.location}'. For more "
        "details, please visit https://aka.ms/aks/quotas-skus-regions",
    )


def _system_machine_is_large(pool: PoolRequest) -> str | None:
    machine_type = pool.machine
    if not pool.is_system or (
        machine_type.vcpus >= _LEAST_VCPUS and machine_type.memory_gib >= _LEAST_MEMORY_GIB
    ):
        return None
    return refused(
        "SystemPoolSkuTooLow",
        "System node pool must use VM sku with more than 2 cores and 4GB memory. "
        f"Nodepool name: {pool.name}.",
    )


def _system_is_linux(pool: PoolRequest) -> str | None:
    if not pool.is_system or pool.properties["osType"] == "Linux":
        return None
    return invalid("agentPoolProfile.osType", "System pools must be Linux")


def _disk(pool: PoolRequest) -> str | None:
    size = pool.given.get("osDiskSizeGB")
    if not size or _LEAST_DISK <= int(size) <= _MOST_DISK:
        return None
    return refused(
        "InvalidParameter",
        f"The OSDiskSize for Agent {pool.name} cannot be less than {_LEAST_DISK}GB or larger than "
        f"{_MOST_DISK}GB.",
    )


def _machine_takes_ephemeral(pool: PoolRequest) -> str | None:
    if pool.properties["osDiskType"] != "Ephemeral" or ephemeral_gib(pool.machine.name) != 0:
        return None
    return refused(
        "BadRequest", f"The Virtual Machine size {pool.machine.name} does not support Ephemeral OS disk"
    )


def _ephemeral_disk_fits(pool: PoolRequest) -> str | None:
    known = ephemeral_gib(pool.machine.name)
    limit = (LARGEST_EPHEMERAL_GIB if known is None else known) * 2**30
    disk_bytes = int(pool.properties.get("osDiskSizeGB") or _LEAST_DISK) * 2**30
    if pool.properties["osDiskType"] != "Ephemeral" or disk_bytes <= limit:
        return None
    return refused(
        "VMCacheSizeTooSmall",
        f"The virtual machine size {pool.machine.name} has a cache size of {limit} bytes, but the OS disk "
        "requires "
        f"{disk_bytes} bytes. Use a VM size with larger cache or disable ephemeral OS.",
    )


def _pods(pool: PoolRequest) -> str | None:
    least = _SYSTEM_PODS if pool.is_system else _LEAST_PODS
    if least <= int(pool.properties["maxPods"]) <= _MOST_PODS:
        return None
    return invalid("maxPods", f"it must be from {least} to {_MOST_PODS}")


def _driver_needs_a_gpu(pool: PoolRequest) -> str | None:
    driver = inner(pool.given, "gpuProfile").get("driver")
    if driver != "Install" or pool.machine.accelerator or not pool.machine.family:
        return None
    return invalid("agentPoolProfile.gpuProfile.driver", f"{pool.machine.name} has no GPU")


def _no_driver_for_amd(pool: PoolRequest) -> str | None:
    if vendor(pool.machine.accelerator) != AMD or inner(pool.given, "gpuProfile").get("driver") == "None":
        return None
    return invalid("agentPoolProfile.gpuProfile.driver", f"it must be None on {pool.machine.name}")


def _ubuntu_for_amd(pool: PoolRequest) -> str | None:
    if vendor(pool.machine.accelerator) != AMD or pool.properties["osSKU"] == "Ubuntu":
        return None
    return invalid("agentPoolProfile.osSKU", f"{pool.machine.name} does not support it")


def _profile_needs_such_a_gpu(pool: PoolRequest) -> str | None:
    profile, machine = pool.given.get("gpuInstanceProfile"), pool.machine
    if profile is None or not machine.family or profile in partitions(CloudKind.AKS, machine.accelerator):
        return None
    return invalid("agentPoolProfile.gpuInstanceProfile", f"{machine.name} does not support {profile}")


def _kubelet_disk(pool: PoolRequest) -> str | None:
    requested = pool.given.get("kubeletDiskType")
    if requested != "Temporary" or has_temporary_disk(pool.machine.family):
        return None
    return invalid("agentPoolProfile.kubeletDiskType", f"{pool.machine.name} has no temporary disk")


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])


def _no_newer_than_the_cluster(pool: PoolRequest) -> str | None:
    requested = pool.given.get("orchestratorVersion")
    has = str(pool.cluster_state["currentKubernetesVersion"])
    if requested is None or _version(str(requested)) <= _version(has):
        return None
    return refused(
        "NodePoolMcVersionIncompatible",
        f"Node pool version {requested} and control plane version {has} are incompatible. Minor version of "
        "node pool "
        f"version {_version(str(requested))[1]} is bigger than control plane version {_version(has)[1]}. For "
        "more "
        "information, please check https://aka.ms/version-skew-policy",
    )


RULES: Final = (
    PoolRule(
        "a size that is sold",
        "hashicorp-education/learn-terraform-provision-aks-cluster#15; dotnet/core#8181; "
        "catalog/data/offerings.csv and retirements.csv",
        _size_is_sold,
    ),
    PoolRule(
        "a system machine of 2 vCPUs and 4 GiB",
        f"{_SYSTEM}; MicrosoftDocs/azure-dev-docs#216",
        _system_machine_is_large,
    ),
    PoolRule("a system pool is Linux", _SYSTEM, _system_is_linux),
    PoolRule("a disk of 30 to 2048 GiB", "pulumi/pulumi-azure-native#663", _disk),
    PoolRule("a machine for an ephemeral disk", "Azure/AKS#1988", _machine_takes_ephemeral),
    PoolRule(
        "an ephemeral disk that fits",
        "Azure/AKS#2672; Azure/AKS#2635; hashicorp/terraform-provider-azurerm#15200; "
        "catalog/data/ephemeral.csv",
        _ephemeral_disk_fits,
    ),
    PoolRule("10 to 250 pods a node", f"{_SYSTEM}; Azure/AKS#931", _pods),
    PoolRule("a driver for a GPU", "Azure/azure-rest-api-specs#26072", _driver_needs_a_gpu),
    PoolRule("no driver for AMD's GPUs", "azure-aks-docs, use-amd-gpus (2025-06)", _no_driver_for_amd),
    PoolRule("Ubuntu for AMD's GPUs", "azure-aks-docs, use-amd-gpus (2025-06)", _ubuntu_for_amd),
    PoolRule("a temporary disk for the kubelet", "Azure docs, azure-vms-no-temp-disk (2026)", _kubelet_disk),
    PoolRule(
        "an instance profile for its GPU",
        "azure-aks-docs, gpu-multi-instance (2026-05)",
        _profile_needs_such_a_gpu,
    ),
    PoolRule("no newer than the cluster", "rancher/rancher#33426", _no_newer_than_the_cluster),
)
