"""The tools, found or built once, and control planes."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from ebbtide_rehearsal.cloud.control_planes import ApiServerProxy
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane, ControlPlaneSettings
from ebbtide_rehearsal.control_plane.plan import NAMES, ControlPlaneTools
from ebbtide_rehearsal.tools.find import Tools, ensure
from ebbtide_rehearsal.tools.progress import narration
from rehearsal.tests.control_plane.cluster import Object, wait


@pytest.fixture(scope="session")
def tools() -> ControlPlaneTools:
    """Everything that these tests run."""
    with narration(Console(stderr=True)) as say:
        return ensure([*NAMES, "kubectl"], on_step=say)


@pytest.fixture(scope="session")
def chart_tools() -> ControlPlaneTools:
    """Helm, and Kueue's chart."""
    with narration(Console(stderr=True)) as say:
        return ensure(["helm", "kueue-chart"], on_step=say)


@pytest.fixture(scope="session")
def engine_tools() -> Tools:
    """The engine, its Kubernetes provider, and a chart for it."""
    with narration(Console(stderr=True)) as say:
        return ensure(["pulumi", "pulumi-resource-kubernetes", "kueue-chart"], on_step=say)


@pytest.fixture(scope="module")
def control_plane(
    tools: ControlPlaneTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane for the tests of a file."""
    directory: Path = tmp_path_factory.mktemp("control-plane")
    with ControlPlane.start(directory, tools, ControlPlaneSettings(name="tried", cloud="gke")) as started:
        yield started


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return the store of a separate cloud."""
    return Store(tmp_path / "cloud.sqlite")


@pytest.fixture
def kubeconfig(control_plane: ControlPlane, store: Store) -> Iterator[str]:
    """The administrator's, through the proxy that a stack's provider has."""
    proxy = ApiServerProxy(control_plane, store, "tried")
    written = yaml.safe_load(control_plane.plan.kubeconfig.read_text())
    written["clusters"][0]["cluster"]["server"] = f"https://{proxy.host}"
    yield json.dumps(written)
    proxy.stop()


@pytest.fixture(scope="session")
def cluster_autoscaler() -> Path:
    """The real cluster-autoscaler."""
    with narration(Console(stderr=True)) as say:
        return ensure(["cluster-autoscaler"], on_step=say).path("cluster-autoscaler")


@pytest.fixture
def clean(control_plane: ControlPlane) -> Iterator[None]:
    """Remove the Jobs, pods and nodes of a test."""
    yield
    api = control_plane.api
    for path in ("/apis/batch/v1/jobs", "/api/v1/pods", "/api/v1/nodes"):
        group, _, kind = path.rpartition("/")

        def emptied(items: Sequence[Object], group: str = group, kind: str = kind) -> bool:
            for item in items:
                about = item["metadata"]
                where = f"{group}/namespaces/{about['namespace']}" if "namespace" in about else group
                api.delete(
                    f"{where}/{kind}/{about['name']}", gracePeriodSeconds=0, propagationPolicy="Background"
                )
            return not items

        wait(lambda path=path: api.items(path), emptied)
