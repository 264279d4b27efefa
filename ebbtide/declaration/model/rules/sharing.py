"""Rules for GPUs shared by several containers: partitions, time-sharing and MPS."""

from collections.abc import Iterator

from ebbtide.declaration.catalog import CloudKind, is_tpu, partitions
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.pool import Accelerator
from ebbtide.declaration.model.rules.rule import (
    PoolIn,
    Severity,
    cluster_rule,
    pool_rule,
    pools_of,
    service_name,
)
from ebbtide.text import and_list, or_list, several

_NO_POOL = "The node pool could not be created."
_MIG_DOCS = (
    "GoogleCloudPlatform/cluster-autoscaler@7d250507, machinetypes/deprecated_machine_types_gpu_config.go; "
    "azure-aks-docs gpu-multi-instance.md (2026-05-22); catalog/data/partitions.csv"
)
_SHARING_DOCS = "GKE docs, timesharing-gpus and nvidia-mps-gpus (2026)"


def _partition(accelerator: Accelerator) -> tuple[str, str]:
    """Return the field and value that partition a GPU; empty without partitions."""
    if accelerator.gpu_partition_size is not None:
        return "gpuPartitionSize", accelerator.gpu_partition_size
    return "gpuInstanceProfile", accelerator.gpu_instance_profile or ""


@pool_rule("supported GPU partition", _MIG_DOCS)
def _can_be_divided(pool: PoolIn) -> Iterator[Fault]:
    accelerator, cloud = pool.pool.accelerator, pool.site.cloud
    if accelerator is None:
        return
    field, partition = _partition(accelerator)
    known = partitions(cloud, accelerator.type)
    elsewhere = (field == "gpuPartitionSize") is not (cloud is CloudKind.GKE)
    if elsewhere or not partition or partition in known:
        return
    fix = f"Write {or_list(list(known))}." if known else f"Remove {field}."
    problem = (
        f"{service_name(cloud)} cannot partition {accelerator.type} into {partition}."
        if known
        else f"{service_name(cloud)} cannot partition {accelerator.type} at all."
    )
    yield Fault(pool.at(f"accelerator.{field}"), problem, _NO_POOL, fix)


@pool_rule("GPU sharing needs GPUs", _SHARING_DOCS, CloudKind.GKE)
def _of_gpus(pool: PoolIn) -> Iterator[Fault]:
    accelerator = pool.pool.accelerator
    if accelerator is not None and accelerator.gpu_sharing_config is not None and is_tpu(accelerator.type):
        yield Fault(
            pool.at("accelerator.gpuSharingConfig"),
            f"{accelerator.type} is a TPU, which containers cannot share.",
            _NO_POOL,
            "Remove gpuSharingConfig.",
        )


@cluster_rule(
    "GPU sharing needs cloud driver",
    "GKE docs, gpus-multi and gpu-operator (2026); Azure/AgentBaker, cse_main.sh: ensureMigPartition",
)
def _driver(cluster: Cluster) -> Iterator[Fault]:
    operator = cluster.addons.drivers == "gpu-operator"
    for pool in pools_of(cluster):
        accelerator = pool.pool.accelerator
        if accelerator is None or pool.resolved.has_cloud_driver:
            continue
        field, partition = _partition(accelerator)
        written = field if partition else "gpuSharingConfig" if accelerator.gpu_sharing_config else ""
        if partition or (written and operator):
            cloud = service_name(pool.site.cloud)
            yield Fault(
                pool.at(f"accelerator.{written}"),
                f"{cloud} shares GPUs only if it installs their driver, and this pool has another one.",
                "The GPUs would not be shared, and the queues would have more quota than the nodes have "
                "GPUs.",
                "Write driver: default under accelerator.",
            )


@cluster_rule(
    "MPS needs hostIPC",
    "GKE docs, nvidia-mps-gpus (2026): hostIPC; Kubernetes docs, Pod Security Standards (2026)",
    CloudKind.GKE,
)
def _mps_in_teams(cluster: Cluster) -> Iterator[Fault]:
    mps = {
        pool.name
        for pool in cluster.pools
        if pool.accelerator is not None
        and pool.accelerator.gpu_sharing_config is not None
        and pool.accelerator.gpu_sharing_config.gpu_sharing_strategy == "mps"
    }
    for number, team in enumerate(cluster.teams):
        used = [queue for queue in cluster.resolved_queues if team.queues_used(queue.name)]
        pools = sorted({pool for queue in used for pool in queue.pools} & mps)
        if pools and team.pod_security in ("baseline", "restricted"):
            yield Fault(
                f"teams[{number}]",
                f"The team {team.name} has a queue for {and_list(pools)}, whose GPUs are shared by MPS, and "
                f"its namespace enforces the Pod Security Standard {team.pod_security}.",
                "MPS needs hostIPC: true, which that standard forbids, so no pod of the team could use "
                "such a GPU.",
                "Write gpuSharingStrategy: time-sharing on the pool, or namespace: {name: "
                f"{team.namespace_name}, podSecurity: privileged}} if the team may have root access to its "
                "nodes.",
            )


@cluster_rule(
    "same GPU sharing in queue",
    "GKE docs, timesharing-gpus (2026): every share is one nvidia.com/gpu",
    severity=Severity.WARNED,
)
def _alike_in_a_queue(cluster: Cluster) -> Iterator[Fault]:
    known = {pool.name: pool.shares for pool in cluster.resolved_pools if pool.accelerator is not None}
    for number, queue in enumerate(cluster.queues):
        counts = {known[name]: name for name in queue.pools if name in known}
        if len(counts) > 1:
            least, most = counts[max(counts)], counts[min(counts)]
            yield Fault(
                f"queues[{number}].pools",
                f"One nvidia.com/gpu is 1/{max(counts)} of a GPU on {least} and "
                f"{'a whole one' if min(counts) == 1 else f'1/{min(counts)}'} on {most}.",
                "A job may get the smaller share.",
                "Declare a queue for each, unless jobs can use either.",
            )


@pool_rule(
    "GPU instances not counted by autoscaler",
    "kubernetes/autoscaler, cloudprovider/azure/azure_template.go (2026): GPUs of the machine size",
    CloudKind.AKS,
    Severity.WARNED,
)
def _counted_whole(pool: PoolIn) -> Iterator[Fault]:
    accelerator = pool.pool.accelerator
    if accelerator is None or accelerator.gpu_instance_profile is None or pool.pool.nodes.count is not None:
        return
    count = pool.resolved.shares
    if count > 1:
        yield Fault(
            pool.at("accelerator.gpuInstanceProfile"),
            f"The autoscaler counts {several(accelerator.count, 'GPU')} on an empty node, not "
            f"{accelerator.count * count} instances.",
            "It adds more nodes than many small pods need, and removes them again.",
            "Write a fixed count, such as nodes: {count: 1}, unless that is acceptable.",
        )
