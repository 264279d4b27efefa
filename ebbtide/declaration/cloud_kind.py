"""Clouds, in a small module, since the command line imports it for every `--help`."""

from enum import StrEnum


class CloudKind(StrEnum):
    """The managed Kubernetes of a cloud, by its name in the declaration."""

    GKE = "gke"
    AKS = "aks"
