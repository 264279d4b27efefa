"""Deletion of objects on the cluster."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi


def leaf_options(
    parent: pulumi.Resource,
    deleted_with: pulumi.Resource | None,
    depends_on: Sequence[pulumi.Resource] = (),
    ignore_changes: Sequence[str] = (),
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
        ignore_changes: properties that a controller in the cluster also writes.
    """
    return pulumi.ResourceOptions(
        parent=parent,
        deleted_with=deleted_with,
        depends_on=list(depends_on),
        ignore_changes=list(ignore_changes) or None,
    )


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
