"""A kubeconfig without any credential in it, alike for both clouds."""

import json
from collections.abc import Mapping


def exec_kubeconfig(name: str, cluster: Mapping[str, object], plugin: Mapping[str, object]) -> str:
    """A kubeconfig, as JSON, whose user asks a program for a token when one is needed.

    Args:
        name: of cluster, user and context.
        cluster: where the control plane is: `server`, and `certificate-authority-data` unless it is public.
        plugin: which program to ask, as `exec` has it: `command`, `args`, `installHint` and so on.
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
