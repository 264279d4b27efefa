"""Boot disks, over the whole catalog."""

import pytest

from ebbtide.declaration.catalog import disks
from ebbtide.declaration.catalog.disks import boot_disk_types
from ebbtide.declaration.catalog.machines import (
    attachable_counts,
    attachable_types,
    find_machine,
    machine_names,
)
from ebbtide.declaration.model.pool import Pool
from ebbtide.declaration.model.resolved_pool import resolve
from ebbtide.declaration.model.rules.registry import pool_faults
from ebbtide.declaration.model.rules.rule import PoolIn, Severity
from ebbtide.declaration.model.site import Site
from ebbtide.values.cloud_kind import CloudKind

_LOCATIONS = {CloudKind.GKE: "us-central1", CloudKind.AKS: "eastus"}
_CAPACITIES = {
    CloudKind.GKE: ("on-demand", "spot", "preemptible", "flex-start", "queued"),
    CloudKind.AKS: ("on-demand", "spot"),
}
_WITHOUT_HYPERDISK = "a2 c2 c2d ct5lp ct5p e2 g2 n1 n2 n2d t2a t2d"
"""Series that do not boot from Hyperdisk Balanced (Compute Engine docs, hyperdisk-balanced, 2026)."""
_HYPERDISK_ONLY = "a3-ultragpu a4 a4x c4 c4a c4d ct6e g4 h4d n4 n4a n4d tpu7x"
"""Series without persistent disks (Compute Engine docs, persistent-disks: machine series, 2026)."""


def _pools(cloud: CloudKind, machine: str) -> list[Pool]:
    """Every capacity type and attachable accelerator of a machine type, with defaults alone."""
    known = find_machine(cloud, machine)
    assert known is not None
    attached = [
        {"type": kind, "count": count}
        for kind in attachable_types()
        for count in attachable_counts(known, kind)
    ]
    return [
        Pool.model_validate(
            {"name": "p", "machine": machine, "nodes": {"max": 4}, "capacity": capacity}
            | ({"accelerator": accelerator} if accelerator else {})
        )
        for capacity in _CAPACITIES[cloud]
        for accelerator in (None, *attached)
    ]


@pytest.mark.parametrize("cloud", CloudKind)
def test_no_default_is_refused(cloud: CloudKind) -> None:
    """Every machine type with every capacity type and accelerator: no fault is at a field that is omitted."""
    site = Site(cloud, _LOCATIONS[cloud])
    faults = {
        (fault.path, fault.problem)
        for machine in machine_names(cloud)
        for pool in _pools(cloud, machine)
        for fault in pool_faults(PoolIn(pool, resolve(pool, site), ""), Severity.REFUSED)
        if fault.path.startswith(("disk", "image", "gvnic", "locationPolicy", "autoRepair", "taints"))
    }
    assert faults == set()


def test_every_series_has_a_row() -> None:
    """The pattern for all others is for series that the catalog lacks."""
    patterns = {row["machines"].removesuffix("-*") for row in disks.rows("boot_disks")} - {"*"}
    assert {name.split("-")[0] for name in machine_names(CloudKind.GKE)} <= patterns


def test_machines_boot_from_disks_of_their_series() -> None:
    """The default of each machine is one of them; another type is refused with those that it has."""
    for machine in machine_names(CloudKind.GKE):
        _boots(machine)


def _boots(machine: str) -> None:
    types = boot_disk_types(CloudKind.GKE, machine)
    if machine.startswith(tuple(f"{series}-" for series in _WITHOUT_HYPERDISK.split())):
        assert "hyperdisk-balanced" not in types
    if machine.startswith(tuple(f"{series}-" for series in _HYPERDISK_ONLY.split())):
        assert types == ("hyperdisk-balanced",)
    site = Site(CloudKind.GKE, "us-central1")
    pool = Pool.model_validate({"name": "p", "machine": machine, "nodes": {"max": 1}})
    assert resolve(pool, site).disk.type == types[0]
    for kind in boot_disk_types(CloudKind.GKE):
        written = pool.model_copy(update={"disk": pool.disk.model_copy(update={"type": kind})})
        refused = [
            fault.fix
            for fault in pool_faults(PoolIn(written, resolve(written, site), ""), Severity.REFUSED)
            if fault.path == "disk.type"
        ]
        assert bool(refused) == (kind not in types)
        assert all(fix.lower().endswith(f"omit it for {types[0]}.") for fix in refused)


def test_local_ssds_have_the_size_of_their_series() -> None:
    """Local SSDs of Z3, A4X and bare metal have 3,000 GiB, all others 375."""
    sizes = {
        machine: known.gib
        for machine in (
            "z3-highmem-14-standardlssd",
            "a4x-highgpu-4g",
            "c4-highmem-288-lssd-metal",
            "c3-standard-8-lssd",
        )
        if (known := disks.local_ssds(machine)) and known.counts
    }
    assert [*sizes.values()] == [3000, 3000, 3000, 375]
