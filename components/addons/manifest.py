"""Kubernetes objects from their manifests, and how they are deleted."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi


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


def leaf_options(
    parent: pulumi.Resource,
    deleted_with: pulumi.Resource | None,
    depends_on: Sequence[pulumi.Resource] = (),
) -> pulumi.ResourceOptions:
    """Return the options of an object or chart in the cluster that holds nothing outside of it.

    On a created cluster it is deleted with the cluster, without draining; on an existing one it is deleted
    before its dependencies. The engine passes `deleted_with` on to every child: never for a component, or a
    chart or directory with volume claims, whose disks would remain and be billed. A chart without any needs
    no transform then, for which the engine sends each object to the program and back.

    Args:
        parent: the component that the object is part of.
        deleted_with: the cluster, if the stack created it.
        depends_on: resources that are created before the object and deleted after it.
    """
    return pulumi.ResourceOptions(
        parent=parent,
        deleted_with=deleted_with,
        depends_on=list(depends_on),
    )


class InCluster(pulumi.ComponentResource):
    """A component of objects in the cluster."""

    def __init__(
        self,
        token: str,
        name: str,
        opts: pulumi.ResourceOptions | None,
        deleted_with: pulumi.Resource | None,
        inputs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(token, name, dict(inputs or {}), opts)
        self._deleted_with = deleted_with

    def _create(
        self,
        name: str,
        manifest: Mapping[str, Any],
        depends_on: Sequence[pulumi.Resource] = (),
        *,
        patch: bool = False,
    ) -> Manifest:
        """Create an object of the component, with the options of `leaf_options`."""
        return Manifest(name, manifest, leaf_options(self, self._deleted_with, depends_on), patch=patch)


def has_cloud_resources(kind: str, props: Mapping[str, Any]) -> bool:
    """Check that an object has cloud resources that outlive the cluster: a claim's disk, a load balancer.

    Controllers of pods with claims count, too, since a claim is only deleted after its pods (Kubernetes docs,
    persistent volumes, storage object in use protection).
    """
    spec: Mapping[str, Any] = props.get("spec") or {}
    match kind:
        case "PersistentVolumeClaim":
            return True
        case "StatefulSet" if spec.get("volumeClaimTemplates"):
            return True
        case "Deployment" | "StatefulSet":
            template: Mapping[str, Any] = spec.get("template") or {}
            pods: Mapping[str, Any] = template.get("spec") or {}
            volumes: Sequence[Mapping[str, Any]] = pods.get("volumes") or ()
            return any("persistentVolumeClaim" in volume for volume in volumes)
        case "Service":
            return spec.get("type") == "LoadBalancer"
        case _:
            return False
