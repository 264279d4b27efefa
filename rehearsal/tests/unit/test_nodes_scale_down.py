"""Scale-down, and reasons that keep a node."""

from dataclasses import replace
from typing import Any

import pytest

from ebbtide_rehearsal.cloud.node_pools.fleet import NodeSettings
from ebbtide_rehearsal.cloud.node_pools.scale_down import SAFE_TO_EVICT, ScaleDownReview, review
from ebbtide_rehearsal.cloud.node_pools.snapshot import Budget, ClusterSnapshot
from ebbtide_rehearsal.cloud.pools import Autoscaling
from rehearsal.tests.unit.node_pool import a_gpu_pool, a_machine, a_pod, a_pool, snapshot

NOTHING = ScaleDownReview({}, {}, (), ())
LATE = 600.0


def _after(
    cluster: ClusterSnapshot, seconds: float = LATE, *, booked: frozenset[str] = frozenset()
) -> ScaleDownReview:
    """Return the review after some time without changes."""
    first = review(cluster, NOTHING, booked, None, NodeSettings())
    return review(replace(cluster, now=cluster.now + seconds), first, booked, None, NodeSettings())


def test_an_empty_node_goes_after_the_idle_time() -> None:
    """Not before, not when a node was just added, and not below the minimum."""
    pool = a_pool()
    cluster = snapshot(pool, machines=(a_machine(pool),))
    assert review(cluster, NOTHING, frozenset(), None, NodeSettings()).removable == ()
    assert _after(cluster).removable == ("cpu-0",)
    before = review(cluster, NOTHING, frozenset(), None, NodeSettings())
    late = snapshot(pool, machines=(a_machine(pool),), now=LATE)
    assert review(late, before, frozenset(), 1.0, NodeSettings()).removable == ()
    floor = pool.having(minimum=1)
    assert _after(snapshot(floor, machines=(a_machine(floor), a_machine(floor, 1)))).removable == ("cpu-0",)


def test_a_node_in_use_starts_anew() -> None:
    """A node that is used in between starts its idle time anew."""
    pool = a_pool()
    busy = a_pod("work", cpu="3", node="cpu-0", phase="Running")
    empty = snapshot(pool, machines=(a_machine(pool),))
    before = review(empty, NOTHING, frozenset(), None, NodeSettings())
    used = review(
        snapshot(pool, machines=(a_machine(pool),), pods=(busy,), now=300),
        before,
        frozenset(),
        None,
        NodeSettings(),
    )
    assert used.unneeded == {}
    again = snapshot(pool, machines=(a_machine(pool),), now=LATE)
    assert review(again, used, frozenset(), None, NodeSettings()).removable == ()


def test_a_node_that_was_unneeded_before_goes_first() -> None:
    """A node that was unneeded before stays so if its pods fit on another one, which then is needed; an empty
    node precedes both."""
    pool = a_pool()
    machines = tuple(a_machine(pool, number) for number in range(3))
    first, second = (
        a_pod(f"work-{number}", cpu="1", node=f"cpu-{number}", phase="Running") for number in (0, 1)
    )
    before = ScaleDownReview({"cpu-1": 0.0}, {"cpu-1": 0.0}, (), ())
    both = snapshot(pool, machines=machines[:2], pods=(first, second), now=60)
    assert review(both, before, frozenset(), None, NodeSettings()).unneeded == {"cpu-1": 0.0}
    assert review(both, NOTHING, frozenset(), None, NodeSettings()).unneeded == {"cpu-0": 60}
    floor = snapshot(pool.having(minimum=2), machines=machines, pods=(first, second), now=60)
    assert review(floor, before, frozenset(), None, NodeSettings()).unneeded == {"cpu-2": 60}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"owner": ""}, "has no controller that would recreate it"),
        ({"annotations": {SAFE_TO_EVICT: "false"}}, f"is annotated {SAFE_TO_EVICT}: false"),
        ({"namespace": "kube-system"}, "is in kube-system without a PodDisruptionBudget"),
        ({}, "fits on no other node"),
    ],
)
def test_what_holds_a_node_is_named(fields: dict[str, Any], why: str) -> None:
    """A GPU node with one small pod stays, and the pod and the reason are told."""
    pool = a_gpu_pool()
    pod = a_pod("small", cpu="100m", node="gpu-0", phase="Running", **fields)
    review = _after(snapshot(pool, machines=(a_machine(pool),), pods=(pod,)))
    assert review.removable == ()
    (hold,) = review.unremovable
    assert hold.why == why
    assert hold.sentence == f"Node gpu-0 is kept: pod {pod.id} {why}."


def test_pods_of_the_node_hold_nothing() -> None:
    """DaemonSets' pods, ended ones and those that may be evicted all the same."""
    pool, other = a_gpu_pool(), a_pool()
    pods = (
        a_pod("daemon", node="gpu-0", phase="Running", owner="DaemonSet"),
        a_pod("done", node="gpu-0", phase="Succeeded", owner=""),
        a_pod("safe", node="gpu-0", phase="Running", owner="", annotations={SAFE_TO_EVICT: "true"}),
    )
    cluster = snapshot(pool, other.having(minimum=1), machines=(a_machine(pool), a_machine(other)), pods=pods)
    assert _after(cluster).removable == ("gpu-0",)


def test_a_budget_holds_only_when_it_is_spent() -> None:
    """A kube-system pod with a budget that allows a disruption holds nothing."""
    pool, other = a_gpu_pool(), a_pool(minimum=1)
    pod = a_pod("dns", cpu="100m", namespace="kube-system", node="gpu-0", phase="Running", labels={"a": "b"})
    machines = (a_machine(pool), a_machine(other))
    for allowed, leave in ((1, ("gpu-0",)), (0, ())):
        budget = Budget("kube-system", "dns", (), allowed)
        review = _after(snapshot(pool, other, machines=machines, pods=(pod,), budgets=(budget,)))
        assert review.removable == leave


