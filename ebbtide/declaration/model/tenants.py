"""Tenants of the cluster: the declared teams, and namespaces without a team."""

from fnmatch import fnmatchcase
from functools import cache
from typing import Final

from ebbtide.declaration.catalog.tables import rows
from ebbtide.declaration.cloud_kind import CloudKind
from ebbtide.declaration.model.addons import Pipelines
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.tenancy import Namespace, QueueUse, Team

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


def pipelines_tenant() -> Team:
    """Return the namespace of Kubeflow Pipelines as a tenant. The add-on creates the namespace."""
    return Team(name=PIPELINES_NAMESPACE, namespace=Namespace(name=PIPELINES_NAMESPACE, create=False))


def pod_security_of(cluster: Cluster, team: Team) -> str | None:
    """Return the Pod Security Standard to enforce in a tenant's namespace; None to keep its own labels.

    Kubeflow Pipelines' own manifests set `baseline` (2.17.0, manifests/kustomize, cluster-scoped-resources).
    """
    comes_with_it = (
        team.namespace_name == PIPELINES_NAMESPACE and cluster.addons.installed_pipelines is not None
    )
    return team.pod_security or ("baseline" if comes_with_it else None)


def default_tenant() -> Team:
    """Return the tenant of the namespace `default`, for clusters without teams: a queue needs a namespace."""
    return Team(name="default", namespace=Namespace(name="default", create=False))


def local_queue_tenants(cluster: Cluster) -> tuple[Team, ...]:
    """Return tenants for the namespaces that have local queues, in the order of the declaration."""
    uses: dict[str, list[QueueUse]] = {}
    for queue in cluster.queues:
        for local in queue.local_queues:
            uses.setdefault(local.namespace, []).append(QueueUse(queue=queue.name, as_=local.name))
    return tuple(
        Team(name=name, namespace=Namespace(name=name, create=False), queues=queues)
        for name, queues in uses.items()
    )


def tenants_of(cluster: Cluster) -> tuple[Team, ...]:
    """Return the declared teams; the tenants of namespaces with local queues; that of Kubeflow Pipelines if
    declared and not among them; and that of `default` if there are no others and Kueue admits work."""
    tenants = (*cluster.teams, *local_queue_tenants(cluster))
    pipelines = cluster.addons.pipelines
    # An existing installation needs local queues only.
    needed = pipelines is not None and (not pipelines.existing or cluster.has_kueue)
    if needed and all(team.namespace_name != PIPELINES_NAMESPACE for team in tenants):
        tenants = (*tenants, pipelines_tenant())
    if not tenants and cluster.has_kueue:
        return (default_tenant(),)
    return tenants
