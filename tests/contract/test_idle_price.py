"""Cost of the idle dev stack, Kueue included, summed from the price table by hand."""

from pathlib import Path

import yaml

from ebbtide.declaration.catalog.prices import Price, find_price, machine_price
from ebbtide.declaration.catalog.resources import Resources
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.rules.system_pool import system_pods
from ebbtide.values.cloud_kind import CloudKind
from tests.repository import ROOT

LOWEST_PUBLISHED = 0.125
"""The lowest of the published examples for GKE with queueing, USD per hour, before the free tier's credit."""


def dev() -> Cluster:
    """The dev stack."""
    written = yaml.safe_load(Path(ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8"))
    return declare(written["config"]["ebbtide:cluster"])


def hourly(price: Price | None, *, spot: bool = False) -> float:
    """A price that the table has."""
    assert price is not None
    amount = price.spot if spot else price.on_demand
    assert amount is not None
    return amount


def test_one_small_node_holds_the_system() -> None:
    """Kueue and the cluster's own pods fit on one node."""
    cluster = dev()
    system = cluster.system_pool
    assert system is not None
    assert cluster.has_kueue
    node = system.offered
    _, need = system_pods(cluster)
    assert node is not None
    assert node.holds(need)
    assert node.holds(Resources(500, 586))


def test_it_costs_less_than_any_published_example() -> None:
    """Control plane, one spot node with its disk, and egress: 0.121 USD an hour."""
    cluster = dev()
    system = cluster.system_pool
    assert system is not None
    gke, region = CloudKind.GKE, cluster.site.region
    parts = [
        hourly(find_price(gke, region, "control-plane:gke-standard")),
        hourly(machine_price(gke, region, "e2-small"), spot=True),
        hourly(find_price(gke, region, "pd-balanced-gib")) * (system.disk.size_gib or 0),
        hourly(find_price(gke, region, "nat-per-vm")),
        hourly(find_price(gke, region, "nat-ip")),
    ]
    assert all(not pool.nodes.min for pool in cluster.work_pools)
    assert round(sum(parts), 3) == 0.121
    assert sum(parts) < LOWEST_PUBLISHED
