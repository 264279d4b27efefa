"""Machine types whose resources the declaration has, since the catalog lacks them."""

import re
from collections.abc import Iterator
from typing import Final

from ebbtide.declaration.catalog.machines import (
    DECLARED,
    CustomTypes,
    Machine,
    custom_machine,
    find_machine,
    machine_series,
)
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import NO_POOL, PoolIn, pool_rule, service_name
from ebbtide.text import or_list, several
from ebbtide.values.cloud_kind import CloudKind, by_cloud

_NAMES: Final = by_cloud(
    gke=(re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+"), "n2-custom-4-8192"),
    aks=(re.compile(r"Standard_[A-Z]+\d+\w*(-\d+\w*)?", re.ASCII), "Standard_D4s_v5"),
)
"""Names of machine types, with an example."""

_SHARED: Final = re.compile(r"e2-custom-(micro|small|medium)-\d+")
"""Custom types with a shared core."""


def _own(pool: PoolIn) -> Machine | None:
    """Return a pool's machine if its resources are those of the declaration and its name is well-formed."""
    machine, pattern = pool.machine, _NAMES[pool.site.cloud][0]
    is_own = machine is not None and machine.source == DECLARED and pattern.fullmatch(machine.name)
    return machine if is_own else None


@pool_rule(
    "name of own machine type",
    "Compute v1 API, MachineType.name; azure-compute-docs, vm-naming-conventions (2026)",
)
def _is_named(pool: PoolIn) -> Iterator[Fault]:
    machine, (pattern, example) = pool.machine, _NAMES[pool.site.cloud]
    if machine is None or machine.source != DECLARED or pattern.fullmatch(machine.name):
        return
    spelled = machine.name.lower().replace("_", "-")
    known = find_machine(pool.site.cloud, spelled)
    yield Fault(
        pool.at("machine.type"),
        f"{service_name(pool.site.cloud)} has no machine type with a name such as {machine.name}.",
        NO_POOL,
        f"Write machine: {spelled}." if known else f"Write the cloud's name, such as {example}.",
    )


@pool_rule(
    "machine large enough for a node",
    "GKE API: Node pools of f1-micro machines are not supported due to insufficient memory "
    "(nkoson/gke-tutorial#7, 2021-06); azure-aks-docs, quotas-skus-regions (2026): two vCPUs at least",
)
def _is_large_enough(pool: PoolIn) -> Iterator[Fault]:
    machine, cloud = _own(pool), pool.site.cloud
    if machine is None:
        return
    is_large = by_cloud(gke=machine.name != "f1-micro", aks=machine.vcpus > 1 or pool.pool.is_system)
    if not is_large[cloud]:
        problem = f"{service_name(cloud)} runs no nodes on {machine.name}, which is too small."
        larger = by_cloud(gke="e2-medium", aks="Standard_D2as_v5")[cloud]
        yield Fault(pool.at("machine.type"), problem, NO_POOL, f"Write a larger machine, such as {larger}.")


@pool_rule(
    "custom machine type of its series",
    "Compute Engine docs, creating-instance-with-custom-machine-type (2026); "
    "catalog/data/machine_series.csv: custom",
    CloudKind.GKE,
)
def _is_of_its_series(pool: PoolIn) -> Iterator[Fault]:
    machine = _own(pool)
    series = machine_series(machine.name) if machine else None
    if machine is None or "custom" not in machine.name.split("-")[:2] or _SHARED.fullmatch(machine.name):
        return
    named, at = custom_machine(machine.name), pool.at("machine.type")
    if series is not None and series.custom is None:
        problem, fix = f"The {series.name} series has no custom machine types.", "Write one of its types."
        yield Fault(at, problem, NO_POOL, fix)
    elif named is None:
        problem = f"{machine.name} is not the name of a custom machine type."
        yield Fault(at, problem, NO_POOL, "Write SERIES-custom-VCPUS-MIB, such as n2-custom-4-8192.")
    elif (machine.vcpus, machine.memory_gib) != (named.vcpus, named.memory_gib):
        yield Fault(
            at,
            f"{machine.name} has {several(named.vcpus, 'vCPU')} and {named.memory_gib:g} GiB, not "
            f"{machine.vcpus} and {machine.memory_gib:g}.",
            "Quotas, prices and node capacity would be wrong.",
            f"Write vcpus: {named.vcpus} and memoryGib: {named.memory_gib:g}, or another type.",
        )
    elif series is not None and series.custom is not None:
        for problem, fix in _outside(named, series.custom):
            yield Fault(at, f"{machine.name} has {problem}.", NO_POOL, fix)


def _outside(machine: Machine, limits: CustomTypes) -> Iterator[tuple[str, str]]:
    """Yield what a series does not support, and what to write instead."""
    if machine.vcpus not in limits.memory_gib:
        near = sorted(limits.memory_gib, key=lambda count: abs(count - machine.vcpus))[:2]
        count = several(machine.vcpus, "vCPU")
        yield f"{count}, a number that its series does not support", f"Write {or_list(sorted(near))} vCPUs."
        return
    least, most = limits.memory_gib[machine.vcpus]
    is_extended = machine.name.endswith("-ext")
    if is_extended and not limits.extended:
        yield "extended memory, which its series does not support", "Remove -ext."
    elif machine.memory_gib < least or (machine.memory_gib > most and not is_extended):
        more = ", or append -ext" if machine.memory_gib > most and limits.extended else ""
        count = several(machine.vcpus, "vCPU")
        problem = f"{machine.memory_gib:g} GiB, and its series supports {least:g} to {most:g} with {count}"
        yield problem, f"Write {least * 1024:.0f} to {most * 1024:.0f} MiB{more}."
    elif machine.memory_gib * 4 % 1:
        step = "a multiple of 256 MiB"
        yield f"{machine.memory_gib * 1024:.0f} MiB, which is not {step}", f"Write {step}."
