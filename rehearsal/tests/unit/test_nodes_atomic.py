"""ProvisioningRequests that the cluster autoscaler itself answers: best-effort-atomic and check-capacity."""

from collections.abc import Mapping
from typing import Any

import pytest

from ebbtide_rehearsal.cloud.node_pools.fleet import NodeSettings
from ebbtide_rehearsal.cloud.node_pools.provisioning_requests import decide, ordered
from ebbtide_rehearsal.cloud.node_pools.scale_up import expansion_options, scale_up
from ebbtide_rehearsal.cloud.node_pools.scheduling import CONSUMES, Pod
from ebbtide_rehearsal.cloud.node_pools.snapshot import (
    ATOMIC,
    CHECK,
    QUEUED,
    ClusterSnapshot,
    Decision,
    Order,
    PodSet,
    ProvisioningRequest,
    RequestCondition,
    booked,
)
from ebbtide_rehearsal.cloud.pools import Autoscaling
from rehearsal.tests.unit.node_pool import a_machine, a_pod, a_pool, backed_off, snapshot

POOL = a_pool(cloud="aks", zones=("eastus-1", "eastus-2"), maximum=4)


def _request(count: int, *conditions: str, **fields: Any) -> ProvisioningRequest:
    given: dict[str, Any] = {
        "namespace": "default",
        "name": "r",
        "uid": "uid",
        "kind": ATOMIC,
        "sets": (PodSet(a_pod(cpu="3"), count),),
        "parameters": {},
        "conditions": frozenset(conditions),
    }
    return ProvisioningRequest(**{**given, **fields})


def _pod(number: int, **fields: Any) -> Pod:
    return a_pod(f"r-{number}", cpu="3", annotations={CONSUMES[0]: "r"}, **fields)


def _decide(
    request: ProvisioningRequest,
    cluster: ClusterSnapshot,
    since: float = 0,
    backoff: Mapping[str, float] | None = None,
) -> Decision:
    return decide(request, cluster, since, backoff or {}, NodeSettings())


def _condition(verdict: Decision) -> tuple[str, bool, str]:
    return (
        (verdict.kind, verdict.status, verdict.reason)
        if isinstance(verdict, RequestCondition)
        else ("", False, "")
    )


def test_nodes_are_asked_for_together() -> None:
    """Accepted first; then all nodes that are missing, spread over the zones, and provisioned at once."""
    assert _condition(_decide(_request(3), snapshot(POOL))) == ("Accepted", True, "Accepted")
    waiting = _request(3, "Accepted")
    assert _decide(waiting, snapshot(POOL)) == Order(POOL, ("eastus-1", "eastus-2", "eastus-1"))
    assert _decide(waiting, snapshot(POOL, machines=(a_machine(POOL),))) == Order(
        POOL, ("eastus-2", "eastus-2")
    )
    assert _condition(ordered(waiting, came=True)) == ("Provisioned", True, "CapacityIsProvisioned")


def test_what_is_there_is_enough() -> None:
    """No node is asked for where there is room, those that are still starting counted."""
    machines = (a_machine(POOL), a_machine(POOL, 1, state="starting"))
    decision = _decide(_request(2, "Accepted"), snapshot(POOL, machines=machines))
    assert _condition(decision) == ("Provisioned", True, "CapacityIsFound")


@pytest.mark.parametrize(
    ("count", "backoff", "pool"),
    [
        (5, {}, POOL),
        (1, backed_off(POOL, 9), POOL),
        (1, {}, POOL.having(allocatable={"cpu": "2"})),
        (1, {}, POOL.having(autoscaled=False)),
    ],
)
def test_without_capacity_a_request_waits(count: int, backoff: Mapping[str, float], pool: Any) -> None:
    """More than the pool may have, a pool whose nodes did not come, a pod too large: told once, never
    failed."""
    decision = _decide(_request(count, "Accepted"), snapshot(pool), backoff=backoff)
    assert _condition(decision) == ("Provisioned", False, "CapacityIsNotFound")
    again = _request(count, "Accepted", denied=frozenset({"Provisioned"}))
    assert _decide(again, snapshot(pool, now=9e9), backoff=backed_off(POOL, 1e10)) is None
    assert ordered(again, came=False) is None


def test_the_expander_chooses_among_pools_that_hold_all() -> None:
    """A pool that has room for a part is none of them."""
    small, large = POOL.having(name="small", maximum=1), POOL.having(name="large")
    autoscaling = Autoscaling(expander="priority")
    cluster = snapshot(small, large, autoscaling=autoscaling, priorities="50: [small]\n10: [large]")
    for count, name in ((1, "small"), (2, "large")):
        order = _decide(_request(count, "Accepted"), cluster)
        assert isinstance(order, Order)
        assert order.pool.name == name


def test_capacity_is_kept_for_the_pods_to_come() -> None:
    """Other requests and other pods have none of it, and its nodes stay, until the request's pods are there
    or ten minutes have gone by."""
    machines = (a_machine(POOL),)
    done = _request(1, "Accepted", "Provisioned")
    other = _request(1, "Accepted", name="other", uid="other")
    kept = snapshot(POOL, machines=machines, requests=(done, other))
    assert isinstance(_decide(other, kept), Order)
    assert booked(kept) == {"cpu-0"}
    stranger = snapshot(POOL, machines=machines, requests=(done,), pods=(a_pod(cpu="2"),))
    growth, _ = scale_up(stranger, list(expansion_options(stranger, {})))
    assert growth is not None
    cluster = snapshot(
        POOL, machines=machines, requests=(done,), pods=(_pod(0, node="cpu-0", phase="Running"),)
    )
    assert booked(cluster) == frozenset()
    assert _decide(done, kept) is None
    over = _decide(done, snapshot(POOL, machines=machines, now=600))
    assert _condition(over) == ("BookingExpired", True, "CapacityReservationTimeExpired")
    late = snapshot(POOL, machines=machines, requests=(_request(1, "Provisioned", "BookingExpired"),))
    assert booked(late) == frozenset()
    assert _decide(late.requests[0], late) is None


def test_a_look_brings_no_node() -> None:
    """Existing capacity is found; otherwise the request is retried, or fails if it has `noRetry`."""
    cluster = snapshot(POOL, machines=(a_machine(POOL),))
    assert _condition(_decide(_request(1, "Accepted", kind=CHECK), cluster)) == (
        "Provisioned",
        True,
        "CapacityIsFound",
    )
    look = _request(2, "Accepted", kind=CHECK)
    assert _condition(_decide(look, cluster)) == ("Provisioned", False, "CapacityIsNotFound")
    once = _request(2, "Accepted", kind=CHECK, parameters={"noRetry": "true"})
    assert _condition(_decide(once, cluster)) == ("Failed", True, "CapacityIsNotFound")
    assert _decide(_request(2, "Accepted", "Failed", kind=CHECK), cluster) is None


def test_requests_of_another_cloud_are_ignored() -> None:
    """AKS ignores requests of GKE's queued class."""
    assert _decide(_request(1, kind=QUEUED), snapshot(POOL)) is None
