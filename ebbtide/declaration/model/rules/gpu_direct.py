"""Pools with GPUDirect: their machines, image and zone, and the work that can use it."""

from collections.abc import Iterator
from typing import Final

from ebbtide.declaration.catalog.gpu_direct import VERSIONS, strategy_of
from ebbtide.declaration.model.cloud import Gke
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.faults import Fault
from ebbtide.declaration.model.rules.rule import (
    NO_GKE_POOL,
    PoolIn,
    Severity,
    cluster_rule,
    confined_teams,
    pool_rule,
    pools_of,
    privileged,
)
from ebbtide.text import and_list, or_list
from ebbtide.values.cloud_kind import CloudKind

_DOCS: Final = "AI Hypercomputer docs, gke-ai-hypercompute-custom (2026)"
_TCPXO: Final = "GKE docs, gpu-bandwidth-gpudirect-tcpx (2026)"


@pool_rule("GPUDirect of machine", f"{_TCPXO}; {_DOCS}", CloudKind.GKE)
def _machine(pool: PoolIn) -> Iterator[Fault]:
    written = pool.pool.gpu_direct
    if written is None or pool.machine is None:
        return
    known = strategy_of(pool.machine.family)
    if known is None:
        yield Fault(
            pool.at("gpuDirect"),
            f"Ebbtide configures no GPUDirect for {pool.machine.name}.",
            "Its nodes would have no networks for GPUs.",
            f"Remove gpuDirect, or write a machine of series {or_list(VERSIONS)}.",
        )
    elif known != written:
        yield Fault(
            pool.at("gpuDirect"),
            f"{pool.machine.name} has GPUDirect-{known.upper()}, and gpuDirect is {written}.",
            "Its NICs could not use such networks.",
            f"Write gpuDirect: {known}.",
        )


@pool_rule("GPUDirect on Container-Optimized OS", f"{_TCPXO}; {_DOCS}", CloudKind.GKE)
def _image(pool: PoolIn) -> Iterator[Fault]:
    if pool.pool.gpu_direct is not None and pool.pool.image == "ubuntu":
        yield Fault(
            pool.at("image"),
            "GPUDirect needs Container-Optimized OS, and the image is ubuntu.",
            "NCCL's plugin could not be installed on its nodes.",
            "Write image: cos, or omit it.",
        )


@pool_rule("GPUDirect needs whole GPUs", f"{_TCPXO}; {_DOCS}: a pod uses all NICs of a node", CloudKind.GKE)
def _whole(pool: PoolIn) -> Iterator[Fault]:
    if pool.pool.gpu_direct is not None and pool.resolved.shares > 1:
        yield Fault(
            pool.at("gpuDirect"),
            "A pod with GPUDirect uses all GPUs of a node, and the pool's GPUs are shared or partitioned.",
            "No pod could use GPUDirect.",
            "Remove gpuDirect, or gpuSharingConfig and gpuPartitionSize.",
        )


@cluster_rule(
    "one zone for RDMA",
    "VPC docs, rdma-network-profiles (2026): a RoCE network is of one zone",
    CloudKind.GKE,
)
def _zone(cluster: Cluster) -> Iterator[Fault]:
    zone = cluster.gpu_zone
    for pool in pools_of(cluster):
        if pool.pool.gpu_direct != "rdma":
            continue
        zones = pool.resolved.zones or ((cluster.cloud.location,) if cluster.site.is_zonal else ())
        if len(zones) != 1:
            listed = and_list(zones) if zones else f"every zone of {cluster.cloud.location}"
            yield Fault(
                pool.at("zones"),
                f"A network for GPUDirect-RDMA is of one zone, and the pool has {listed}.",
                NO_GKE_POOL,
                "Write zones: with one zone that has the machine.",
            )
        elif zones[0] != zone:
            yield Fault(
                pool.at("zones"),
                f"Another pool has GPUDirect-RDMA in {zone}, and this one is in {zones[0]}.",
                "The cluster has one network for it, which is of one zone.",
                f"Write zones: [{zone}].",
            )


@cluster_rule(
    "GPUDirect-TCPXO needs access to nodes",
    f"{_TCPXO}: hostPath and NET_ADMIN; Kubernetes docs, Pod Security Standards (2026)",
    CloudKind.GKE,
)
def _confined(cluster: Cluster) -> Iterator[Fault]:
    pools = {pool.name for pool in cluster.pools if pool.gpu_direct == "tcpxo"}
    for path, team, names in confined_teams(cluster, pools):
        yield Fault(
            path,
            f"The team {team.name} has a queue for {and_list(names)} with GPUDirect-TCPXO, and its namespace "
            f"enforces the Pod Security Standard {team.pod_security}.",
            "Its pods need directories of the node and a sidecar with NET_ADMIN, which that standard "
            "forbids, so the API server would reject them.",
            f"Remove gpuDirect from the pool, or write {privileged(team)}.",
        )


@cluster_rule(
    "same GPUDirect in queue",
    "GKE docs, multinetwork-gke (2026): a pod with interfaces runs only on nodes that have their networks",
    severity=Severity.WARNED,
)
def _alike(cluster: Cluster) -> Iterator[Fault]:
    pools = {pool.name: pool for pool in cluster.resolved_pools}
    for number, queue in enumerate(cluster.queues):
        named = [pools[name] for name in queue.pools if name in pools]
        with_it = [pool.name for pool in named if pool.gpu_direct is not None]
        kinds = {(pool.gpu_direct, pool.hardware.family if pool.hardware else "") for pool in named}
        if with_it and len(kinds) > 1:
            yield Fault(
                f"queues[{number}].pools",
                f"Work in queue {queue.name} may run on {and_list(with_it)} with GPUDirect, and on pools "
                "that have none or another.",
                "Its pods use no GPUDirect, and communicate over the cluster's network.",
                "Write a queue for the pools with the same machines and gpuDirect.",
            )


@cluster_rule(
    "multi-networking of existing cluster",
    "GKE docs, multinetwork-gke (2026)",
    CloudKind.GKE,
    Severity.WARNED,
)
def _existing(cluster: Cluster) -> Iterator[Fault]:
    cloud = cluster.cloud
    if not isinstance(cloud, Gke) or cloud.existing is None:
        return
    for pool in pools_of(cluster):
        if pool.pool.gpu_direct is not None:
            yield Fault(
                pool.at("gpuDirect"),
                "GPUDirect needs Dataplane V2 and multi-networking, which Ebbtide does not set on an "
                "existing cluster.",
                "Without them, GKE refuses to create the node pool.",
                f"Run `gcloud container clusters update {cloud.existing.name} --project "
                f"{cloud.project} --location {cloud.location} --enable-multi-networking`.",
            )
