"""Creations that a killed engine has started and not recorded.

The engine keeps them as pending operations and creates the resources again, which fails if they exist in the
cloud. This module adds them to the state with the ids that follow from their inputs, marked by an error, and
a refresh queries the cloud, again until it answers (`pulumi refresh --import-pending-creates` of 3.259 leaves
them pending). Then they get their inputs back: without earlier outputs, a refresh adds all of the cloud's
defaults to the inputs, and the next update would replace an AKS cluster for it. Resources whose id does not
follow from their inputs are created again, and so are patches of Kubernetes objects. A Kubernetes object that
the provider did not create is not the stack's: it is removed from the state again, and its creation fails.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ebbtide.analysis.recording.assumed_values import is_assumed
from ebbtide.analysis.recording.assumption_tables import Question
from ebbtide.analysis.recording.assumptions import ASSUMPTIONS
from ebbtide.analysis.urns import urn_name
from ebbtide.clients.kubernetes.parts import parts, text
from ebbtide.operations.records import record, with_record
from ebbtide.operations.stack import Stack

_KUBERNETES = "kubernetes:"
_FIELD_MANAGER = "pulumi-kubernetes"
"""Field manager of what the Kubernetes provider creates, or its prefix before 4.29 (pulumi-kubernetes,
pkg/await/await.go, `Creation`)."""
_INTERRUPTED = "The creation was interrupted."
_RECORD = "ebbtidePendingInputs"
"""Record of the inputs of adopted resources, by URN."""


def resolve(stack: Stack, log: Callable[[str], object]) -> list[str]:
    """Resolve a stack's pending creations.

    Args:
        stack: the stack.
        log: called with each of them.

    Returns:
        The errors; empty if the state matches the cloud. Otherwise the next call queries the cloud again.

    Raises:
        OperationError: another update of the stack is in progress.
    """
    document = stack.exported()
    deployment: dict[str, Any] = document["deployment"]
    sent: dict[str, Any] = dict(record(deployment, _RECORD) or {})
    resources: list[Mapping[str, Any]] = list(deployment.get("resources") or [])
    if deployment.get("pending_operations"):
        for resource in _creations(deployment):
            if (identity := _id(resource, deployment)) is not None:
                resources.append({**resource, "id": identity, "outputs": {}, "initErrors": [_INTERRUPTED]})
                sent[resource["urn"]] = resource.get("inputs") or {}
            else:
                log(f"An earlier update was interrupted while it created {urn_name(resource['urn'])}.")
        deployment = {**deployment, "pending_operations": [], "resources": resources}
        stack.replace_state({**document, "deployment": with_record(deployment, _RECORD, sent or None)})
    adopted = [str(item["urn"]) for item in resources if item.get("initErrors") == [_INTERRUPTED]]
    if adopted and (errors := stack.refresh(adopted)):
        return errors
    if not (adopted or sent):
        return []
    document = stack.exported()
    deployment = document["deployment"]
    existing: dict[str, Mapping[str, Any]] = {
        item["urn"]: item
        for item in deployment["resources"]
        if item["urn"] not in sent or not _is_foreign(item)
    }
    restored = [{**item, "inputs": sent[urn]} if urn in sent else item for urn, item in existing.items()]
    deployment = with_record({**deployment, "resources": restored}, _RECORD, None)
    stack.replace_state({**document, "deployment": deployment})
    for urn in dict.fromkeys((*adopted, *sent)):
        if urn in existing:
            log(
                f"An earlier update was interrupted while it created {urn_name(urn)}; it exists in the cloud."
            )
        else:
            log(f"An earlier update was interrupted before it created {urn_name(urn)}.")
    return []


def _creations(deployment: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the resources that were being created; those that were being replaced are in the state."""
    present = {item["urn"] for item in deployment.get("resources") or ()}
    return [
        operation["resource"]
        for operation in deployment["pending_operations"]
        if operation.get("type") == "creating" and operation["resource"]["urn"] not in present
    ]


def _is_foreign(resource: Mapping[str, Any]) -> bool:
    """Return whether a Kubernetes object was created by another client than the provider."""
    managers = (text(fields, "manager") for fields in parts(resource, "outputs", "metadata", "managedFields"))
    return str(resource["type"]).startswith(_KUBERNETES) and not any(
        manager.startswith(_FIELD_MANAGER) for manager in managers
    )


def _id(resource: Mapping[str, Any], deployment: Mapping[str, Any]) -> str | None:
    """Return the id that a resource would have in the cloud; None if it does not follow from the inputs."""
    if not resource.get("custom") or str(resource["type"]).startswith("pulumi:"):
        return None
    if str(resource["type"]).startswith(_KUBERNETES):
        is_patch = str(resource["type"]).endswith("Patch")
        named = (text(resource, "inputs", "metadata", key) for key in ("namespace", "name"))
        return None if is_patch else "/".join(filter(None, named)) or None
    provider = str(resource.get("provider") or "").rpartition("::")[0]
    resources: list[dict[str, Any]] = deployment.get("resources") or []
    inputs: dict[str, Any] = resource.get("inputs") or {}
    none: dict[str, Any] = {}
    settings: dict[str, Any] = next((item["inputs"] for item in resources if item["urn"] == provider), none)
    question = Question(
        token=resource["type"], inputs=inputs, provider=settings, name=urn_name(resource["urn"])
    )
    identity = ASSUMPTIONS.answer(question).id
    return None if is_assumed(identity) else identity
