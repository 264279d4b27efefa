"""`ebbtide adopt` of a cluster that is read from the fake cloud's REST API."""

from collections.abc import Generator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from ebbtide.analysis.recording.values import Plain, leaves
from ebbtide.cli.entry_point import app
from ebbtide.clients.clouds.connect import gke_clusters
from ebbtide.operations.adopting import google
from ebbtide_rehearsal.cloud.store import API_ERROR, InjectedFault
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.fake_clouds import existing_cloud, refusals_of, seed_found, settings_of
from rehearsal.tests.unit.rest_clouds import SUBSCRIPTION, RestClouds, rest_clouds
from tests.declarations import AKS, Declaration
from tests.synth import synth
from tests.unit.adopting.gke_shapes import SHAPES
from tests.unit.cli.test_adopt import PROGRAM

_WINDOW = {"window": {"days": ["sunday"], "start": "02:00", "duration": "6h"}}
_DECLARATION: Declaration = {
    **AKS,
    "cloud": {**AKS["cloud"], "subscription": SUBSCRIPTION, "tier": "standard", "maintenance": _WINDOW},
}


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[RestClouds]:
    """The fake clouds, in which Azure has the cluster of a declaration, and a project without a stack."""
    with rest_clouds(tmp_path, monkeypatch) as serving:
        provider = existing_cloud(serving.store, _DECLARATION).configured(settings_of(_DECLARATION))
        assert refusals_of(provider, synth(_DECLARATION)) == {}
        (tmp_path / "Pulumi.yaml").write_text("{name: team, runtime: python}\n")
        (tmp_path / "__main__.py").write_text(PROGRAM)
        monkeypatch.chdir(tmp_path)
        yield serving


def _adopt(*words: str, status: int = 0) -> str:
    words = ("adopt", "shared", "--subscription", SUBSCRIPTION, *words)
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == status, done.output
    return " ".join(done.output.split())


@pytest.mark.usefixtures("clouds")
def test_a_created_cluster_is_read_back(tmp_path: Path) -> None:
    """Cluster, pools and schedules are read, and declared as they were created."""
    output = _adopt("--cluster", "train", "--owner", "vision-team")
    assert "total 195 188 3 4" in output
    written = yaml.safe_load((tmp_path / "Pulumi.shared.yaml").read_text())["config"]["ebbtide:cluster"]
    assert written["cloud"]["maintenance"] == _WINDOW
    assert written["cloud"]["tier"] == "standard"
    assert {pool["name"]: pool["nodes"] for pool in written["pools"]} == {
        pool["name"]: pool["nodes"] for pool in AKS["pools"]
    }


def test_a_cluster_that_cannot_be_read_is_one_answer(clouds: RestClouds) -> None:
    """Another name and a missing role are errors that name the solution; nothing is written."""
    assert "There is no cluster train2" in _adopt("--cluster", "train2", status=2)
    fault = {"status": 403, "message": "No authorization to read managedClusters."}
    clouds.store.inject(InjectedFault(API_ERROR, "Microsoft.ContainerService/managedClusters/list", 1, fault))
    output = _adopt("--cluster", "train", status=2)
    assert "for the role Reader. Or let the cluster's owner run" in " ".join(output.split())
    assert "az aks show --name train --output json" in output
    assert not Path("Pulumi.shared.yaml").exists()


def test_missing_rights_on_gke_are_one_answer(clouds: RestClouds) -> None:
    """A refused request names one role, and the way without any."""
    fault = {"status": 403, "message": "Required container.clusters.list."}
    clouds.store.inject(InjectedFault(API_ERROR, "container.clusters.list", 1, fault))
    done = CliRunner().invoke(app, ["adopt", "shared", "--project", "acme-ml", "--cluster", "lab"])
    assert done.exit_code == 2, done.output
    output = " ".join(done.output.split())
    assert "role Kubernetes Engine Viewer (roles/container.viewer)" in output
    assert output.count("roles/") == 1
    assert "gcloud container clusters describe lab --format json" in output


def _seeded(clouds: RestClouds) -> dict[str, dict[str, dict[str, Plain]]]:
    """Create the clusters of the public shapes; return their resources' inputs by name, without false ones,
    which the API omits."""
    found = [item for shape in SHAPES if (item := google.read(shape(), shape.__name__))]
    for item in found:
        seed_found(item, clouds.store, FakeControlPlanes())
    return {item.clusters[0].name: _inputs(item) for item in found}


def _inputs(found: google.Found) -> dict[str, dict[str, Plain]]:
    return {
        item.id: {path: value for path, value in leaves(dict(item.inputs)) if value is not False}
        for item in found.resources
    }


def test_gke_clusters_are_read_as_described(clouds: RestClouds) -> None:
    """The API's answer about a cluster of each public shape has the inputs that its description has."""
    described = _seeded(clouds)
    answers = [google.read(dict(item), "the API") for item in gke_clusters("acme-ml")]
    assert {item.clusters[0].name: _inputs(item) for item in answers if item} == described


def test_a_gke_cluster_is_read_by_both_commands(clouds: RestClouds) -> None:
    """A name that does not exist is an error with those that do; `init` declares what `adopt` declares."""
    _seeded(clouds)
    live = ("--project", "acme-ml", "--pools-only", "--cluster")
    for words, status, answer in (
        (("adopt", "dev", *live, "labb"), 2, "There is no cluster labb in acme-ml. It has research"),
        (("adopt", "dev", *live, "xpk"), 0, "Written: Pulumi.dev.yaml"),
        (("init", "new", "--from-cluster", *live, "xpk"), 0, "Wrote 20 files"),
    ):
        done = CliRunner().invoke(app, list(words))
        assert (done.exit_code, answer in " ".join(done.output.split())) == (status, True), done.output
    for name in ("Pulumi.dev.yaml", "adopt.dev.json"):
        assert Path("new", name).read_text() == Path(name).read_text()
