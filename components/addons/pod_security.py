"""Pod Security Standards, as labels of a namespace."""

from typing import Any

from .manifest import obj

_PREFIX = "pod-security.kubernetes.io"


def pod_security(enforced: str) -> dict[str, str]:
    """Return the labels that enforce a standard, and warn about and audit violations of `restricted`.

    `baseline` forbids host namespaces, host paths and privileged pods. Source: Kubernetes docs, Pod Security
    Standards and Pod Security Admission (stable since 1.25).
    """
    return {
        f"{_PREFIX}/enforce": enforced,
        f"{_PREFIX}/warn": "restricted",
        f"{_PREFIX}/audit": "restricted",
    }


def system_namespace(name: str, enforced: str) -> dict[str, Any]:
    """Return the namespace of an add-on that no team uses."""
    return obj("v1", "Namespace", name, metadata={"labels": pod_security(enforced)})


def driver_namespace(name: str) -> dict[str, Any]:
    """Return the namespace of driver installers. Their pods have to be privileged, so warnings would have no
    value; members have no permissions in it."""
    labels = {f"{_PREFIX}/{mode}": "privileged" for mode in ("enforce", "warn", "audit")}
    return obj("v1", "Namespace", name, metadata={"labels": labels})
