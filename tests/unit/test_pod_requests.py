"""Requests of pods, as the scheduler counts them, and shares of nodes."""

from decimal import Decimal
from typing import Any

import pytest

from ebbtide.values.pod_requests import node_share, pod_requests

_GPU = "nvidia.com/gpu"


def _container(cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


_SIDECAR = {"restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        ({"containers": [_container("1"), _container("500m")]}, "1.5"),
        ({"containers": [_container("1")], "initContainers": [_container("500m")]}, "1"),
        ({"containers": [_container("1")], "initContainers": [_container("3"), _container("2")]}, "3"),
        ({"containers": [_container("1")], "initContainers": [_container("2", **_SIDECAR)]}, "3"),
        (
            {
                "containers": [_container("1")],
                "initContainers": [_container("2", **_SIDECAR), _container("3")],
            },
            "5",
        ),
        (
            {
                "containers": [_container("1")],
                "initContainers": [_container("3"), _container("1500m", **_SIDECAR)],
            },
            "3",
        ),
        ({"containers": [_container("1")], "overhead": {"cpu": "250m"}}, "1.25"),
        ({"containers": [_container("10m")], "resources": {"requests": {"cpu": "7"}}}, "7"),
        (
            {
                "containers": [_container("1")],
                "initContainers": [_container("9")],
                "resources": {"requests": {"cpu": "7"}},
                "overhead": {"cpu": "1"},
            },
            "8",
        ),
        ({"containers": [{"name": "c"}], "resources": {"limits": {"cpu": "7"}}}, "7"),
        ({"containers": [_container("1")], "resources": {"limits": {"cpu": "7"}}}, "1"),
        ({"containers": [{"name": "c", "resources": {"limits": {"cpu": "2"}}}]}, "2"),
    ],
)
def test_requests_are_counted_as_the_scheduler_does(spec: dict[str, Any], cpu: str) -> None:
    """Containers with sidecars, or the largest step before them, unless the pod has its own; and overhead."""
    assert pod_requests(spec) == {"cpu": Decimal(cpu)}


def test_requests_of_a_pod_leave_other_resources_to_its_containers() -> None:
    """Accelerators stand at containers, while the pod's own CPU and memory replace theirs."""
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {_GPU: 2}}}
    spec = {"containers": [container], "resources": {"requests": {"memory": "4Gi"}}}
    assert pod_requests(spec) == {"cpu": 1, _GPU: 2, "memory": 4 << 30}


_NODE = {"cpu": Decimal(8), "memory": Decimal(32), _GPU: Decimal(4)}


@pytest.mark.parametrize(
    ("requests", "accelerator", "share"),
    [
        ({"cpu": Decimal(4), "memory": Decimal(8)}, "", 0.375),
        ({"cpu": Decimal(8)}, "", 0.5),
        ({"cpu": Decimal(80), "memory": Decimal(320)}, "", 1),
        ({"cpu": Decimal(8), _GPU: Decimal(1)}, _GPU, 0.25),
        ({"cpu": Decimal(8)}, _GPU, 0),
        ({_GPU: Decimal(1)}, "google.com/tpu", None),
    ],
)
def test_the_share_of_a_node(requests: dict[str, Decimal], accelerator: str, share: float | None) -> None:
    """A pod has its share of the accelerators, or the mean of its shares of CPU and memory."""
    assert node_share(requests, _NODE, accelerator) == share
