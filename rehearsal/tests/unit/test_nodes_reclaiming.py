"""Reclaims of machines, and machines that pools lack."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide_rehearsal.cloud.node_pools.removal import (
    expired,
    is_recreated,
    missing_machines,
    surplus,
    victims,
)
from ebbtide_rehearsal.cloud.store import RECLAIM, InjectedFault
from rehearsal.tests.unit.node_pool import a_machine, a_pool, snapshot


@given(st.integers(0, 9), st.floats(0.01, 1))
def test_a_share_is_rounded_up(count: int, share: float) -> None:
    """At least the share is taken, and never a node too many, the oldest first."""
    pool = a_pool()
    machines = tuple(a_machine(pool, number, created=float(-number)) for number in range(count))
    taken = victims(
        InjectedFault(RECLAIM, "cp*", details={"share": share}), snapshot(pool, machines=machines)
    )
    assert count * share <= len(taken) < count * share + 1
    assert [machine.name for machine in taken] == [
        f"cpu-{number}" for number in reversed(range(count - len(taken), count))
    ]


def test_a_count_is_of_all_pools_that_match() -> None:
    """Neither on-demand machines nor those of other pools are taken."""
    pools = (a_pool("a-1"), a_pool("a-2"), a_pool("a-3", capacity="on-demand"), a_pool("b"))
    machines = tuple(a_machine(pool, number) for pool in pools for number in range(2))
    taken = victims(InjectedFault(RECLAIM, "a-*", details={"count": 3}), snapshot(*pools, machines=machines))
    assert [machine.name for machine in taken] == ["a-1-0", "a-1-1", "a-2-0"]


@pytest.mark.parametrize(
    ("change", "now", "taken"),
    [
        ({"capacity": "preemptible"}, 24 * 3600 - 1, False),
        ({"capacity": "preemptible"}, 24 * 3600, True),
        ({"capacity": "spot"}, 1e9, False),
        ({"capacity": "flex-start", "max_run_seconds": 600}, 599, False),
        ({"capacity": "flex-start", "max_run_seconds": 600}, 600, True),
    ],
)
def test_time_runs_out(change: dict[str, Any], now: float, *, taken: bool) -> None:
    """A preemptible machine has 24 hours, a flex-start one its maximum run, a spot one no limit."""
    pool = a_pool(**change)
    taken_back = list(expired(snapshot(pool, machines=(a_machine(pool),), now=now)))
    assert bool(taken_back) == taken


def test_only_gke_makes_a_taken_spot_machine_anew() -> None:
    """A reclaimed machine is replaced by a GKE instance group, and reduces an AKS scale set by one."""
    assert is_recreated(a_machine(a_pool()), "spot")
    assert not is_recreated(a_machine(a_pool(cloud="aks")), "spot")
    assert not is_recreated(a_machine(a_pool()), "flex-start")


def test_pools_are_born_with_their_size_and_keep_their_minimum() -> None:
    """An autoscaled pool falls to its minimum later; a fixed one is kept at its size, up and down."""
    scaled, fixed = a_pool("s", initial=3, minimum=1), a_pool("f", initial=2, autoscaled=False)
    new = snapshot(scaled, fixed)
    assert [(pool.name, count) for pool, count in missing_machines(new, ())] == [("s", 3), ("f", 2)]
    assert [(pool.name, count) for pool, count in missing_machines(new, ("s", "f"))] == [("s", 1), ("f", 2)]
    machines = tuple(a_machine(fixed, number, created=float(number)) for number in range(3))
    assert [machine.name for machine in surplus(snapshot(fixed, machines=machines))] == ["f-2"]
