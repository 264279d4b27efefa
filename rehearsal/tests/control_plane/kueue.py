"""The real Kueue on a control plane, from its chart with a declaration's values."""

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

from components.addons import teams
from components.addons.kueue import NAMESPACE, VISIBILITY_PORT, values
from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.placement.member_policy import controllers_priority
from ebbtide.placement.queue_objects import layers
from ebbtide.placement.queueing import queueing
from ebbtide.values.kueue_api import API_PATH
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane, ControlPlaneSettings
from ebbtide_rehearsal.control_plane.plan import ControlPlaneTools
from ebbtide_rehearsal.tools.progress import narrated
from rehearsal.tests.control_plane.cluster import Object, declared_node, namespace, priority_class, wait
from rehearsal.tests.control_plane.commands import Kubectl, rendered

GKE_PORTS = frozenset({443, 10250})
"""Ports of nodes and pods that GKE's firewall opens to the control plane."""

DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/kueue-controller-manager"


def settings_of(
    declaration: Cluster, members: Mapping[str, Iterable[str]] | None = None
) -> ControlPlaneSettings:
    """Return the settings of the control plane of a declared cluster."""
    cloud = declaration.site.cloud.value
    ports = GKE_PORTS if cloud == "gke" else None
    return ControlPlaneSettings(name=declaration.name, cloud=cloud, members=members or {}, open_ports=ports)


def install(
    cluster: ControlPlane,
    kubectl: Kubectl,
    chart_tools: ControlPlaneTools,
    declaration: Cluster,
    directory: Path,
    config: Object | None = None,
) -> None:
    """Install Kueue on nodes of the system pool, with the declaration's configuration or another, and wait
    until it is ready."""
    chart_values = values(declaration)
    if config is not None:
        chart_values["managerConfig"] = {"controllerManagerConfigYaml": yaml.safe_dump(config)}
    chart = rendered(chart_tools, chart_values, NAMESPACE, directory)
    for item in chart:
        # As our component sets it.
        if item["kind"] == "Service" and item["metadata"]["name"].endswith("-visibility-server"):
            item["spec"]["ports"][0]["targetPort"] = VISIBILITY_PORT
    priority_class(cluster.api, controllers_priority(declaration))
    namespace(cluster.api, NAMESPACE)
    kubectl.apply(chart)
    wait(lambda: cluster.api.get(DEPLOYMENT)["status"].get("readyReplicas"), lambda ready: ready == 1)


@contextmanager
def started(
    directory: Path,
    tools: ControlPlaneTools,
    chart_tools: ControlPlaneTools,
    declaration: Cluster,
    config: Object | None = None,
) -> Generator[tuple[ControlPlane, Kubectl]]:
    """Start the control plane of a cluster, with Kueue on a node of its system pool as `install` has it."""
    with ControlPlane.start(directory / "control-plane", tools, settings_of(declaration)) as cluster:
        kubectl = Kubectl(tools, cluster)
        system = declaration.system_pool
        assert system is not None
        declared_node(cluster.api, "system", declaration, system.name)
        install(cluster, kubectl, chart_tools, declaration, directory, config)
        yield cluster, kubectl


def define(api: Api, *kinds: str) -> None:
    """Create the definitions of kinds of Kueue, by their plurals, without Kueue, and wait until they are
    served."""
    definitions = narrated(["kueue-crds"]).path("kueue-crds")
    for kind in kinds:
        (file,) = definitions.rglob(f"bases/*_{kind}.yaml")
        crd = yaml.safe_load(file.read_text())
        api.apply(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{crd['metadata']['name']}", crd)
        wait(lambda path=f"{API_PATH}/{kind}": api.find(path), bool)


def gpu_node(api: Api, declaration: Cluster, pool: str, gpus: int) -> None:
    """Create a node of a pool, with its labels, taints and GPUs."""
    declared_node(api, pool, declaration, pool, resources={"nvidia.com/gpu": str(gpus)})


def create_queues(kubectl: Kubectl, declaration: Cluster) -> None:
    """Create the namespaces of the declaration's teams, with the rights of their members, and its flavors,
    cohorts and queues."""
    for team in declaration.teams:
        kubectl.apply([teams.namespace_manifest(declaration, team)])
        kubectl.apply(teams.members(declaration, team))
    for layer in layers(queueing(declaration)):
        kubectl.apply(layer)
