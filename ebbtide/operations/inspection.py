"""Inspection of a stack's cluster before it is destroyed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ebbtide.kubernetes_api import Api, ApiError, KubeconfigError, MissingClientError
from ebbtide.operations import snapshot, volumes
from ebbtide.operations.state import State
from ebbtide.operations.volumes import Volume
from ebbtide.operations.work import Work, work
from ebbtide.placement import Profile, ProfileError

_UNKNOWN_WORK = "running work is unknown"


@dataclass(frozen=True, slots=True)
class Inspection:
    """The state of a cluster before a destroy.

    Attributes:
        work: work that would end with the stack.
        volumes: the cluster's volumes.
        error: the reason that the cluster is unreachable; empty if it was reached.
        api: the cluster; None if it is unreachable.
    """

    work: tuple[Work, ...] = ()
    volumes: tuple[Volume, ...] = ()
    error: str = ""
    api: Api | None = None


def inspect(outputs: Mapping[str, Any], state: State) -> Inspection:
    """Inspect a stack's cluster, if it is reachable.

    Args:
        outputs: the stack's outputs.
        state: the stack's state.
    """
    if "kubeconfig" not in outputs:
        return Inspection(error=f"The stack has no output `kubeconfig`: {_UNKNOWN_WORK}.")
    try:
        profile = Profile.load(outputs.get("placementProfile") or {})
    except ProfileError as error:
        return Inspection(
            error=f"The stack's output `placementProfile` is unreadable, and {_UNKNOWN_WORK}: {error}"
        )
    try:
        api = Api.of_kubeconfig(_parsed(outputs["kubeconfig"]))
        objects = snapshot.take(api)
    except ApiError as error:
        doing = "does not answer" if error.unanswered else "denies access"
        return Inspection(error=f"The cluster {doing}, and {_UNKNOWN_WORK}: {error}")
    except (KubeconfigError, MissingClientError) as error:
        return Inspection(error=f"The cluster is unreachable, and {_UNKNOWN_WORK}: {error}")
    return Inspection(
        work=tuple(work(objects, profile, state)),
        volumes=tuple(map(volumes.read, objects.volumes)),
        api=api,
    )


def remaining_volumes(cluster: Inspection, state: State) -> list[Volume]:
    """Return the volumes whose disks outlive the destroyed stack."""
    return volumes.remaining(cluster.volumes, _current_volumes(cluster, state), state)


def _current_volumes(cluster: Inspection, state: State) -> list[Volume] | None:
    """Return the current volumes; None if the cluster is unreachable."""
    if cluster.api is None or state.owns_cluster:
        return None
    try:
        return list(map(volumes.read, snapshot.volumes(cluster.api)))
    except ApiError:
        return None


def reach(outputs: Mapping[str, Any]) -> Api:
    """Return a client of a stack's cluster.

    Args:
        outputs: the stack's outputs.

    Raises:
        KubeconfigError: the output `kubeconfig` is missing or cannot be used.
        MissingClientError: the client is not installed.
    """
    return Api.of_kubeconfig(_parsed(outputs.get("kubeconfig")))


def _parsed(kubeconfig: Any) -> Mapping[str, Any]:
    """Parse a kubeconfig, which may be JSON; empty if malformed."""
    try:
        parsed = json.loads(kubeconfig) if isinstance(kubeconfig, str) else kubeconfig
    except ValueError:
        raise KubeconfigError("The output `kubeconfig` is not JSON") from None
    if not isinstance(parsed, dict):
        raise KubeconfigError("The output `kubeconfig` is no object")
    return parsed  # pyright: ignore[reportUnknownVariableType] - JSON
