"""Rules for TPU slices: topologies that a machine supports, and their node count."""

from collections.abc import Iterator

from ebbtide.declaration.catalog import CloudKind, chips_of, one_host_topology, tpu_topologies
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import PoolIn, pool_rule
from ebbtide.text import or_list

_NO_POOL = "GKE refuses to create the node pool."
_DOCS = "GKE docs, plan-tpus and tpus (2026)"


@pool_rule("TPU pool has topology", _DOCS, CloudKind.GKE)
def _tpus_alone(pool: PoolIn) -> Iterator[Fault]:
    if pool.pool.tpu_topology is not None and not pool.resolved.has_tpus:
        yield Fault(
            pool.at("tpuTopology"),
            "The machine has no TPUs.",
            _NO_POOL,
            "Remove tpuTopology, or write a machine with TPUs, such as ct6e-standard-4t.",
        )


@pool_rule("supported TPU topology", f"{_DOCS}; catalog/data/tpu_topologies.csv", CloudKind.GKE)
def _fits_the_machine(pool: PoolIn) -> Iterator[Fault]:
    topology, accelerator = pool.pool.tpu_topology, pool.resolved.accelerator
    if topology is None or accelerator is None or not pool.resolved.has_tpus:
        return
    kind, chips = accelerator.type, accelerator.count
    known, own = tpu_topologies(kind), one_host_topology(kind, chips)
    if known is not None and not known.has(topology):
        others = " or multiples of 4 in every dimension, such as 4x4x8" if known.multiples_of else ""
        yield Fault(
            pool.at("tpuTopology"),
            f"{kind} has no topology {topology}.",
            _NO_POOL,
            f"Write {or_list([name for name in known.listed if chips_of(name) > chips])}{others}.",
        )
    elif chips_of(topology) % chips:
        yield Fault(
            pool.at("tpuTopology"),
            f"{topology} has {chips_of(topology)} chips, and a node has {chips}.",
            _NO_POOL,
            f"Write a topology with a multiple of {chips} chips.",
        )
    elif topology != own and (chips_of(topology) == chips or (own and chips != _CHIPS_OF_SEVERAL)):
        yield Fault(
            pool.at("tpuTopology"),
            f"A slice of this machine is one node, and its topology {own or 'that of the machine'}.",
            _NO_POOL,
            "Remove tpuTopology, or write a machine of 4 chips, such as ct6e-standard-4t.",
        )


_CHIPS_OF_SEVERAL = 4
"""Chips of a node that can be one of several in a slice; 1 and 8 chips are slices of their own."""


@pool_rule(
    "TPU slice node count",
    "GoogleCloudPlatform/cluster-autoscaler@7d250507, machinetypes/machine_config_provider.go",
    CloudKind.GKE,
)
def _as_many_nodes(pool: PoolIn) -> Iterator[Fault]:
    together, nodes = pool.resolved.slice_nodes, pool.pool.nodes
    if together == 1:
        return
    wrong = {"count": nodes.count, "max": nodes.max, "min": nodes.min or None}
    for field, value in wrong.items():
        if value is not None and value != together:
            yield Fault(
                pool.at(f"nodes.{field}"),
                f"The topology {pool.pool.tpu_topology} needs {together} nodes, and {field} is {value}.",
                _NO_POOL,
                f"Remove {field}, or write {field}: {together}.",
            )


@pool_rule("TPU slice in one zone", _DOCS, CloudKind.GKE)
def _one_zone(pool: PoolIn) -> Iterator[Fault]:
    if pool.resolved.slice_nodes > 1 and pool.resolved.zone_count > 1:
        yield Fault(
            pool.at("zones"),
            "A TPU slice is in one zone, and this pool spans several.",
            _NO_POOL,
            "Write the one zone under zones.",
        )
