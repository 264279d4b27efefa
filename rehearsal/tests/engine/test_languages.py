"""Programs in other languages with the package's components, on the real engine and the fake clouds."""

import copy
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.tests.engine.languages import (
    Project,
    TypeScriptProject,
    graph,
    npm_packages,
    project_in,
)
from rehearsal.tests.engine.running import running_on
from tests.declarations import BASES, Declaration, changed

pytestmark = pytest.mark.engine

_OUTPUTS = ("clusterName", "kubeconfig", "placementProfile")
_IN_EACH = pytest.mark.parametrize(
    "project", ["yaml", pytest.param("typescript", marks=pytest.mark.long)], indirect=True
)


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The npm packages of a TypeScript program."""
    return npm_packages(tmp_path_factory.mktemp("npm"))


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[Project]:
    """A project without a program, by default in YAML."""
    kind = TypeScriptProject if getattr(request, "param", "yaml") == "typescript" else Project
    with project_in(tmp_path, request, kind) as made:
        if isinstance(made, TypeScriptProject):
            made.install(request.getfixturevalue("packages"))
        yield made


def _cluster(cloud: str, **changes: Any) -> Declaration:
    """Return an ephemeral cluster with three pools and a team."""
    plain = {"lifetime": {"hours": 8}, "teams": [{"name": "vision"}], "pools": BASES[cloud]["pools"][:3]}
    return copy.deepcopy(changed(BASES[cloud], **(plain | changes)))


def _component(declared: Declaration) -> dict[str, Any]:
    return {"type": "ebbtide:Cluster", "properties": {"declaration": declared}}


def _of_python(directory: Path, cloud: str, declared: Declaration) -> list[dict[str, Any]]:
    """Return the state after an update of the repository's program with a declaration."""
    (directory / "python").mkdir()
    with running_on(cloud, directory / "python") as (stack, _, _):
        stack.declare(declared)
        stack.up()
        return stack.state()


@_IN_EACH
@pytest.mark.parametrize("cloud", ["gke", pytest.param("aks", marks=pytest.mark.long)])
def test_a_cluster(project: Project, tmp_path: Path, cloud: str) -> None:
    """A preview creates nothing, an update the resources of the Python program under the component, a second
    one changes nothing, and a destroy leaves nothing."""
    declared, run = _cluster(cloud), project.terminal.run
    outputs = {name: f"${{train.{name}}}" for name in _OUTPUTS}
    project.write({"train": _component(declared)}, outputs)
    run("pulumi stack init test")
    run("pulumi preview")
    assert project.store.resources() == []
    run("pulumi up --skip-preview")
    assert graph(project.state()) == graph(_of_python(tmp_path, cloud, declared))
    assert run("pulumi stack output clusterName").strip() == "train"
    run("pulumi up --skip-preview --expect-no-changes")
    run("pulumi destroy --skip-preview")
    assert project.store.resources() == []
    assert project.planes.running == {}


@_IN_EACH
def test_every_fault_is_reported(project: Project) -> None:
    """Errors of several fields come together, each with the path of its property."""
    declared = _cluster("gke")
    declared["pools"][1]["machine"] = "n2-standard-9"
    declared["pools"][2]["nodes"] = {"min": 5, "max": 2}
    declared["owner"] = "Vision Team!"
    project.write({"train": _component(declared)})
    project.terminal.run("pulumi stack init test")
    text = project.fails("pulumi preview")
    for path in ("owner", "pools[1].machine", "pools[2].nodes"):
        assert f"declaration.{path}" in text
    assert "The declaration is invalid." in text
    assert "n2-standard-9" in text


_ACCOUNT = {
    "type": "gcp:serviceaccount:Account",
    "properties": {"accountId": "trainer", "project": "acme-ml"},
}


def test_an_output_of_another_resource(project: Project) -> None:
    """A declaration needs plain values, since resources follow from it before others exist."""
    declared = _cluster("gke")
    declared["pools"][1]["serviceAccount"] = "${trainer.email}"
    project.write({"trainer": _ACCOUNT, "train": _component(declared)})
    project.terminal.run("pulumi stack init test")
    assert "output of another resource" in project.fails("pulumi preview")


@_IN_EACH
def test_a_project_from_the_template(project: Project) -> None:
    """The template with the line that `pulumi package add` writes is a cluster, which `pulumi new` names."""
    run = project.terminal.run
    run(f'pulumi new "{project.template}" --dir . --force --generate-only --name my-cluster')
    project.add_package()
    run("pulumi stack init dev")
    run("pulumi config set project acme-ml")
    assert "my-cluster-dev" in run("pulumi preview")
