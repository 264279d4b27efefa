"""The SDK's Azure resources without their aliases to every API version that there has been.

An agent pool has 110 of them. For each the SDK makes up a URN and waits for it: 500 pools take 25 s to
register with them and 1.3 s without (pulumi 3.272, azure-native 3.29.0, 2 cores). They adopt what an older
program has made under a type with a version in it, which none of ours has.
"""

import pulumi


def without_aliases(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    """Remove a resource's aliases; on a component, those of every Azure resource below it.

    For `ResourceOptions.transformations`: when those run, the SDK has put the aliases into the options and
    has not applied them yet.
    """
    if not args.type_.startswith("azure-native:"):
        return None
    args.opts.aliases = None
    return pulumi.ResourceTransformationResult(args.props, args.opts)
