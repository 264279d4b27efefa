"""The metrics that a recorded stack collects, and a query of them in PromQL.

Labels: NVIDIA's exporter names the namespace, pod and container that hold a GPU, its index `gpu` and its node
`Hostname` (NVIDIA/dcgm-exporter, internal/pkg/transformation/const.go, 2026-05). Both collectors keep these:
on GKE a `ClusterPodMonitoring` without metadata (GoogleCloudPlatform/prometheus-engine#1002, 2024-06), on AKS
`honorLabels`. A GPU that no pod holds has the exporter's own namespace, or none. Both stores add `cluster`;
Cloud Monitoring also `location` (Google Cloud docs, managed-prometheus; azure-monitor docs,
prometheus-metrics-multiple-workspaces, 2026). The dashboards in docs/dashboards read the same metrics: there,
gauges of Kueue are maxima, since each replica reports them (kueue 0.19, pkg/metrics/metrics.go,
`replica_role`), and a node's name on AKS begins with its scale set's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ebbtide.analysis.reading import aks, gke
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.reading.pools import read_accounts
from ebbtide.analysis.recording.recording import Recording
from ebbtide.values.cloud_kind import CloudKind

_WORKSPACE: Final = "azure-native:monitor:AzureMonitorWorkspace"
_EXPORTER: Final = "kubernetes:azmonitoring.coreos.com/v1:PodMonitor"
_UTILIZATION: Final = "DCGM_FI_DEV_GPU_UTIL"

_HELD: Final = 'namespace!~"|kube-system|gke-managed-system"'
"""Matches the series of GPUs that a pod holds; the empty alternative matches series without a namespace."""


@dataclass(frozen=True, slots=True)
class MetricSources:
    """The metrics of a cluster.

    Attributes:
        cluster: the cluster's name.
        location: its zone or region.
        gpus: whether a DCGM exporter measures GPUs.
        store: id of the project, or resource id of the Azure Monitor workspace; empty if it is unknown.
    """

    cloud: CloudKind
    cluster: str
    location: str
    gpus: bool
    store: str

    def unused(self, hours: int) -> str:
        """Return a query of the GPUs that a pod has held for some hours without using them."""
        location = f'location="{self.location}",' if self.cloud is CloudKind.GKE else ""
        series = f'{_UTILIZATION}{{cluster="{self.cluster}",{location}{_HELD}}}'

        def held(offset: str = "") -> str:
            return f"max by (namespace, pod, Hostname, gpu) ({series}{offset})"

        unused = f"max_over_time({held()}[{hours}h:1m]) == 0"
        return f"{unused} and {held()} and {held(f' offset {hours}h')}"


def metric_sources(recording: Recording) -> MetricSources | None:
    """Return the metrics of a recorded stack's first cluster with managed Prometheus; None without one."""
    return next(_sources(recording), None)


def _sources(recording: Recording) -> Iterator[MetricSources]:
    for resource in recording.of_type(gke.CLUSTER):
        inputs, read = Inputs(resource.inputs), gke.read_cluster(resource)
        if inputs.flag("monitoringConfig.managedPrometheus.enabled"):
            exporter = "DCGM" in inputs.texts("monitoringConfig.enableComponents")
            project = next(iter(read_accounts(recording, CloudKind.GKE, {})), "")
            yield MetricSources(CloudKind.GKE, read.name, read.location, exporter, project)
    for resource in recording.of_type(aks.CLUSTER):
        if Inputs(resource.inputs).flag("azureMonitorProfile.metrics.enabled"):
            read, exporter = aks.read_cluster(resource), bool(recording.of_type(_EXPORTER))
            workspace = next((str(item.id) for item in recording.of_type(_WORKSPACE)), "")
            yield MetricSources(CloudKind.AKS, read.name, read.location, exporter, workspace)
