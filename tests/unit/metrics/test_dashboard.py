"""Dashboards: queries, formats, and the metrics that they read."""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import jsonschema
import promql_parser as promql
import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from typer.testing import CliRunner

from components.addons.monitors import COUNTERS
from ebbtide.analysis.costs.charges import rates_of
from ebbtide.analysis.metrics import MetricSources, cloud_monitoring, grafana, metric_sources, panels
from ebbtide.analysis.metrics.dashboard import Panel
from ebbtide.analysis.metrics.queries import Series, usd_per_hour
from ebbtide.analysis.reading import aks, gke
from ebbtide.analysis.reading.pools import read_pools
from ebbtide.analysis.recording.recording import Recording
from ebbtide.cli.entry_point import app
from ebbtide.declaration.catalog import CloudKind
from tests.declarations import AKS, GKE, Declaration, changed
from tests.synth import synth

_QUEUES = [{"name": "gpus", "pools": ["t4"]}]
_CLOUDS = {CloudKind.GKE: GKE, CloudKind.AKS: AKS}
_MISSING_ON_GKE = {"DCGM_FI_DEV_XID_ERRORS"}

every_cloud = pytest.mark.parametrize("cloud", CloudKind)


def _declared(cloud: CloudKind, **more: Any) -> Declaration:
    return changed(_CLOUDS[cloud], queues=_QUEUES, **{"addons": {"kueue": {}, "metrics": {}}, **more})


@cache
def _recorded(cloud: CloudKind) -> Recording:
    return synth(_declared(cloud))


def _sources(recording: Recording) -> MetricSources:
    sources = metric_sources(recording)
    assert sources is not None
    return sources


def _panels(cloud: CloudKind) -> list[Panel]:
    recording = _recorded(cloud)
    return panels(_sources(recording), read_pools(recording), rates_of(recording))


def _selectors(expression: Any) -> Iterator[str]:
    """Yield the names of the metrics that a parsed query reads."""
    for name in ("lhs", "rhs", "expr", "param", "vector_selector"):
        if (inner := getattr(expression, name, None)) is not None:
            yield from _selectors(inner)
    for inner in getattr(expression, "args", None) or ():
        yield from _selectors(inner)
    if isinstance(expression, promql.VectorSelector):
        yield cast("str", expression.name)


def _read(cloud: CloudKind) -> set[str]:
    queries = (query for panel in _panels(cloud) for query, _ in panel.queries)
    return {name for query in queries for name in _selectors(promql.parse(query))}


def _inputs(recording: Recording, type_: str) -> list[dict[str, Any]]:
    return [cast("dict[str, Any]", item.inputs) for item in recording.of_type(type_)]


def _scraped(cloud: CloudKind) -> tuple[set[str], set[str]]:
    """Return the names and the patterns of the metrics that the recorded stack's configuration collects."""
    recording, names = _recorded(cloud), set[str]()
    cluster_type, monitor, relabeling = {
        CloudKind.GKE: (gke.CLUSTER, "monitoring.googleapis.com/v1:PodMonitoring", "metricRelabeling"),
        CloudKind.AKS: (aks.CLUSTER, "azmonitoring.coreos.com/v1:ServiceMonitor", "metricRelabelings"),
    }[cloud]
    (cluster,) = _inputs(recording, cluster_type)
    patterns = {
        rule["regex"]
        for item in _inputs(recording, f"kubernetes:{monitor}")
        for endpoint in item["spec"]["endpoints"]
        for rule in endpoint[relabeling]
    }
    if cloud is CloudKind.GKE:
        components = cluster["monitoringConfig"]["enableComponents"]
        names |= {"kubernetes_io:node_cpu_total_cores"} if "SYSTEM_COMPONENTS" in components else set()
        names |= COUNTERS.keys() - _MISSING_ON_GKE if "DCGM" in components else set()
    elif cluster["azureMonitorProfile"]["metrics"]["enabled"]:
        names.add("kube_node_info")
        for item in _inputs(recording, "kubernetes:core/v1:ConfigMap"):
            rows = item.get("data", {}).get("counters.csv", "").splitlines()
            names |= {row.partition(",")[0] for row in rows}
    return names, patterns


@every_cloud
def test_panels_read_what_the_stack_scrapes(cloud: CloudKind) -> None:
    """A panel reads no metric that is not collected, and every collected metric of a GPU has a panel."""
    names, patterns = _scraped(cloud)
    read = _read(cloud)
    others = read - names
    assert [name for name in others if not any(re.fullmatch(rule, name) for rule in patterns)] == []
    assert others  # Kueue's
    assert names - read == set()


@every_cloud
def test_a_cluster_without_queues_and_gpus_has_no_panels_of_them(cloud: CloudKind) -> None:
    """The panels follow from what is collected."""
    pools = [pool for pool in _CLOUDS[cloud]["pools"] if pool["name"] in ("system", "cpu", "cpuspot")]
    recording = synth(changed(_CLOUDS[cloud], pools=pools, addons={"metrics": {}}))
    sources = _sources(recording)
    assert (sources.gpus, sources.queues) == (False, False)
    shown = panels(sources, read_pools(recording), rates_of(recording))
    assert [panel.title for panel in shown] == ["Cost per hour", "Cost of 30 days", "Nodes by pool"]


