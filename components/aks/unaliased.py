"""The SDK's Azure resources without their aliases to every earlier API version.

An agent pool has 110 of them. For each, the SDK builds a URN and awaits it: registering 500 pools takes 25 s
with them and 1.3 s without (pulumi 3.272, azure-native 3.29.0, 2 cores). The aliases adopt resources that
older programs created under a type with a version in its name; Ebbtide has never created any.
"""

import pulumi


def without_aliases(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    """Remove a resource's aliases; for a component, those of every Azure resource below it.

    For `ResourceOptions.transformations`, which run after the SDK has put the aliases into the options, and
    before it applies them.
    """
    if not args.type_.startswith("azure-native:"):
        return None
    args.opts.aliases = None
    return pulumi.ResourceTransformationResult(args.props, args.opts)
