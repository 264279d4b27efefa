"""The Kubernetes provider of a cluster, and its kubeconfig without credentials, the same on both clouds."""

import json
from collections.abc import Mapping

import pulumi
from pulumi_kubernetes import Provider


def provider(name: str, kubeconfig: pulumi.Input[str], opts: pulumi.ResourceOptions) -> Provider:
    """Create a provider that changes ConfigMaps and Secrets in place, and creates no object that exists.

    By default it replaces them when their data changes and, if the name is fixed, deletes the old one first:
    the profile or a controller's configuration would be missing for a while. Source: pulumi-kubernetes docs,
    provider configuration, enableConfigMapMutable (2026).

    An existing object that it took over would be deleted with the stack. Since 4.29 a creation fails instead,
    unless the environment variable `PULUMI_K8S_UPSERT_EXISTING_OBJECTS` is set, which this setting overrides
    (pulumi-kubernetes CHANGELOG, 4.29.0; pkg/await/await.go, `Creation`).
    """
    return Provider(
        name,
        kubeconfig=kubeconfig,
        enable_config_map_mutable=True,
        enable_secret_mutable=True,
        upsert_existing_objects=False,
        opts=opts,
    )


def exec_kubeconfig(name: str, cluster: Mapping[str, object], plugin: Mapping[str, object]) -> str:
    """Build a kubeconfig, as JSON, whose user gets tokens from a program.

    Args:
        name: name of cluster, user and context.
        cluster: the control plane's `server`, and `certificate-authority-data` unless it is public.
        plugin: the program, as in `exec`: `command`, `args`, `installHint`, etc.
    """
    called = {"apiVersion": "client.authentication.k8s.io/v1beta1", **plugin, "interactiveMode": "Never"}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": dict(cluster)}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "users": [{"name": name, "user": {"exec": called}}],
        }
    )
