"""Queries of a cluster's metrics, in PromQL.

Labels: NVIDIA's exporter names the namespace, pod and container that hold a GPU, its index `gpu` and its node
`Hostname` (NVIDIA/dcgm-exporter, internal/pkg/transformation/const.go, 2026-05). Both collectors keep these:
on GKE a `ClusterPodMonitoring` without metadata (GoogleCloudPlatform/prometheus-engine#1002, 2024-06), on AKS
`honorLabels`. A GPU that no pod holds has the exporter's own namespace, or none. Both stores add `cluster`;
Cloud Monitoring also `location` (Google Cloud docs, managed-prometheus; azure-monitor docs,
prometheus-metrics-multiple-workspaces, 2026). Each replica of Kueue reports (kueue 0.19,
pkg/metrics/metrics.go, `replica_role`), so that its gauges are maxima, not sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ebbtide.analysis.costs.charges import Rates, cloud_nat
from ebbtide.analysis.metrics.sources import MetricSources
from ebbtide.declaration.catalog import CloudKind

UTILIZATION: Final = "DCGM_FI_DEV_GPU_UTIL"

_HELD: Final = 'namespace!~"|kube-system|gke-managed-system"'
"""Matches the series of GPUs that a pod holds; the empty alternative matches series without a namespace."""

_JOB: Final = "(.+?)(-[0-9]+)?-[a-z0-9]{5}"
"""A pod's name: its Job's, the index of an indexed Job, and five random characters (Kubernetes docs, Job)."""

_NODES: Final = {
    # GKE's system metrics are in Cloud Monitoring without managed Prometheus; a node's labels are metadata of
    # the series (Google Cloud docs, monitoring/promql, 2026).
    CloudKind.GKE: (
        (
            'kubernetes_io:node_cpu_total_cores{{monitored_resource="k8s_node",cluster_name="{cluster}",'
            'location="{location}"{pool}}}'
        ),
        ',metadata_user_cloud_google_com_gke_nodepool="{pool}"',
    ),
    # Of kube-state-metrics, a default target of Azure Monitor's agent, and in its minimal ingestion profile
    # (Azure/prometheus-collector, kubestateRegex_minimal, 2026). A node's name begins with its scale set's.
    CloudKind.AKS: ('kube_node_info{{cluster="{cluster}"{pool}}}', ',node=~"aks-{pool}-[0-9]+-vmss.+"'),
}
"""A series for each node of a cluster, and the label that selects a pool."""

_MANY: Final = 100_000
"""A number of nodes at which Cloud NAT has its maximum price."""


@dataclass(frozen=True, slots=True)
class Series:
    """Series of a cluster's metrics."""

    sources: MetricSources

    def of(self, metric: str, *matchers: str) -> str:
        """Return the cluster's series of a Prometheus metric."""
        own = [f'cluster="{self.sources.cluster}"']
        if self.sources.cloud is CloudKind.GKE:
            own.append(f'location="{self.sources.location}"')
        return f"{metric}{{{','.join([*own, *matchers])}}}"

    def held(self, metric: str) -> str:
        """Return the series of GPUs that pods hold."""
        return self.of(metric, _HELD)

    def nodes(self, pool: str = "") -> str:
        """Return a series for each node of a pool, by default of the cluster."""
        template, label = _NODES[self.sources.cloud]
        return template.format(
            cluster=self.sources.cluster,
            location=self.sources.location,
            pool=label.format(pool=pool) if pool else "",
        )

    def count(self, pool: str) -> str:
        """Return the node count of a pool; 0 if it has no nodes."""
        return f"(count({self.nodes(pool)}) or vector(0))"

    def unused(self, hours: int) -> str:
        """Return the GPUs that a pod has held for some hours without using them."""

        def held(offset: str = "") -> str:
            return f"max by (namespace, pod, Hostname, gpu) ({self.held(UTILIZATION)}{offset})"

        unused = f"max_over_time({held()}[{hours}h:1m]) == 0"
        return f"{unused} and {held()} and {held(f' offset {hours}h')}"


def by_job(values: str) -> str:
    """Return the mean of values for each namespace and Job."""
    named = f'label_replace({values}, "job_name", "$1", "pod", "{_JOB}")'
    return f"avg by (namespace, job_name) ({named})"


def usd_per_hour(series: Series, prices: Rates, pools: Sequence[str]) -> str:
    """Return the cost of a cluster, USD per hour: each pool's nodes times their price, and what is always
    billed. Without nodes there is no value, so that no cost is shown before the cluster existed.

    Args:
        series: the cluster's series.
        prices: the stack's prices.
        pools: the pools' names in the cloud.
    """
    every = f"count({series.nodes()})"
    terms = [f"{series.count(pool)} * {prices.nodes[pool].known:.6g}" for pool in pools]
    terms.append(f"clamp_max({every}, 1) * {sum(item.amount.known for item in prices.items):.6g}")
    if prices.has_nat:
        base = cloud_nat(0).known
        terms.append(
            f"clamp_max({every} * {cloud_nat(1).known - base:.6g}, {cloud_nat(_MANY).known - base:.6g})"
        )
        terms.append(f"clamp_max({every}, 1) * {base:.6g}")
    return " + ".join(terms)
