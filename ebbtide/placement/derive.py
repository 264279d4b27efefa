"""The placement profile of a declaration, and names and addresses of its teams' storage."""

from collections.abc import Iterable
from dataclasses import asdict, replace
from typing import Final, assert_never
from urllib.parse import quote

from ebbtide.declaration.catalog.accelerators import default_image, resource_name
from ebbtide.declaration.catalog.gpu_direct import pod_needs
from ebbtide.declaration.model.base import rfc3339
from ebbtide.declaration.model.capacity import Preemptible, Reservation, Spot
from ebbtide.declaration.model.cloud import Aks, Gke
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.labels_and_taints import LabelsAndTaints
from ebbtide.declaration.model.physical_names import BUCKET, REPOSITORY, account_name, fitting
from ebbtide.declaration.model.pool import Taint
from ebbtide.declaration.model.resolved_pool import ResolvedPool
from ebbtide.declaration.model.tenancy import Queue, Team
from ebbtide.placement.profile import (
    PRIORITIES,
    UNCONFIGURED,
    AcceleratorProfile,
    GpuDirectProfile,
    LocalQueueProfile,
    LogsProfile,
    MatchExpression,
    NodeTaint,
    PoolProfile,
    PriceProfile,
    Profile,
    QueueProfile,
    TeamProfile,
    Toleration,
)
from ebbtide.values.cloud_kind import CloudKind, by_cloud

CLAIM: Final = "shared"
"""The claim of a team's shared volume."""

CONTAINER: Final = "shared"
"""The container of a storage account, which is a team's bucket on AKS."""

ACCOUNT: Final = "worker"
"""The service account that a team's workloads run as, in its namespace."""

BUCKET_DRIVERS: Final = by_cloud(gke="gcsfuse.csi.storage.gke.io", aks="blob.csi.azure.com")
"""CSI drivers that mount buckets in pods (GKE docs, cloud-storage-fuse-csi-driver; azure-aks-docs,
azure-blob-csi, 2026)."""


def toleration(taint: Taint) -> Toleration:
    """Return the toleration of a taint."""
    operator = "Equal" if taint.value else "Exists"
    return Toleration(key=taint.key, operator=operator, value=taint.value, effect=taint.effect.value)


def affinity(derived: LabelsAndTaints) -> tuple[MatchExpression, ...]:
    """Return the node affinity to a pool: one term, whose expressions must all match. A toleration alone does
    not select a pool."""
    return tuple(MatchExpression(key, "In", (derived.all_labels[key],)) for key in derived.distinguishing)


def _accelerator(pool: ResolvedPool) -> AcceleratorProfile | None:
    if pool.accelerator is None:
        return None
    return AcceleratorProfile(
        type=pool.accelerator.type,
        count=pool.requestable,
        resource=resource_name(pool.accelerator.type),
        shares=pool.shares,
        max_request=pool.max_request,
        slice_nodes=pool.slice_nodes,
    )


def _price(pool: ResolvedPool) -> PriceProfile:
    node, capacity = pool.priced_node, pool.capacity.kind
    amount, is_known = node.amount(capacity), not node.machine_amount(capacity).unknown
    return PriceProfile(
        per_hour=round(amount.known, 6) if is_known else None,
        estimated=bool(amount.estimated),
        as_of=min((price.as_of for price in amount.prices if price.as_of), default=""),
        without=amount.unknown,
    )


def _gpu_direct(pool: ResolvedPool) -> GpuDirectProfile | None:
    if pool.gpu_direct is None or pool.hardware is None:
        return None
    return GpuDirectProfile(pool.gpu_direct, **asdict(pod_needs(pool.gpu_direct, pool.hardware.family)))


def _period(pool: ResolvedPool) -> tuple[str, ...]:
    capacity = pool.capacity
    if not isinstance(capacity, Reservation) or capacity.from_ is None or capacity.until is None:
        return ()
    return rfc3339(capacity.from_), rfc3339(capacity.until)


