"""Namespaces that are not for work, and the Pod Security Standards of those that are."""

from fnmatch import fnmatchcase
from functools import cache
from typing import Final

from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.declaration.model.addons import Pipelines
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.tenancy import Team

PIPELINES_NAMESPACE: Final = Pipelines.spec.namespace
"""Namespace of the steps of Kubeflow Pipelines."""


OPERATOR_NAMESPACE: Final = "gpu-operator"
"""Namespace of NVIDIA's operator."""


@cache
def reserved_owner(namespace: str, cloud: CloudKind | None = None) -> str | None:
    """Return the component of Kubernetes or of a cloud that a namespace is reserved for; None for any other
    namespace.

    Args:
        namespace: its name.
        cloud: the cloud; None for all clouds.
    """
    for row in rows("namespaces"):
        if row["cloud"] in ("", cloud or row["cloud"]) and any(
            fnmatchcase(namespace, name) for name in row["names"].split()
        ):
            return row["owner"]
    return None


def system_owner(cluster: Cluster, namespace: str) -> str | None:
    """Return the owner of a namespace that is not for work: Kubernetes, the cloud, or an add-on that the
    stack installs; None for any other namespace."""
    if (owner := reserved_owner(namespace, cluster.cloud.kind)) is not None:
        return owner
    if namespace == OPERATOR_NAMESPACE and cluster.addons.drivers == "gpu-operator":
        return "NVIDIA's operator"
    own = (add_on.spec for add_on in cluster.installed if not add_on.spec.runs_work)
    return next((spec.title for spec in own if spec.namespace == namespace), None)


def pod_security_of(cluster: Cluster, team: Team) -> str | None:
    """Return the Pod Security Standard to enforce in a tenant's namespace; None to keep its own labels.

    Kubeflow Pipelines' own manifests set `baseline` (2.17.0, manifests/kustomize, cluster-scoped-resources).
    """
    comes_with_it = (
        team.namespace_name == PIPELINES_NAMESPACE and cluster.addons.installed_pipelines is not None
    )
    return team.pod_security or ("baseline" if comes_with_it else None)
