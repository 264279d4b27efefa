"""Charts and kustomizations of a program on the real engine: the real Kueue from its chart."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from pulumi_kubernetes import Provider, helm
from pulumi_kubernetes.kustomize import v2 as kustomize

from components.addons.add_on import system_placement
from components.addons.kueue import NAMESPACE, RELEASE, values
from components.addons.manifest import Manifest, has_cloud_resources, leaf_options, obj
from ebbtide.declaration.catalog.versions import PINS
from ebbtide.declaration.model.declare import declare
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane
from ebbtide_rehearsal.stage import INDEX, link_charts, mirror
from ebbtide_rehearsal.tools.find import Tools
from rehearsal.tests.control_plane import programs
from rehearsal.tests.control_plane.cluster import node, priority_class
from rehearsal.tests.control_plane.programs import Program, Stack
from tests.repository import ROOT

pytestmark = [pytest.mark.rehearsal, pytest.mark.long]

CHART = f"oci://registry.k8s.io/kueue/charts/kueue@{PINS['kueue'].digest}"
DECLARED = declare(
    yaml.safe_load((ROOT / "examples/queued-gpus/Pulumi.queued-gpus.yaml").read_text())["config"][
        "ebbtide:cluster"
    ]
)
DEPLOYMENT = f"kueue:{NAMESPACE}/kueue-controller-manager"


@pytest.fixture
def kustomization(tmp_path: Path) -> Path:
    """A directory of a rendered kustomization, as `--manifests` takes it."""
    directory = tmp_path / "kustomization"
    directory.mkdir()
    (directory / INDEX).write_text("github.com/x/thing/path?ref=1: thing.yaml\n")
    (directory / "thing.yaml").write_text(yaml.safe_dump(obj("v1", "ConfigMap", "config", data={"a": "1"})))
    return directory


@pytest.fixture
def stack(engine_tools: Tools, kubeconfig: str, kustomization: Path, tmp_path: Path) -> Iterator[Stack]:
    """A stack that is empty again before its cluster is out of reach."""
    assert kubeconfig
    environment = mirror(tmp_path / "git", engine_tools, [kustomization], tmp_path / "bin")
    made = programs.stack(tmp_path / "engine", engine_tools, environment)
    link_charts(tmp_path / "engine" / "project", engine_tools, [])
    yield made
    made.destroy()


def _marked(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
    """A transform of the program's, on what the chart is in."""
    if not args.type_.endswith(":Deployment"):
        return None
    props: dict[str, Any] = dict(args.props)
    about = props["metadata"]
    annotations = {**about.get("annotations", {}), "marked": "yes"}
    marked = {**props, "metadata": {**about, "annotations": annotations}}
    return pulumi.ResourceTransformResult(props=marked, opts=args.opts)


def _program(kubeconfig: str) -> Program:
    def program() -> None:
        provider = Provider("cluster", kubeconfig=kubeconfig)
        inside = pulumi.ResourceOptions(providers=[provider], transforms=[_marked])
        above = pulumi.ComponentResource("tests:Above", "above", {}, inside)
        options = pulumi.ResourceOptions(parent=above)
        cluster = Manifest("cluster", obj("v1", "ConfigMap", "cluster", "default"), options)
        namespace = Manifest("namespace", obj("v1", "Namespace", NAMESPACE), options)
        chart = helm.v4.Chart(
            "kueue",
            chart=CHART,
            version=PINS["kueue"].version,
            name=RELEASE,
            namespace=NAMESPACE,
            values=values(DECLARED),
            opts=leaf_options(above, None, [namespace]),
        )
        flavor = obj("kueue.x-k8s.io/v1beta2", "ResourceFlavor", "flavor", spec={"nodeLabels": {"a": "b"}})
        Manifest("flavor", flavor, pulumi.ResourceOptions(parent=above, depends_on=[chart]))
        kustomize.Directory(
            "thing",
            directory="github.com/x/thing/path?ref=1",
            namespace="default",
            opts=leaf_options(above, cluster),
        )

    return program


def test_a_chart_comes_up_stays_the_same_and_goes(
    stack: Stack, kubeconfig: str, control_plane: ControlPlane
) -> None:
    """A chart's objects are resources that the program's transforms reach, Kueue's webhooks respond, and
    custom resources are deleted before the controller of their finalizers."""
    placement = system_placement(DECLARED)
    node(control_plane.api, "system", labels=placement.node_selector)
    priority_class(control_plane.api, placement.priority_class)
    program = _program(kubeconfig)
    stack.up(program)
    state = stack.state()
    deployment = state[f"kubernetes:apps/v1:Deployment {DEPLOYMENT}"]
    assert deployment["inputs"]["metadata"]["annotations"]["marked"] == "yes"
    assert "deletedWith" not in deployment
    chart = [item for name, item in state.items() if " kueue:" in name]
    assert chart
    assert not [
        item["urn"] for item in chart if has_cloud_resources(item["type"].rpartition(":")[2], item["inputs"])
    ]
    thing = state["kubernetes:core/v1:ConfigMap thing:default/config"]
    assert thing["deletedWith"].endswith("::cluster")
    assert control_plane.api.get("/api/v1/namespaces/default/configmaps/config")["data"] == {"a": "1"}
    assert stack.up(program) == {}

    gone = stack.destroy()
    assert gone.index("flavor") < gone.index(DEPLOYMENT) < gone.index("namespace")
    assert gone.index("flavor") < gone.index("kueue:resourceflavors.kueue.x-k8s.io")
    assert control_plane.api.find(f"/api/v1/namespaces/{NAMESPACE}") is None
    definitions = control_plane.api.items("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    assert not [item for item in definitions if item["spec"]["group"] == "kueue.x-k8s.io"]