def pool_profile(pool: ResolvedPool, queues: tuple[Queue, ...]) -> PoolProfile:
    """Return the profile of a pool."""
    derived, offer = pool.labels_and_taints, pool.offered
    return PoolProfile(
        name=pool.name,
        role=pool.role.value,
        machine=pool.machine.type if pool.machine else "",
        capacity=pool.capacity.kind,
        interruptible=isinstance(pool.capacity, Spot | Preemptible),
        cpu_m=int(offer.cpu_m) if offer else 0,
        memory_mib=int(offer.memory_mib) if offer else 0,
        max_nodes=pool.max_nodes,
        max_run_seconds=pool.max_run_seconds,
        accelerator=_accelerator(pool),
        labels=derived.all_labels,
        taints=tuple(NodeTaint(taint.key, taint.value, taint.effect.value) for taint in derived.all_taints),
        tolerations=tuple(toleration(taint) for taint in derived.all_taints),
        affinity=affinity(derived),
        queues=tuple(queue.name for queue in queues if pool.name in queue.pools),
        price=_price(pool),
        image=default_image(pool.accelerator_type, pool.architecture),
        gpu_direct=_gpu_direct(pool),
        period=_period(pool),
    )


def _queue_profile(queue: Queue, cluster: Cluster, tenants: Iterable[Team]) -> QueueProfile:
    local_queues = tuple(
        LocalQueueProfile(
            team.name,
            team.namespace_name,
            use.as_ or use.queue,
            cluster.requires_queue(team),
            restricted=team.pod_security == "restricted",
        )
        for team in tenants
        for use in team.queues_used(queue.name)
    )
    return QueueProfile(queue.name, queue.pools, local_queues)


def _gke_logs(cloud: Gke, cluster: str) -> LogsProfile:
    """Return Cloud Logging's filter for one pod, and the address of its page (cloud.google.com/logging/docs,
    2026)."""
    query = (
        'resource.type="k8s_container"\n'
        f'resource.labels.project_id="{cloud.project}"\n'
        f'resource.labels.cluster_name="{cluster}"\n'
        'resource.labels.namespace_name="{namespace}"\n'
        'resource.labels.pod_name="{pod}"'
    )
    address = f"https://console.cloud.google.com/logs/query;query={quote(query, safe='{}')};duration=P7D"
    return LogsProfile(query=query, link=f"{address}?project={cloud.project}")


def _aks_logs() -> LogsProfile:
    """Return Container insights' query for one pod (azure-monitor docs, ContainerLogV2, 2026); the address of
    the workspace cannot be derived."""
    query = (
        'ContainerLogV2 | where PodNamespace == "{namespace}" and PodName == "{pod}" '
        "| project TimeGenerated, ContainerName, LogMessage"
    )
    return LogsProfile(query=query, link="")


def _team(cluster: Cluster, tenant: Team) -> TeamProfile:
    return TeamProfile(
        tenant.name,
        tenant.namespace_name,
        registry=image_prefix(cluster, tenant) if tenant.registry is not None else "",
        bucket=bucket_address(cluster, tenant),
        claim=CLAIM if tenant.volume is not None else "",
        claim_kind=tenant.volume.kind if tenant.volume is not None else "",
        service_account=ACCOUNT if tenant in cluster.teams else "",
    )


def profile(cluster: Cluster) -> Profile:
    """Return the placement profile of a declaration."""
    queues = cluster.resolved_queues
    match cluster.cloud:
        case Gke():
            logs = _gke_logs(cluster.cloud, cluster.physical_name)
        case Aks():
            logs = _aks_logs()
        case _:
            assert_never(cluster.cloud)
    pipelines = cluster.addons.pipelines
    return Profile(
        cluster=cluster.physical_name,
        cloud=CloudKind(cluster.cloud.kind),
        location=cluster.cloud.location,
        pools=tuple(pool_profile(pool, queues) for pool in cluster.resolved_pools),
        queues=tuple(_queue_profile(queue, cluster, cluster.tenants) for queue in queues),
        logs=logs,
        pipeline_retries=pipelines.retry if pipelines else UNCONFIGURED,
        teams=tuple(_team(cluster, tenant) for tenant in cluster.tenants),
        priorities=tuple(PRIORITIES) if cluster.has_kueue and queues else (),
        bucket_driver=bucket_driver(cluster),
    )


