"""`ebbtide adopt`, as a user types it."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from ebbtide.cli.entry_point import app
from ebbtide.declaration.project.adopt_file import read_adopt_file
from ebbtide.operations.adopting.steps import AdoptionReport
from ebbtide.values.cloud_kind import CloudKind
from tests.repository import ROOT
from tests.unit.adopting import aks_shapes
from tests.unit.adopting.gke_shapes import Document, cluster, pool, queued_gpus

PROGRAM = f"""
import sys

sys.path.insert(0, {str(ROOT)!r})

from components import program

program.deploy(program.configured())
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


def _adopt(*words: str, status: int = 0, command: str = "adopt") -> str:
    done = CliRunner().invoke(app, [command, *words])
    assert done.exit_code == status, done.output
    return done.output


def test_a_description_becomes_a_stack(project: Path) -> None:
    """The declaration previews as written, and the file of resources names the cluster and its pool."""
    output = _adopt("shared", "--from", "cluster.json", "--owner", "vision-team")
    assert "RESOURCE  READ  DECLARED  OVERRIDDEN  CHANGED  LEFT" in output
    assert "Written: Pulumi.shared.yaml and adopt.shared.json." in output
    resources = read_adopt_file(project / "adopt.shared.json")
    assert [item.name for item in resources] == ["lab-cluster", "lab-admin"]
    config = yaml.safe_load((project / "Pulumi.shared.yaml").read_text())["config"]
    assert config["ebbtide:cluster"]["adopt"] == "adopt.shared.json"
    done = CliRunner().invoke(app, ["preview", "shared"])
    assert done.exit_code == 0, done.output
    assert "excepted: private-nodes (cluster lab)" in " ".join(done.output.split())


def test_the_adoption_is_a_document(project: Path) -> None:
    """JSON has the declaration, the fields with their status, and the files; an error is JSON as well."""
    words = ("shared", "--from", "cluster.json", "--format", "json")
    document = AdoptionReport.model_validate_json(_adopt(*words))
    config = yaml.safe_load((project / "Pulumi.shared.yaml").read_text())["config"]
    assert {**document.declaration, "adopt": "adopt.shared.json"} == config["ebbtide:cluster"]
    assert {"declared", "overridden"} <= {field.status for field in document.fields}
    assert document.written == ("Pulumi.shared.yaml", "adopt.shared.json")
    (exception,) = document.exceptions
    assert (exception["rule"], exception["resource"]) == ("private-nodes", "lab")
    done = CliRunner().invoke(app, ["adopt", *words])
    assert done.exit_code == 2
    assert "exists already" in str(json.loads(done.stdout)["errors"])


@pytest.mark.parametrize(
    ("policy", "added"),
    [
        ("{}", 1),
        ("{levels: {private-nodes: advisory}}", 0),
        ("{levels: {private-nodes: disabled}}", 0),
        ("{exceptions: [{rule: private-nodes, resource: lab, reason: ours}]}", 0),
        ("{exceptions: [{rule: private-nodes, resource: other, reason: ours}]}", 1),
    ],
)
def test_what_the_policy_would_refuse_alone_is_excepted(project: Path, policy: str, added: int) -> None:
    """The stack's own policy decides, and what it excepts already is not excepted again."""
    (project / "Pulumi.shared.yaml").write_text(f"config:\n  ebbtide:policy: {policy}\n")
    words = ("shared", "--from", "cluster.json", "--overwrite", "--format", "json")
    document = AdoptionReport.model_validate_json(_adopt(*words))
    assert len(document.exceptions) == added


def test_a_change_of_the_state_takes_the_files_alone(project: Path) -> None:
    """Options of the reading are refused with --into-state and --undo, and so are both together."""
    words = ("--from", "cluster.json", "--overwrite", "--format", "json")
    assert "Omit --from, --overwrite and --format." in _adopt("shared", "--into-state", *words, status=2)
    assert "Omit --into-state." in _adopt("shared", "--into-state", "--undo", status=2)
    assert not (project / "Pulumi.shared.yaml").exists()


def test_an_aks_cluster_becomes_a_stack(project: Path) -> None:
    """The output of az is declared whole, in the resource group that remains its owner's."""
    _describe(project / "aks.json", aks_shapes.VERIFIED[0])
    _adopt("shared", "--from", "aks.json", "--owner", "vision-team")
    resources = read_adopt_file(project / "adopt.shared.json")
    assert [item.name for item in resources] == ["aks-verified-cluster"]
    done = CliRunner().invoke(app, ["preview", "shared", "--tree"])
    assert done.exit_code == 0, done.output
    assert "resources.ResourceGroup" not in done.output


