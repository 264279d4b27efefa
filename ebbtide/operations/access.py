"""Access to the cluster of a stack, by its outputs."""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from ebbtide.clients.kubernetes import Api, ApiError, KubeconfigError, MissingClientError
from ebbtide.operations.errors import OperationError
from ebbtide.operations.state import State
from ebbtide.placement import Profile, ProfileError
from ebbtide.text import command_line


class UnansweredError(OperationError):
    """The cluster does not answer."""


@contextmanager
def reaching(consequence: str) -> Generator[None]:
    """Turn errors of a cluster's API into a sentence.

    Args:
        consequence: a clause about what is unknown or not done, such as `running work is unknown`.

    Raises:
        OperationError: the cluster does not answer (`UnansweredError`), or denies access.
    """
    try:
        yield
    except ApiError as error:
        if error.unanswered:
            raise UnansweredError(f"The cluster is unreachable, and {consequence}: {error}") from None
        raise OperationError(f"The cluster denies access, and {consequence}: {error}") from None
    except (KubeconfigError, MissingClientError) as error:
        raise OperationError(f"The cluster is unreachable, and {consequence}: {error}") from None


@contextmanager
def reaching_own(consequence: str, stack: str, state: State) -> Generator[None]:
    """As `reaching`, for the cluster of a stack, which may be asleep.

    Args:
        consequence: as for `reaching`.
        stack: the stack's name.
        state: its state.

    Raises:
        OperationError: as for `reaching`, with the command that wakes the stack.
    """
    try:
        with reaching(consequence):
            yield
    except UnansweredError as error:
        if not state.may_be_stopped:
            raise
        raise UnansweredError(f"{error}. {asleep(stack)}") from None


def asleep(stack: str) -> str:
    """Return advice about a cluster that does not answer because it sleeps."""
    return f"If it sleeps, wake it first with: {command_line('wake', stack)}"


def connected(outputs: Mapping[str, Any], consequence: str) -> tuple[Api, Profile]:
    """Return a client of the stack's cluster, which connects on first use, and the stack's profile.

    Args:
        outputs: the stack's outputs.
        consequence: as for `reaching`.

    Raises:
        OperationError: an output is missing or unusable.
    """
    if "kubeconfig" not in outputs:
        raise OperationError(f"The stack has no output `kubeconfig`: {consequence}.")
    try:
        profile = Profile.load(outputs.get("placementProfile") or {})
    except ProfileError as error:
        raise OperationError(
            f"The stack's output `placementProfile` is unreadable, and {consequence}: {error}"
        ) from None
    with reaching(consequence):
        return Api.of_kubeconfig(_parsed(outputs["kubeconfig"])), profile


def _parsed(kubeconfig: Any) -> Mapping[str, Any]:
    """Parse a kubeconfig, which may be JSON; empty if malformed."""
    try:
        parsed = json.loads(kubeconfig) if isinstance(kubeconfig, str) else kubeconfig
    except ValueError:
        raise KubeconfigError("The output `kubeconfig` is not JSON") from None
    if not isinstance(parsed, dict):
        raise KubeconfigError("The output `kubeconfig` is not an object")
    return parsed  # pyright: ignore[reportUnknownVariableType] - JSON
