"""Properties of accelerator types."""

import math
from collections.abc import Iterable


def is_tpu(accelerator: str) -> bool:
    """Return whether an accelerator type is a TPU: part of its machine, without a driver to install."""
    return accelerator.startswith("tpu-")


def resource_name(accelerator: str) -> str:
    """Return the resource that a pod requests for an accelerator type, which is also the key of GKE's
    taint."""
    return "google.com/tpu" if is_tpu(accelerator) else "nvidia.com/gpu"


def _parts(name: str) -> set[str]:
    """Return the distinguishing parts of an accelerator's name: model and memory."""
    return set(name.lower().replace("_", "-").split("-")) - {"nvidia", "tesla"}


def short_for(written: str, known: Iterable[str]) -> list[str]:
    """Return the accelerators that match a short name such as `t4` or `a100`."""
    parts = _parts(written)
    return [name for name in known if parts and parts <= _parts(name)]


_ONE_HOST = {
    ("tpu-v5-lite-podslice", 1): "1x1",
    ("tpu-v5-lite-podslice", 4): "2x2",
    ("tpu-v5-lite-podslice", 8): "2x4",
    ("tpu-v6e-slice", 1): "1x1",
    ("tpu-v6e-slice", 4): "2x2",
    ("tpu-v6e-slice", 8): "2x4",
}
"""Topology of a single-node slice, by type and chips (GoogleCloudPlatform/cluster-autoscaler@7d250507,
pkg/cloudprovider/gke/machinetypes/deprecated_tpu_config.go, singleHostTopologyMap)."""


def one_host_topology(accelerator: str, chips: int) -> str:
    """Return the topology of a single-node TPU slice; empty if unknown."""
    return _ONE_HOST.get((accelerator, chips), "")


def chips_of(topology: str) -> int:
    """Return the number of chips of a TPU topology, such as 16 for `4x4`."""
    return math.prod(int(part) for part in topology.split("x"))
