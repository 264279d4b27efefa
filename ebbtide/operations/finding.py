"""Inspection of a stack's cluster before it is destroyed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ebbtide.kubernetes_api import Api, ApiError, KubeconfigError, MissingClientError
from ebbtide.operations import looking, volumes
from ebbtide.operations.state import State
from ebbtide.operations.volumes import Volume
from ebbtide.operations.work import Work, work
from ebbtide.placement import Profile, ProfileError

_UNSEEN = "what runs on it is not known"


@dataclass(frozen=True, slots=True)
class Findings:
    """The state of a cluster before a destroy.

    Attributes:
        work: work that would end with the stack.
        volumes: the cluster's volumes.
        trouble: the reason that the cluster is unreachable; empty if it was reached.
        api: the cluster; None if it is unreachable.
    """

    work: tuple[Work, ...] = ()
    volumes: tuple[Volume, ...] = ()
    trouble: str = ""
    api: Api | None = None


def find(outputs: Mapping[str, Any], state: State) -> Findings:
    """Inspect a stack's cluster, if it is reachable.

    Args:
        outputs: the stack's outputs.
        state: the stack's state.
    """
    if "kubeconfig" not in outputs:
        return Findings(trouble=f"The stack has no output `kubeconfig`: {_UNSEEN}.")
    try:
        profile = Profile.load(outputs.get("placementProfile") or {})
    except ProfileError as error:
        return Findings(
            trouble=f"The stack's output `placementProfile` cannot be read, and {_UNSEEN}: {error}"
        )
    try:
        api = Api.of_kubeconfig(_mapping(outputs["kubeconfig"]))
        seen = looking.look(api)
    except ApiError as error:
        doing = "does not answer" if error.unanswered else "does not show what is there"
        return Findings(trouble=f"The cluster {doing}, and {_UNSEEN}: {error}")
    except (KubeconfigError, MissingClientError) as error:
        return Findings(trouble=f"The cluster cannot be asked, and {_UNSEEN}: {error}")
    return Findings(
        work=tuple(work(seen, profile, state)),
        volumes=tuple(map(volumes.read, seen.volumes)),
        api=api,
    )


def left(found: Findings, state: State) -> list[Volume]:
    """Return the volumes whose disks outlive the destroyed stack."""
    return volumes.left(found.volumes, _now(found, state), state)


def _now(found: Findings, state: State) -> list[Volume] | None:
    """Return the current volumes; None if the cluster is unreachable."""
    if found.api is None or state.owns_cluster:
        return None
    try:
        return list(map(volumes.read, looking.volumes(found.api)))
    except ApiError:
        return None


def _mapping(kubeconfig: Any) -> Mapping[str, Any]:
    """Parse a kubeconfig, which may be JSON; empty if malformed."""
    try:
        found = json.loads(kubeconfig) if isinstance(kubeconfig, str) else kubeconfig
    except ValueError:
        raise KubeconfigError("The output `kubeconfig` is not JSON") from None
    if not isinstance(found, dict):
        raise KubeconfigError("The output `kubeconfig` is no object")
    return found  # pyright: ignore[reportUnknownVariableType] - JSON
