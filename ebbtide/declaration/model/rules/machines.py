"""Machine types, and what belongs to a machine: disks, images, and fields that only one cloud has."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from ebbtide.declaration.catalog.accelerators import short_for
from ebbtide.declaration.catalog.clouds import CLOUD_SPECS
from ebbtide.declaration.catalog.disks import (
    LARGEST_EPHEMERAL_GIB,
    boot_disk_types,
    ephemeral_gib,
    has_temporary_disk,
    local_ssds,
)
from ebbtide.declaration.catalog.machines import (
    Machine,
    Retirement,
    find_machine,
    machine_names,
    machine_series,
    retired_names,
    retirement,
    series_name,
)
from ebbtide.declaration.model.base import OnlyOn
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool import MachineShape, Pool
from ebbtide.declaration.model.pool_inputs import PoolField, pool_fields
from ebbtide.declaration.model.resolved_pool import has_image_cache
from ebbtide.declaration.model.rules.rule import (
    NO_GKE_POOL,
    NO_POOL,
    PoolIn,
    PoolRule,
    Severity,
    cluster_rule,
    pool_rule,
    pools_of,
    service_name,
)
from ebbtide.text import did_you_mean, or_list, several
from ebbtide.values.clock import today
from ebbtide.values.cloud_kind import CloudKind
from ebbtide.values.paths import path_text, value_at

_DOCS = "GKE and AKS node pools, machineType and vmSize (pulumi-gcp 10.2.0, azure-native 3.29.0)"
_AZURE = "Standard_"
_CATALOG = "catalog/data/machines.csv, a source in each row"
_CPUS_OF_A_CORE = 2
_SHARED_CORES = ("e2-micro", "e2-small", "e2-medium")
_TABLE = "catalog/data/retirements.csv, a source in each row"
_LOCAL_SSDS = "GKE docs, local-ssd (2026); catalog/data/local_ssds.csv"
_PRELOADING = "GKE docs, data-container-image-preloading (2026)"
_MOST_DISKS = 127
_OTHER = {CloudKind.GKE: CloudKind.AKS, CloudKind.AKS: CloudKind.GKE}


@pool_rule("pool has machine type", _DOCS)
def _is_written(pool: PoolIn) -> Iterator[Fault]:
    """Require a machine type of work pools and standalone pools; a declaration's system pool has a
    default."""
    if pool.pool.machine is None and (not pool.pool.is_system or not pool.path):
        yield Fault(
            pool.at("machine"),
            "The pool has no machine type.",
            "The cloud would choose one, and Ebbtide would know neither its capacity nor its cost.",
            f"Write a type, such as machine: {CLOUD_SPECS[pool.site.cloud].machine_example}.",
        )


@pool_rule("known machine type", _CATALOG)
def _is_known(pool: PoolIn) -> Iterator[Fault]:
    shape, cloud = pool.pool.machine, pool.site.cloud
    gone = retirement(cloud, shape.type) if shape else None
    if shape is None or pool.machine is not None or (gone is not None and gone.is_past):
        return
    other = next((kind for kind in CloudKind if kind is not cloud and find_machine(kind, shape.type)), None)
    own = f"{series_name(shape.type)}-" if machine_series(shape.type) else ""
    names = [name for name in machine_names(cloud) if cloud is not CloudKind.GKE or name.startswith(own)]
    near = (
        f": it is one of {service_name(other)}."
        if other
        else did_you_mean(_with_prefix(shape.type, cloud), names, CLOUD_SPECS[cloud].machine_similarity)
    )
    yield Fault(
        pool.at("machine"),
        f"No machine type {shape.type} is known on {service_name(cloud)}{near}",
        NO_POOL,
        "Write a known machine type, or declare vcpus and memoryGib with it.",
    )


def _with_prefix(name: str, cloud: CloudKind) -> str:
    """Return a machine type with Azure's prefix `Standard_`, which is often forgotten."""
    begins = name.lower().startswith(_AZURE.lower())
    return f"{_AZURE}{name}" if cloud is CloudKind.AKS and not begins else name


def _differences(shape: MachineShape, known: Machine) -> Iterator[tuple[str, str, str]]:
    """Yield differences from the catalog: the field, the declared value, the catalog's value."""
    if shape.vcpus is not None and shape.vcpus != known.vcpus:
        yield "vcpus", f"{shape.vcpus} vCPUs", f"{known.vcpus} vCPUs"
    if shape.memory_gib is not None and shape.memory_gib != known.memory_gib:
        yield "memoryGib", f"{shape.memory_gib:g} GiB", f"{known.memory_gib:g} GiB"
    declared = shape.accelerators
    if declared and (declared.type, declared.count) != (known.accelerator, known.accelerator_count):
        own = "no accelerators of its own"
        if known.accelerator:
            own = f"{known.accelerator_count} x {known.accelerator}"
        yield "accelerators", f"{declared.count} x {declared.type}", own


