"""The provider for what runs on a cluster, alike on both clouds."""

import pulumi
from pulumi_kubernetes import Provider


def provider(name: str, kubeconfig: pulumi.Input[str], opts: pulumi.ResourceOptions) -> Provider:
    """Create a provider that changes ConfigMaps and Secrets in place.

    By default it replaces them when their data changes, and if the name is fixed deletes the old one
    first: for a while there would be no profile, and no configuration of a controller that looks. Source:
    pulumi-kubernetes docs, provider configuration, enableConfigMapMutable (2026).
    """
    return Provider(
        name,
        kubeconfig=kubeconfig,
        enable_config_map_mutable=True,
        enable_secret_mutable=True,
        opts=opts,
    )
