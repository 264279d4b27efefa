"""The command of kubectl, which makes connections to pods."""

import shutil

from ebbtide.errors import EbbtideError


class NoKubectlError(EbbtideError):
    """kubectl is not installed; the message has the fix."""


def kubectl_command(namespace: str = "", context: str = "") -> list[str]:
    """Return the command of kubectl for a namespace.

    Args:
        namespace: the namespace; empty for the context's.
        context: the kubeconfig's context; empty for the current one.

    Raises:
        NoKubectlError: kubectl is not installed.
    """
    path = shutil.which("kubectl")
    if path is None:
        raise NoKubectlError(
            "kubectl is not on PATH, and it makes the connection to the pod. Install it: "
            "https://kubernetes.io/docs/tasks/tools/."
        )
    return [
        path,
        *(["--context", context] if context else []),
        *(["--namespace", namespace] if namespace else []),
    ]
