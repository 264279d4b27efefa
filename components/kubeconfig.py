"""A kubeconfig without credentials, for both clouds."""

import json
from collections.abc import Mapping


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
