"""TPU slices: their topology and node count."""

from ebbtide.catalog import Machine, chips_of, is_tpu, one_host_topology
from ebbtide.model.pool import Pool


def _chips(pool: Pool, machine: Machine | None) -> tuple[str, int]:
    """Return the TPU type and the number of chips of a node; empty and 0 for other pools."""
    kind = pool.accelerator.type if pool.accelerator else machine.accelerator if machine else ""
    count = pool.accelerator.count if pool.accelerator else machine.accelerator_count if machine else 0
    return (kind, count) if is_tpu(kind) else ("", 0)


def topology_of(pool: Pool, machine: Machine | None) -> str:
    """Return the topology of a pool's TPU slices, by default that of one node; empty for other pools."""
    kind, chips = _chips(pool, machine)
    return (pool.tpu_topology or one_host_topology(kind, chips)) if kind else ""


def slice_nodes(pool: Pool, machine: Machine | None) -> int:
    """Return the number of nodes of a slice; 1 for pools without TPUs
    (GoogleCloudPlatform/cluster-autoscaler@7d250507, machinetypes/machine_config_provider.go,
    NumNodesFromTopology)."""
    _, chips = _chips(pool, machine)
    return max(1, chips_of(pool.tpu_topology) // chips) if pool.tpu_topology and chips else 1
