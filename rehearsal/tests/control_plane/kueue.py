"""The real Kueue on a control plane, from its chart with a declaration's values."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import yaml
from rich.console import Console

from components.addons import teams
from components.addons.kueue import NAMESPACE, VISIBILITY_PORT, values
from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.declaration.model.labels_and_taints import labels_and_taints
from ebbtide.placement.member_policy import controllers_priority
from ebbtide.placement.queue_objects import layers
from ebbtide.placement.queueing import queueing
from ebbtide.values.kueue_api import API_PATH
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane, ControlPlaneSettings
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from ebbtide_rehearsal.tools.find import ensure
from ebbtide_rehearsal.tools.progress import narration
from rehearsal.tests.control_plane.cluster import Object, declared_node, namespace, node, priority_class, wait
from rehearsal.tests.control_plane.commands import Kubectl, rendered

GKE_PORTS = frozenset({443, 10250})
"""Ports of nodes and pods that GKE's firewall opens to the control plane."""

DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/kueue-controller-manager"


def with_visibility_port(chart: list[Object]) -> list[Object]:
    """Return the chart's objects with the port of the visibility server that our component sets."""
    for item in chart:
        if item["kind"] == "Service" and item["metadata"]["name"].endswith("-visibility-server"):
            item["spec"]["ports"][0]["targetPort"] = VISIBILITY_PORT
    return chart


@contextmanager
def started(
    directory: Path,
    tools: ControlPlaneTools,
    chart_tools: ControlPlaneTools,
    declaration: Cluster,
    config: Object | None = None,
) -> Generator[tuple[ControlPlane, Kubectl]]:
    """Start the control plane of a cluster on GKE, with Kueue on a node of its system pool; with the
    declaration's configuration, or another."""
    settings = ControlPlaneSettings(name=directory.name, cloud="gke", open_ports=GKE_PORTS)
    chart_values = values(declaration)
    if config is not None:
        chart_values["managerConfig"] = {"controllerManagerConfigYaml": yaml.safe_dump(config)}
    chart = with_visibility_port(rendered(chart_tools, chart_values, NAMESPACE, directory))
    with ControlPlane.start(directory / "control-plane", tools, settings) as cluster:
        kubectl = Kubectl(tools, cluster)
        system = declaration.system_pool
        assert system is not None
        node(cluster.api, "system", labels=dict(labels_and_taints(system, declaration.site.cloud).all_labels))
        install_on_nodes(cluster, kubectl, chart, declaration)
        yield cluster, kubectl


def define(api: Api, *kinds: str) -> None:
    """Create the definitions of kinds of Kueue, by their plurals, without Kueue, and wait until they are
    served."""
    with narration(Console(stderr=True)) as say:
        definitions = ensure(["kueue-crds"], on_step=say).path("kueue-crds")
    for kind in kinds:
        (file,) = definitions.rglob(f"bases/*_{kind}.yaml")
        crd = yaml.safe_load(file.read_text())
        api.apply(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}", crd)
        wait(lambda path=f"{API_PATH}/{kind}": api.find(path), bool)


def create_teams(kubectl: Kubectl, declaration: Cluster) -> None:
    """Create the namespaces of the declaration's teams, with the rights of their members."""
    for team in declaration.teams:
        kubectl.apply([teams.namespace_manifest(declaration, team)])
        kubectl.apply(teams.members(declaration, team))


def gpu_node(api: Api, declaration: Cluster, pool: str, gpus: int) -> None:
    """Create a node of a pool, with its labels, taints and GPUs."""
    declared_node(api, pool, declaration, pool, resources={"nvidia.com/gpu": str(gpus)})


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
    )


def create_queues(kubectl: Kubectl, declaration: Cluster) -> None:
    """Create the declaration's flavors, cohorts and queues."""
    for layer in layers(queueing(declaration)):
        kubectl.apply(layer)
