"""Reservations that a stack requests for a pool: the request, its use, its price, and changes of it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pulumi
import pytest

from components.gke import NodePool, NodePoolArgs, node_pool
from ebbtide.analysis.charges import charges, rates_of
from ebbtide.analysis.preview.build_preview import preview_of
from ebbtide.analysis.preview.words import cost_notes
from ebbtide.analysis.reading.pools import read_clusters, read_pools
from ebbtide.analysis.recording.program import ProgramError
from ebbtide.analysis.recording.record import record
from ebbtide.declaration.catalog.amounts import Amount, total
from ebbtide.declaration.model.capacity import Reservation
from ebbtide.declaration.model.pool import Nodes, Pool
from ebbtide.declaration.model.site import Site
from ebbtide.values import clock
from ebbtide.values.cloud_kind import CloudKind
from tests.declarations import GKE, Declaration, only
from tests.synth import reviewed, synth
from tests.unit.catalog.test_prices import known

REQUEST = "gcp:compute/futureReservation:FutureReservation"
BEGIN, END = datetime(2026, 12, 1, 8, tzinfo=UTC), datetime(2026, 12, 8, 8, tzinfo=UTC)
MACHINE = "a3-megagpu-8g"


def _declared(machine: str = MACHINE, most: int = 3, **capacity: Any) -> Declaration:
    period = {"from": "2026-12-01T08:00Z", "until": "2026-12-08T08:00Z"} | capacity
    return only(GKE, machine=machine, nodes={"max": most}, capacity={"kind": "reservation", **period})


def test_a_pool_of_its_own_needs_the_name() -> None:
    """A standalone pool with a period is refused without the reservation that its program requests."""
    pool = Pool(
        name="work",
        machine=MACHINE,
        nodes=Nodes(max=2),
        capacity=Reservation(from_=BEGIN, until="2026-12-08T08:00Z"),
    )
    site = Site("gke", "us-central1-a")

    def program(name: str | None) -> None:
        NodePool("work", NodePoolArgs(pool=pool, site=site, cluster="c", project="p", reservation=name))

    with pytest.raises(ProgramError, match="future_reservation"):
        record(lambda: program(None), project="p", stack="s")
    (made,) = record(lambda: program("held"), project="p", stack="s").of_type(
        "gcp:container/nodePool:NodePool"
    )
    assert made.inputs["nodeConfig"]["reservationAffinity"]["values"] == ["held"]  # type: ignore[index]


def test_the_price_of_the_period() -> None:
    """The reservation is billed from its begin to its end, used or not, at an estimate from the on-demand
    price; the nodes of its pool are billed for their disks alone."""
    recording, hourly = synth(_declared()), 3 * (known(CloudKind.GKE, "us-central1", MACHINE).on_demand or 0)
    found = charges(recording, read_clusters(recording), read_pools(recording))
    (reserved,) = [charge for charge in found if charge.whole]
    assert reserved.idle == Amount()
    assert reserved.maximum.known == pytest.approx(hourly)
    assert reserved.maximum.estimated == (f"{MACHINE} (calendar)",)
    assert reserved.whole is not None
    assert reserved.whole.known == pytest.approx(hourly * 168)
    (pool,) = [charge for charge in found if charge.pool == "work"]
    assert pool.maximum.known == pytest.approx(3 * 100 * 0.1 / 730, rel=1e-5)
    rates = rates_of(recording)
    before, within, after = (
        rates.at({"system": 1}, time).known for time in (BEGIN - timedelta(1), BEGIN, END)
    )
    assert before == after
    assert within - before == pytest.approx(hourly)
    assert total(charge.idle for charge in found).known == pytest.approx(before)
    (words,) = dict(cost_notes(preview_of(recording)))["Reserved"]
    whole = f"{hourly * 168:,.0f}"
    assert f"2026-12-01 08:00 UTC to 2026-12-08 08:00 UTC: about ${whole} in 168 h" in words


@pytest.mark.parametrize(
    ("changed", "change"),
    [
        (
            _declared(until="2026-12-05T08:00Z"),
            "capacity.until from 2026-12-08T08:00:00Z to 2026-12-05T08:00:00Z",
        ),
        (
            _declared(MACHINE, 3, **{"from": "2026-12-02T08:00Z"}),
            "capacity.from from 2026-12-01T08:00:00Z to 2026-12-02",
        ),
        (_declared(most=4), "nodes.max from 3 to 4"),
        (_declared(machine="a3-highgpu-8g"), f"machine from {MACHINE} to a3-highgpu-8g"),
    ],
)
def test_a_changed_request_is_refused(changed: Declaration, change: str) -> None:
    """A change of a request, which Google Cloud refuses, fails a review before it fails an update."""
    review = reviewed(_declared(), changed)
    assert review.difference is not None
    (refusal,) = review.difference.refusals
    assert "can neither change nor cancel the requested reservation train-work" in refusal
    assert change in refusal
    assert review.verdict == "fail"


def test_a_removed_request_is_billed() -> None:
    """A review of a new request warns that it is final, and of a removed one that it is still billed."""
    for before, after, words in (
        (only(GKE, machine=MACHINE), _declared(), "can neither be changed nor cancelled"),
        (
            _declared(),
            only(GKE, machine=MACHINE),
            "is billed from 2026-12-01 08:00 UTC to 2026-12-08 08:00 UTC",
        ),
    ):
        review = reviewed(before, after)
        assert review.difference is not None
        assert [
            text
            for text in review.difference.consequences
            if "Reservation train-work" in text and words in text
        ]


@pytest.mark.parametrize(("hours", "is_refused"), [(86, True), (88, False)])
def test_a_late_request_is_refused(monkeypatch: pytest.MonkeyPatch, hours: int, *, is_refused: bool) -> None:
    """A request less than 87 hours before its begin is refused, with the earliest begin."""
    monkeypatch.setattr(clock, "now", lambda: BEGIN - timedelta(hours=hours))
    args = pulumi.ResourceHookArgs(
        urn="u",
        id="",
        name="n",
        type=REQUEST,
        new_inputs={"name": "train-work", "timeWindow": {"startTime": "2026-12-01T08:00:00Z"}},
    )
    if is_refused:
        with pytest.raises(node_pool.ReservationError, match="from: 2026-12-01T09:00Z or later"):
            node_pool.check_lead(args)
    else:
        node_pool.check_lead(args)