def _object(kind: str, name: str, spec: Document, **metadata: str) -> Document:
    api = "kueue.x-k8s.io/v1beta2"
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def test_a_queued_pool_is_left_with_its_queue(project: Path) -> None:
    """The stack creates no queues of its own beside those that stay with their owner."""
    flavor = {"nodeLabels": {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}}
    groups = [{"coveredResources": ["cpu"], "flavors": [{"name": name} for name in ("t4", "elsewhere")]}]
    objects = [
        _object("ResourceFlavor", "t4", flavor),
        _object("ClusterQueue", "t4", {"resourceGroups": groups}),
        _object("LocalQueue", "t4", {"clusterQueue": "t4"}, namespace="a"),
    ]
    (project / "queues.json").write_text(json.dumps({"kind": "List", "items": objects}))
    _describe(project / "cluster.json", queued_gpus())
    output = _adopt("shared", "--from", "cluster.json", "--from", "queues.json")
    assert "pool dws-t4-nodepool: Its nodes are queued, and need a queue of the stack" in output
    assert "ClusterQueue t4: Its flavor elsewhere selects the nodes of no declared pool." in output
    config = yaml.safe_load((project / "Pulumi.shared.yaml").read_text())["config"]
    assert not {"queues", "addons"} & config["ebbtide:cluster"].keys()
    assert "kueue" not in (project / "adopt.shared.json").read_text()


def _queued(project: Path, cpus: str) -> list[Document]:
    """Describe a cluster with a pool and a queue over it, and return Kueue's objects."""
    quotas = [{"name": "cpu", "nominalQuota": cpus}, {"name": "memory", "nominalQuota": "32Gi"}]
    groups = [{"coveredResources": ["cpu", "memory"], "flavors": [{"name": "batch", "resources": quotas}]}]
    labels = {"cloud.google.com/gke-nodepool": "batch"}
    objects = [
        _object("ResourceFlavor", "batch", {"nodeLabels": labels}),
        _object("ClusterQueue", "batch", {"namespaceSelector": {}, "resourceGroups": groups}),
        *(_object("LocalQueue", "batch", {"clusterQueue": "batch"}, namespace=name) for name in ("a", "b")),
    ]
    (project / "queues.json").write_text(json.dumps({"kind": "List", "items": objects}))
    limits = {"enabled": True, "totalMaxNodeCount": 4}
    pools = [pool("admin", "e2-standard-4"), pool("batch", "n2-standard-8", autoscaling=limits)]
    _describe(project / "cluster.json", cluster("lab", "us-central1-a", pools))
    return objects


def _found(project: Path) -> list[Document]:
    """The found fields of Kueue's objects in the file of resources."""
    resources = read_adopt_file(project / "adopt.shared.json")
    queues = [item for item in resources if ":kueue" in item.type]
    assert [item.id for item in queues] == ["batch", "batch", "a/batch", "b/batch"]
    return [item.found["spec"] for item in queues]


_QUEUED = ("shared", "--from", "cluster.json", "--from", "queues.json", "--pools-only")


def test_queues_come_from_kueues_objects(project: Path) -> None:
    """A ClusterQueue over a pool's flavor becomes a queue over that pool, and its objects are imported."""
    objects = _queued(project, "8")
    _adopt(*_QUEUED)
    config = yaml.safe_load((project / "Pulumi.shared.yaml").read_text())["config"]
    (queue,) = config["ebbtide:cluster"]["queues"]
    assert (queue["name"], queue["pools"]) == ("batch", ["batch"])
    assert _found(project) == [item["spec"] for item in objects]


def test_another_adoption_keeps_what_an_undo_restores(project: Path) -> None:
    """Objects that the stack has changed in between get the fields of their owner back; an unreadable file
    is never replaced, and without it the objects are recorded as they are."""
    before = _queued(project, "8")
    _adopt(*_QUEUED)
    after = _queued(project, "16")
    _adopt(*_QUEUED, "--overwrite")
    assert _found(project) == [item["spec"] for item in before]

    file, declared = project / "adopt.shared.json", (project / "Pulumi.shared.yaml").read_text()
    file.write_text("{")
    assert "adopt.shared.json" in _adopt(*_QUEUED, "--overwrite", "--owner", "other", status=2)
    assert (file.read_text(), (project / "Pulumi.shared.yaml").read_text()) == ("{", declared)
    file.unlink()
    _adopt(*_QUEUED, "--overwrite")
    assert _found(project) == [item["spec"] for item in after]


