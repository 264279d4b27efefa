"""The queues of a cluster, declared or derived."""

from typing import Any

import pytest

from ebbtide.declaration.model import Cluster, declare
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
