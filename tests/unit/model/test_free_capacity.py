"""Resources of add-ons, subtracted from nodes and from the system pool."""

from ebbtide.declaration.catalog import footprint
from ebbtide.declaration.model import Cluster, declare
from ebbtide.declaration.model.rules.system_pool import largest_pod, system_pods
from tests.unit.model.cases import base, edited


def _cluster(**addons: object) -> Cluster:
    return declare(edited(base("aks"), {"addons": addons}, []))


def test_logs_are_counted_where_they_run() -> None:
    """Container insights has a pod on the system pool, and one on every node."""
    without, with_logs = _cluster(), _cluster(logs={})
    (_, before), (description, after) = system_pods(without), system_pods(with_logs)
    assert description == "the cluster's own pods and Container insights"
    assert after.cpu_m - before.cpu_m == footprint("logs").requests.cpu_m
    assert after.memory_mib - before.memory_mib == footprint("logs").requests.memory_mib
    for pool, bare in zip(with_logs.resolved_pools, without.resolved_pools, strict=True):
        mine, others = pool.daemon_requests, bare.daemon_requests
        assert mine.cpu_m - others.cpu_m == footprint("logs-node").requests.cpu_m
        assert mine.memory_mib - others.memory_mib == footprint("logs-node").requests.memory_mib


def test_the_largest_pod_is_the_largest_of_any() -> None:
    """The largest single pod of the cloud and of every installed add-on, not their sum."""
    assert largest_pod(_cluster()) == footprint("aks").most
    logged = largest_pod(_cluster(logs={}))
    assert logged == footprint("logs").most
    assert footprint("logs").most.holds(footprint("aks").most)