def test_device_plugins_of_others_are_named(project: Path) -> None:
    """The DaemonSets of the cluster tell which one registers the GPUs of a pool."""
    pools = [
        aks_shapes.pool("system", "Standard_D4s_v5", mode="System"),
        aks_shapes.pool("gpu", "Standard_NC24ads_A100_v4", gpuProfile={"driver": "Install"}),
    ]
    _describe(project / "aks.json", aks_shapes.cluster("ml", "lab", pools))
    plugin = {
        "containers": [{"image": "nvcr.io/nvidia/k8s-device-plugin:v0.18.0"}],
        "volumes": [{"hostPath": {"path": "/var/lib/kubelet/device-plugins"}}],
    }
    item = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "plugin", "namespace": "nvidia"},
        "spec": {"template": {"spec": plugin}},
    }
    _describe(project / "daemonsets.json", {"kind": "List", "items": [item]})
    words = ("--from", "aks.json", "--from", "daemonsets.json", "--owner", "vision-team")
    output = " ".join(_adopt("shared", *words).split())
    registers = "DaemonSet plugin in nvidia registers nvidia.com/gpu on the nodes of pool gpu, and stays"
    assert f"Drivers and device plugins of others {registers}" in output


def test_a_stack_file_is_never_overwritten_unasked(project: Path) -> None:
    """An existing declaration stays, and its other settings stay even with `--overwrite`."""
    file = project / "Pulumi.shared.yaml"
    file.write_text("config: {gcp:project: acme-ml}\n")
    assert "exists already" in _adopt("shared", "--from", "cluster.json", status=2)
    assert file.read_text() == "config: {gcp:project: acme-ml}\n"
    _adopt("shared", "--from", "cluster.json", "--overwrite")
    assert yaml.safe_load(file.read_text())["config"]["gcp:project"] == "acme-ml"


_COMMENTED = """\
# Of the platform team.
config:
  gcp:project: acme-ml  # not acme-prod
  ebbtide:policy:
    # Agreed with finance.
    limits: {lifetimeHours: 48}
    exceptions:
      # Until the move.
      - {rule: private-nodes, resource: old, reason: moves in May}
  ebbtide:cluster:
    name: old
    # Of the declaration.
    list:
      - cpu
  # Ask before a change.
  other:key: |
    text
# The end.
"""


@pytest.mark.parametrize("text", [_COMMENTED, _COMMENTED.replace("ebbtide:cluster", "other:object")])
def test_comments_of_a_stack_file_stay(project: Path, text: str) -> None:
    """With `--overwrite`, other settings keep their lines and comments."""
    file = project / "Pulumi.shared.yaml"
    file.write_text(text)
    _adopt("shared", "--from", "cluster.json", "--overwrite")
    before, after = text.splitlines(), file.read_text().splitlines()
    kept = before[:9] + before[14 if "ebbtide:cluster" in text else 9 :]
    assert [line for line in after if line in kept] == kept
    config = yaml.safe_load(file.read_text())["config"]
    assert config["ebbtide:cluster"]["name"] == "lab"
    assert config["other:key"] == "text\n"


def test_the_stacks_file_is_in_the_directory_of_the_project_file(project: Path) -> None:
    """`stackConfigDir` of Pulumi.yaml moves it, and the preview finds it there."""
    (project / "Pulumi.yaml").write_text("{name: team, runtime: python, stackConfigDir: stacks}\n")
    _adopt("shared", "--from", "cluster.json")
    assert [path.name for path in (project / "stacks").iterdir()] == ["Pulumi.shared.yaml"]
    assert "exists already" in _adopt("shared", "--from", "cluster.json", status=2)
    done = CliRunner().invoke(app, ["preview", "shared"])
    assert done.exit_code == 0, done.output


def test_every_fault_of_the_input_is_reported_at_once(project: Path) -> None:
    """A truncated file, a foreign one and a missing one are three lines; nothing is written."""
    (project / "half.json").write_text((project / "cluster.json").read_text()[:400])
    (project / "foreign.json").write_text('{"kind": "Pod"}')
    words = [word for name in ("half", "foreign", "missing") for word in ("--from", f"{name}.json")]
    output = _adopt("shared", *words, status=2)
    assert "half.json is not JSON, or only a part of it" in output
    assert "foreign.json is not a document about a cluster" in output
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


