"""Fallback pools, read from the autoscaler's configuration, whichever program wrote it."""

import pulumi_azure_native as azure_native
import pulumi_gcp as gcp
import pulumi_kubernetes as k8s
import pytest

from ebbtide.analysis.reading.pools import read_fallbacks, read_pools
from ebbtide.analysis.recording.record import record

QUEUED = ("vision/cpus",)


def test_a_compute_class_says_which_pool_is_next() -> None:
    """A rule may name several pools; a pool of no class has nothing to fall back to."""

    def program() -> None:
        for pool in ("a", "b", "c", "other"):
            gcp.container.NodePool(pool, name=pool, cluster="train")
        k8s.apiextensions.CustomResource(
            "class",
            api_version="cloud.google.com/v1",
            kind="ComputeClass",
            metadata={"name": "cpus"},
            spec={"priorities": [{"nodepools": ["b"]}, {"nodepools": ["a", "c"]}]},
        )

    recording = record(program, project="shop", stack="dev")
    pools = read_pools(recording)
    assert [pool.name for pool in pools] == ["a", "b", "c", "other"]
    assert read_fallbacks(recording, pools, [QUEUED] * 4) == [("c",), ("a", "c"), (), ()]


def _aks(priorities: str, *queues: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    def program() -> None:
        for pool in ("spot", "steady", "other"):
            azure_native.containerservice.AgentPool(
                pool, agent_pool_name=pool, resource_group_name="train", resource_name_="train"
            )
        k8s.core.v1.ConfigMap(
            "map",
            metadata={"name": "cluster-autoscaler-priority-expander", "namespace": "kube-system"},
            data={"priorities": priorities},
        )

    recording = record(program, project="shop", stack="dev")
    pools = read_pools(recording)
    fallbacks = read_fallbacks(recording, pools, queues)
    return {pool.name: names for pool, names in zip(pools, fallbacks, strict=True)}


def test_a_higher_priority_comes_first() -> None:
    """Patterns match the names of scale sets; of several the highest counts; other queues' pools do not."""
    priorities = "10: ['^aks-', steady]\n20: ['^aks-spot-']\n30: ['^aks-other-']\n"
    assert _aks(priorities, QUEUED, QUEUED, ("vision/other",)) == {
        "spot": ("steady",),
        "steady": (),
        "other": (),
    }


@pytest.mark.parametrize("priorities", ["10: ['^aks-']", "", "a: [b]", "10: [", "- 1"])
def test_no_order_is_read_where_there_is_none(priorities: str) -> None:
    """Equal priorities, and what the expander does not read itself."""
    assert set(_aks(priorities, QUEUED, QUEUED, ()).values()) == {()}
