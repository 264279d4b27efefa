"""The tools, found or built once, and control planes."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import yaml

from ebbtide.clients.kubernetes import Api
from ebbtide.declaration.model.cluster import Cluster
from ebbtide.placement import Profile
from ebbtide.placement.derive import profile
from ebbtide.values.kueue_api import API_PATH
from ebbtide_rehearsal.cloud.control_planes import ApiServerProxy
from ebbtide_rehearsal.cloud.store import Store
from ebbtide_rehearsal.control_plane.control_plane import ControlPlane, ControlPlaneSettings
from ebbtide_rehearsal.control_plane.plan import NAMES, ControlPlaneTools
from ebbtide_rehearsal.tools.progress import narrated
from rehearsal.tests.control_plane.cluster import Object, wait
from rehearsal.tests.control_plane.commands import Ebbtide, dev
from rehearsal.tests.control_plane.kueue import create_queues, started
from rehearsal.tests.registry import registry


@pytest.fixture(scope="session")
def tools() -> ControlPlaneTools:
    """Everything that these tests run."""
    return narrated([*NAMES, "kubectl"])


@pytest.fixture(scope="session")
def chart_tools() -> ControlPlaneTools:
    """Helm, and Kueue's chart."""
    return narrated(["helm", "kueue-chart"])


@pytest.fixture(scope="session")
def argo_tools() -> ControlPlaneTools:
    """Argo, beside what a control plane is made of."""
    return narrated(["workflow-controller", "argo-crds"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program."""
    folder = tmp_path / "my_model"
    folder.mkdir()
    (folder / "train.py").write_text("print('trained')")
    return folder


@pytest.fixture(scope="module")
def control_plane(
    tools: ControlPlaneTools, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane for the tests of a file."""
    directory: Path = tmp_path_factory.mktemp("control-plane")
    with ControlPlane.start(directory, tools, ControlPlaneSettings(name="tried", cloud="gke")) as started:
        yield started


@pytest.fixture(scope="module")
def ebbtide(control_plane: ControlPlane) -> Ebbtide:
    """The command line on the development stack's cluster, as its administrator."""
    return Ebbtide(control_plane.plan.kubeconfig, profile(dev()[0]))


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a registry."""
    with registry(tmp_path_factory.mktemp("registry")) as address:
        yield address


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
    return narrated(["cluster-autoscaler"]).path("cluster-autoscaler")


@pytest.fixture(scope="module")
def kueue(
    tools: ControlPlaneTools,
    chart_tools: ControlPlaneTools,
    declaration: Cluster,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ControlPlane]:
    """A control plane with Kueue, and the teams and queues of a file's declaration."""
    directory = tmp_path_factory.mktemp("kueue")
    with started(directory, tools, chart_tools, declaration) as (control_plane, kubectl):
        create_queues(kubectl, declaration)
        yield control_plane


@pytest.fixture(scope="module")
def cluster_profile(declaration: Cluster) -> Profile:
    """The profile of a file's declaration."""
    return profile(declaration)


@pytest.fixture
def kueue_api(kueue: ControlPlane, declaration: Cluster) -> Iterator[Api]:
    """The API of a control plane with Kueue, without Jobs and Workloads."""
    api = kueue.api
    yield api
    for team in declaration.teams:
        jobs = f"/apis/batch/v1/namespaces/{team.name}/jobs"
        for item in api.items(jobs):
            path = f"{jobs}/{item['metadata']['name']}"
            api.delete(path, propagationPolicy="Background", gracePeriodSeconds=0)
    wait(lambda: api.items(f"{API_PATH}/workloads"), lambda items: not items)


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
