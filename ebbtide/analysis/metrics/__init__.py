"""Metrics of a stack: what it collects, queries of it in PromQL, and dashboards."""

from ebbtide.analysis.metrics.dashboard import cloud_monitoring, grafana, panels
from ebbtide.analysis.metrics.sources import MetricsError, MetricSources, metric_sources, required_sources

__all__ = [
    "MetricSources",
    "MetricsError",
    "cloud_monitoring",
    "grafana",
    "metric_sources",
    "panels",
    "required_sources",
]
