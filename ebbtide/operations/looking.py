"""A look at a cluster: what there is of pods, of what makes them, and of volumes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ebbtide.kubernetes_api import Api, Object

_MAKERS: Final = {
    "Job": "/apis/batch/v1/jobs",
    "ReplicaSet": "/apis/apps/v1/replicasets",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
    "TrainJob": "/apis/trainer.kubeflow.org/v1alpha1/trainjobs",
}
"""Kinds that make pods, or make what makes them: those between a pod and what people know it by."""

_WORKLOADS: Final = "/apis/kueue.x-k8s.io/v1beta2/workloads"


@dataclass(frozen=True, slots=True)
class Look:
    """What there is on a cluster.

    Attributes:
        nodes: the nodes.
        pods: the pods.
        makers: objects that make pods, by kind.
        workloads: Kueue's.
        volumes: the PersistentVolumes.
    """

    nodes: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()
    makers: Mapping[str, tuple[Object, ...]] = field(default_factory=dict[str, tuple[Object, ...]])
    workloads: tuple[Object, ...] = ()
    volumes: tuple[Object, ...] = ()


def look(api: Api) -> Look:
    """Look once. A kind that is not installed has no objects.

    Raises:
        ApiError: the API server does not answer, or one may not look.
    """
    return Look(
        nodes=_all(api, "/api/v1/nodes"),
        pods=_all(api, "/api/v1/pods"),
        makers={kind: _all(api, path) for kind, path in _MAKERS.items()},
        workloads=_all(api, _WORKLOADS),
        volumes=volumes(api),
    )


def volumes(api: Api) -> tuple[Object, ...]:
    """The PersistentVolumes.

    Raises:
        ApiError: the API server does not answer, or one may not look.
    """
    return _all(api, "/api/v1/persistentvolumes")


def _all(api: Api, path: str) -> tuple[Object, ...]:
    # From the API server's memory (resourceVersion 0): many pods need not be read from disk.
    found: Any = (api.find(path, resourceVersion="0") or {}).get("items")
    return tuple(found or ())
