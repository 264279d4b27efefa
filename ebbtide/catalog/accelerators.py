"""What follows from the type of an accelerator."""

from collections.abc import Iterable


def is_tpu(accelerator: str) -> bool:
    """Whether an accelerator type is a TPU: part of its machine, without a driver to install."""
    return accelerator.startswith("tpu-")


def resource_name(accelerator: str) -> str:
    """The resource that a pod requests for an accelerator type, which is also the key of GKE's taint."""
    return "google.com/tpu" if is_tpu(accelerator) else "nvidia.com/gpu"


def _parts(name: str) -> set[str]:
    """The parts of an accelerator's name that tell it from others: model and memory."""
    return set(name.lower().replace("_", "-").split("-")) - {"nvidia", "tesla"}


def short_for(written: str, known: Iterable[str]) -> list[str]:
    """The accelerators that a short name such as `t4` or `a100` stands for."""
    parts = _parts(written)
    return [name for name in known if parts and parts <= _parts(name)]
