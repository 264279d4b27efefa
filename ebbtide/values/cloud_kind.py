"""Clouds, in a small module, since the command line imports it for every `--help`."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar, assert_never

_T = TypeVar("_T")


class CloudKind(StrEnum):
    """The managed Kubernetes of a cloud, by its name in the declaration."""

    GKE = "gke"
    AKS = "aks"


def by_cloud(*, gke: _T, aks: _T) -> Mapping[CloudKind, _T]:
    """Return a table with a value for each cloud: without one of a further cloud, it is a type error."""

    def value(cloud: CloudKind) -> _T:
        match cloud:
            case CloudKind.GKE:
                return gke
            case CloudKind.AKS:
                return aks
            case _:
                assert_never(cloud)

    return {cloud: value(cloud) for cloud in CloudKind}
