"""Rules for accelerators: known types, and the machine types that support them."""

from collections.abc import Iterator
from functools import cache

from ebbtide.declaration.catalog import (
    AMD,
    NVIDIA,
    CloudKind,
    Machine,
    attachable_counts,
    attachable_types,
    find_machine,
    is_tpu,
    machine_names,
    retired_names,
    short_for,
    vendor,
)
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool import Accelerator
from ebbtide.declaration.model.rules.rule import PoolIn, pool_rule, service_name
from ebbtide.text import did_you_mean, or_list

_NO_POOL = "The node pool could not be created."
_DECLARE = "Write a known type, or declare the accelerators with the machine."
_SOME = 3


_GPUS = "Compute docs, gpus (cloud.google.com/compute/docs/gpus, 2026-11); catalog/data/attachable.csv"


@cache
def _built_in(cloud: CloudKind) -> dict[str, list[str]]:
    """Return the machine types by the accelerators that are part of them."""
    machines_by_accelerator: dict[str, list[str]] = {}
    for name in machine_names(cloud):
        machine = find_machine(cloud, name)
        if machine is not None and machine.accelerator:
            machines_by_accelerator.setdefault(machine.accelerator, []).append(name)
    return machines_by_accelerator


def _known_types(cloud: CloudKind) -> list[str]:
    attachable = attachable_types() if cloud is CloudKind.GKE else []
    return [*attachable, *_built_in(cloud)]


def _carriers(cloud: CloudKind, accelerator: str) -> str:
    """List machine types that support an accelerator type, shortened if there are many."""
    own = _built_in(cloud).get(accelerator, [])
    if own:
        return or_list(own) if len(own) <= _SOME else f"one of {', '.join(own[:_SOME])} and so on"
    return "one of the n1 series, such as n1-standard-8"


def _written(pool: PoolIn) -> tuple[Accelerator, Machine | None] | None:
    """Return the accelerator as written, if its type exists."""
    accelerator = pool.pool.accelerator
    return (accelerator, pool.machine) if accelerator and not _unknown(accelerator, pool) else None


def _unknown(accelerator: Accelerator, pool: PoolIn) -> bool:
    machine = pool.machine
    own = machine.accelerator if machine else ""
    return accelerator.type != own and accelerator.type not in _known_types(pool.site.cloud)


@pool_rule("known accelerator", "catalog/data/machines.csv and attachable.csv")
def _is_known(pool: PoolIn) -> Iterator[Fault]:
    accelerator, cloud = pool.pool.accelerator, pool.site.cloud
    if (
        accelerator is None
        or not _unknown(accelerator, pool)
        or short_for(accelerator.type, retired_names(cloud))
    ):
        return
    own = [pool.machine.accelerator] if pool.machine and pool.machine.accelerator else []
    meant = short_for(accelerator.type, own) or short_for(accelerator.type, _known_types(cloud))
    near = (
        f"; did you mean {or_list(meant)}?" if meant else did_you_mean(accelerator.type, _known_types(cloud))
    )
    fix = f"Write type: {or_list(meant)}." if meant else _DECLARE
    yield Fault(
        pool.at("accelerator.type"),
        f"No accelerator {accelerator.type} is known on {service_name(cloud)}{near}",
        _NO_POOL,
        fix,
    )


_VENDORS = {CloudKind.GKE: (NVIDIA,), CloudKind.AKS: (NVIDIA, AMD)}


@pool_rule(
    "accelerator has known resource",
    "GKE docs, gpus and tpus (2026); azure-aks-docs use-nvidia-gpu.md and use-amd-gpus.md (2025-06)",
)
def _has_resource(pool: PoolIn) -> Iterator[Fault]:
    """Require a known vendor of the accelerators of a declared machine, since the resource of pods follows
    from it."""
    shape, cloud = pool.pool.machine, pool.site.cloud
    declared = shape.accelerators if shape else None
    if declared is None or vendor(declared.type) in _VENDORS[cloud]:
        return
    if cloud is CloudKind.GKE and is_tpu(declared.type):
        return
    prefixes = or_list([f"{name}-" for name in _VENDORS[cloud]])
    yield Fault(
        pool.at("machine.accelerators.type"),
        f"No resource is known for the accelerators {declared.type} on {service_name(cloud)}.",
        "Pods would request a resource that no device plugin offers, and stay pending.",
        f"Write a type that begins with {prefixes}, such as nvidia-l4.",
    )


@pool_rule("accelerators match machine type", "catalog/data/machines.csv, a source in each row")
def _is_the_machines_own(pool: PoolIn) -> Iterator[Fault]:
    match _written(pool):
        case Accelerator(type=kind, count=count), Machine() as machine if machine.accelerator:
            own = f"{machine.name} has {machine.accelerator_count} x {machine.accelerator}"
            wrong = (("type", kind, machine.accelerator), ("count", count, machine.accelerator_count))
            for field, declared, known in wrong:
                if declared != known:
                    yield Fault(
                        pool.at(f"accelerator.{field}"),
                        f"{own}, and {field} is {declared}.",
                        _NO_POOL,
                        f"Write {field}: {known}, or omit accelerator.",
                    )
        case _:
            return


@pool_rule("machine supports accelerators", _GPUS)
def _can_be_attached(pool: PoolIn) -> Iterator[Fault]:
    match _written(pool):
        case Accelerator(type=kind), Machine(accelerator="") as machine:
            attaches = machine.attachable and kind in attachable_types()
            if not attaches:
                problem = (
                    f"{machine.name} can carry no {kind}."
                    if machine.attachable
                    else f"{machine.name} can carry no accelerators."
                )
                yield Fault(
                    pool.at("accelerator"),
                    problem,
                    _NO_POOL,
                    f"Write machine: {_carriers(pool.site.cloud, kind)}.",
                )
        case _:
            return


@pool_rule("supported accelerator count", _GPUS, CloudKind.GKE)
def _count_fits(pool: PoolIn) -> Iterator[Fault]:
    match _written(pool):
        case Accelerator(type=kind, count=count), Machine(accelerator="", attachable=True) as machine if (
            kind in attachable_types()
        ):
            counts = attachable_counts(machine, kind)
            if counts and count not in counts:
                yield Fault(
                    pool.at("accelerator.count"),
                    f"{machine.name} can carry {or_list(counts)} of {kind}, not {count}.",
                    _NO_POOL,
                    f"Write count: {or_list(counts)}.",
                )
            elif not counts:
                yield Fault(
                    pool.at("accelerator"),
                    f"{machine.name} is too large for any number of {kind}.",
                    _NO_POOL,
                    "Write a smaller machine of the n1 series.",
                )
        case _:
            return
