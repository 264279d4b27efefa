"""The kubeflow SDK, which warns of its own deprecations as it is imported."""

import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kubeflow_trainer_api.models as trainer_api  # pyright: ignore[reportMissingTypeStubs]  # it has none
    from kubeflow.trainer import options
    from kubeflow.trainer.backends.kubernetes import utils
    from kubeflow.trainer.backends.kubernetes.backend import KubernetesBackend

__all__ = ["KubernetesBackend", "as_trainer_reads", "options", "resources_per_node"]


def resources_per_node(resources: dict[str, str]) -> dict[str, Any]:
    """Return the limits that the SDK's trainers make of their `resources_per_node`."""
    read: Any = utils.get_resources_per_node(resources)  # pyright: ignore[reportUnknownMemberType]
    return read.to_dict()["limits"]


def as_trainer_reads(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    """An object after Trainer's own model has read it: fields that it does not know are gone."""
    model: Any = getattr(trainer_api, f"TrainerV1alpha1{kind}")
    return model.from_dict(data).to_dict()
