"""Programs in other languages with the package's components, on the real engine and the fake clouds."""

import copy
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from ebbtide_rehearsal.cloud.azure.provider import AzureProvider
from ebbtide_rehearsal.cloud.azure.seeding import seed_cluster as seed_aks
from ebbtide_rehearsal.cloud.gcp.provider import Gcp
from ebbtide_rehearsal.cloud.gcp.seeding import seed_cluster as seed_gke
from ebbtide_rehearsal.cloud.pools import pools
from ebbtide_rehearsal.cloud.store import Store
from rehearsal.tests.control_planes import FakeControlPlanes
from rehearsal.tests.engine.any_objects import AnyObjects
from rehearsal.tests.engine.languages import (
    GoProject,
    Project,
    TypeScriptProject,
    graph,
    npm_packages,
    project_in,
    write_sdk,
)
from rehearsal.tests.engine.running import running
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


def _of_python(directory: Path, cloud: str, declared: Declaration) -> list[dict[str, Any]]:
    """Return the state after an update of the repository's program with a declaration."""
    store, planes = Store(directory / "python.sqlite"), FakeControlPlanes()
    provider = Gcp(store, planes) if cloud == "gke" else AzureProvider(store, planes)
    with running(directory / "python", store, provider, AnyObjects()) as stack:
        stack.declare(declared)
        stack.up()
        return stack.state()


@_IN_EACH
@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_a_cluster(project: Project, tmp_path: Path, cloud: str) -> None:
    """A preview creates nothing, an update the resources of the Python program under the component, a second
    one changes nothing, and a destroy leaves nothing."""
    declared, run = _cluster(cloud), project.terminal.run
    outputs = {name: f"${{train.{name}}}" for name in _OUTPUTS}
    project.write({"train": {"type": "ebbtide:Cluster", "properties": declared}}, outputs)
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
@pytest.mark.parametrize("cloud", BASES)
def test_a_node_pool(project: Project, cloud: str) -> None:
    """A pool joins an existing cluster, stays, and leaves the cluster with its own pool."""
    run, base = project.terminal.run, BASES[cloud]
    if cloud == "gke":
        account = {key: base["cloud"][key] for key in ("project", "location")}
        identity = seed_gke(project.store, project.planes, **account, name="shared")
    else:
        group = {"resource_group": "shared", "location": base["cloud"]["location"]}
        subscription = base["cloud"]["subscription"]
        identity = seed_aks(project.store, project.planes, subscription=subscription, **group, name="shared")
    before = [item.name for item in pools(project.store, identity)]
    arguments = {
        "owner": base["owner"],
        "cloud": {**base["cloud"], "existing": {"name": "shared"}},
        "pool": base["pools"][1],
    }
    project.write({"extra": {"type": "ebbtide:NodePool", "properties": arguments}})
    run("pulumi stack init test")
    run("pulumi preview")
    run("pulumi up --skip-preview")
    assert [item.name for item in pools(project.store, identity)] == sorted([*before, "cpu"])
    run("pulumi up --skip-preview --expect-no-changes")
    run("pulumi destroy --skip-preview")
    assert [item.name for item in pools(project.store, identity)] == before


@_IN_EACH
def test_every_fault_is_reported(project: Project) -> None:
    """Errors of several fields come together, each with the path of its property."""
    declared = _cluster("gke")
    declared["pools"][1]["machine"] = "n2-standard-9"
    declared["pools"][2]["nodes"] = {"min": 5, "max": 2}
    declared["owner"] = "Vision Team!"
    project.write({"train": {"type": "ebbtide:Cluster", "properties": declared}})
    project.terminal.run("pulumi stack init test")
    text = project.fails("pulumi preview")
    for path in ("owner", "pools[1].machine", "pools[2].nodes"):
        assert path in text
    assert "The declaration is invalid." in text
    assert "n2-standard-9" in text


@pytest.mark.long
@pytest.mark.parametrize("project", ["typescript"], indirect=True)
def test_an_error_of_types(project: Project) -> None:
    """TypeScript rejects a program whose declaration has a value of another type."""
    declared = _cluster("gke")
    declared["pools"][1]["nodes"] = {"min": "none"}
    project.write({"train": {"type": "ebbtide:Cluster", "properties": declared}})
    project.terminal.run("pulumi stack init test")
    assert "Type 'string' is not assignable to type 'Input<number | undefined>" in project.fails(
        "pulumi preview"
    )


_ACCOUNT = {
    "type": "gcp:serviceaccount:Account",
    "properties": {"accountId": "trainer", "project": "acme-ml"},
}


