"""GPUs that pods hold without using them, from the stack's managed Prometheus."""

from collections import Counter
from typing import Final

from ebbtide.analysis.metrics import MetricSources
from ebbtide.analysis.metrics.queries import Series
from ebbtide.clients.clouds.connect import metric_source
from ebbtide.clients.clouds.errors import CloudApiError
from ebbtide.operations.status_report import GpuStatus, UnusedGpus

HOURS: Final = 1
"""Time without use, hours."""


def read(sources: MetricSources | None) -> GpuStatus:
    """Return the pods that have held GPUs for an hour without using them.

    Args:
        sources: the metrics that the stack collects; None for none.
    """
    if sources is None or not sources.gpus:
        return GpuStatus(measured=False)
    try:
        samples = metric_source(sources.cloud, sources.store).query(Series(sources).unused(HOURS))
    except CloudApiError as error:
        return GpuStatus(measured=True, unknown=str(error))
    held = Counter(
        (labels.get("namespace", ""), labels.get("pod", ""), labels.get("Hostname", ""))
        for labels in (sample.labels for sample in samples)
    )
    return GpuStatus(
        measured=True,
        unused=tuple(
            UnusedGpus(namespace=namespace, pod=pod, node=node, gpus=count)
            for (namespace, pod, node), count in sorted(held.items())
        ),
    )
