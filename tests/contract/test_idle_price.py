"""Cost of the idle dev stack, Kueue included."""

from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.declaration.model.declare import declare
from tests.repository import ROOT, declaration
from tests.synth import synth_stack

LOWEST_PUBLISHED = 0.125
"""The lowest of the published examples for GKE with queueing, USD per hour, before the free tier's credit."""


def test_it_costs_less_than_any_published_example() -> None:
    """Control plane, one spot node with its disk, and egress: 0.121 USD an hour."""
    file = ROOT / "Pulumi.dev.yaml"
    cluster, idle = declare(declaration(file)), preview_of(synth_stack(file)).cost.idle
    assert cluster.has_kueue
    assert [pool.idle_nodes for pool in cluster.resolved_pools] == [1] + [0] * len(cluster.work_pools)
    assert (round(idle.usd, 3), idle.unknown) == (0.121, ())
    assert idle.usd < LOWEST_PUBLISHED
