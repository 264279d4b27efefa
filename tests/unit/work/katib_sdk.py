"""Katib's own models, which come with the kubeflow SDK."""

import warnings
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kubeflow_katib_api.models as katib_api  # pyright: ignore[reportMissingTypeStubs]  # it has none


def as_katib_reads(experiment: dict[str, Any]) -> dict[str, Any]:
    """An Experiment after Katib's own model has read it: fields that it does not know are gone."""
    model: Any = katib_api.V1beta1Experiment
    return model.from_dict(experiment).to_dict()
