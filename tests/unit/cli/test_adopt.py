"""`ebbtide adopt`, as a user types it."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from ebbtide.cli.entry_point import app
from ebbtide.declaration.project.adopt_file import read_adopt_file
from tests.repository import ROOT
from tests.unit.adopting import aks_shapes
from tests.unit.adopting.gke_shapes import Document, cluster, pool

PROGRAM = f"""
import sys

sys.path.insert(0, {str(ROOT)!r})

import pulumi
from components import program

cluster = program.declared(pulumi.Config("ebbtide").require_object("cluster"))
program.deploy(cluster)
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project without stacks, and the description of a cluster."""
    (tmp_path / "Pulumi.yaml").write_text("{name: team, runtime: python}\n")
    (tmp_path / "__main__.py").write_text(PROGRAM)
    _describe(tmp_path / "cluster.json", cluster("lab", "us-central1-a", [pool("admin", "e2-standard-4")]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def _describe(path: Path, document: Document) -> None:
    path.write_text(json.dumps(document))


def _adopt(*words: str, status: int = 0) -> str:
    done = CliRunner().invoke(app, ["adopt", *words])
    assert done.exit_code == status, done.output
    return done.output


def test_a_description_becomes_a_stack(project: Path) -> None:
    """The declaration previews as written, and the file of resources names the cluster and its pool."""
    output = _adopt("shared", "--from", "cluster.json", "--owner", "vision-team")
    assert "RESOURCE  READ  DECLARED  OVERRIDDEN  LEFT" in output
    assert "Written: Pulumi.shared.yaml and adopt.shared.json." in output
    resources = read_adopt_file(project / "adopt.shared.json")
    assert [item.name for item in resources] == ["lab-cluster", "lab-admin"]
    config = yaml.safe_load((project / "Pulumi.shared.yaml").read_text())["config"]
    assert config["ebbtide:cluster"]["adopt"] == "adopt.shared.json"
    done = CliRunner().invoke(app, ["preview", "shared"])
    assert done.exit_code == 0, done.output
    assert "excepted: private-nodes (cluster lab)" in done.output


def test_an_aks_cluster_becomes_a_stack(project: Path) -> None:
    """The output of az about cluster and resource group is declared whole, and previews as written."""
    _describe(project / "aks.json", aks_shapes.VERIFIED[0])
    output = _adopt("shared", "--from", "aks.json", "--owner", "vision-team", status=2)
    assert "az group show --name rg-aks --output json" in output
    _describe(project / "group.json", aks_shapes.VERIFIED[1])
    _adopt("shared", "--from", "aks.json", "--from", "group.json", "--owner", "vision-team")
    resources = read_adopt_file(project / "adopt.shared.json")
    assert [item.name for item in resources] == ["aks-verified-group", "aks-verified-cluster"]
    done = CliRunner().invoke(app, ["preview", "shared"])
    assert done.exit_code == 0, done.output


def test_a_stack_file_is_never_overwritten_unasked(project: Path) -> None:
    """An existing declaration stays, and its other settings stay even with `--overwrite`."""
    file = project / "Pulumi.shared.yaml"
    file.write_text("config: {gcp:project: acme-ml}\n")
    assert "exists already" in _adopt("shared", "--from", "cluster.json", status=2)
    assert file.read_text() == "config: {gcp:project: acme-ml}\n"
    _adopt("shared", "--from", "cluster.json", "--overwrite")
    assert yaml.safe_load(file.read_text())["config"]["gcp:project"] == "acme-ml"


def test_every_fault_of_the_input_is_reported_at_once(project: Path) -> None:
    """A truncated file, a foreign one and a missing one are three lines; nothing is written."""
    (project / "half.json").write_text((project / "cluster.json").read_text()[:400])
    (project / "foreign.json").write_text('{"kind": "Pod"}')
    words = [word for name in ("half", "foreign", "missing") for word in ("--from", f"{name}.json")]
    output = _adopt("shared", *words, status=2)
    assert "half.json is not JSON, or only a part of it" in output
    assert "foreign.json is no document about a cluster" in output
    assert "missing.json: The file cannot be read" in output
    assert not (project / "Pulumi.shared.yaml").exists()


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("--cluster", "labb"), "There is no cluster labb; did you mean lab?"),
        (("--project", "acme-prod"), "The files are of a cluster of acme-ml, and --project is acme-prod."),
    ],
)
def test_another_cluster_is_refused(words: tuple[str, ...], answer: str) -> None:
    """A name or a project that the files do not have is an error with those that they have."""
    assert answer in _adopt("shared", "--from", "cluster.json", *words, status=2)


def test_no_cluster_is_named() -> None:
    """Without files, project and cluster are needed."""
    assert "Name files about it with --from" in _adopt("shared", status=2)
