"""Machine types, their accelerators, and the accelerators that can be attached to them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from ebbtide.declaration.catalog import prices
from ebbtide.declaration.catalog.allocatable import DEFAULT_NODE, NodeSettings, Resources, allocatable
from ebbtide.declaration.catalog.machine_series import AMD64, architecture
from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.cloud_kind import CloudKind

DECLARED = "declared"
"""Source of a machine type that the catalog does not have."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine type of a cloud.

    Attributes:
        cloud: cloud that offers it.
        name: name in the cloud, such as `n1-highmem-8` or `Standard_D4s_v5`.
        vcpus: virtual CPUs.
        memory_gib: memory, GiB.
        family: machine family, which determines the quotas.
        accelerator: type of the built-in accelerators; empty for none.
        accelerator_count: number of built-in accelerators.
        accelerator_memory_gib: memory of one accelerator, GiB; None without accelerators.
        attachable: True if accelerators can be attached (N1 on Google Cloud; nothing on Azure).
        source: source of the row.
        threads_per_core: threads of a core; None for the machine's own, two on all but a few series.
    """

    cloud: CloudKind
    name: str
    vcpus: int
    memory_gib: float
    family: str
    accelerator: str = ""
    accelerator_count: int = 0
    accelerator_memory_gib: float | None = None
    attachable: bool = False
    source: str = DECLARED
    threads_per_core: int | None = None

    def allocatable(self, node: NodeSettings = DEFAULT_NODE) -> Resources:
        """Return the allocatable resources of one machine: those not reserved for kubelet and system.

        With one thread per core, a node has half of the vCPUs that are billed and count against the quota.
        """
        cpus = max(1, self.vcpus // 2) if self.threads_per_core == 1 else self.vcpus
        return allocatable(self.cloud, self.name, cpus, self.memory_gib, node)


@cache
def _machines() -> dict[tuple[str, str], Machine]:
    machines = (
        Machine(
            cloud=CloudKind(row["cloud"]),
            name=row["machine_type"],
            vcpus=int(row["vcpus"]),
            memory_gib=float(row["memory_gib"]),
            family=row["family"],
            accelerator=row["gpu_type"],
            accelerator_count=int(row["gpu_count"]),
            accelerator_memory_gib=float(row["gpu_memory_gib"]) if row["gpu_memory_gib"] else None,
            attachable=row["attachable_gpus"] == "yes",
            source=row["source"],
        )
        for row in rows("machines")
    )
    return {(machine.cloud.value, machine.name): machine for machine in machines}


def find_machine(cloud: CloudKind, name: str) -> Machine | None:
    """Return the machine type with exactly that name; None if the catalog has none."""
    return _machines().get((cloud.value, name))


@cache
def _spellings() -> dict[str, str]:
    return {name.lower(): name for cloud, name in _machines() if cloud == CloudKind.AKS.value}


def spelled(name: str) -> str:
    """Return the catalog's spelling of a VM size of Azure, whose API ignores case; others as they are."""
    return _spellings().get(name.lower(), name)


def machine_names(cloud: CloudKind) -> list[str]:
    """Return the names of all machine types of a cloud, in the order of the catalog."""
    return [name for kind, name in _machines() if kind == cloud.value]


@cache
def _attachable() -> dict[str, list[tuple[int, int, float]]]:
    table: dict[str, list[tuple[int, int, float]]] = {}
    for row in rows("attachable"):
        limit = (int(row["count"]), int(row["max_vcpus"]), float(row["max_memory_gib"]))
        table.setdefault(row["accelerator"], []).append(limit)
    return table


def attachable_types() -> list[str]:
    """Return the accelerator types that can be attached to a machine type without built-in ones."""
    return list(_attachable())


def attachable_memory_gib(accelerator: str) -> float | None:
    """Return the memory of an attachable accelerator, GiB; None for an unknown type."""
    memory = (row["gpu_memory_gib"] for row in rows("attachable") if row["accelerator"] == accelerator)
    return next(map(float, memory), None)


def attachable_counts(machine: Machine, accelerator: str) -> list[int]:
    """Return the accepted numbers of accelerators of a type on a machine, given the limits on the machine's
    vCPUs and memory."""
    if not machine.attachable:
        return []
    return [
        count
        for count, max_vcpus, max_memory_gib in _attachable().get(accelerator, [])
        if machine.vcpus <= max_vcpus and machine.memory_gib <= max_memory_gib
    ]


def cheapest(
    cloud: CloudKind, region: str, need: Resources, *, least_vcpus: int = 1, without: tuple[str, ...] = ()
) -> Machine | None:
    """Return the amd64 machine type without accelerators that offers `need` to pods at the lowest on-demand
    price.

    Args:
        cloud: cloud of the machine types.
        region: region of the prices; if it has none, those of the cheapest known region determine the order.
        need: CPU and memory that one node must offer.
        least_vcpus: minimum number of vCPUs.
        without: excluded machine families.
    """

    def candidates() -> Iterator[tuple[float, Machine]]:
        for machine in _machines().values():
            if machine.cloud != cloud or machine.accelerator or not machine.allocatable().holds(need):
                continue
            is_arm = architecture(machine.cloud, machine.name) != AMD64
            if is_arm or machine.vcpus < least_vcpus or machine.family in without:
                continue
            price = prices.machine_price(cloud, region, machine.name) or prices.lowest_price(
                cloud, machine.name
            )
            if price is not None and price.on_demand is not None:
                yield price.on_demand, machine

    return min(candidates(), key=lambda pair: pair[0], default=(0.0, None))[1]
