"""Deletion of objects on the cluster."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi


def leaf(
    parent: pulumi.Resource,
    deleted_with: pulumi.Resource | None,
    depends_on: Sequence[pulumi.Resource] = (),
    ignore_changes: Sequence[str] = (),
) -> pulumi.ResourceOptions:
    """Options of an object in the cluster that holds nothing outside of it.

    On a cluster of ours it goes with the cluster, and nothing is drained first; on one that stays it is
    deleted, before what it depends on. Never for a component, a chart or a directory: the engine hands
    `deleted_with` down to every child that has none, a volume claim among them, whose disk would stay and be
    billed.

    Args:
        parent: the component that it is part of.
        deleted_with: the cluster, where it is ours.
        depends_on: what must be there first, and goes last.
        ignore_changes: properties that something in the cluster writes, too.
    """
    return pulumi.ResourceOptions(
        parent=parent,
        deleted_with=deleted_with,
        depends_on=list(depends_on),
        ignore_changes=list(ignore_changes) or None,
    )


def holds_something(kind: str, props: Mapping[str, Any]) -> bool:
    """Check that the cloud has something of an object that outlives the cluster: a disk of a claim, a load
    balancer. Owners of a claim's pods are deleted, too, since a claim waits for its pods (Kubernetes docs,
    persistent volumes, storage object in use protection)."""
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
    """Return transforms that mark the children of a chart or directory as deleted with the cluster: they are
    created by a provider and take no options from here. Claims and services are really deleted, and so are
    the namespaces around them.

    Args:
        deleted_with: the cluster if the stack created it; without it there is no transform.
    """
    if deleted_with is None:
        return []

    def die(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
        kind = args.type_.rpartition(":")[2]
        if not args.custom or holds_something(kind, args.props) or args.opts.deleted_with is not None:
            return None
        opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(deleted_with=deleted_with))
        return pulumi.ResourceTransformResult(props=args.props, opts=opts)

    return [die]
