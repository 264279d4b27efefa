"""Facts that are read from the resources are those of the declaration."""

from hypothesis import given, settings

from ebbtide.model import Cluster, declare
from ebbtide.model.resolved_pool import ResolvedPool
from ebbtide.reading import PoolFacts, TaintFacts, read_pools
from tests.declarations import Declaration, declarations
from tests.synth import synth


@settings(max_examples=40, deadline=None)
@given(declarations())
def test_reading_is_the_way_back(declaration: Declaration) -> None:
    """Through placement, components and a recorded program, every pool comes back as it was declared."""
    declared = declare(declaration)
    read = {pool.name: pool for pool in read_pools(synth(declaration))}
    assert set(read) == {pool.name for pool in declared.pools}
    for pool in declared.resolved_pools:
        _same(pool, read[pool.name], declared)


def _same(pool: ResolvedPool, facts: PoolFacts, declared: Cluster) -> None:
    assert facts.cluster == declared.physical_name
    assert facts.cloud == declared.site.cloud
    assert facts.role == pool.role.value
    assert pool.machine is not None
    assert facts.machine == pool.machine.type
    assert (facts.accelerator is None) == (pool.accelerator is None)
    if pool.accelerator and facts.accelerator:
        assert (facts.accelerator.type, facts.accelerator.count) == (
            pool.accelerator.type,
            pool.accelerator.count,
        )
    assert facts.capacity == pool.capacity.kind
    assert facts.max_run_seconds == pool.max_run_seconds
    assert (facts.nodes.minimum, facts.nodes.fixed) == (
        (None, pool.nodes.count) if pool.nodes.count is not None else (pool.nodes.min, None)
    )
    assert facts.nodes.most == pool.max_nodes
    assert facts.zones == pool.zones
    assert facts.disk.size_gib == pool.disk.size_gib
    assert facts.disk.type == pool.disk.type
    expected = pool.labels_and_taints
    assert facts.labels == expected.labels
    assert {_spelled(taint) for taint in facts.taints} == {
        (taint.key, taint.value, taint.effect.value) for taint in expected.all_taints
    }


def _spelled(taint: TaintFacts) -> tuple[str, str, str]:
    return taint.key, taint.value, taint.effect
