"""Pulumi transforms that apply patches to each child of a chart or directory."""

from collections.abc import Sequence

import pulumi

from .credentials import IGNORED_CHANGES
from .deletion import has_cloud_resources
from .objects import Object, Patch, is_, kind_of, patched
from .post_renderer import without_descriptions


def is_deleted_with_cluster(manifest: Object) -> bool:
    """Check that an object can be deleted with its cluster, without its own deletion.

    A claim and a load balancer cannot, since the cloud would keep their disk or address. Nor can a namespace:
    its deletion removes pods before their claims, and is awaited until all of its contents are deleted.
    """
    return not (is_(manifest, "Namespace") or has_cloud_resources(kind_of(manifest), manifest))


def patch_transform(
    patches: Sequence[Patch], deleted_with: pulumi.Resource | None, generated_secrets: Sequence[str] = ()
) -> pulumi.ResourceTransform:
    """Return a transform that applies patches to the objects of a chart or directory, and sets how they are
    deleted.

    A preview without an engine does not run it; the patches have separate tests on upstream's objects.

    Args:
        patches: in the order in which they are applied.
        deleted_with: the cluster if the stack created it.
        generated_secrets: names of Secrets whose values are generated once and kept.
    """

    def transform(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
        if not args.custom or not args.type_.startswith("kubernetes:"):
            return None
        manifest = patched(without_descriptions(dict(args.props)), patches)
        is_generated = is_(manifest, "Secret", *generated_secrets) if generated_secrets else False
        options = pulumi.ResourceOptions(
            deleted_with=deleted_with if is_deleted_with_cluster(manifest) else None,
            ignore_changes=list(IGNORED_CHANGES) if is_generated else None,
        )
        return pulumi.ResourceTransformResult(
            props=manifest, opts=pulumi.ResourceOptions.merge(args.opts, options)
        )

    return transform
