"""Inspection of a stack's cluster before it is destroyed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ebbtide.clients.kubernetes import Api, ApiError
from ebbtide.declaration.catalog import CloudKind
from ebbtide.operations import access, snapshot, user_objects, volumes
from ebbtide.operations.errors import OperationError
from ebbtide.operations.state import State
from ebbtide.operations.user_objects import CloudNames, UserObject
from ebbtide.operations.volumes import Volume
from ebbtide.operations.work import Work, work

_UNKNOWN_WORK = "running work is unknown"


@dataclass(frozen=True, slots=True)
class Inspection:
    """The state of a cluster before a destroy.

    Attributes:
        work: work that would end with the stack.
        volumes: volumes of the cluster.
        error: reason why the cluster is unreachable; empty if it was reached.
        api: client of the cluster; None if it is unreachable.
        objects: users' objects that own cloud resources, in order of deletion.
        names: names of the cluster's cloud resources.
        is_unanswered: True if the API server does not answer.
    """

    work: tuple[Work, ...] = ()
    volumes: tuple[Volume, ...] = ()
    error: str = ""
    api: Api | None = None
    objects: tuple[UserObject, ...] = ()
    names: CloudNames = field(default_factory=CloudNames)
    is_unanswered: bool = False


def inspect(outputs: Mapping[str, Any], state: State) -> Inspection:
    """Inspect a stack's cluster, if it is reachable.

    Args:
        outputs: the stack's outputs.
        state: the stack's state.
    """
    try:
        api, profile = access.connected(outputs, _UNKNOWN_WORK)
        with access.reaching(_UNKNOWN_WORK):
            objects = snapshot.take(api)
            owned = user_objects.list_objects(api, CloudKind(profile.cloud), state)
            names = user_objects.cloud_names(api)
    except access.UnansweredError as error:
        return Inspection(error=str(error), is_unanswered=True)
    except OperationError as error:
        return Inspection(error=str(error))
    return Inspection(
        work=tuple(work(objects, profile, state)),
        volumes=tuple(map(volumes.read, objects.volumes)),
        api=api,
        objects=tuple(owned),
        names=names,
    )


def remaining_volumes(cluster: Inspection, state: State) -> list[Volume]:
    """Return the volumes whose disks outlive the destroyed stack."""
    return volumes.remaining(cluster.volumes, _current_volumes(cluster, state), state)


def volumes_of(api: Api) -> tuple[Volume, ...]:
    """Return the current volumes of a cluster.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    return tuple(map(volumes.read, snapshot.volumes(api)))


def _current_volumes(cluster: Inspection, state: State) -> list[Volume] | None:
    """Return the current volumes; None if the cluster is unreachable."""
    if cluster.api is None or state.owns_cluster:
        return None
    try:
        return list(volumes_of(cluster.api))
    except ApiError:
        return None
