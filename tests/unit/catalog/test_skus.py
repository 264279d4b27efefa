"""Components that machines, accelerators and disks are billed by."""

import pytest

from ebbtide.declaration.catalog import CloudKind, find_machine
from ebbtide.declaration.catalog.machines import machine_names
from ebbtide.declaration.catalog.skus import components
from ebbtide.declaration.catalog.tables import rows


def _quantities(item: str) -> dict[str, float]:
    return {skus.on_demand[0]: quantity for skus, quantity in components(item).items()}


def test_a_machine_is_the_sum_of_its_components() -> None:
    """Accelerators and local SSDs count where they come with it, and shared cores in part."""
    assert _quantities("a2-ultragpu-2g") == {
        "A2 Instance Core": 24,
        "A2 Instance Ram": 340,
        "Nvidia Tesla A100 80GB GPU": 2,
        "SSD backed Local Storage": 750,
    }
    assert _quantities("e2-micro") == {"E2 Instance Core": 0.25, "E2 Instance Ram": 1}
    assert _quantities("n1-standard-8") == {
        "N1 Predefined Instance Core": 8,
        "N1 Predefined Instance Ram": 30,
    }
    assert _quantities("gpu:nvidia-tesla-t4") == {"Nvidia Tesla T4 GPU": 1}


def test_newer_machines_are_billed_by_their_accelerators() -> None:
    """A slice of A4 and the chip of a TPU have vCPUs, memory and disks in them."""
    assert _quantities("a4-highgpu-8g") == {"A4 Nvidia B200 (1 gpu slice)": 8}
    assert _quantities("ct6e-standard-4t") == {"TpuV6e": 4}
    assert _quantities("g4-standard-48") == {
        "G4 Instance Core": 48,
        "G4 Instance Ram": 180,
        "RTX 6000 96GB": 1,
    }
    assert _quantities("a3-ultragpu-8g") == {
        "A3Ultra Instance Core": 224,
        "A3Ultra Instance Ram": 2952,
        "H200 141GB GPU": 8,
        "SSD backed Local Storage": 12000,
    }


@pytest.mark.parametrize("item", ["nat", "gpu:nvidia-x", "Standard_D4s_v5", ""])
def test_an_item_with_an_unknown_component_has_none(item: str) -> None:
    """A sum without its accelerators would be too low."""
    assert components(item) == {}


def test_every_component_is_one_of_the_catalog() -> None:
    """Families and accelerators are spelled as the catalog's machines."""
    machines = [find_machine(CloudKind.GKE, name) for name in machine_names(CloudKind.GKE)]
    families = {machine.family for machine in machines if machine}
    accelerators = {machine.accelerator for machine in machines if machine}
    accelerators |= {row["accelerator"] for row in rows("attachable")}
    for row in rows("skus"):
        kind, _, name = row["component"].partition(":")
        assert not name or name in (accelerators if kind == "gpu" else families)