@pool_rule("machine matches catalog", _CATALOG)
def _is_as_known(pool: PoolIn) -> Iterator[Fault]:
    shape = pool.pool.machine
    known = find_machine(pool.site.cloud, shape.type) if shape else None
    if shape is None or known is None:
        return
    for field, declared, own in _differences(shape, known):
        yield Fault(
            pool.at(f"machine.{field}"),
            f"{shape.type} has {own}, not {declared}.",
            "Quotas, prices and node capacity would be wrong.",
            f"Remove {field}: it is known for the type.",
        )


@pool_rule(
    "gVNIC required by machine series",
    "Compute Engine docs, using-gvnic (2026); catalog/data/machine_series.csv",
    CloudKind.GKE,
)
def _gvnic(pool: PoolIn) -> Iterator[Fault]:
    series = pool.resolved.series
    if pool.pool.gvnic is False and series is not None and series.gvnic_only:
        yield Fault(
            pool.at("gvnic"),
            f"Machines of the {series.name} series support only gVNIC as the network interface.",
            NO_POOL,
            "Remove gvnic.",
        )


@pool_rule(
    "settable threads per core",
    "Compute Engine docs, set-threads-per-core and compute-optimized-machines (2026); "
    "catalog/data/machine_series.csv: threads",
    CloudKind.GKE,
)
def _threads(pool: PoolIn) -> Iterator[Fault]:
    machine, series = pool.machine, pool.resolved.series
    if pool.pool.threads_per_core is None or machine is None:
        return
    if series is not None and series.threads is not None:
        problem = (
            f"Cores of the {series.name} series have {several(series.threads, 'thread')}, which is fixed."
        )
    elif machine.vcpus < _CPUS_OF_A_CORE or machine.name in _SHARED_CORES:
        problem = f"{machine.name} has no core of its own."
    else:
        return
    yield Fault(
        pool.at("threadsPerCore"),
        problem,
        "The node pool could not be created, or its capacity would be counted wrongly.",
        "Remove threadsPerCore.",
    )


def _confidential_type(overrides: Mapping[str, Any], *keys: str) -> str | None:
    """Return the type of confidential nodes that overrides enable; None if they enable none."""
    nodes = value_at(overrides, path_text([*keys, "confidentialNodes"]))
    if not isinstance(nodes, Mapping):
        return None
    written = cast("Mapping[str, Any]", nodes)
    kind = written.get("confidentialInstanceType")
    return str(kind or "SEV") if kind or written.get("enabled") is True else None


@cluster_rule(
    "confidential nodes supported by machine",
    "GKE docs, confidential-gke-nodes (2026); catalog/data/machine_series.csv: confidential",
    CloudKind.GKE,
)
def _confidential(cluster: Cluster) -> Iterator[Fault]:
    everywhere = None if cluster.cloud.existing else _confidential_type(cluster.cloud.overrides)
    for pool in pools_of(cluster):
        own = _confidential_type(pool.pool.overrides, "nodeConfig")
        kind, machine, series = own or everywhere, pool.machine, pool.resolved.series
        if kind is None or machine is None or series is None:
            continue
        supported = {it for it, prefix in series.confidential.items() if machine.name.startswith(prefix)}
        if kind not in supported:
            other = "a machine of another series, such as n2d-standard-4, or remove confidentialNodes"
            at = "overrides.nodeConfig.confidentialNodes"
            yield Fault(
                pool.at(at) if own else "cloud.overrides.confidentialNodes",
                f"{machine.name}, the machine of {pool.pool.name}, does not support confidential nodes of "
                f"type {kind}.",
                NO_POOL,
                f"Write {or_list(sorted(supported)) if supported else other}.",
            )


def _retirements(pool: PoolIn) -> Iterator[tuple[str, str, Retirement]]:
    """Yield the path, name and retirement of a pool's machine type and accelerators."""
    shape, accelerator = pool.pool.machine, pool.pool.accelerator
    declared = [("machine", shape.type)] if shape else []
    if accelerator is not None:
        names = short_for(accelerator.type, retired_names(pool.site.cloud))
        declared += [("accelerator.type", name) for name in names[:1]]
    for field, name in declared:
        announced = retirement(pool.site.cloud, name)
        if announced is not None:
            yield pool.at(field), name, announced


