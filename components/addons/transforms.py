"""Pulumi transforms that apply patches to each child of a chart or directory."""

from collections.abc import Sequence

import pulumi

from .credentials import KEPT
from .deletion import holds_something
from .objects import Object, Patch, is_, kind_of, patched


def goes_with_the_cluster(manifest: Object) -> bool:
    """Check that an object can be deleted with its cluster, without its own deletion.

    A claim and a load balancer cannot, since the cloud would keep their disk or address. Nor can a namespace:
    its deletion removes pods before their claims, and is awaited until all of its contents are deleted.
    """
    return not (is_(manifest, "Namespace") or holds_something(kind_of(manifest), manifest))


def applied(
    patches: Sequence[Patch], deleted_with: pulumi.Resource | None, kept_secrets: Sequence[str] = ()
) -> pulumi.ResourceTransform:
    """Return a transform that applies patches to the objects of a chart or directory, and sets how they are
    deleted.

    A preview without an engine does not run it; the patches have separate tests on upstream's objects.

    Args:
        patches: in the order in which they are applied.
        deleted_with: the cluster if the stack created it.
        kept_secrets: names of Secrets whose values are generated once and kept.
    """

    def transform(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
        if not args.custom or not args.type_.startswith("kubernetes:"):
            return None
        manifest = patched(dict(args.props), patches)
        is_kept = is_(manifest, "Secret", *kept_secrets) if kept_secrets else False
        ours = pulumi.ResourceOptions(
            deleted_with=deleted_with if goes_with_the_cluster(manifest) else None,
            ignore_changes=list(KEPT) if is_kept else None,
        )
        return pulumi.ResourceTransformResult(
            props=manifest, opts=pulumi.ResourceOptions.merge(args.opts, ours)
        )

    return transform
