"""A snapshot of a cluster: nodes, pods, their controllers, workloads and volumes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ebbtide.clients.kubernetes import Api, Object
from ebbtide.values.kueue_api import API_PATH

_CONTROLLERS: Final = {
    "Job": "/apis/batch/v1/jobs",
    "ReplicaSet": "/apis/apps/v1/replicasets",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/jobsets",
    "TrainJob": "/apis/trainer.kubeflow.org/v1alpha1/trainjobs",
}
"""Kinds of controllers between a pod and the object that the user created."""

_WORKLOADS: Final = f"{API_PATH}/workloads"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Objects of a cluster.

    Attributes:
        nodes: the nodes.
        pods: the pods.
        controllers: controllers, by kind.
        workloads: Kueue's Workloads.
        volumes: the PersistentVolumes.
    """

    nodes: tuple[Object, ...] = ()
    pods: tuple[Object, ...] = ()
    controllers: Mapping[str, tuple[Object, ...]] = field(default_factory=dict[str, tuple[Object, ...]])
    workloads: tuple[Object, ...] = ()
    volumes: tuple[Object, ...] = ()


def take(api: Api) -> Snapshot:
    """Take a snapshot. A kind that is not installed has no objects.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    return Snapshot(
        nodes=_list(api, "/api/v1/nodes"),
        pods=_list(api, "/api/v1/pods"),
        controllers={kind: _list(api, path) for kind, path in _CONTROLLERS.items()},
        workloads=_list(api, _WORKLOADS),
        volumes=volumes(api),
    )


def volumes(api: Api) -> tuple[Object, ...]:
    """List the PersistentVolumes.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    return _list(api, "/api/v1/persistentvolumes")


def _list(api: Api, path: str) -> tuple[Object, ...]:
    # From the API server's cache (resourceVersion 0), which avoids a read of all pods from etcd.
    items: Any = (api.find(path, resourceVersion="0") or {}).get("items")
    return tuple(items or ())
