"""Namespaces of removed teams that do not end, because objects in them have finalizers."""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from ebbtide.clients.kubernetes import METADATA, Api, ApiError
from ebbtide.clients.kubernetes.objects import parts, text, words
from ebbtide.operations import access
from ebbtide.operations.engine.failures import OperationError
from ebbtide.text import and_list

_WAITED: Final = "timed out waiting for the condition"
"""Error of the engine whose deletion of a namespace took longer than its limit (pulumi-kubernetes 4.34,
provider/pkg/await)."""
_REMAINING: Final = "NamespaceContentRemaining"
_KIND: Final = re.compile(r"([a-z0-9-]+)\.([a-z0-9.-]*) has \d+ resource instances")
"""Resource and group in the condition of a terminating namespace (Kubernetes 1.36,
pkg/controller/namespace/deletion/status_condition_utils.go)."""
_SHOWN: Final = 10
_TEAMS: Final = "ebbtide.dev/team"


def advice(outputs: Callable[[], Mapping[str, Any]], errors: Iterable[str]) -> Iterator[str]:
    """Yield lines about what keeps namespaces of teams from ending, if an error may be due to that.

    Args:
        outputs: returns the stack's outputs, with the kubeconfig.
        errors: the engine's errors.
    """
    if any(_WAITED in error for error in errors):
        # The errors themselves are reported in any case.
        with suppress(OperationError, ApiError):
            api, _ = access.connected(outputs(), "what remains in namespaces is unknown")
            yield from blocking(api)


def blocking(api: Api) -> Iterator[str]:
    """Yield a line for each object that keeps a terminating namespace of a team, with the command that
    removes its finalizers.

    Raises:
        ApiError: the API server does not answer or denies access.
    """
    for namespace in api.items("/api/v1/namespaces", labelSelector=_TEAMS):
        name = namespace["metadata"]["name"]
        conditions = parts(namespace, "status", "conditions")
        remaining = [text(item, "message") for item in conditions if item.get("type") == _REMAINING]
        found = [item for kind in _KIND.findall(" ".join(remaining)) for item in _held(api, name, *kind)]
        for resource, item, finalizers in found[:_SHOWN]:
            patch = json.dumps({"metadata": {"finalizers": None}})
            command = shlex.join(
                ["kubectl", "patch", resource, item, "-n", name, "--type", "merge", "-p", patch]
            )
            yield (
                f"Namespace {name} cannot end: {resource}/{item} has the finalizer {and_list(finalizers)}. "
                f"If no controller removes it any more: {command}"
            )
        if len(found) > _SHOWN:
            yield f"And {len(found) - _SHOWN} more in the namespace {name}."


def _held(api: Api, namespace: str, resource: str, group: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield resource, name and finalizers of the objects of a kind that have any."""
    root = "/api/v1"
    if group:
        version = text(api.find(f"/apis/{group}") or {}, "preferredVersion", "version")
        root = f"/apis/{group}/{version}"
    path = f"{root}/namespaces/{namespace}/{resource}"
    for item in (api.find(path, accept=METADATA) or {}).get("items") or ():
        if finalizers := words(item, "metadata", "finalizers"):
            yield f"{resource}.{group}" if group else resource, item["metadata"]["name"], tuple(finalizers)
