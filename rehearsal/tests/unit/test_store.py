"""State of the fake cloud: shared, persistent, and with faults that strike the requested number of times."""

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ebbtide_rehearsal.cloud.store import Clock, InjectedFault, Resource, Store

BUCKET = Resource("gcp", "b/one", "gcp:storage/bucket:Bucket", "urn", {"a": 1}, {"a": 1, "b": [None]})


def test_what_is_put_is_there_for_everyone(tmp_path: Path) -> None:
    """A second opening of the file reads what the first has written, and uses the same clock."""
    store, other = Store(tmp_path / "s", speed=60), Store(tmp_path / "s")
    store.put(BUCKET)
    assert other.get("gcp", "b/one") == BUCKET
    assert other.get("azure-native", "b/one") is None
    assert other.clock == store.clock
    assert other.remove("gcp", "b/one")
    assert not store.remove("gcp", "b/one")


def test_resources_are_found_by_cloud_and_by_type(tmp_path: Path) -> None:
    """Each of the two narrows what is listed."""
    store = Store(tmp_path / "s")
    other = Resource("gcp", "b/two", "gcp:storage/object:Object")
    third = Resource("nodes", "b/two", "x")
    for resource in (third, other, BUCKET):
        store.put(resource)
    assert store.resources() == [BUCKET, other, third]
    assert store.resources("gcp") == [BUCKET, other]
    assert store.resources("gcp", "gcp:storage/object:Object") == [other]
    assert store.resources(kind="x") == [third]


@given(times=st.integers(1, 5), attempts=st.integers(0, 8))
def test_a_fault_strikes_as_often_as_it_was_asked_for(
    tmp_path_factory: pytest.TempPathFactory, times: int, attempts: int
) -> None:
    """An injected fault occurs the given number of times, or until it is removed."""
    store = Store(tmp_path_factory.mktemp("s") / "s")
    store.inject(InjectedFault("slow", "create *", times))
    struck = [store.strike("slow", "create pool") is not None for _ in range(attempts)]
    assert struck == [number < times for number in range(attempts)]


def test_a_fault_strikes_only_what_it_is_meant_for_until_it_is_lifted(tmp_path: Path) -> None:
    """Kind and target decide; lifting ends it."""
    store = Store(tmp_path / "s")
    number = store.inject(InjectedFault("no-stock", "t4-*", details={"why": "sold out"}))
    assert store.strike("no-stock", "cpu") is None
    assert store.strike("reclaim", "t4-spot") is None
    assert store.strike("no-stock", "cpu", "t4-spot") == InjectedFault(
        "no-stock", "t4-*", None, {"why": "sold out"}
    )
    store.remove_fault(number)
    assert store.strike("no-stock", "t4-spot") is None


def test_threads_that_strike_at_once_never_share_a_stroke(tmp_path: Path) -> None:
    """The fault strikes exactly its number of times over all threads."""
    store = Store(tmp_path / "s")
    store.inject(InjectedFault("api-error", times=5))
    struck: list[bool] = []

    def strike() -> None:
        struck.extend(store.strike("api-error", "x") is not None for _ in range(4))

    threads = [threading.Thread(target=strike) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(struck) == 5


def test_the_timeline_is_in_order_and_in_simulated_time(tmp_path: Path) -> None:
    """Events are numbered as they come; `after` and `kind` narrow them."""
    store = Store(tmp_path / "s", speed=1000)
    store.log_event("node-added", "A node.", node="n1")
    store.log_event("node-removed", "No node.", node="n1")
    first, second = store.events()
    assert (first.kind, first.facts, second.text) == ("node-added", {"node": "n1"}, "No node.")
    assert first.at <= second.at <= store.clock.now()
    assert store.events(after=first.number) == [second]
    assert store.events(kind="node-added") == [first]


@given(speed=st.floats(1, 600), seconds=st.floats(0, 1e6))
def test_the_clock_runs_so_many_times_as_fast(speed: float, seconds: float) -> None:
    """Simulated seconds are those of the wall clock times the speed, and convert back."""
    clock = Clock(0.0, speed, wall=lambda: seconds)
    assert clock.now() == pytest.approx(seconds * speed)
    assert clock.real(clock.now()) == pytest.approx(seconds)
