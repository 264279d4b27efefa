"""Creations that a killed engine has begun and not recorded.

The engine keeps them as pending operations and creates the resources again, which fails where the cloud has
them. Here they enter the state under the ids that follow from their inputs, and a refresh keeps what the
cloud has (`pulumi refresh --import-pending-creates` of 3.259 leaves them pending). The rest is created again.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ebbtide.operations.errors import OperationError
from ebbtide.operations.stack import Stack
from ebbtide.recording.assumed_values import is_assumed
from ebbtide.recording.assumption_tables import Question
from ebbtide.recording.assumptions import ASSUMPTIONS

_KUBERNETES = "kubernetes:"
"""Its provider updates an object that exists (server-side apply)."""
_INTERRUPTED = "The creation was interrupted."


def resolve(stack: Stack, say: Callable[[str], object]) -> None:
    """Resolve a stack's pending creations.

    Args:
        stack: the stack.
        say: called with each of them.

    Raises:
        OperationError: another update of the stack is in progress.
    """
    document = stack.exported()
    deployment: dict[str, Any] = document["deployment"]
    if not deployment.get("pending_operations"):
        return
    resources: list[Mapping[str, Any]] = deployment.get("resources") or []
    creations = _creations(deployment)
    adopted: list[dict[str, Any]] = [
        {**resource, "id": identity, "outputs": {}, "initErrors": [_INTERRUPTED]}
        for resource in creations
        if (identity := _id(resource, deployment)) is not None
    ]
    forgotten: dict[str, Any] = {**deployment, "pending_operations": []}
    stack.replace_state({**document, "deployment": {**forgotten, "resources": [*resources, *adopted]}})
    if adopted:
        targets = [part for resource in adopted for part in ("--target", str(resource["urn"]))]
        try:
            stack.run("refresh", "--yes", "--skip-preview", "--non-interactive", *targets)
        except OperationError:
            stack.replace_state({**document, "deployment": forgotten})
    remaining: list[Mapping[str, Any]] = stack.exported()["deployment"].get("resources") or []
    existing = {item["urn"] for item in remaining}
    for resource in creations:
        if resource["urn"] in existing:
            say(f"An earlier update was interrupted while it created {_name(resource)}; the cloud has it.")
        else:
            say(f"An earlier update was interrupted before it created {_name(resource)}.")


def _creations(deployment: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [
        operation["resource"]
        for operation in deployment.get("pending_operations") or ()
        if operation.get("type") == "creating"
    ]


def _id(resource: Mapping[str, Any], deployment: Mapping[str, Any]) -> str | None:
    """Return the id that a resource would have in the cloud; None if its inputs do not tell."""
    if not resource.get("custom") or str(resource["type"]).startswith((_KUBERNETES, "pulumi:")):
        return None
    provider = str(resource.get("provider") or "").rpartition("::")[0]
    resources: list[dict[str, Any]] = deployment.get("resources") or []
    inputs: dict[str, Any] = resource.get("inputs") or {}
    none: dict[str, Any] = {}
    settings: dict[str, Any] = next((item["inputs"] for item in resources if item["urn"] == provider), none)
    question = Question(token=resource["type"], inputs=inputs, provider=settings, name=_name(resource))
    identity = ASSUMPTIONS.answer(question).id
    return None if is_assumed(identity) else identity


def _name(resource: Mapping[str, Any]) -> str:
    return str(resource["urn"]).rpartition("::")[2]