def test_local_storage_holds_where_the_autoscaler_is_told_so() -> None:
    """On neither cloud by default."""
    pool, other = a_gpu_pool(), a_pool(minimum=1)
    pod = a_pod("scratch", cpu="100m", node="gpu-0", phase="Running", local_storage=True)
    cluster = snapshot(pool, other, machines=(a_machine(pool), a_machine(other)), pods=(pod,))
    assert _after(cluster).removable == ("gpu-0",)
    (hold,) = _after(replace(cluster, autoscaling=Autoscaling(skip_local_storage=True))).unremovable
    assert hold.why == "has local storage"


def test_two_half_empty_nodes_become_one() -> None:
    """Each could take the other's pod; only one goes."""
    pool = a_pool()
    pods = tuple(a_pod(f"p{n}", cpu="1500m", node=f"cpu-{n}", phase="Running") for n in range(2))
    review = _after(snapshot(pool, machines=(a_machine(pool), a_machine(pool, 1)), pods=pods))
    assert len(review.removable) == 1


def test_fixed_pools_and_booked_nodes_stay() -> None:
    """A pool of a fixed size never shrinks by itself; a node that waits for its request's pods stays."""
    fixed = a_pool(autoscaled=False)
    assert _after(snapshot(fixed, machines=(a_machine(fixed),))).removable == ()
    queued = a_pool("q", capacity="queued")
    cluster = snapshot(queued, machines=(a_machine(queued),))
    assert _after(cluster).removable == ("q-0",)
    assert _after(cluster, booked=frozenset({"q-0"})).removable == ()


def test_the_autoscaler_goes_by_what_it_is_told() -> None:
    """Idle time, delay after a scale-up and utilization threshold are the cluster's settings."""
    pool = a_pool()
    empty = snapshot(
        pool,
        machines=(a_machine(pool),),
        autoscaling=Autoscaling(idle_seconds=60, delay_after_add_seconds=120),
    )
    assert _after(empty, 59).removable == ()
    assert _after(empty, 60).removable == ("cpu-0",)
    before = review(empty, NOTHING, frozenset(), None, NodeSettings())
    for now, leave in ((119.0, ()), (120.0, ("cpu-0",))):
        assert review(replace(empty, now=now), before, frozenset(), 0.0, NodeSettings()).removable == leave
    slow = NodeSettings(least_idle_seconds=90)
    assert review(replace(empty, now=89), before, frozenset(), None, slow).removable == ()
    work = a_pod(cpu="3", node="cpu-0", phase="Running")
    other = a_pool("other", minimum=1)
    machines = (a_machine(pool), a_machine(other))
    for utilization, leave in ((0.75, ()), (0.76, ("cpu-0",))):
        autoscaling = Autoscaling(utilization=utilization)
        assert (
            _after(snapshot(pool, other, machines=machines, pods=(work,), autoscaling=autoscaling)).removable
            == leave
        )


def test_a_compute_class_has_a_delay_of_its_own() -> None:
    """Nodes of a ComputeClass are removed after its delay, the others after the cluster's."""
    fast, slow = a_pool("fast", labels={"cloud.google.com/compute-class": "cpu"}), a_pool("slow")
    classes = {"cpu": {"autoscalingPolicy": {"consolidationDelayMinutes": 1}}}
    cluster = replace(snapshot(fast, slow, machines=(a_machine(fast), a_machine(slow))), classes=classes)
    assert _after(cluster, 59).removable == ()
    assert _after(cluster, 60).removable == ("fast-0",)
    assert _after(cluster, 600).removable == ("fast-0", "slow-0")


def test_system_pods_hold_unless_the_autoscaler_is_told_otherwise() -> None:
    """A pod of kube-system without a disruption budget."""
    pool, other = a_gpu_pool(), a_pool(minimum=1)
    pod = a_pod("dns", cpu="100m", namespace="kube-system", node="gpu-0", phase="Running")
    cluster = snapshot(pool, other, machines=(a_machine(pool), a_machine(other)), pods=(pod,))
    assert _after(cluster).removable == ()
    assert _after(replace(cluster, autoscaling=Autoscaling(skip_system_pods=False))).removable == ("gpu-0",)


def test_what_daemons_take_counts_unless_the_autoscaler_is_told_otherwise() -> None:
    """A node that is busy with DaemonSets' pods alone."""
    pool = a_pool()
    daemon = a_pod("agent", cpu="3", node="cpu-0", phase="Running", owner="DaemonSet")
    cluster = snapshot(pool, machines=(a_machine(pool),), pods=(daemon,))
    assert _after(cluster).removable == ()
    assert _after(replace(cluster, autoscaling=Autoscaling(daemons_count=False))).removable == ("cpu-0",)
    half = a_pod("work", cpu="500m", node="cpu-0", phase="Running")  # of the one that is left
    busy = snapshot(pool, a_pool("other", minimum=1), machines=(a_machine(pool),), pods=(daemon, half))
    assert _after(replace(busy, autoscaling=Autoscaling(daemons_count=False))).unused == {}


def test_a_slice_goes_as_a_whole() -> None:
    """While a pod runs on one of its nodes, none of the others goes."""
    pool = a_pool(together=2, maximum=2)
    machines = (a_machine(pool), a_machine(pool, 1))
    assert set(_after(snapshot(pool, machines=machines)).removable) == {"cpu-0", "cpu-1"}
    busy = a_pod("work", cpu="3", node="cpu-0", phase="Running")
    assert _after(snapshot(pool, machines=machines, pods=(busy,))).removable == ()
