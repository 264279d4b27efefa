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
    """Return the options of an object in the cluster that holds nothing outside of it.

    On a created cluster it is deleted with the cluster, without draining; on an existing one it is deleted
    before its dependencies. Not for a component, chart or directory: the engine passes `deleted_with` on to
    every child that has none, including volume claims, whose disks would remain and be billed.

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


def deleted_with_cluster(deleted_with: pulumi.Resource | None) -> list[pulumi.ResourceTransform]:
    """Return transforms that mark the children of a chart or directory as deleted with the cluster: a
    provider creates them, without options from here. Claims, Services and their namespaces get their own
    deletion.

    Args:
        deleted_with: the cluster if the stack created it; without it there is no transform.
    """
    if deleted_with is None:
        return []

    def set_deleted_with(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
        kind = args.type_.rpartition(":")[2]
        if not args.custom or has_cloud_resources(kind, args.props) or args.opts.deleted_with is not None:
            return None
        opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(deleted_with=deleted_with))
        return pulumi.ResourceTransformResult(props=args.props, opts=opts)

    return [set_deleted_with]
