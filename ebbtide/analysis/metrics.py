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
from typing import Final, assert_never

from ebbtide.analysis.reading import aks, gke
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.reading.pools import read_accounts
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.values.cloud_kind import CloudKind, by_cloud

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
        store: id of the project, or resource id of the Azure Monitor workspace.
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
        inputs = Inputs(resource.inputs)
        if inputs.flag("monitoringConfig.managedPrometheus.enabled"):
            exporter = "DCGM" in inputs.texts("monitoringConfig.enableComponents")
            yield _measured(recording, resource, CloudKind.GKE, exporter=exporter)
    for resource in recording.of_type(aks.CLUSTER):
        if Inputs(resource.inputs).flag("azureMonitorProfile.metrics.enabled"):
            exporter = bool(recording.of_type(_EXPORTER))
            yield _measured(recording, resource, CloudKind.AKS, exporter=exporter)


def _measured(recording: Recording, resource: Resource, cloud: CloudKind, *, exporter: bool) -> MetricSources:
    read = by_cloud(gke=gke.read_cluster, aks=aks.read_cluster)[cloud](resource)
    return MetricSources(
        cloud=cloud,
        cluster=read.name,
        location=read.location,
        gpus=exporter,
        store=_store(recording, cloud),
    )


def _store(recording: Recording, cloud: CloudKind) -> str:
    """Return the store of the metrics; empty if it is unknown."""
    match cloud:
        case CloudKind.GKE:
            ids = read_accounts(recording, cloud, {})
        case CloudKind.AKS:
            ids = [str(workspace.id) for workspace in recording.of_type(_WORKSPACE)]
        case _:
            assert_never(cloud)
    return next(iter(ids), "")