def _value(expression: Any, counts: dict[str, int]) -> float:
    """Evaluate a query of node counts by hand, as Prometheus does for one point in time."""
    match expression:
        case promql.NumberLiteral():
            return expression.val
        case promql.ParenExpr():
            return _value(expression.expr, counts)
        case promql.AggregateExpr():
            selector = cast("promql.VectorSelector", expression.expr)
            labels = {matcher.name: matcher.value for matcher in selector.matchers.matchers}
            text = labels.get("node") or labels.get("metadata_user_cloud_google_com_gke_nodepool", "")
            pool = re.sub(r"^aks-(.+)-\[.*$", r"\1", text)
            return counts[pool] if pool else sum(counts.values())
        case promql.Call():
            value, limit = (_value(part, counts) for part in expression.args)
            assert expression.func.name == "clamp_max"
            return min(value, limit)
        case promql.BinaryExpr():
            if str(expression.op) == "or":
                return _value(expression.lhs, counts)
            left, right = _value(expression.lhs, counts), _value(expression.rhs, counts)
            return left + right if str(expression.op) == "+" else left * right
        case _:
            raise AssertionError(expression)


@every_cloud
@pytest.mark.parametrize("count", [1, 3, 40])
def test_the_query_of_costs_agrees_with_the_prices(cloud: CloudKind, count: int) -> None:
    """At any node counts, the query is what `ebbtide status` computes."""
    recording = _recorded(cloud)
    pools = [pool.name for pool in read_pools(recording)]
    counts = {pool: count + index for index, pool in enumerate(pools)}
    prices = rates_of(recording)
    query = usd_per_hour(Series(_sources(recording)), prices, pools)
    assert _value(promql.parse(query), counts) == pytest.approx(prices.at(counts).known, rel=1e-4)


def _is_part(part: Any, whole: Any) -> bool:
    if isinstance(part, dict):
        mapping = cast("dict[str, Any]", part)
        return all(key in whole and _is_part(value, whole[key]) for key, value in mapping.items())
    if isinstance(part, list):
        items = cast("list[Any]", part)
        return len(items) == len(whole) and all(map(_is_part, items, whole))
    return part == whole


@every_cloud
def test_grafana_accepts_the_dashboard(cloud: CloudKind) -> None:
    """Grafana's own types read it, and keep every field."""
    register_default_plugins()
    document = grafana("train", _panels(cloud))
    read = json.loads(json.dumps(Dashboard.from_json(document), cls=JSONEncoder))
    assert _is_part(document, read)
    assert len({json.dumps(panel["gridPos"]) for panel in document["panels"]}) == len(document["panels"])


def test_cloud_monitoring_accepts_the_dashboard() -> None:
    """The document has the types of the Monitoring API's discovery document; tiles stay in the grid."""
    schema = json.loads(Path(__file__).with_name("monitoring_v1.schema.json").read_text(encoding="utf-8"))
    document = cloud_monitoring("train", _panels(CloudKind.GKE))
    validator = jsonschema.Draft202012Validator(schema)
    assert [error.json_path for error in validator.iter_errors(document)] == []  # pyright: ignore[reportUnknownMemberType]
    document["mosaicLayout"]["tiles"][0]["widget"]["chart"] = {}
    assert not validator.is_valid(document)  # pyright: ignore[reportUnknownMemberType]
    tiles = cloud_monitoring("train", _panels(CloudKind.GKE))["mosaicLayout"]["tiles"]
    assert {tile["xPos"] + tile["width"] for tile in tiles} == {6, 12}


def _stack(tmp_path: Path, declared: Declaration) -> Path:
    file = tmp_path / "Pulumi.measured.yaml"
    file.write_text(json.dumps({"config": {"ebbtide:cluster": declared}}), encoding="utf-8")
    return file


def _run(file: Path, *more: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["dashboard", "--config-file", str(file), *more])
    return done.exit_code, done.output


def test_the_command_writes_a_file(tmp_path: Path) -> None:
    """Grafana's format is the default; the other one is for Cloud Monitoring."""
    file, out = _stack(tmp_path, _declared(CloudKind.GKE)), tmp_path / "dashboard.json"
    assert _run(file, "--out", str(out)) == (0, "")
    assert json.loads(out.read_text(encoding="utf-8"))["title"] == "Ebbtide: train"
    code, text = _run(file, "--format", "cloud-monitoring")
    assert code == 0
    assert json.loads(text)["displayName"] == "Ebbtide: train"


def test_what_has_no_dashboard_is_refused(tmp_path: Path) -> None:
    """Without metrics, the message says what to declare; AKS has no dashboards in Cloud Monitoring."""
    code, text = _run(_stack(tmp_path, GKE))
    assert code == 2
    assert "addons: {metrics: {}}" in text
    code, text = _run(_stack(tmp_path, _declared(CloudKind.AKS)), "--format", "cloud-monitoring")
    assert code == 2
    assert "--format grafana" in text
