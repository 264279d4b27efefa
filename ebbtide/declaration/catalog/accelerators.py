"""Accelerator types: vendors, resources, TPU topologies, and partitions of GPUs."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from ebbtide.declaration.catalog.machines import AMD64
from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.values.cloud_kind import CloudKind

NVIDIA: Final = "nvidia"
AMD: Final = "amd"
_PASCAL: Final = ("nvidia-tesla-p4", "nvidia-tesla-p100")
"""GPUs without code in PyTorch's builds for CUDA 12.8 (pytorch/test-infra#7046, 2025-08)."""


def is_tpu(accelerator: str) -> bool:
    """Return whether an accelerator type is a TPU: part of its machine, without a driver to install."""
    return accelerator.startswith("tpu")


def vendor(accelerator: str) -> str:
    """Return the vendor of an accelerator type, as its name begins: `nvidia`, `amd`, or `google` for TPUs;
    empty for any other."""
    prefix = accelerator.partition("-")[0]
    return "google" if is_tpu(accelerator) else prefix if prefix in (NVIDIA, AMD) else ""


def resource_name(accelerator: str) -> str:
    """Return the resource that a pod requests for an accelerator type, which is also the key of GKE's taint:
    the name of the vendor's device plugin (NVIDIA/k8s-device-plugin and ROCm/k8s-device-plugin, 2026)."""
    return "google.com/tpu" if is_tpu(accelerator) else f"{vendor(accelerator) or NVIDIA}.com/gpu"


def default_image(accelerator: str, architecture: str) -> str:
    """Return the image, pinned by digest, of work that names none; empty for accelerators without one.

    It is Python's for no accelerator, and PyTorch's for NVIDIA's GPUs on amd64. No digest of Google's JAX
    images for TPUs is published.

    Args:
        accelerator: accelerator type; empty for none.
        architecture: architecture of the nodes.
    """
    if not accelerator:
        return PINS["image-python"].version
    has_image = (architecture, vendor(accelerator)) == (AMD64, NVIDIA) and accelerator not in _PASCAL
    return PINS["image-pytorch"].version if has_image else ""


def _parts(name: str) -> set[str]:
    """Return the distinguishing parts of an accelerator's name: model and memory."""
    return set(name.lower().replace("_", "-").split("-")) - {NVIDIA, AMD, "tesla"}


def short_for(written: str, known: Iterable[str]) -> list[str]:
    """Return the accelerators that match a short name such as `t4` or `a100`."""
    parts = _parts(written)
    return [name for name in known if parts and parts <= _parts(name)]


@dataclass(frozen=True, slots=True)
class TpuTopologies:
    """The topologies of a TPU generation.

    Attributes:
        listed: the topologies that are listed, by their chips.
        multiples_of: every dimension of the other topologies is a multiple of it; None if there are none.
        max_chips: maximum number of chips of those.
        is_sorted: True if no dimension of those is smaller than the one before it.
    """

    listed: tuple[str, ...]
    multiples_of: int | None
    max_chips: int
    is_sorted: bool

    def has(self, topology: str) -> bool:
        """Return whether there is such a topology."""
        sizes = [int(part) for part in topology.split("x")]
        if topology in self.listed or self.multiples_of is None:
            return topology in self.listed
        return (
            len(sizes) == self.listed[0].count("x") + 1
            and all(size % self.multiples_of == 0 for size in sizes)
            and math.prod(sizes) <= self.max_chips
            and (not self.is_sorted or sizes == sorted(sizes))
        )


@cache
def _tpu_topologies() -> dict[str, TpuTopologies]:
    return {
        row["accelerator"]: TpuTopologies(
            tuple(row["topologies"].split()),
            int(row["multiples_of"]) if row["multiples_of"] else None,
            int(row["max_chips"] or 0),
            row["sorted"] == "yes",
        )
        for row in rows("tpu_topologies")
    }


def tpu_topologies(accelerator: str) -> TpuTopologies | None:
    """Return the topologies of a TPU type; None if unknown."""
    return _tpu_topologies().get(accelerator)


def one_host_topology(accelerator: str, chips: int) -> str:
    """Return the topology of a single-node TPU slice, the listed one with as many chips as a node; empty if
    unknown (GoogleCloudPlatform/cluster-autoscaler@7d250507,
    pkg/cloudprovider/gke/machinetypes/deprecated_tpu_config.go, singleHostTopologyMap)."""
    known = tpu_topologies(accelerator)
    return next((topology for topology in known.listed if chips_of(topology) == chips), "") if known else ""


def chips_of(topology: str) -> int:
    """Return the number of chips of a TPU topology, such as 16 for `4x4`."""
    return math.prod(int(part) for part in topology.split("x"))


@cache
def partitions(cloud: CloudKind, accelerator: str) -> Mapping[str, int]:
    """Return the number of instances of a divided GPU, by the cloud's name of the partition; empty if it
    cannot be divided."""
    return {
        row["partition"]: int(row["instances"])
        for row in rows("partitions")
        if (row["cloud"], row["accelerator"]) == (cloud.value, accelerator)
    }
