"""Clusters in a Terraform state, or in an exported Pulumi state of another program.

pulumi-gcp is generated from Google's Terraform provider: a resource's attributes are Pulumi's properties
(`inputs`). azure-native is not: the names that differ are in a table of `azurerm`. Sources: Terraform docs,
internals/json-format, and the state's format version 4 (2026).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from ebbtide.analysis.changes.property_path import replaced
from ebbtide.analysis.reading.gke import CLUSTER, NODE_POOL
from ebbtide.analysis.reading.state import recording_of
from ebbtide.analysis.recording.recording import stack_and_project
from ebbtide.operations.adopting import azure, azurerm, google
from ebbtide.operations.adopting.found import AdoptionError, Found, FoundResource, LeftOut
from ebbtide.operations.adopting.inputs import merged_deeply, removed, without_secrets

_TYPES: Final = {"google_container_cluster": CLUSTER, "google_container_node_pool": NODE_POOL}
_VERSION: Final = 4


def read(document: object, file: str) -> Found | None:
    """Return the clusters and pools of a Terraform state, also as `terraform show -json` prints it; None for
    other documents.

    Raises:
        AdoptionError: it is a state without a cluster.
    """
    state = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    if "terraform_version" not in state:
        return None
    if not (state.get("version") == _VERSION or "values" in state):
        raise AdoptionError(
            f"{file} is a Terraform state in a form that Ebbtide does not read. Write it again with "
            "`terraform state pull`, or with `terraform show -json`."
        )
    values = cast("dict[str, Any]", state.get("values") or {})
    shown = cast("dict[str, Any]", values.get("root_module") or {})
    pairs = [*_shown(shown)] if shown else [*_stored(state)]
    if on_azure := [(kind, values) for kind, values in pairs if kind in azurerm.TYPES]:
        return azurerm.read(on_azure, file)
    return _found([(_TYPES[kind], values) for kind, values in pairs if kind in _TYPES], file)


def _stored(state: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for resource in state.get("resources") or ():
        for instance in resource.get("instances") or () if resource.get("mode") == "managed" else ():
            yield str(resource.get("type")), instance.get("attributes") or {}


def _shown(module: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for resource in module.get("resources") or ():
        if resource.get("mode") == "managed":
            yield str(resource.get("type")), resource.get("values") or {}
    for child in module.get("child_modules") or ():
        yield from _shown(child)


def read_pulumi(document: object, text: str, file: str) -> Found | None:
    """Return the clusters and pools of a `pulumi stack export`; None for other documents.

    Args:
        document: the parsed JSON.
        file: its file, for messages.

    Raises:
        AdoptionError: it is a state without a cluster.
        StateError: it is not a valid state.
    """
    deployment = cast("dict[str, Any]", document).get("deployment") if isinstance(document, dict) else None
    if not isinstance(deployment, dict):
        return None
    resources = cast("list[dict[str, Any]]", cast("dict[str, Any]", deployment).get("resources") or [])
    stack, project = stack_and_project(str(resources[0].get("urn"))) if resources else ("", "")
    recording = recording_of(text, project=project, stack=stack, file=file)
    known = {*_TYPES.values(), *azure.TYPES}
    plain: list[tuple[str, Mapping[str, Any]]] = []
    withheld: dict[str, tuple[str, ...]] = {}
    for item in recording:
        if item.type in known and not item.read:
            inputs, withheld[str(item.id).lower()] = without_secrets(item.inputs)
            outputs, _ = without_secrets(item.outputs)
            for path in withheld[str(item.id).lower()]:
                outputs = replaced(outputs, path, removed)
            plain.append((item.type, {**merged_deeply(outputs, inputs), "id": item.id}))
    on_azure = [values for token, values in plain if token in azure.TYPES]
    found = azure.read(on_azure, file) if on_azure else _found(plain, file)
    return found and replace(
        found,
        resources=tuple(
            replace(item, withheld=tuple(dict.fromkeys((*withheld.get(item.id.lower(), ()), *item.withheld))))
            for item in found.resources
        ),
    )


def _found(pairs: list[tuple[str, Mapping[str, Any]]], file: str) -> Found:
    resources: dict[str, FoundResource] = {}
    left_out: list[LeftOut] = []
    for token, values in pairs:
        for kind, attributes, id_ in _with_inline_pools(token, values):
            resource = google.found_resource(kind, attributes, id_)
            if reason := google.unsupported(resource) if kind == NODE_POOL else "":
                left_out.append(LeftOut(name=f"pool {resource.name}", reason=reason))
            elif kind == token or id_ not in resources:
                resources[id_] = resource
    if not resources:
        raise AdoptionError(f"{file} is a state without a cluster of GKE or AKS, or a node pool of one.")
    return google.found_of(resources.values(), left_out, file)


def _with_inline_pools(token: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Yield a resource, and of a cluster its pools, which Terraform also has in the cluster."""
    id_ = str(values.get("id"))
    yield token, values, id_
    inline = values.get("node_pool") or values.get("nodePools") or () if token == CLUSTER else ()
    for pool in inline:
        yield NODE_POOL, pool, f"{id_}/nodePools/{pool.get('name')}"