def test_an_output_of_another_resource(project: Project) -> None:
    """The e-mail of a service account that does not exist yet is the pool's, once it does."""
    run, declared = project.terminal.run, _cluster("gke", pools=BASES["gke"]["pools"][:2])
    declared["pools"][1]["serviceAccount"] = "${trainer.email}"
    del declared["teams"]
    resources = {"trainer": _ACCOUNT, "train": {"type": "ebbtide:Cluster", "properties": declared}}
    project.write(resources)
    run("pulumi stack init test")
    assert "ebbtide-unknown" not in run("pulumi preview --diff")
    run("pulumi up --skip-preview")
    (pool,) = [item for item in project.state() if item["urn"].endswith("nodePool:NodePool::train-cpu")]
    assert pool["inputs"]["nodeConfig"]["serviceAccount"] == "trainer@acme-ml.iam.gserviceaccount.com"
    run("pulumi up --skip-preview --expect-no-changes")


def test_an_output_where_none_can_be(project: Project) -> None:
    """The error has the property, the reason and the fields that can wait."""
    declared = _cluster("gke")
    declared["pools"][1]["machine"] = "${trainer.email}"
    resources = {"trainer": _ACCOUNT, "train": {"type": "ebbtide:Cluster", "properties": declared}}
    project.write(resources)
    project.terminal.run("pulumi stack init test")
    text = project.fails("pulumi preview")
    assert "pools[1].machine" in text
    assert "The value is an output of a resource that does not exist yet." in text
    assert "Such outputs are possible in pools[*].serviceAccount" in text


@_IN_EACH
def test_a_project_from_the_template(project: Project) -> None:
    """The template with the line that `pulumi package add` writes is a cluster, which `pulumi new` names."""
    run = project.terminal.run
    run(f'pulumi new "{project.template}" --dir . --force --generate-only --name my-cluster')
    project.add_package()
    run("pulumi stack init dev")
    run("pulumi config set project acme-ml")
    assert "my-cluster-dev" in run("pulumi preview")


_OF_THE_TEMPLATE: Declaration = {
    "name": "ebbtide-test",
    "owner": "my-team",
    "cloud": {"kind": "gke", "project": "acme-ml", "location": "us-central1-a"},
    "lifetime": {"hours": 8},
    "pools": [
        {"name": "system", "role": "system", "machine": "e2-standard-2", "nodes": {"min": 1, "max": 3}},
        {"name": "cpu-spot", "machine": "n2-standard-8", "capacity": "spot", "nodes": {"max": 10}},
    ],
}


@pytest.mark.long
def test_the_template_in_go(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The template compiles with the SDK and has the resources of the Python program, also if a capacity is
    an object instead of a name.
    """
    with project_in(tmp_path, request, GoProject) as project:
        run = project.terminal.run
        run(f'pulumi new "{project.template}" --dir . --force --generate-only --name ebbtide')
        project.add_package()
        project.add_sdk()
        run("pulumi stack init test")
        run("pulumi config set project acme-ml")
        run("pulumi preview")
        assert project.store.resources() == []
        run("pulumi up --skip-preview")
        in_python = graph(_of_python(tmp_path, "gke", _OF_THE_TEMPLATE))
        assert graph(project.state()) == in_python
        assert run("pulumi stack output clusterName").strip() == "ebbtide-test"
        run("pulumi up --skip-preview --expect-no-changes")
        source = project.root / "main.go"
        named = source.read_text(encoding="utf-8")
        structured = named.replace('pulumi.String("spot")', 'ebbtide.SpotArgs{Kind: pulumi.String("spot")}')
        assert structured != named
        source.write_text(structured, encoding="utf-8")
        run("pulumi up --skip-preview")
        assert graph(project.state()) == in_python
        run("pulumi destroy --skip-preview")
        assert project.store.resources() == []


@pytest.mark.parametrize(
    ("language", "file", "pools"),
    [
        ("nodejs", "cluster.ts", "pools: pulumi.Input<pulumi.Input<inputs.PoolArgs>[]>"),
        ("go", "ebbtide/cluster.go", "Pools PoolArrayInput"),
        ("python", "pulumi_ebbtide/cluster.py", "pools: pulumi.Input[Sequence[pulumi.Input['PoolArgs']]]"),
    ],
)
def test_an_sdk(tmp_path: Path, language: str, file: str, pools: str) -> None:
    """The generators of Pulumi's language hosts accept the schema, and the SDK has typed pools."""
    write_sdk(language, tmp_path)
    assert pools in (tmp_path / file).read_text(encoding="utf-8")