def tenant_profiles(cluster: Cluster) -> dict[str, Profile]:
    """Return the placement profile for each tenant's namespace, by name of the tenant: all pools, but only
    its own local queues, registry, bucket and claim."""
    whole, queues = profile(cluster), cluster.resolved_queues
    return {
        tenant.name: replace(
            whole,
            queues=tuple(_queue_profile(queue, cluster, (tenant,)) for queue in queues),
            teams=(_team(cluster, tenant),),
        )
        for tenant in cluster.tenants
    }


def bucket_name(cluster: Cluster, team: Team) -> str:
    """Return the name of a team's bucket; on AKS, of the storage account with the container.

    Names of buckets are global, so the project's name is included.
    """
    match cluster.cloud:
        case Gke() as cloud:
            return fitting(f"{cloud.project}-{cluster.name}-{team.stored_as}", BUCKET)
        case Aks() as cloud:
            return account_name(cloud.subscription, cluster.name, team.stored_as)


def bucket_address(cluster: Cluster, team: Team) -> str:
    """Return the address of a team's bucket; empty if it has none."""
    if not team.has_bucket:
        return ""
    name = bucket_name(cluster, team)
    match cluster.cloud:
        case Gke():
            return f"gs://{name}"
        case Aks():
            return f"abfss://{CONTAINER}@{name}.dfs.core.windows.net"


def mounts_buckets(cluster: Cluster) -> bool:
    """Return whether a team's shared volume is its bucket."""
    return any(team.volume is not None and team.volume.kind == "bucket" for team in cluster.teams)


def bucket_driver(cluster: Cluster) -> str:
    """Return the CSI driver that mounts buckets; empty if the cluster may not have it.

    A GKE cluster of the stack always has it, any other cluster if a team mounts its bucket.
    """
    has_driver = mounts_buckets(cluster) or (
        cluster.site.cloud is CloudKind.GKE and cluster.cloud.existing is None
    )
    return BUCKET_DRIVERS[cluster.site.cloud] if has_driver else ""


def registry_name(cluster: Cluster, team: Team) -> str:
    """Return the name of a team's registry.

    GKE: a repository of Artifact Registry, unique in its project and location: 1 to 63 lower-case letters,
    digits and hyphens (Artifact Registry docs, repositories/create-repos, 2026). AKS: a container registry,
    unique in all of Azure: 5 to 50 letters and digits (azure-resource-manager docs, resource-name-rules,
    2026).
    """
    match cluster.cloud:
        case Gke():
            return fitting(f"{cluster.name}-{team.stored_as}", REPOSITORY)
        case Aks() as cloud:
            return account_name(cloud.subscription, cluster.name, f"{team.stored_as}-images")


def image_prefix(cluster: Cluster, team: Team) -> str:
    """Return the prefix of a team's image names, without a trailing slash.

    A domain-scoped project, `acme.example:ml`, is written with a slash (Artifact Registry docs, docker/names,
    2026).
    """
    name = registry_name(cluster, team)
    match cluster.cloud:
        case Gke() as cloud:
            project = cloud.project.replace(":", "/")
            return f"{cluster.site.region}-docker.pkg.dev/{project}/{name}"
        case Aks():
            return f"{name}.azurecr.io"


def keeps_registry(cluster: Cluster, team: Team) -> bool:
    """Return whether a team's registry remains when the stack is destroyed."""
    declared = team.registry.keep if team.registry else None
    return not cluster.is_ephemeral if declared is None else declared
