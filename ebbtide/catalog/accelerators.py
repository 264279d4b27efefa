"""What follows from the type of an accelerator."""


def is_tpu(accelerator: str) -> bool:
    """Whether an accelerator type is a TPU: part of its machine, without a driver to install."""
    return accelerator.startswith("tpu-")


def resource_name(accelerator: str) -> str:
    """The resource that a pod requests for an accelerator type, which is also the key of GKE's taint."""
    return "google.com/tpu" if is_tpu(accelerator) else "nvidia.com/gpu"
