"""Rules for the system pool: exactly one, with enough capacity for its workloads."""

from collections.abc import Iterator

from ebbtide.declaration.catalog import AMD64, CLOUD_SPECS, CloudKind
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool import TaintEffect
from ebbtide.declaration.model.rules.free_capacity import (
    amount_text,
    cheapest_system_machine,
    price_text,
    system_pods,
)
from ebbtide.declaration.model.rules.rule import PoolIn, Severity, cluster_rule, pool_rule, pools_of
from ebbtide.text import several

_AKS_DOCS = "azure-aks-docs use-system-pools.md (2026-04-30)"
_AKS_SIZES = "azure-aks-docs quotas-skus-regions.md (2026-08-03)"
_AKS_VCPUS, _AKS_MEMORY_GIB = 2, 4
_CRITICAL = "CriticalAddonsOnly"
_GKE_MANAGED = "components.gke.io/gke-managed-components"


@cluster_rule("exactly one system pool", f"{_AKS_DOCS}; GKE docs, isolate-workloads-dedicated-nodes (2026)")
def _exactly_one(cluster: Cluster) -> Iterator[Fault]:
    system = [pool.path for pool in pools_of(cluster) if pool.pool.is_system]
    if not system and cluster.cloud.existing is None:
        yield Fault(
            "pools",
            "No pool has the role system.",
            "Cluster DNS and the add-ons would stay pending, or run on the work pools.",
            "Add a pool such as {name: system, role: system, nodes: {max: 3}}; without a machine, the next "
            "error suggests one.",
        )
    for path in system[1:]:
        yield Fault(
            f"{path}.role",
            f"There is already a system pool, {system[0]}.",
            "Add-ons would be spread over both, and neither size could be checked.",
            "Remove role here.",
        )


@pool_rule(
    "system pool has amd64 nodes",
    "kubeflow/pipelines#13957 (2026-09): images for amd64 only; GKE docs, "
    "prepare-arm-workloads-for-deployment (2026)",
)
def _amd64(pool: PoolIn) -> Iterator[Fault]:
    if pool.pool.is_system and pool.resolved.architecture != AMD64:
        yield Fault(
            pool.at("machine"),
            f"{pool.resolved.machine_type} has Arm processors, and this is the system pool.",
            "Images of Kubeflow Pipelines exist for amd64 only, and on GKE system pods without a toleration "
            "for Arm nodes would stay pending.",
            f"Write a machine type with amd64 processors, such as "
            f"{CLOUD_SPECS[pool.site.cloud].machine_example}, and a work pool of Arm machines.",
        )


@cluster_rule(
    "system pool has machine type", "catalog/data/footprints.csv and prices.csv, a source in each row"
)
def _missing_machine(cluster: Cluster) -> Iterator[Fault]:
    for pool in pools_of(cluster):
        if not pool.pool.is_system or pool.pool.machine is not None:
            continue
        workloads, requests = system_pods(cluster)
        need = requests + pool.resolved.daemon_requests
        machine = cheapest_system_machine(cluster)
        fix = "Write a larger machine type than the catalog has."
        if machine is not None:
            cost = price_text(machine, cluster)
            holds = f"the cheapest with capacity for {workloads} ({amount_text(need)}){cost}"
            fix = f"Write machine: {machine.name}, {holds}."
        yield Fault(
            pool.at("machine"),
            "The system pool has no machine type.",
            "The cloud would choose one, which may be too small for the system pods.",
            fix,
        )


@pool_rule("no accelerators in system pool", "kubernetes/autoscaler#2377; nebari-dev/nebari#2507")
def _no_accelerators(pool: PoolIn) -> Iterator[Fault]:
    accelerator = pool.resolved.accelerator_type
    if pool.pool.is_system and accelerator:
        yield Fault(
            pool.at("accelerator" if pool.pool.accelerator else "machine"),
            f"The system pool has accelerators, {accelerator}.",
            "They would be paid for all the time, and system pods do not use them.",
            "Write a machine without accelerators, and add a work pool for them.",
        )


@pool_rule("AKS system pool minimum vCPUs", _AKS_SIZES, CloudKind.AKS)
def _aks_size(pool: PoolIn) -> Iterator[Fault]:
    machine = pool.machine
    if not pool.pool.is_system or machine is None:
        return
    if machine.vcpus < _AKS_VCPUS or machine.memory_gib < _AKS_MEMORY_GIB:
        yield Fault(
            pool.at("machine"),
            f"{machine.name} has {several(machine.vcpus, 'vCPU')} and {machine.memory_gib:g} GiB, too few "
            "for AKS.",
            "The cluster could not be created.",
            "Write a larger machine, such as Standard_D4as_v5.",
        )


@pool_rule("AKS system pool recommended machine", _AKS_DOCS, CloudKind.AKS, Severity.WARNED)
def _aks_supported(pool: PoolIn) -> Iterator[Fault]:
    machine, spec = pool.machine, CLOUD_SPECS[CloudKind.AKS]
    if not pool.pool.is_system or machine is None:
        return
    burstable = machine.family in spec.system_families_excluded or machine.name.startswith("Standard_B")
    if burstable or machine.vcpus < spec.system_vcpus:
        wrong = "of the B series" if burstable else f"of {machine.vcpus} vCPUs"
        yield Fault(
            pool.at("machine"),
            f"The system pool's machine is {wrong}, which AKS accepts and Microsoft does not support.",
            "System pods may be throttled or stay pending, and Azure support may decline a request.",
            f"Write a machine of another series with {spec.system_vcpus} vCPUs, such as Standard_D4as_v5, "
            "unless this is a test cluster.",
        )


@pool_rule("AKS system pool taints", "Azure/AKS#2578 (2021-10)", CloudKind.AKS)
def _aks_taints(pool: PoolIn) -> Iterator[Fault]:
    for index, taint in enumerate((pool.pool.taints or ()) if pool.pool.is_system else ()):
        if taint.key != _CRITICAL and taint.effect is not TaintEffect.PREFER_NO_SCHEDULE:
            yield Fault(
                pool.at(f"taints[{index}]"),
                f"AKS refuses the taint {taint} on a system pool.",
                "The cluster could not be created (SystemPoolHasRestrictedTaint).",
                "Omit taints for CriticalAddonsOnly, or write the effect PreferNoSchedule.",
            )


@pool_rule(
    "GKE system pool taints",
    "GKE docs, isolate-workloads-dedicated-nodes (2026)",
    CloudKind.GKE,
    Severity.WARNED,
)
def _gke_taints(pool: PoolIn) -> Iterator[Fault]:
    for index, taint in enumerate((pool.pool.taints or ()) if pool.pool.is_system else ()):
        if taint.key != _GKE_MANAGED and taint.effect is not TaintEffect.PREFER_NO_SCHEDULE:
            yield Fault(
                pool.at(f"taints[{index}]"),
                f"Not all of GKE's own pods tolerate the taint {taint}.",
                "The others would stay pending, or run on work pools, which then could not scale to zero.",
                "Remove taints, or write the effect PreferNoSchedule.",
            )
