"""TPU slices: what leads a pod to one, and how many nodes it has."""

from typing import Any

import pytest

from ebbtide.declaration.model import declare
from ebbtide.placement.derive import profile
from ebbtide.placement.queueing import flavor
from ebbtide.work.errors import WorkloadError
from ebbtide.work.jobs import job, job_over_nodes
from tests.declarations import GKE, Declaration, changed

TOPOLOGY = "cloud.google.com/gke-tpu-topology"
RUN: dict[str, Any] = {"name": "train", "image": "train:1", "pool": "tpus", "cpu": "1", "memory": "1Gi"}


def _tpus(machine: str = "ct5lp-hightpu-4t", **fields: Any) -> Declaration:
    return changed(GKE, pools=[GKE["pools"][0], {"name": "tpus", "machine": machine, **fields}])


def test_a_topology_has_as_many_nodes_as_its_chips_need() -> None:
    """The nodes of a TPU slice are created together, or none of them."""
    cluster = declare(_tpus(tpuTopology="4x8"))
    pool = cluster.resolved_pools[1]
    assert (pool.nodes.min, pool.nodes.max) == (0, 8)
    assert flavor(pool).offer({"tpus": 8})["google.com/tpu"] == 32


@pytest.mark.parametrize(
    ("fields", "topology"),
    [
        ({"tpuTopology": "4x4"}, "4x4"),
        ({"nodes": {"max": 2}}, "2x2"),
        ({"machine": "ct6e-standard-8t", "nodes": {"max": 2}}, "2x4"),
    ],
)
def test_pods_select_the_topology(fields: dict[str, Any], topology: str) -> None:
    """GKE refuses a pod that requests TPUs and names none."""
    pool = profile(declare(_tpus(**fields))).pool("tpus")
    assert pool.labels[TOPOLOGY] == topology
    assert (TOPOLOGY, (topology,)) in [(item.key, item.values) for item in pool.affinity]


def test_a_job_takes_a_whole_slice() -> None:
    """With fewer pods, those that run would wait for the other hosts."""
    cluster = profile(declare(_tpus(tpuTopology="4x4")))
    made, _ = job_over_nodes(cluster, 4, **RUN, gpus=4)
    assert made["spec"]["completions"] == 4
    with pytest.raises(WorkloadError, match="a TPU slice of pool tpus is 4 nodes"):
        job_over_nodes(cluster, 2, **RUN, gpus=4)
    with pytest.raises(WorkloadError, match="nodes is 1, and a TPU slice"):
        job(cluster, **RUN, gpus=4)
