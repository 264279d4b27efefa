"""Pools of a recording: their accounts, the work that they admit, in words, and their fallbacks."""

import pulumi_azure_native as azure_native
import pulumi_gcp as gcp
import pulumi_kubernetes as k8s
import pytest

from ebbtide.analysis.reading.facts import RecordedPool
from ebbtide.analysis.reading.pools import admits, read_accounts, read_fallbacks, read_pools
from ebbtide.analysis.recording.record import record
from ebbtide.declaration.model.pool import Taint
from ebbtide.declaration.model.resolved_pool import NO_ADDONS
from ebbtide.declaration.model.site import Site
from ebbtide.values.cloud_kind import CloudKind
from tests.contract.flips import AKS_EXISTING, GKE_EXISTING
from tests.declarations import Declaration
from tests.repository import ROOT
from tests.synth import synth, synth_stack


def _accounts(stack: str, cloud: CloudKind) -> list[str]:
    return read_accounts(synth_stack(ROOT / stack), cloud, {})


def test_accounts_are_those_of_the_declaration() -> None:
    """A project is the resource's own, a subscription its provider's; the other cloud has none."""
    assert _accounts("Pulumi.dev.yaml", CloudKind.GKE) == ["acme-ml"]
    assert _accounts("Pulumi.dev.yaml", CloudKind.AKS) == []
    assert _accounts("Pulumi.dev-aks.yaml", CloudKind.AKS) == ["00000000-0000-0000-0000-000000000000"]


_SPOT = Taint(key="spot", value="true")
_GPU = Taint(key="nvidia.com/gpu", value="present")
_TEAM = Taint(key="team", effect="NoExecute")
_SOFT = Taint(key="slow", effect="PreferNoSchedule")


@pytest.mark.parametrize(
    ("cloud", "taints", "sentence"),
    [
        (CloudKind.GKE, (), "any pod"),
        (CloudKind.GKE, (_SPOT,), "only pods that tolerate spot=true:NoSchedule"),
        (
            CloudKind.GKE,
            (_SPOT, _TEAM),
            "only pods that tolerate spot=true:NoSchedule and team:NoExecute",
        ),
        (CloudKind.GKE, (_GPU,), "only pods that request nvidia.com/gpu"),
        (
            CloudKind.GKE,
            (_GPU, _SPOT),
            "only pods that request nvidia.com/gpu and tolerate spot=true:NoSchedule",
        ),
        (
            CloudKind.AKS,
            (_GPU, _SPOT),
            "only pods that tolerate nvidia.com/gpu=present:NoSchedule and spot=true:NoSchedule",
        ),
        (CloudKind.GKE, (_SOFT,), "any pod, rather those that tolerate slow:PreferNoSchedule"),
    ],
)
def test_taints_say_who_may_come(cloud: CloudKind, taints: tuple[Taint, ...], sentence: str) -> None:
    """A device taint needs no toleration of the pod's own on GKE; a soft taint excludes no pod."""
    pool = RecordedPool.model_construct(
        site=Site(cloud, "us-central1"), addons=NO_ADDONS, hardware=None, name="pool", taints=taints
    )
    assert admits(pool) == sentence


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


@pytest.mark.parametrize("declaration", [GKE_EXISTING, AKS_EXISTING], ids=["gke", "aks"])
def test_a_pool_on_an_existing_cluster_has_a_region(declaration: Declaration) -> None:
    """Without one it would have no price, and a limit of costs would not count it."""
    (pool,) = read_pools(synth(declaration))
    assert pool.site.location == declaration["cloud"]["location"]
    assert pool.priced_node is not None
