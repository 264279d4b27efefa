"""The queues, free capacity and expiry of a cluster."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from ebbtide.declaration.catalog.resources import footprint
from ebbtide.declaration.model import expiry
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from ebbtide.declaration.model.rules.system_pool import largest_pod, system_pods
from tests.unit.model.cases import base, edited

_FOUR = {"name": "a100-two", "machine": "a2-highgpu-2g", "capacity": "queued", "nodes": {"max": 2}}


def _queues(changes: dict[str, Any], drops: list[str], cloud: str = "gke") -> dict[str, tuple[str, ...]]:
    """Names and pools of the queues, which are the same before and after completion."""
    written = edited(base(cloud), changes, drops)
    before, after = Cluster.model_validate(written).resolved_queues, declare(written).resolved_queues
    assert before == after
    return {queue.name: queue.pools for queue in before}


def test_declared_queues_are_taken_as_they_are() -> None:
    """Declared queues are the only ones."""
    assert _queues({}, []) == {"t4": ("t4-spot",), "a100": ("a100-queued",)}


def test_derived_queues_are_one_for_each_kind_of_hardware() -> None:
    """By default there is a queue for CPU pools and one for each accelerator type, in their order."""
    assert _queues({"pools[4]": _FOUR}, ["queues", "teams"]) == {
        "cpu": ("cpu-spot",),
        "t4": ("t4-spot",),
        "a100": ("a100-queued", "a100-two"),
    }


def test_arm_machines_have_a_queue_of_their_own() -> None:
    """An image for one architecture does not run on the other, so no derived queue has both."""
    arm = {"name": "arm", "machine": "c4a-standard-8", "nodes": {"max": 2}}
    queues = _queues({"pools[4]": arm}, ["queues", "teams"])
    assert (queues["cpu"], queues["cpu-arm64"]) == (("cpu-spot",), ("arm",))


def test_there_is_no_queue_over_nothing() -> None:
    """Without CPU pools there is no queue for them."""
    assert _queues({}, ["pools[1]", "queues", "teams"]) == {"t4": ("t4-spot",), "a100": ("a100-queued",)}


@pytest.mark.parametrize(
    ("machine", "name"), [("a2-ultragpu-1g", "a100-80gb"), ("ct6e-standard-4t", "tpu-v6e-slice")]
)
def test_a_queue_is_called_as_its_hardware(machine: str, name: str) -> None:
    """A derived queue has the accelerator type's name without its maker."""
    assert name in _queues({"pools[3].machine": machine}, ["queues", "teams"])


def test_without_kueue_there_are_no_queues() -> None:
    """A cluster that asks for no queueing has none."""
    assert _queues({}, [], "aks") == {}


def test_with_kueue_declared_there_are_queues() -> None:
    """The add-on alone is enough for the derived queues."""
    assert _queues({"addons": {"kueue": {}}}, [], "aks") == {"cpu": ("cpuspot",), "t4": ("t4spot",)}


def _cluster(**addons: object) -> Cluster:
    return declare(edited(base("aks"), {"addons": addons}, []))


def test_logs_are_counted_where_they_run() -> None:
    """Container insights has a pod on the system pool, and one on every node."""
    without, with_logs = _cluster(), _cluster(logs={})
    (_, before), (description, after) = system_pods(without), system_pods(with_logs)
    assert description == "the cluster's own pods and Container insights"
    assert after.cpu_m - before.cpu_m == footprint("logs").requests.cpu_m
    assert after.memory_mib - before.memory_mib == footprint("logs").requests.memory_mib
    for pool, bare in zip(with_logs.resolved_pools, without.resolved_pools, strict=True):
        mine, others = pool.daemon_requests, bare.daemon_requests
        assert mine.cpu_m - others.cpu_m == footprint("logs-node").requests.cpu_m
        assert mine.memory_mib - others.memory_mib == footprint("logs-node").requests.memory_mib


def test_the_largest_pod_is_the_largest_of_any() -> None:
    """The largest single pod of the cloud and of every installed add-on, not their sum."""
    assert largest_pod(_cluster()) == footprint("aks").most
    logged = largest_pod(_cluster(logs={}))
    assert logged == footprint("logs").most
    assert footprint("logs").most.holds(footprint("aks").most)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 11, 22, 20, 0, tzinfo=UTC), "2026-11-22T20:00Z"),
        (datetime(2026, 11, 22, 20, 0, 1, tzinfo=UTC), "2026-11-22T20:01Z"),
        (datetime(2026, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), "2027-01-01T00:00Z"),
        (datetime(2026, 11, 22, 22, 0, tzinfo=timezone(timedelta(hours=2))), "2026-11-22T20:00Z"),
    ],
)
def test_a_time_is_utc_and_rounded_up(moment: datetime, text: str) -> None:
    """To the minute, so that nothing expires early."""
    assert expiry.text(moment) == text
    parsed = expiry.parsed(text)
    assert parsed is not None
    assert timedelta() <= parsed - moment < timedelta(minutes=1)


def test_expiry_follows_the_first_up() -> None:
    """Before it, the text is the same at any time."""
    assert expiry.expiry("2026-11-22T20:30Z", 8) == "2026-11-23T04:30Z"
    before = expiry.expiry(expiry.FIRST_UP, 8)
    assert before == "8h-after-the-first-up"
    assert expiry.parsed(before) is None


@pytest.mark.parametrize("expires", ["2026-11-23T04:30Z", "8h-after-the-first-up"])
def test_a_label_has_the_characters_of_both_clouds(expires: str) -> None:
    """Google Cloud: lower-case letters, digits, `_` and `-`, up to 63."""
    assert re.fullmatch(r"[a-z0-9_-]{1,63}", expiry.label(expires))


def test_labels_sort_as_the_times_do() -> None:
    """Labels sort like their times, so that a cloud's filter finds expired resources."""
    start = datetime(2026, 12, 31, 22, 30, tzinfo=UTC)
    labels = [expiry.label(expiry.text(start + timedelta(hours=hour))) for hour in range(0, 400, 7)]
    assert labels == sorted(labels)
