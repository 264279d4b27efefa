"""Dashboards: queries, formats, and the metrics that they read."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import jsonschema
import promql_parser as promql
import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from components.addons.monitors import COUNTERS
from ebbtide.analysis.reading import aks, gke
from ebbtide.analysis.recording.recording import Recording
from ebbtide.values.cloud_kind import CloudKind
from tests.declarations import AKS, GKE, changed
from tests.repository import ROOT
from tests.synth import synth

_QUEUES = [{"name": "gpus", "pools": ["t4"]}]
_CLOUDS = {CloudKind.GKE: GKE, CloudKind.AKS: AKS}
_MISSING_ON_GKE = {"DCGM_FI_DEV_XID_ERRORS"}


def _dashboard(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "docs/dashboards" / f"{name}.json").read_text(encoding="utf-8"))


def _queries(document: Any) -> Iterator[str]:
    """Yield the queries anywhere in a dashboard."""
    items = cast("dict[str, Any]", document).items() if isinstance(document, dict) else ()
    for key, value in items:
        if key in ("expr", "prometheusQuery"):
            yield value
        yield from _queries(value)
    for value in cast("list[Any]", document) if isinstance(document, list) else ():
        yield from _queries(value)


def _selectors(expression: Any) -> Iterator[str]:
    """Yield the names of the metrics that a parsed query reads."""
    for name in ("lhs", "rhs", "expr", "param", "vector_selector"):
        if (inner := getattr(expression, name, None)) is not None:
            yield from _selectors(inner)
    for inner in getattr(expression, "args", None) or ():
        yield from _selectors(inner)
    if isinstance(expression, promql.VectorSelector):
        yield cast("str", expression.name)


def _inputs(recording: Recording, type_: str) -> list[dict[str, Any]]:
    return [cast("dict[str, Any]", item.inputs) for item in recording.of_type(type_)]


def _scraped(cloud: CloudKind) -> tuple[set[str], set[str]]:
    """Return the names and the patterns of the metrics that the recorded stack's configuration collects."""
    recording = synth(changed(_CLOUDS[cloud], queues=_QUEUES, addons={"kueue": {}, "metrics": {}}))
    names = set[str]()
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


@pytest.mark.parametrize(
    ("name", "cloud"),
    [
        ("grafana-gke", CloudKind.GKE),
        ("cloud-monitoring", CloudKind.GKE),
        ("grafana-aks", CloudKind.AKS),
    ],
)
def test_panels_read_what_the_stack_scrapes(name: str, cloud: CloudKind) -> None:
    """A panel reads no metric that is not collected, and every collected metric of a GPU has a panel."""
    names, patterns = _scraped(cloud)
    read = {metric for query in _queries(_dashboard(name)) for metric in _selectors(promql.parse(query))}
    others = read - names
    assert [metric for metric in others if not any(re.fullmatch(rule, metric) for rule in patterns)] == []
    assert others  # Kueue's
    assert names - read == set()


def _is_part(part: Any, whole: Any) -> bool:
    if isinstance(part, dict):
        mapping = cast("dict[str, Any]", part)
        return all(key in whole and _is_part(value, whole[key]) for key, value in mapping.items())
    if isinstance(part, list):
        items = cast("list[Any]", part)
        return len(items) == len(whole) and all(map(_is_part, items, whole))
    return part == whole


@pytest.mark.parametrize("cloud", CloudKind)
def test_grafana_accepts_the_dashboard(cloud: CloudKind) -> None:
    """Grafana's own types read it, and keep every field."""
    register_default_plugins()
    document = _dashboard(f"grafana-{cloud}")
    read = json.loads(json.dumps(Dashboard.from_json(document), cls=JSONEncoder))
    assert _is_part(document, read)
    assert len({json.dumps(panel["gridPos"]) for panel in document["panels"]}) == len(document["panels"])


def test_cloud_monitoring_accepts_the_dashboard() -> None:
    """The document has the types of the Monitoring API's discovery document; tiles stay in the grid."""
    schema = json.loads(Path(__file__).with_name("monitoring_v1.schema.json").read_text(encoding="utf-8"))
    document = _dashboard("cloud-monitoring")
    validator = jsonschema.Draft202012Validator(schema)
    assert [error.json_path for error in validator.iter_errors(document)] == []  # pyright: ignore[reportUnknownMemberType]
    tiles = document["mosaicLayout"]["tiles"]
    assert {tile["xPos"] + tile["width"] for tile in tiles} == {6, 12}
    tiles[0]["widget"]["chart"] = {}
    assert not validator.is_valid(document)  # pyright: ignore[reportUnknownMemberType]
