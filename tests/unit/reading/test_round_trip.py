"""Facts that are read from the resources are those of the declaration."""

import pytest
from hypothesis import given, settings

from ebbtide.analysis.reading.pools import read_pools
from ebbtide.declaration.model.declare import declare
from ebbtide.values.cloud_kind import CloudKind
from tests.contract.pool_flips import UNKNOWN
from tests.declarations import AKS, GKE, Declaration, changed, declarations, only
from tests.synth import synth

_SAME = (
    "machine_type",
    "hardware",
    "accelerator",
    "requestable",
    "slice_nodes",
    "max_run_seconds",
    "nodes",
    "idle_nodes",
    "max_nodes",
    "zone_count",
    "zones",
    "disk",
    "compact",
    "max_pods_per_node",
    "priced_node",
)
"""Properties of a pool that its resource has, or that follow from it."""
_ON_GKE = (
    *("image", "location_policy", "threads_per_core", "shutdown_grace", "upgrade"),
    *("auto_repair", "auto_upgrade"),
)
_OF_AKS = UNKNOWN | {"type": "Standard_D8s_v9"}


@settings(max_examples=20, deadline=None)
@given(declarations())
def test_reading_is_the_way_back(declaration: Declaration) -> None:
    """A resolved pool of a declaration equals the pool read from its resource."""
    _check(declaration)


@pytest.mark.parametrize(
    "declaration",
    [
        only(GKE, machine=UNKNOWN, capacity="spot"),
        only(GKE, machine={**UNKNOWN, "accelerators": {"type": "nvidia-b300", "count": 8}}),
        changed(AKS, pools=[{**pool, "machine": _OF_AKS} for pool in AKS["pools"][:2]]),
    ],
    ids=["gke", "accelerators", "aks"],
)
def test_declared_resources_are_read(declaration: Declaration) -> None:
    """Resources of a machine that the catalog lacks are those of the declaration, as are its accelerators."""
    _check(declaration)


def _check(declaration: Declaration) -> None:
    declared = declare(declaration)
    read = {pool.name: pool for pool in read_pools(synth(declaration))}
    assert set(read) == {pool.name for pool in declared.pools}
    for pool in declared.resolved_pools:
        recorded, expected = read[pool.name], pool.labels_and_taints
        assert recorded.cluster == declared.physical_name
        assert recorded.site.cloud == declared.site.cloud
        assert (recorded.role, recorded.capacity.kind) == (pool.role, pool.capacity.kind)
        assert {name: getattr(recorded, name) for name in _SAME} == {
            name: getattr(pool, name) for name in _SAME
        }
        assert recorded.labels_and_taints.labels == expected.labels
        assert set(recorded.labels_and_taints.all_taints) == set(expected.all_taints)
        if declared.site.cloud is CloudKind.GKE:
            assert bool(recorded.gvnic) == bool(pool.gvnic)
            assert recorded.secondary_boot_disks == pool.secondary_boot_disks
        own = _ON_GKE if declared.site.cloud is CloudKind.GKE else ("image", "upgrade")
        assert {name: getattr(recorded, name) for name in own} == {name: getattr(pool, name) for name in own}
