"""The clouds, in a module that the command line imports for every `--help`."""

from enum import StrEnum


class CloudKind(StrEnum):
    """The managed Kubernetes of a cloud, by the name that the declaration gives it."""

    GKE = "gke"
    AKS = "aks"
