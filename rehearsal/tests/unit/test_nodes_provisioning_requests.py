"""Queued ProvisioningRequests, from acceptance to the end of their nodes."""

import pytest

from ebbtide_rehearsal.cloud.node_pools.fleet import NodeSettings
from ebbtide_rehearsal.cloud.node_pools.provisioning_requests import decide, run_seconds
from ebbtide_rehearsal.cloud.node_pools.snapshot import (
    QUEUED,
    ClusterSnapshot,
    Decision,
    Order,
    PodSet,
    ProvisioningRequest,
    RequestCondition,
    booked,
)
from rehearsal.tests.unit.node_pool import a_gpu_pool, a_machine, a_pod, a_pool, snapshot

POOL = a_gpu_pool("q", capacity="queued", maximum=4)


def _request(count: int = 2, *conditions: str, **parameters: str) -> ProvisioningRequest:
    sets = (PodSet(a_pod(gpu=1), count),)
    return ProvisioningRequest("default", "r", "uid", QUEUED, sets, parameters, frozenset(conditions))


def _decide(request: ProvisioningRequest, cluster: ClusterSnapshot, since: float = 0) -> Decision:
    return decide(request, cluster, since, {}, NodeSettings())


def _kind(verdict: Decision) -> str:
    return verdict.kind if isinstance(verdict, RequestCondition) else ""


def test_a_request_is_accepted_waits_and_is_provisioned_as_a_whole() -> None:
    """First a condition, then the queue, then all nodes at once in one zone, then what Kueue awaits."""
    assert _kind(_decide(_request(), snapshot(POOL))) == "Accepted"
    waiting = _request(2, "Accepted")
    assert _decide(waiting, snapshot(POOL, now=599)) is None
    assert _decide(waiting, snapshot(POOL, now=600)) == Order(POOL, ("us-central1-a", "us-central1-a"))
    machines = tuple(a_machine(POOL, n, request="default/r") for n in range(2))
    half = snapshot(POOL, machines=(machines[0], machines[1].having(state="starting")), now=700)
    assert _decide(waiting, half) is None
    done = _decide(waiting, snapshot(POOL, machines=machines, now=700))
    assert isinstance(done, RequestCondition)
    assert done.kind == "Provisioned"
    assert set(done.details) == {"ResizeRequestName"}


def test_no_room_is_waited_for_and_too_much_fails() -> None:
    """A request that others are before waits; one that no pool can ever hold fails (GKE's
    TestProvReqGPUAndNodePool and TestProvReqGPUWithNonExistingNodePool).
    """
    others = tuple(a_machine(POOL, n) for n in range(3))
    assert _decide(_request(2, "Accepted"), snapshot(POOL, machines=others, now=9999)) is None
    too_big = _decide(_request(5, "Accepted"), snapshot(POOL, now=9999))
    assert isinstance(too_big, RequestCondition)
    assert (too_big.kind, too_big.reason) == ("Failed", "NodepoolSizeReached")
    none = _decide(_request(1, "Accepted"), snapshot(a_gpu_pool(), now=9999))
    assert isinstance(none, RequestCondition)
    assert (none.kind, none.reason) == ("Failed", "NoQueuedNodepoolAvailable")


def test_a_booking_expires_and_lost_capacity_is_revoked() -> None:
    """Ten minutes after it was provisioned, and when the last node is gone; a failed request stays so."""
    machines = (a_machine(POOL, request="default/r"),)
    request = _request(1, "Accepted", "Provisioned")
    assert _decide(request, snapshot(POOL, machines=machines, now=599)) is None
    assert _kind(_decide(request, snapshot(POOL, machines=machines, now=600))) == "BookingExpired"
    over = _request(1, "Accepted", "Provisioned", "BookingExpired")
    assert _decide(over, snapshot(POOL, machines=machines, now=9999)) is None
    assert _kind(_decide(over, snapshot(POOL, now=9999))) == "CapacityRevoked"
    assert _decide(_request(1, "Accepted", "Failed"), snapshot(POOL, now=9999)) is None


def test_machines_without_accelerators_are_not_queued() -> None:
    """GKE takes the request, and fails it when it is to be provisioned."""
    pool = a_pool("q", capacity="queued", maximum=4)
    request = ProvisioningRequest(
        "default", "r", "uid", QUEUED, (PodSet(a_pod(), 1),), {}, frozenset({"Accepted"})
    )
    verdict = _decide(request, snapshot(pool, now=600))
    assert isinstance(verdict, RequestCondition)
    assert (verdict.kind, verdict.message) == (
        "Failed",
        "Resize requests without accelerators are not supported.",
    )


def test_nodes_wait_for_the_pods_of_their_request() -> None:
    """Nodes are reserved for the pods of their request until the booking expires."""
    machines = (a_machine(POOL, request="default/r"), a_machine(POOL, 1))
    before = snapshot(POOL, machines=machines, requests=(_request(1, "Accepted", "Provisioned"),))
    after = snapshot(POOL, machines=machines, requests=(_request(1, "Provisioned", "BookingExpired"),))
    assert booked(before) == {"q-0"}
    assert booked(after) == frozenset()


@pytest.mark.parametrize(
    ("requested", "allowed", "expected"),
    [("600", 3600, 600), ("7200", 3600, 3600), ("600", None, 600), (None, 3600, 3600), (None, None, None)],
)
def test_a_run_ends_by_the_shorter_of_two_limits(
    requested: str | None, allowed: int | None, expected: float | None
) -> None:
    """The maximum run is the smaller of the request's and the pool's."""
    request = _request(1, **({"maxRunDurationSeconds": requested} if requested else {}))
    assert run_seconds(request, POOL.having(max_run_seconds=allowed)) == expected
