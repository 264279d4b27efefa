"""The `dashboard` command. Its dependencies are imported on execution."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ebbtide.cli.consoles import write
from ebbtide.cli.options import ConfigFile, Cwd, Out, Stack, stack_files


class DashboardFormat(StrEnum):
    """Formats of a dashboard."""

    GRAFANA = "grafana"
    CLOUD_MONITORING = "cloud-monitoring"


def dashboard(
    stack: Stack = None,
    *,
    format_: Annotated[
        DashboardFormat, typer.Option("--format", help="JSON for Grafana, or for Cloud Monitoring.")
    ] = DashboardFormat.GRAFANA,
    out: Out = None,
    config_file: ConfigFile = None,
    cwd: Cwd = Path(),
) -> None:
    """Write a dashboard: GPUs, nodes, queues and cost.

    The stack collects them with `addons.metrics`. The program runs in this process, without a cloud. Import
    the file in Grafana, whose data source is the stack's managed Prometheus, or create it with
    `gcloud monitoring dashboards create --config-from-file FILE`.
    """
    from ebbtide.analysis import metrics  # noqa: PLC0415
    from ebbtide.analysis.costs.charges import rates_of  # noqa: PLC0415
    from ebbtide.analysis.preview.stack_files import record_stack  # noqa: PLC0415 - loads Pulumi
    from ebbtide.analysis.reading.pools import read_pools  # noqa: PLC0415
    from ebbtide.declaration.catalog import CloudKind  # noqa: PLC0415

    files = stack_files(stack, config_file, cwd)
    with files.prices():
        recording = record_stack(files)
        sources = metrics.required_sources(recording)
        shown = metrics.panels(sources, read_pools(recording), rates_of(recording))
    if format_ is DashboardFormat.GRAFANA:
        document = metrics.grafana(sources.cluster, shown)
    elif sources.cloud is CloudKind.GKE:
        document = metrics.cloud_monitoring(sources.cluster, shown)
    else:
        raise metrics.MetricsError(
            f"Cluster {sources.cluster} is on AKS, which Cloud Monitoring does not support. Write --format "
            "grafana."
        )
    write(json.dumps(document, indent=2, ensure_ascii=False) + "\n", out)
