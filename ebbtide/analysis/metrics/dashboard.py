"""Dashboards of a stack, for Grafana and for Cloud Monitoring."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from ebbtide.analysis.costs.charges import Amount, Rates
from ebbtide.analysis.metrics.queries import UTILIZATION, Series, by_job, usd_per_hour
from ebbtide.analysis.metrics.sources import MetricSources
from ebbtide.analysis.reading.facts import RecordedPool
from ebbtide.declaration.catalog import CloudKind
from ebbtide.text import several

_DAYS: Final = 30


class Unit(StrEnum):
    """Units of values, as Grafana names them (grafana/grafana, data/valueFormats/categories.ts, 11.6)."""

    COUNT = "none"
    PERCENT = "percent"
    WATT = "watt"
    CELSIUS = "celsius"
    SECONDS = "s"
    USD = "currencyUSD"


_UNITS: Final = {
    Unit.COUNT: "",
    Unit.PERCENT: "%",
    Unit.WATT: "W",
    Unit.CELSIUS: "°C",
    Unit.SECONDS: "s",
    Unit.USD: "USD",
}
"""Labels of axes."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart.

    Attributes:
        title: its title.
        queries: queries in PromQL, each with its legend, in which `{{label}}` is a label's value.
        unit: unit of the values.
        description: explanation of the values.
        is_number: whether the last value is shown instead of a line.
    """

    title: str
    queries: tuple[tuple[str, str], ...]
    unit: Unit = Unit.COUNT
    description: str = ""
    is_number: bool = False


def panels(sources: MetricSources, pools: Sequence[RecordedPool], prices: Rates) -> list[Panel]:
    """Return the charts of a stack."""
    series = Series(sources)
    own = [pool.name for pool in pools if pool.cluster == sources.cluster]
    return [
        *_cost(series, own, prices),
        Panel("Nodes by pool", tuple((series.count(pool), pool) for pool in own)),
        *(_queues(series) if sources.queues else ()),
        *(_gpus(series) if sources.gpus else ()),
    ]


def _cost(series: Series, pools: Sequence[str], prices: Rates) -> Iterator[Panel]:
    hourly = usd_per_hour(series, prices, pools)
    counts = dict.fromkeys(pools, 1)
    note = (
        f"Nodes of each pool times their list price, and what is always billed, while the cluster has nodes."
        f"{_gaps(prices.at(counts))}"
    )
    yield Panel("Cost per hour", ((hourly, "USD per hour"),), Unit.USD, note)
    yield Panel(
        f"Cost of {several(_DAYS, 'day')}",
        ((f"sum_over_time(({hourly})[{_DAYS}d:1h])", "USD"),),
        Unit.USD,
        f"Sum of the cost per hour over the last {_DAYS} days. {note}",
        is_number=True,
    )


def _gaps(amount: Amount) -> str:
    dates = sorted({price.as_of for price in amount.prices if price.as_of})
    parts = {
        "Prices of": dates,
        "Not included, without a known price:": amount.unknown,
        "Estimated prices:": amount.estimated,
    }
    return "".join(f" {words} {', '.join(map(str, items))}." for words, items in parts.items() if items)


def _queues(series: Series) -> Iterator[Panel]:
    pending, admitted = (
        series.of("kueue_pending_workloads"),
        series.of("kueue_admitted_active_workloads"),
    )
    rate = f"rate({series.of('kueue_admission_wait_time_seconds_bucket')}[1h])"
    yield Panel(
        "Waiting work by queue",
        ((f"max by (cluster_queue, status) ({pending})", "{{cluster_queue}} {{status}}"),),
        description="Workloads that Kueue has not admitted. `inadmissible` ones need more than is free now.",
    )
    yield Panel("Admitted work by queue", ((f"max by (cluster_queue) ({admitted})", "{{cluster_queue}}"),))
    for quantile, words in ((0.5, "median"), (0.95, "95 %")):
        yield Panel(
            f"Wait until admission, {words}",
            ((f"histogram_quantile({quantile}, sum by (cluster_queue, le) ({rate}))", "{{cluster_queue}}"),),
            Unit.SECONDS,
            "Of the workloads admitted in the last hour.",
        )


def _gpus(series: Series) -> Iterator[Panel]:
    held = series.held(UTILIZATION)
    used, free = series.held("DCGM_FI_DEV_FB_USED"), series.held("DCGM_FI_DEV_FB_FREE")
    team, job = "{{namespace}}", "{{namespace}}/{{job_name}}"
    yield Panel(
        "GPU utilization by team",
        ((f"avg by (namespace) ({held})", team),),
        Unit.PERCENT,
        "Mean of the GPUs that the pods of a team's namespace hold.",
    )
    yield Panel(
        "GPU utilization by Job",
        ((by_job(held), job),),
        Unit.PERCENT,
        "A Job's name is its pod's without index and random characters.",
    )
    yield Panel("GPUs held by team", ((f"count by (namespace) ({held})", team),))
    yield Panel("GPU memory used by Job", ((by_job(f"100 * {used} / ({used} + {free})"), job),), Unit.PERCENT)
    power, heat = series.of("DCGM_FI_DEV_POWER_USAGE"), series.of("DCGM_FI_DEV_GPU_TEMP")
    yield Panel("GPU power by node", ((f"sum by (Hostname) ({power})", "{{Hostname}}"),), Unit.WATT)
    yield Panel("Hottest GPU by node", ((f"max by (Hostname) ({heat})", "{{Hostname}}"),), Unit.CELSIUS)
    if series.sources.cloud is CloudKind.AKS:
        # GKE's exporter has no such metric (a capture of exporter 4.4.1-4.6.0-gke.17, 2026).
        errors = series.of("DCGM_FI_DEV_XID_ERRORS")
        yield Panel(
            "Last XID error of a GPU",
            ((f"max by (Hostname, gpu) ({errors}) > 0", "{{Hostname}} GPU {{gpu}}"),),
            description="A number of NVIDIA's list of XID errors; no line without an error.",
        )


def _title(cluster: str) -> str:
    return f"Ebbtide: {cluster}"


_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH: Final = 12
_HEIGHT: Final = 8


def grafana(cluster: str, shown: Sequence[Panel]) -> dict[str, Any]:
    """Return a dashboard in Grafana's JSON model (Grafana 11.6, kinds/dashboard, schema version 41), with a
    variable for the Prometheus data source."""
    return {
        "uid": f"ebbtide-{cluster}"[:40],
        "title": _title(cluster),
        "tags": ["ebbtide"],
        "schemaVersion": 41,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {
            "list": [
                {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
            ]
        },
        "panels": [
            {
                "id": number + 1,
                "title": panel.title,
                "description": panel.description,
                "type": "stat" if panel.is_number else "timeseries",
                "datasource": _SOURCE,
                "gridPos": {
                    "x": number % 2 * _WIDTH,
                    "y": number // 2 * _HEIGHT,
                    "w": _WIDTH,
                    "h": _HEIGHT,
                },
                "fieldConfig": {"defaults": {"unit": panel.unit.value, "min": 0}, "overrides": []},
                "targets": [
                    {
                        "refId": chr(ord("A") + index) if index < _LETTERS else f"Q{index}",
                        "datasource": _SOURCE,
                        "expr": query,
                        "legendFormat": legend,
                        "instant": panel.is_number,
                        "range": not panel.is_number,
                    }
                    for index, (query, legend) in enumerate(panel.queries)
                ],
            }
            for number, panel in enumerate(shown)
        ],
    }


_LETTERS: Final = 26
_COLUMNS: Final = 12
_ROWS: Final = 4


def cloud_monitoring(cluster: str, shown: Sequence[Panel]) -> dict[str, Any]:
    """Return a dashboard of Cloud Monitoring (Monitoring API v1, `projects.dashboards`, 2026-09)."""
    return {
        "displayName": _title(cluster),
        "labels": {"ebbtide": ""},
        "mosaicLayout": {
            "columns": _COLUMNS,
            "tiles": [
                {
                    "xPos": number % 2 * _COLUMNS // 2,
                    "yPos": number // 2 * _ROWS,
                    "width": _COLUMNS // 2,
                    "height": _ROWS,
                    "widget": {"title": panel.title, **_chart(panel)},
                }
                for number, panel in enumerate(shown)
            ],
        },
    }


def _chart(panel: Panel) -> dict[str, Any]:
    if panel.is_number:
        ((query, _),) = panel.queries
        return {"scorecard": {"timeSeriesQuery": {"prometheusQuery": query}}}
    return {
        "xyChart": {
            "dataSets": [
                {
                    "plotType": "LINE",
                    "timeSeriesQuery": {"prometheusQuery": query},
                    # Without a template, Cloud Monitoring shows the labels.
                    **({} if "{{" in legend else {"legendTemplate": legend}),
                }
                for query, legend in panel.queries
            ],
            "yAxis": {"label": _UNITS[panel.unit], "scale": "LINEAR"},
        }
    }
