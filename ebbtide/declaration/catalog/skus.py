"""SKUs of Google Cloud's price catalog, by the billed components of machines and disks."""

from dataclasses import dataclass
from functools import cache
from typing import Final

from ebbtide.declaration.catalog.local_ssds import LOCAL_SSD_GIB, local_ssds
from ebbtide.declaration.catalog.machines import find_machine
from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.cloud_kind import CloudKind

_SHARED_CORE: Final = {"e2-micro": 0.25, "e2-small": 0.5, "e2-medium": 1.0}
"""Billed vCPUs of shared-core machines (Cyclenerd/google-cloud-pricing-cost-calculator@dac31281,
build/gcp.yml)."""


_BY_ACCELERATOR: Final = frozenset({"a4", "ct5lp", "ct6e"})
"""Families billed by the accelerator only, including the machine's vCPUs, memory and local SSDs: a GPU slice
of A4, a chip of a TPU (SKUs that price parsers found in the catalog, public project files of 2026-09)."""


@dataclass(frozen=True, slots=True)
class Skus:
    """Descriptions of a component's SKUs, without the trailing region (`running in Americas`).

    Several descriptions are alternatives: the price catalog names some SKUs differently by region.

    Attributes:
        on_demand: on-demand SKUs.
        spot: spot and preemptible SKUs; empty for none, or if unknown.
        flex: flex-start SKUs, in the price catalog DWS Defined Duration; empty for none, or if unknown.
    """

    on_demand: tuple[str, ...]
    spot: tuple[str, ...]
    flex: tuple[str, ...]


@cache
def _skus() -> dict[str, Skus]:
    def descriptions(cell: str) -> tuple[str, ...]:
        return tuple(filter(None, cell.split("|")))

    return {
        row["component"]: Skus(*(descriptions(row[capacity]) for capacity in ("on_demand", "spot", "flex")))
        for row in rows("skus")
    }


def components(item: str) -> dict[Skus, float]:
    """Return the components of a billed GKE item with their quantities: vCPUs, GiB, accelerators.

    Args:
        item: item of the price table: a machine type, `gpu:<type>` or a disk.

    Returns:
        The components; empty if any is unknown.
    """
    machine = find_machine(CloudKind.GKE, item)
    if machine is None:
        return {_skus()[item]: 1.0} if item in _skus() else {}
    quantities = {f"gpu:{machine.accelerator}": float(machine.accelerator_count)}
    if machine.family not in _BY_ACCELERATOR:
        ssds = local_ssds(item)
        quantities |= {
            f"core:{machine.family}": _SHARED_CORE.get(item, float(machine.vcpus)),
            f"ram:{machine.family}": machine.memory_gib,
            "local-ssd": float((ssds.own or 0) * LOCAL_SSD_GIB) if ssds else 0.0,
        }
    if any(count and name not in _skus() for name, count in quantities.items()):
        return {}
    return {_skus()[name]: count for name, count in quantities.items() if count}
