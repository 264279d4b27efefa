"""The real Kueue on a control plane, from its chart with a declaration's values."""

from components.addons.kueue import NAMESPACE
from components.addons.kueue_values import VISIBILITY_PORT
from ebbtide.model import Cluster
from ebbtide.model.labels_and_taints import labels_and_taints
from ebbtide.placement.kueue import layers
from ebbtide.placement.member_policy import controllers_priority
from ebbtide.placement.queueing import queueing
from ebbtide_rehearsal.control_plane import ControlPlane
from rehearsal.tests.control_plane.cluster import Object, namespace, node, priority_class, wait
from rehearsal.tests.control_plane.commands import Kubectl

DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/kueue-controller-manager"


def with_visibility_port(chart: list[Object]) -> list[Object]:
    """Return the chart's objects with the port of the visibility server that our component sets."""
    for item in chart:
        if item["kind"] == "Service" and item["metadata"]["name"].endswith("-visibility-server"):
            item["spec"]["ports"][0]["targetPort"] = VISIBILITY_PORT
    return chart


def install(cluster: ControlPlane, kubectl: Kubectl, chart: list[Object], declaration: Cluster) -> None:
    """Install Kueue on a node of the system pool, and wait until it is ready."""
    system = declaration.system_pool
    assert system is not None
    pool_labels = labels_and_taints(system, declaration.site.cloud).all_labels
    node(cluster.api, "system", labels=dict(pool_labels))
    install_on_nodes(cluster, kubectl, chart, declaration)


def install_on_nodes(
    cluster: ControlPlane, kubectl: Kubectl, chart: list[Object], declaration: Cluster
) -> None:
    """Install Kueue on existing nodes of the system pool, and wait until it is ready."""
    priority_class(cluster.api, controllers_priority(declaration))
    namespace(cluster.api, NAMESPACE)
    kubectl.apply(chart)
    wait(
        lambda: cluster.api.get(DEPLOYMENT)["status"].get("readyReplicas"),
        lambda ready: ready == 1,
        seconds=90,
    )


def create_queues(kubectl: Kubectl, declaration: Cluster) -> None:
    """Create the declaration's flavors, cohorts and queues."""
    for layer in layers(queueing(declaration)):
        kubectl.apply(layer)
