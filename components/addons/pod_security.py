"""Pod Security Standards, as labels of a namespace."""

_PREFIX = "pod-security.kubernetes.io"


def pod_security(enforced: str) -> dict[str, str]:
    """Return the labels that enforce a standard, and warn of and audit what `restricted` would refuse.

    Under `baseline` no pod gets the node's namespaces, directories or privileges. Source: Kubernetes docs,
    Pod Security Standards and Pod Security Admission (stable since 1.25).
    """
    return {
        f"{_PREFIX}/enforce": enforced,
        f"{_PREFIX}/warn": "restricted",
        f"{_PREFIX}/audit": "restricted",
    }
