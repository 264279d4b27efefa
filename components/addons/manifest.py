"""A Kubernetes object from its manifest."""

from collections.abc import Mapping
from typing import Any

import pulumi

PATCH_FORCE = "pulumi.com/patchForce"
"""Annotation with which server-side apply takes over fields that another field manager owns."""


class Manifest(pulumi.CustomResource):
    """Any object, built-in or custom, with all fields of its manifest.

    The SDK's classes take 0.2 s to load for `core/v1` alone, and `apiextensions.CustomResource` accepts no
    field besides `spec`, which a WorkloadPriorityClass does not have (pulumi-kubernetes 4.34.2). The request
    to the provider is the same.
    """

    def __init__(
        self,
        name: str,
        manifest: Mapping[str, Any],
        opts: pulumi.ResourceOptions,
        *,
        patch: bool = False,
    ) -> None:
        """Create the object or, with `patch`, only own the given fields of an existing one."""
        version = manifest["apiVersion"]
        group = f"core/{version}" if "/" not in version else version
        token = f"kubernetes:{group}:{manifest['kind']}{'Patch' if patch else ''}"
        super().__init__(token, name, dict(manifest), opts)


def obj(version: str, kind: str, name: str, namespace: str | None = None, **fields: Any) -> dict[str, Any]:
    """Build a manifest. `metadata` among the fields is merged with the name and namespace."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {}) | fields.pop("metadata", {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}
