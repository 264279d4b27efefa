"""Rules for machine types: declared, known, and consistent with the catalog."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from ebbtide.declaration.catalog import (
    CLOUD_SPECS,
    CloudKind,
    Machine,
    find_machine,
    machine_names,
    retirement,
)
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool import MachineShape
from ebbtide.declaration.model.rules.rule import PoolIn, cluster_rule, pool_rule, pools_of, service_name
from ebbtide.text import did_you_mean, or_list, several
from ebbtide.values.paths import path_text, value_at

_DOCS = "GKE and AKS node pools, machineType and vmSize (pulumi-gcp 10.2.0, azure-native 3.29.0)"

_AZURE = "Standard_"

_CATALOG = "catalog/data/machines.csv, a source in each row"


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
    near = (
        f": it is one of {service_name(other)}."
        if other
        else did_you_mean(
            _with_prefix(shape.type, cloud), machine_names(cloud), CLOUD_SPECS[cloud].machine_similarity
        )
    )
    yield Fault(
        pool.at("machine"),
        f"No machine type {shape.type} is known on {service_name(cloud)}{near}",
        "The node pool could not be created.",
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
        own = (
            f"{known.accelerator_count} x {known.accelerator}"
            if known.accelerator
            else "no accelerators of its own"
        )
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
            "The node pool could not be created.",
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


_CPUS_OF_A_CORE = 2
_SHARED_CORES = ("e2-micro", "e2-small", "e2-medium")


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
            yield Fault(
                pool.at("overrides.nodeConfig.confidentialNodes")
                if own
                else "cloud.overrides.confidentialNodes",
                f"{machine.name}, the machine of {pool.pool.name}, does not support confidential nodes of "
                f"type {kind}.",
                "The node pool could not be created.",
                f"Write {or_list(sorted(supported))}."
                if supported
                else "Write a machine of another series, such as "
                "n2d-standard-4, or remove confidentialNodes.",
            )
