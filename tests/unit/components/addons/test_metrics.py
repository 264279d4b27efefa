"""Sources of metrics on the cluster, and their store on AKS."""

from typing import Any

import pytest

from components.addons.kueue import configuration
from components.addons.monitors import COUNTERS, monitors
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.declare import declare
from tests.declarations import AKS, GKE, Declaration, changed

QUEUE = [{"name": "gpus", "pools": ["t4"]}]


def measured(base: Declaration, **more: Any) -> Cluster:
    """Declare a cluster with metrics."""
    return declare(changed(base, addons={"metrics": {}}, **more))


def found(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """Return the objects by kind."""
    return {item["kind"]: item for item in monitors(cluster)}


@pytest.mark.parametrize("base", [GKE, AKS], ids=["gke", "aks"])
def test_nothing_is_scraped_without_the_add_on(base: Declaration) -> None:
    """A cluster without `addons.metrics` has no objects for it."""
    assert monitors(declare(changed(base, queues=QUEUE))) == []


def test_the_monitor_selects_the_exporter() -> None:
    """Labels, port and counters of monitor, DaemonSet, ConfigMap and network policy agree."""
    objects = found(measured(AKS))
    template = objects["DaemonSet"]["spec"]["template"]
    (container,) = template["spec"]["containers"]
    monitor = objects["PodMonitor"]["spec"]
    assert monitor["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    (endpoint,) = monitor["podMetricsEndpoints"]
    (port,) = container["ports"]
    assert endpoint["port"] == port["name"]
    assert endpoint["honorLabels"] is True
    environment = {item["name"]: item.get("value") for item in container["env"]}
    (node,) = (item["valueFrom"] for item in container["env"] if item["name"] == "NODE_NAME")
    assert node == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    ((file, rows),) = objects["ConfigMap"]["data"].items()
    assert environment["DCGM_EXPORTER_COLLECTORS"] == f"{mounted['counters']}/{file}"
    assert [row.split(",")[0] for row in rows.splitlines()] == list(COUNTERS)
    policy = objects["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == monitor["selector"]["matchLabels"]
    assert policy["ingress"][0]["ports"][0]["port"] == port["containerPort"]


def test_the_exporter_needs_gpu_pools() -> None:
    """A cluster without GPUs, or whose GPUs have another driver, gets no exporter."""
    pools = [pool for pool in AKS["pools"] if pool["name"] != "t4"]
    assert monitors(measured(AKS, pools=pools)) == []
    assert "DaemonSet" not in found(declare(changed(AKS, addons={"metrics": {}, "drivers": "gpu-operator"})))


@pytest.mark.parametrize("base", [GKE, AKS], ids=["gke", "aks"])
def test_kueue_is_scraped_over_tls_with_a_token(base: Declaration) -> None:
    """The monitor of Kueue uses the port that its configuration serves, and authenticates."""
    cluster = measured(base, queues=QUEUE)
    (monitor,) = (item for item in monitors(cluster) if item["metadata"]["name"] == "kueue")
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["scheme"] == "https"
    assert endpoint.get("authorization") or endpoint.get("bearerTokenFile")
    served = configuration(cluster)["metrics"]["bindAddress"]
    assert endpoint["port"] in ("https", int(served.removeprefix(":")))
