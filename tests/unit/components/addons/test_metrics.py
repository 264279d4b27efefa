"""Sources of metrics on the cluster, and their store on AKS."""

from typing import Any

import pulumi
import pulumi_azure_native as azure_native
import pytest

from components.addons.kueue import configuration
from components.addons.monitors import COUNTERS, monitors
from components.aks.monitoring import MetricStore, MetricStoreArgs
from ebbtide.analysis.recording.record import record
from ebbtide.declaration.catalog.versions import PINS
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


def test_the_exporter_runs_on_gpu_nodes_of_aks() -> None:
    """The DaemonSet selects the GPU pools, tolerates their taints, and is pinned and unprivileged."""
    cluster = measured(AKS)
    pod = found(cluster)["DaemonSet"]["spec"]["template"]["spec"]
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (expression,) = terms["nodeSelectorTerms"][0]["matchExpressions"]
    assert expression["values"] == [pool.name for pool in cluster.gpu_pools]
    assert pod["tolerations"]
    (container,) = pod["containers"]
    assert container["image"].endswith(f":{PINS['dcgm-exporter'].version}")
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "privileged" not in container["securityContext"]


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


def test_the_token_on_gke_reads_metrics_only() -> None:
    """The token's account has the role of Kueue's chart for metrics, and only GKE's collector reads it."""
    objects = found(measured(GKE, queues=QUEUE))
    kinds = list(objects)
    assert kinds.index("ServiceAccount") < kinds.index("Secret")
    secret = objects["Secret"]["metadata"]
    assert (
        secret["annotations"]["kubernetes.io/service-account.name"]
        == (objects["ServiceAccount"]["metadata"]["name"])
    )
    assert objects["ClusterRoleBinding"]["roleRef"]["name"] == "kueue-metrics-reader"
    (rule,) = objects["Role"]["rules"]
    assert rule["resourceNames"] == [secret["name"]]
    (subject,) = objects["RoleBinding"]["subjects"]
    assert (subject["namespace"], subject["name"]) == ("gmp-system", "collector")
    endpoint = objects["PodMonitoring"]["spec"]["endpoints"][0]
    assert endpoint["authorization"]["credentials"]["secret"]["name"] == secret["name"]


def test_metrics_reach_the_workspace() -> None:
    """The rule sends the agent's stream to the workspace, and the cluster is associated with the rule."""

    def program() -> None:
        provider = azure_native.Provider("azure", location="eastus")
        args = MetricStoreArgs(
            name="train",
            resource_group="train",
            location="eastus",
            cluster="/the/cluster",
            labels={"ebbtide-owner": "vision-team"},
        )
        MetricStore("metrics", args, pulumi.ResourceOptions(providers=[provider]))

    recording = record(program, project="test", stack="test")
    kinds = ("AzureMonitorWorkspace", "DataCollectionEndpoint", "DataCollectionRule")
    workspace, endpoint, rule = (recording.of_type(f"azure-native:monitor:{kind}")[0] for kind in kinds)
    inputs: Any = rule.inputs
    (destination,) = inputs["destinations"]["monitoringAccounts"]
    assert destination["accountResourceId"] == workspace.id
    assert inputs["dataCollectionEndpointId"] == endpoint.id
    (flow,) = inputs["dataFlows"]
    (source,) = inputs["dataSources"]["prometheusForwarder"]
    assert flow == {"streams": source["streams"], "destinations": [destination["name"]]}
    (association,) = recording.of_type("azure-native:monitor:DataCollectionRuleAssociation")
    assert association.inputs["resourceUri"] == "/the/cluster"
    assert association.inputs["dataCollectionRuleId"] == rule.id
    for item in (workspace, endpoint, rule):
        assert item.inputs["tags"] == {"ebbtide-owner": "vision-team"}
