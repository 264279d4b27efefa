"""The Kubernetes provider of a cluster, the same on both clouds."""

import pulumi
from pulumi_kubernetes import Provider


def provider(name: str, kubeconfig: pulumi.Input[str], opts: pulumi.ResourceOptions) -> Provider:
    """Create a provider that changes ConfigMaps and Secrets in place.

    By default it replaces them when their data changes and, if the name is fixed, deletes the old one first:
    the profile or a controller's configuration would be missing for a while. Source: pulumi-kubernetes docs,
    provider configuration, enableConfigMapMutable (2026).
    """
    return Provider(
        name,
        kubeconfig=kubeconfig,
        enable_config_map_mutable=True,
        enable_secret_mutable=True,
        opts=opts,
    )
