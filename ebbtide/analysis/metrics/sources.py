"""The metrics that a recorded stack collects."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ebbtide.analysis.reading import aks, gke
from ebbtide.analysis.reading.facts import Inputs
from ebbtide.analysis.reading.pools import read_accounts
from ebbtide.analysis.recording.recording import Recording, Resource
from ebbtide.declaration.catalog import CloudKind
from ebbtide.errors import EbbtideError

_GKE_MONITOR: Final = "kubernetes:monitoring.googleapis.com/v1:PodMonitoring"
_AKS_MONITOR: Final = "kubernetes:azmonitoring.coreos.com/v1:"
_WORKSPACE: Final = "azure-native:monitor:AzureMonitorWorkspace"
_EXPORTER: Final = f"{_AKS_MONITOR}PodMonitor"
_KUEUE: Final = {CloudKind.GKE: _GKE_MONITOR, CloudKind.AKS: f"{_AKS_MONITOR}ServiceMonitor"}


class MetricsError(EbbtideError):
    """A stack collects no metrics, or its dashboard has another format."""

    rule = "metrics"


@dataclass(frozen=True, slots=True)
class MetricSources:
    """The metrics of a cluster.

    Attributes:
        cloud: the cloud.
        cluster: the cluster's name.
        location: its zone or region.
        gpus: whether a DCGM exporter measures GPUs.
        queues: whether Kueue's metrics are collected.
        store: id of the project, or resource id of the Azure Monitor workspace.
    """

    cloud: CloudKind
    cluster: str
    location: str
    gpus: bool
    queues: bool
    store: str


def metric_sources(recording: Recording) -> MetricSources | None:
    """Return the metrics of a recorded stack's first cluster with managed Prometheus; None without one."""
    return next(_sources(recording), None)


def required_sources(recording: Recording) -> MetricSources:
    """Return the metrics of a recorded stack.

    Raises:
        MetricsError: it collects none.
    """
    sources = metric_sources(recording)
    if sources is None:
        raise MetricsError(
            f"Stack {recording.stack} collects no metrics, so a dashboard would be empty. Declare them: "
            "addons: {metrics: {}}."
        )
    return sources


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
    read = {CloudKind.GKE: gke.read_cluster, CloudKind.AKS: aks.read_cluster}[cloud](resource)
    return MetricSources(
        cloud=cloud,
        cluster=read.name,
        location=read.location,
        gpus=exporter,
        queues=bool(recording.of_type(_KUEUE[cloud])),
        store=_store(recording, cloud),
    )


def _store(recording: Recording, cloud: CloudKind) -> str:
    """Return the store of the metrics; empty if it is unknown."""
    ids = (
        read_accounts(recording, cloud, {})
        if cloud is CloudKind.GKE
        else [str(workspace.id) for workspace in recording.of_type(_WORKSPACE)]
    )
    return next(iter(ids), "")
