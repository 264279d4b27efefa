"""ProvisioningRequests: queued ones of GKE to the end of their nodes, and the cluster autoscaler's own kinds.

test_autoscaler_requests.py compares the answers to best-effort-atomic and check-capacity with those of the
real cluster-autoscaler.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from ebbtide.autoscaler.backoff import NodeSettings
from ebbtide.autoscaler.nodes import Autoscaling
from ebbtide.autoscaler.provisioning_requests import decide, ordered, run_seconds
from ebbtide.autoscaler.scale_up import expansion_options, scale_up
from ebbtide.autoscaler.scheduling import CONSUMES
from ebbtide.autoscaler.snapshot import (
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
from rehearsal.tests.unit.node_pool import a_gpu_pool, a_machine, a_pod, a_pool, backed_off, snapshot

POOL = a_gpu_pool("q", capacity="queued", maximum=4)
AKS = a_pool(cloud="aks", zones=("eastus-1", "eastus-2"), maximum=4)


def _request(count: int = 2, *conditions: str, **fields: Any) -> ProvisioningRequest:
    """A request for pods with a GPU, or of another kind for pods with three processors."""
    pod = a_pod(gpu=1) if fields.get("kind", QUEUED) == QUEUED else a_pod(cpu="3")
    given: dict[str, Any] = {
        "namespace": "default",
        "name": "r",
        "uid": "uid",
        "kind": QUEUED,
        "sets": (PodSet(pod, count),),
        "parameters": {},
        "conditions": frozenset(conditions),
    }
    return ProvisioningRequest(**{**given, **fields})


def _decide(
    request: ProvisioningRequest, cluster: ClusterSnapshot, backoff: Mapping[str, float] | None = None
) -> Decision:
    return decide(request, cluster, 0, backoff or {}, NodeSettings())


def _condition(verdict: Decision) -> tuple[str, bool, str]:
    """Kind, status and reason of a condition."""
    assert isinstance(verdict, RequestCondition)
    return verdict.kind, verdict.status, verdict.reason


def test_a_request_is_accepted_waits_and_is_provisioned_as_a_whole() -> None:
    """First a condition, then the queue, then all nodes at once in one zone, then what Kueue awaits."""
    assert _condition(_decide(_request(), snapshot(POOL)))[0] == "Accepted"
    waiting = _request(2, "Accepted")
    assert _decide(waiting, snapshot(POOL, now=599)) is None
    assert _decide(waiting, snapshot(POOL, now=600)) == Order(POOL, ("us-central1-a", "us-central1-a"))
    machines = tuple(a_machine(POOL, n, request="default/r") for n in range(2))
    half = snapshot(POOL, machines=(machines[0], machines[1].having(state="starting")), now=700)
    assert _decide(waiting, half) is None
    done = _decide(waiting, snapshot(POOL, machines=machines, now=700))
    assert _condition(done)[0] == "Provisioned"
    assert isinstance(done, RequestCondition)
    assert set(done.details) == {"ResizeRequestName"}


@pytest.mark.parametrize(
    ("count", "pool", "reason"),
    [
        (5, POOL, "NodepoolSizeReached"),
        (1, a_gpu_pool(), "NoQueuedNodepoolAvailable"),
        (
            1,
            a_pool("q", capacity="queued", maximum=4),
            "Resize requests without accelerators are not supported.",
        ),
    ],
)
def test_no_room_is_waited_for_and_too_much_fails(count: int, pool: Any, reason: str) -> None:
    """A request that others are before waits; one that no pool can ever hold fails, and one for machines
    without accelerators (GKE's TestProvReqGPUAndNodePool and TestProvReqGPUWithNonExistingNodePool)."""
    others = tuple(a_machine(POOL, n) for n in range(3))
    assert _decide(_request(2, "Accepted"), snapshot(POOL, machines=others, now=9999)) is None
    pod = a_pod(gpu=1) if pool.accelerator else a_pod()
    failed = _decide(_request(1, "Accepted", sets=(PodSet(pod, count),)), snapshot(pool, now=9999))
    assert isinstance(failed, RequestCondition)
    assert failed.kind == "Failed"
    assert reason in (failed.reason, failed.message)


def test_a_booking_expires_and_lost_capacity_is_revoked() -> None:
    """Nodes are kept for the request's pods until ten minutes after it was provisioned; capacity is revoked
    when the last node is gone; a failed request stays so."""
    machines = (a_machine(POOL, request="default/r"), a_machine(POOL, 1))
    request = _request(1, "Accepted", "Provisioned")
    over = _request(1, "Accepted", "Provisioned", "BookingExpired")
    assert _decide(request, snapshot(POOL, machines=machines, now=599)) is None
    expired = _decide(request, snapshot(POOL, machines=machines, now=600))
    assert _condition(expired)[0] == "BookingExpired"
    assert booked(snapshot(POOL, machines=machines, requests=(request,))) == {"q-0"}
    assert booked(snapshot(POOL, machines=machines, requests=(over,))) == frozenset()
    assert _decide(over, snapshot(POOL, machines=machines, now=9999)) is None
    assert _condition(_decide(over, snapshot(POOL, now=9999)))[0] == "CapacityRevoked"
    assert _decide(_request(1, "Accepted", "Failed"), snapshot(POOL, now=9999)) is None


@pytest.mark.parametrize(
    ("requested", "allowed", "expected"),
    [("600", 3600, 600), ("7200", 3600, 3600), ("600", None, 600), (None, 3600, 3600), (None, None, None)],
)
def test_a_run_ends_by_the_shorter_of_two_limits(
    requested: str | None, allowed: int | None, expected: float | None
) -> None:
    """The maximum run is the smaller of the request's and the pool's."""
    request = _request(1, parameters={"maxRunDurationSeconds": requested} if requested else {})
    assert run_seconds(request, POOL.having(max_run_seconds=allowed)) == expected


@pytest.mark.parametrize(
    ("backoff", "pool"),
    [
        (backed_off(AKS, 9), AKS),
        ({}, AKS.having(allocatable={"cpu": "2"})),
        ({}, AKS.having(autoscaled=False)),
    ],
)
def test_without_capacity_a_request_waits(backoff: Mapping[str, float], pool: Any) -> None:
    """A pool whose nodes did not come, a pod too large, a fixed pool: told once, never failed."""
    decision = _decide(_request(1, "Accepted", kind=ATOMIC), snapshot(pool), backoff)
    assert _condition(decision) == ("Provisioned", False, "CapacityIsNotFound")
    again = _request(1, "Accepted", kind=ATOMIC, denied=frozenset({"Provisioned"}))
    assert _decide(again, snapshot(pool, now=9e9), backed_off(AKS, 1e10)) is None
    assert ordered(again, came=False) is None


def test_the_expander_chooses_among_pools_that_hold_all() -> None:
    """A pool that has room for a part is none of them."""
    small, large = AKS.having(name="small", maximum=1), AKS.having(name="large")
    autoscaling = Autoscaling(expander="priority")
    cluster = snapshot(small, large, autoscaling=autoscaling, priorities="50: [small]\n10: [large]")
    for count, name in ((1, "small"), (2, "large")):
        order = _decide(_request(count, "Accepted", kind=ATOMIC), cluster)
        assert isinstance(order, Order)
        assert order.pool.name == name


def test_capacity_is_kept_for_the_pods_to_come() -> None:
    """Other requests and other pods have none of it, and its nodes stay, until the request's pods are there
    or ten minutes have gone by."""
    machines = (a_machine(AKS),)
    done = _request(1, "Accepted", "Provisioned", kind=ATOMIC)
    other = _request(1, "Accepted", name="other", uid="other", kind=ATOMIC)
    kept = snapshot(AKS, machines=machines, requests=(done, other))
    assert isinstance(_decide(other, kept), Order)
    assert booked(kept) == {"cpu-0"}
    stranger = snapshot(AKS, machines=machines, requests=(done,), pods=(a_pod(cpu="2"),))
    growth, _ = scale_up(stranger, list(expansion_options(stranger, {})))
    assert growth is not None
    own = a_pod("r-0", cpu="3", annotations={CONSUMES[0]: "r"}, node="cpu-0", phase="Running")
    assert booked(snapshot(AKS, machines=machines, requests=(done,), pods=(own,))) == frozenset()
    assert _decide(done, kept) is None
    over = _decide(done, snapshot(AKS, machines=machines, now=600))
    assert _condition(over) == ("BookingExpired", True, "CapacityReservationTimeExpired")


def test_requests_that_are_not_answered() -> None:
    """A check with `noRetry` fails at once, a failed one stays so, and AKS ignores GKE's queued class."""
    cluster = snapshot(AKS, machines=(a_machine(AKS),))
    once = _request(2, "Accepted", kind=CHECK, parameters={"noRetry": "true"})
    assert _condition(_decide(once, cluster)) == ("Failed", True, "CapacityIsNotFound")
    assert _decide(_request(2, "Accepted", "Failed", kind=CHECK), cluster) is None
    assert _decide(_request(1), snapshot(AKS)) is None