@pool_rule("no retired hardware", _TABLE)
def _retired(pool: PoolIn) -> Iterator[Fault]:
    for path, name, announced in _retirements(pool):
        if announced.is_past:
            yield Fault(
                path,
                f"{name} was retired on {announced.date}.",
                f"{service_name(pool.site.cloud)} no longer offers it, and the node pool could not be "
                "created.",
                f"Write {announced.successor}.",
            )


@pool_rule("no hardware near retirement", _TABLE, severity=Severity.WARNED)
def _to_be_retired(pool: PoolIn) -> Iterator[Fault]:
    for path, name, announced in _retirements(pool):
        if announced.is_past:
            continue
        when = "will be"
        consequence = "Its nodes are stopped that day, and new subscriptions may not get it before."
        if announced.date < today().isoformat():
            when = "was to be"  # the cloud may have moved the date since the table was written
            consequence = "Unless that date has been moved, its nodes are stopped, and no new ones start."
        problem = f"{name} {when} retired on {announced.date}."
        yield Fault(path, problem, consequence, f"Write a newer type, such as {announced.successor}.")


@pool_rule("known node image", "GKE docs, node-images (2026); azure-native 3.29.0, AgentPool.osSKU")
def _image(pool: PoolIn) -> Iterator[Fault]:
    images = CLOUD_SPECS[pool.site.cloud].images
    if pool.pool.image is not None and pool.pool.image not in images:
        yield Fault(
            pool.at("image"),
            f"The image {pool.pool.image} is not supported on {service_name(pool.site.cloud)}.",
            NO_POOL,
            f"Write {or_list(images)}, or omit image for {images[0]}.",
        )


@pool_rule("supported disk type", "catalog/data/boot_disks.csv, a source in each row")
def _disk_type(pool: PoolIn) -> Iterator[Fault]:
    written, cloud = pool.pool.disk.type, pool.site.cloud
    machine = pool.pool.machine.type if pool.pool.machine else ""
    types = boot_disk_types(cloud, machine)
    if written is None or written in types:
        return
    of_cloud = boot_disk_types(cloud)
    if written in of_cloud:
        problem = f"{machine} cannot boot from a disk of type {written}."
    else:
        problem = f"{service_name(cloud)} has no disk type {written}{did_you_mean(written, of_cloud)}"
    default, *others = types
    omit = f"Write {or_list(types)}, or omit" if others else "Omit"
    yield Fault(pool.at("disk.type"), problem, NO_POOL, f"{omit} it for {default}.")


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
            NO_POOL,
            f"Write a size from {least} to {most}.",
        )


@pool_rule(
    "ephemeral disk fits machine",
    "azure-aks-docs concepts-storage.md (2026-07-30); catalog/data/ephemeral.csv, a source in each row",
    CloudKind.AKS,
)
def _ephemeral_disk_fits(pool: PoolIn) -> Iterator[Fault]:
    machine, disk = pool.machine, pool.resolved.disk
    if machine is None or disk.type != "ephemeral" or disk.size_gib is None:
        return
    known = ephemeral_gib(machine.name)
    limit = LARGEST_EPHEMERAL_GIB if known is None else known
    if limit == 0:
        yield Fault(
            pool.at("disk.type"),
            f"{machine.name} has neither a cache nor a temporary disk for an ephemeral OS disk.",
            NO_POOL,
            "Write type: managed, or omit it, or write a machine such as Standard_D4ds_v5.",
        )
    elif disk.size_gib > limit:
        yield Fault(
            pool.at("disk.sizeGib"),
            f"{machine.name} supports an ephemeral disk of at most {limit} GiB, and sizeGib is "
            f"{disk.size_gib}.",
            NO_POOL,
            f"Write sizeGib: {limit} or less, or omit type for a managed disk.",
        )


def _configs(pool: Pool) -> Iterator[tuple[str, int | None]]:
    """Yield each declared use of local SSDs with the number of disks."""
    if pool.ephemeral_storage_local_ssd_config is not None:
        yield "ephemeralStorageLocalSsdConfig", pool.ephemeral_storage_local_ssd_config.local_ssd_count
    if pool.local_nvme_ssd_block_config is not None:
        yield "localNvmeSsdBlockConfig", pool.local_nvme_ssd_block_config.local_ssd_count


@pool_rule(
    "one use of local SSDs",
    "gcloud reference, container node-pools create: at most one of the flags (2026)",
    CloudKind.GKE,
)
def _one_use(pool: PoolIn) -> Iterator[Fault]:
    if len(list(_configs(pool.pool))) > 1:
        yield Fault(
            pool.at("localNvmeSsdBlockConfig"),
            "The local SSDs are declared as ephemeral storage and as block devices.",
            NO_POOL,
            "Write one of ephemeralStorageLocalSsdConfig and localNvmeSsdBlockConfig.",
        )