def test_one_of_two_clusters_is_named_by_its_location(project: Path) -> None:
    """Two clusters of a name differ in their location; another location is an error that lists both."""
    nodes = [pool("admin", "e2-standard-4")]
    document = [cluster("lab", zone, nodes) for zone in ("us-central1-a", "us-central1-b")]
    (project / "cluster.json").write_text(json.dumps(document))
    options = ("shared", "--from", "cluster.json", "--location")
    output = " ".join(_adopt(*options, "europe-west4-a", status=2).split())
    assert "in europe-west4-a. Found: lab in us-central1-a, lab in us-central1-b." in output
    assert "lab in acme-ml, us-central1-b" in _adopt(*options, "us-central1-b")


@pytest.mark.parametrize("pools", ["x", [1]])
def test_a_document_with_a_value_of_another_type_is_refused(project: Path, pools: object) -> None:
    """An edited document is one error that names the file, and nothing is written."""
    document = {**cluster("lab", "us-central1-a", []), "nodePools": pools}
    (project / "cluster.json").write_text(json.dumps(document))
    output = " ".join(_adopt("shared", "--from", "cluster.json", status=2).split())
    assert "cluster.json has a value of another type than its tool writes" in output
    assert not (project / "Pulumi.shared.yaml").exists()


def _init(*words: str, status: int = 0) -> str:
    return _adopt("new", *words, command="init", status=status)


@pytest.mark.parametrize("cloud", CloudKind)
def test_a_new_project_declares_an_existing_cluster(project: Path, cloud: CloudKind) -> None:
    """The stack of the project previews and imports the cluster; a pull request gets no copy of the cluster,
    and no page destroys it."""
    if cloud is CloudKind.AKS:
        _describe(project / "cluster.json", aks_shapes.VERIFIED[0])
    options = ("--backend", "gs://acme-pulumi", "--secrets-provider", "awskms://key")
    output = _init("--from-cluster", "--from", "cluster.json", *options)
    assert "pulumi stack init dev --secrets-provider awskms://key && " in output
    assert ".venv/bin/ebbtide adopt dev --into-state" in output
    new = project / "new"
    assert 'backend:\n  url: "gs://acme-pulumi"\n' in (new / "Pulumi.yaml").read_text()
    assert yaml.safe_load((new / "Pulumi.dev.yaml").read_text())["secretsprovider"] == "awskms://key"
    (stack,) = json.loads((new / ".github/stacks.json").read_text())
    assert (stack["stack"], stack["cloud"], stack["permanent"]) == ("dev", cloud.value, True)
    assert f"[{cloud.value},cluster,clouds]" in (new / "requirements.txt").read_text()
    assert not (new / "Pulumi.pr.yaml").exists()
    readme = (new / "README.md").read_text()
    assert ("destroy" in readme, "${" in readme) == (False, False)
    done = CliRunner().invoke(app, ["preview", "--cwd", str(new)])
    assert done.exit_code == 0, done.output
    assert f"{len(read_adopt_file(new / 'adopt.dev.json'))} to adopt" in " ".join(done.output.split())


def test_a_new_project_is_written_whole_or_not(project: Path) -> None:
    """Every fault is in one answer, and no file is written."""
    (project / "foreign.json").write_text('{"kind": "Pod"}')
    (project / "new").mkdir()
    (project / "new/README.md").write_text("ours")
    options = ("--from", "foreign.json", "--from", "missing.json", "--machines", "t4", "--backend", "gcs://a")
    output = _init(*options, status=2)
    assert "foreign.json is not a document about a cluster" in output
    assert "missing.json: The file cannot be read" in output
    assert "--machines: the existing cluster has its own." in output
    assert "--backend: gcs://a is no URL" in output
    assert "README.md exists in" in output
    assert "There is no cluster to read" in _init("--from-cluster", status=2)
    assert [path.name for path in (project / "new").iterdir()] == ["README.md"]


@pytest.mark.parametrize("other", CloudKind)
def test_a_project_of_init_adopts_clusters_of_both_clouds(project: Path, other: CloudKind) -> None:
    """A project that was made for a new cluster on GKE declares existing ones beside it, each with its own
    owner and account."""
    _adopt("new", "--project", "acme-ml", "--machines", "t4", command="init")
    if other is CloudKind.AKS:
        _describe(project / "cluster.json", aks_shapes.VERIFIED[0])
    _adopt("shared", "--from", "cluster.json", "--owner", "us", "--cwd", str(project / "new"))
    for stack in ("shared", "dev"):
        done = CliRunner().invoke(app, ["preview", stack, "--cwd", str(project / "new")])
        assert done.exit_code == 0, done.output