@pool_rule("machine has local SSDs", _LOCAL_SSDS, CloudKind.GKE)
def _local_ssd_count(pool: PoolIn) -> Iterator[Fault]:
    name = pool.pool.machine.type if pool.pool.machine else ""
    known = local_ssds(name)
    for field, count in _configs(pool.pool):
        choice = or_list(known.counts) if known and known.counts else "1, for example"
        if known is not None and not known.counts:
            fix = f"Remove {field}, or {_other(name)}."
            yield Fault(pool.at(field), f"{name} has no local SSDs.", NO_POOL, fix)
        elif count is None and (known is None or not known.fixed):
            why = f": {name} supports several" if known else f", and that of {name} is not known"
            yield Fault(
                pool.at(f"{field}.localSsdCount"),
                f"The number of local SSDs is missing{why}.",
                "The nodes would have none.",
                f"Write localSsdCount: {choice}.",
            )
        elif known is not None and count is not None and count not in known.counts:
            yield Fault(
                pool.at(f"{field}.localSsdCount"),
                f"{name} has {or_list(known.counts)} local SSDs, not {count}.",
                NO_POOL,
                "Remove localSsdCount." if known.fixed else f"Write localSsdCount: {choice}.",
            )


def _other(name: str) -> str:
    with_disks = f"{name}-lssd"
    return f"write machine: {with_disks}" if local_ssds(with_disks) else "write another machine"


@pool_rule(
    "machine has temporary disk",
    "azure-native 3.29.0, AgentPool.kubeletDiskType; Azure docs, azure-vms-no-temp-disk (2026)",
    CloudKind.AKS,
)
def _temporary(pool: PoolIn) -> Iterator[Fault]:
    machine, kind = pool.machine, pool.pool.disk.kubelet_disk_type
    if kind == "Temporary" and machine is not None and not has_temporary_disk(machine.name):
        yield Fault(
            pool.at("disk.kubeletDiskType"),
            f"{machine.name} has no temporary disk.",
            NO_POOL,
            "Remove kubeletDiskType, or write a machine with one, such as Standard_D8ds_v5.",
        )


@pool_rule(
    "maximum secondary boot disks",
    "hashicorp/terraform-provider-google-beta 7.45.0, node_config.go: secondary_boot_disks, MaxItems",
    CloudKind.GKE,
)
def _not_too_many(pool: PoolIn) -> Iterator[Fault]:
    count = len(pool.pool.secondary_boot_disks)
    if count > _MOST_DISKS:
        yield Fault(
            pool.at("secondaryBootDisks"),
            f"The pool has {count} secondary boot disks.",
            NO_GKE_POOL,
            f"Write at most {_MOST_DISKS}.",
        )


@pool_rule("secondary boot disk needs image streaming", _PRELOADING, CloudKind.GKE)
def _needs_streaming(pool: PoolIn) -> Iterator[Fault]:
    if has_image_cache(pool.pool) and pool.pool.image_streaming is False:
        yield Fault(
            pool.at("imageStreaming"),
            "The pool has a secondary boot disk with container images, and imageStreaming is false.",
            "Containers could not use the disk.",
            "Remove imageStreaming.",
        )


@pool_rule("image streaming needs cos", "GKE docs, image-streaming (2026)", CloudKind.GKE)
def _needs_cos(pool: PoolIn) -> Iterator[Fault]:
    if (has_image_cache(pool.pool) or pool.pool.image_streaming) and pool.pool.image == "ubuntu":
        yield Fault(
            pool.at("image"),
            "GKE supports image streaming only with the image cos, and the image is ubuntu.",
            NO_GKE_POOL,
            "Omit image for cos.",
        )


def _only_on(field: PoolField, only: OnlyOn) -> PoolRule:
    name, service = field.path.rpartition(".")[2], service_name(only.cloud)
    called = only.what or name

    def check(pool: PoolIn) -> Iterator[Fault]:
        if field.is_written(pool.pool):
            problem = f"{service_name(pool.site.cloud)} does not support {called}, which only {service} has."
            yield Fault(pool.at(field.path), problem, only.reason, only.fix or f"Remove {name}.")

    return PoolRule(f"{called} only on {service}", only.source, check, _OTHER[only.cloud])


RULES: tuple[PoolRule, ...] = tuple(_only_on(field, field.only) for field in pool_fields() if field.only)
