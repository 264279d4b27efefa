"""The wheel, built from a copy of the sources and unpacked where the repository is out of sight."""

import json
import os
import re
import shutil
import sys
import tomllib
from email.parser import HeaderParser
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

import ebbtide
from ebbtide.cli.error_output import OF_COMMANDS
from tests.repository import ROOT, commit_all, git, ran
from tests.running import full
from tests.synth import synth

_RECORD = """
import json, sys
from pathlib import Path
import ebbtide
from ebbtide.placement import Profile
from ebbtide.analysis.preview.stack_files import record_stack
from ebbtide.analysis.preview.stack_files import read_stack
recording = record_stack(read_stack(Path.cwd(), "dev"))
print(json.dumps({
    "ebbtide": ebbtide.__file__,
    "path": sys.path,
    "modules": sorted(name for name in sys.modules if name in ("pulumi_gcp", "pulumi_azure_native")),
    "resources": [[resource.type, resource.name] for resource in recording],
    "profile": Profile.load(recording.outputs["placementProfile"]).data(),
    "outputs": sorted(recording.outputs),
    "warnings": [message.text for message in recording.says("warning")],
}))
"""

_ANSWERS = {
    "gke": {"ebbtide:project": "acme-ml", "ebbtide:location": "us-central1-a"},
    "aks": {"ebbtide:subscription": "00000000-0000-0000-0000-000000000001", "ebbtide:location": "eastus"},
}
"""What `pulumi new` is told, beside the owner."""


def _files(directory: Path) -> set[str]:
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}


def test_has_one_package_at_the_top(unpacked: Path) -> None:
    """Only `ebbtide` is importable from it, so it shadows no `components` or `stacks` of others."""
    tops = {path.name for path in unpacked.iterdir()}
    assert tops == {"ebbtide", f"ebbtide-{ebbtide.__version__}.dist-info"}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("ebbtide", "ebbtide"),
        ("components", "ebbtide/components"),
        ("template/gke", "ebbtide/template/gke"),
        ("template/aks", "ebbtide/template/aks"),
        ("template/adopted", "ebbtide/template/adopted"),
    ],
)
def test_carries_every_file(unpacked: Path, source: str, name: str) -> None:
    """Every module and data file on disk is in the wheel, components and templates under `ebbtide`."""
    on_disk = {file for file in _files(ROOT / source) if "__pycache__" not in file}
    carried = {
        file
        for file in _files(unpacked / name)
        if source != "ebbtide" or not file.startswith(("components/", "template/"))
    }
    assert carried == on_disk


def test_has_the_command_line(unpacked: Path) -> None:
    """The `ebbtide` command leads to an existing function."""
    text = next(unpacked.glob("*.dist-info")).joinpath("entry_points.txt").read_text(encoding="utf-8")
    target = re.search(r"^ebbtide = ([\w.]+):(\w+)$", text, flags=re.MULTILINE)
    assert target is not None
    package = unpacked / target[1].replace(".", "/") / "__init__.py"
    assert f'"{target[2]}"' in package.read_text(encoding="utf-8")


def test_metadata_says_whose_it_is_and_under_which_license(unpacked: Path) -> None:
    """The licence is named by its SPDX identifier, and its text is carried along."""
    information = next(unpacked.glob("*.dist-info"))
    metadata = HeaderParser().parsestr((information / "METADATA").read_text(encoding="utf-8"))
    assert (metadata["License-Expression"], metadata["Author"]) == ("Apache-2.0", "The Ebbtide authors")
    text = (information / "licenses" / "LICENSE").read_text(encoding="utf-8")
    assert text == (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Copyright 2026 The Ebbtide authors" in text


def test_needs_no_pulumi_by_itself(unpacked: Path) -> None:
    """A pipeline author installs no Pulumi: its packages come with the extras `gke` and `aks` alone."""
    metadata = next(unpacked.glob("*.dist-info")).joinpath("METADATA").read_text(encoding="utf-8")
    required = HeaderParser().parsestr(metadata).get_all("Requires-Dist", [])
    assert not [item for item in required if item.startswith("pulumi") and "extra ==" not in item]
    assert {"gke", "aks"} <= set(HeaderParser().parsestr(metadata).get_all("Provides-Extra", []))


def _project(directory: Path, template: str, **declared: Any) -> Path:
    """A project as `pulumi new` makes it, with more declared in its stack."""
    project = directory / "my-cluster"
    shutil.copytree(ROOT / "template" / template, project, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (project / "Pulumi.yaml", project / "README.md"):
        text = file.read_text(encoding="utf-8").replace("${PROJECT}", "my-cluster")
        file.write_text(text.replace("${DESCRIPTION}", "Ours."), encoding="utf-8")
    stack_file = project / "Pulumi.dev.yaml"
    written = yaml.safe_load(stack_file.read_text(encoding="utf-8"))["config"]
    config = {"ebbtide:owner": "vision-team", **_ANSWERS[template]}
    config["ebbtide:cluster"] = written["ebbtide:cluster"] | declared
    stack_file.write_text(yaml.safe_dump({"config": config}), encoding="utf-8")
    return project


def _python(project: Path, unpacked: Path, *arguments: str, status: int = 0) -> CompletedProcess[str]:
    """Python in a project, where the wheel is installed and the repository is not."""
    environment = {"PYTHONPATH": str(unpacked), "PATH": os.environ["PATH"], "HOME": str(project)}
    return ran(sys.executable, "-P", *arguments, cwd=project, env=environment, status=status)


def _ebbtide(project: Path, unpacked: Path, *words: str, status: int = 0) -> CompletedProcess[str]:
    return _python(project, unpacked, "-m", "ebbtide", *words, status=status)


def _tests(project: Path, unpacked: Path, *, status: int = 0) -> str:
    """The output of a project's own tests."""
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    return _python(project, unpacked, "-m", "pytest", *options, status=status).stdout


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_template_deploys_everything_that_is_declared(cloud: str, unpacked: Path, tmp_path: Path) -> None:
    """Queues, teams and add-ons of a template's stack are created as by this repository's program, which logs
    the declaration's warnings, and the profile lists those queues."""
    everything = full(cloud) | {"name": "train", "owner": "vision-team"}
    declared = {field: everything[field] for field in ("name", "pools", "queues", "teams", "addons", "cloud")}
    done = _python(_project(tmp_path, cloud, **declared), unpacked, "-c", _RECORD)
    shown = json.loads(done.stdout)
    assert Path(shown["ebbtide"]).is_relative_to(unpacked)
    assert str(ROOT) not in shown["path"]
    assert shown["modules"] == [{"gke": "pulumi_gcp", "aks": "pulumi_azure_native"}[cloud]]
    outputs = {"clusterName", "expires", "kubeconfig", "placementProfile"}
    assert set(shown["outputs"]) == outputs | ({"aksClusterInputs"} if cloud == "aks" else set())
    local = {name.rpartition("localqueue-")[2] for type_, name in shown["resources"] if "LocalQueue" in type_}
    promised = {
        f"{queue['namespace']}/{queue['name']}"
        for item in shown["profile"]["queues"]
        for queue in item["local_queues"]
    }
    assert promised == local
    assert "vision/gpus" in local
    made = {type_.removeprefix("ebbtide:addons:") for type_, _ in shown["resources"]}
    assert {"Kueue", "Pipelines", "Trainer", "Katib", "Tenant"} <= made
    if cloud == "aks":
        advice = "cloud.access.networks: The API server is open to the internet."
        assert any(warning.startswith(advice) for warning in shown["warnings"])
    own = {(item.type, item.name) for item in synth(everything | {"lifetime": {"hours": 8}})}
    others = {(type_, name) for type_, name in shown["resources"]} ^ own
    assert [type_ for type_, _ in others if not type_.startswith("pulumi:providers:")] == []


@pytest.mark.parametrize(
    ("cloud", "machines", "pools"),
    [
        ("gke", "t4, n2-standard-8, 2 x l4, l4", ["system", "t4-spot", "cpu-spot", "l4-spot", "l4-spot-2"]),
        ("aks", "t4, Standard_D8as_v5, mi300x", ["system", "t4spot", "cpuspot", "mi300xspot"]),
    ],
)
def test_a_project_of_init(
    cloud: str, machines: str, pools: list[str], unpacked: Path, tmp_path: Path
) -> None:
    """The wheel has the templates: the project previews offline, and its own tests pass."""
    account = _ANSWERS[cloud].get("ebbtide:project") or _ANSWERS[cloud]["ebbtide:subscription"]
    word = "--project" if cloud == "gke" else "--subscription"
    _ebbtide(tmp_path, unpacked, "init", "new", word, account, "--machines", machines)
    shown = _ebbtide(tmp_path / "new", unpacked, "preview", "--format", "json")
    own = json.loads(shown.stdout)["pools"]
    assert [pool["name"] for pool in own] == pools
    assert {pool["nodes"]["minimum"] for pool in own[1:]} == {0}
    assert "3 passed" in _tests(tmp_path / "new", unpacked)


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_template_reports_faults_as_a_stack_does(cloud: str, unpacked: Path, tmp_path: Path) -> None:
    """A faulty declaration stops the preview with each fault and its fix."""
    project = _project(tmp_path, cloud, lifetime={"hours": -1})
    done = _ebbtide(project, unpacked, "preview", status=2)
    assert done.stderr.startswith("The declaration has ")
    assert "\nPulumi.dev.yaml:4:7: lifetime.hours\n" in done.stderr


def test_template_has_tests_that_pass(unpacked: Path, tmp_path: Path) -> None:
    """A new project's tests run with pytest: here on AKS, and on GKE with those of docs/testing.md."""
    assert "3 passed" in _tests(_project(tmp_path, "aks"), unpacked)


def test_template_tests_notice_a_pool_that_keeps_nodes(unpacked: Path, tmp_path: Path) -> None:
    """A work pool that costs money when nothing runs fails the project's tests."""
    idle = {"machine": "n2-standard-8", "nodes": {"min": 1, "max": 2}}
    system = {"name": "system", "role": "system", "machine": "e2-standard-2", "nodes": {"min": 1, "max": 3}}
    project = _project(tmp_path, "gke", pools=[system, {"name": "idle", **idle}])
    assert "1 failed, 2 passed" in _tests(project, unpacked, status=1)


def test_template_has_a_profile(unpacked: Path, tmp_path: Path) -> None:
    """`ebbtide profile` writes what the program of a template's project exports."""
    profile = json.loads(_ebbtide(_project(tmp_path, "gke"), unpacked, "profile").stdout)
    assert (profile["cluster"], profile["location"]) == ("my-cluster-dev", "us-central1-a")
    assert [pool["name"] for pool in profile["pools"]] == ["system", "cpu-spot", "t4-spot"]


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_template_has_the_stack_of_a_pull_request(cloud: str, unpacked: Path, tmp_path: Path) -> None:
    """A pull request's stack has the owner and the account of dev, a name of its own, and a lifetime."""
    project = _project(tmp_path, cloud)
    shutil.copy(project / "Pulumi.pr.yaml", project / "Pulumi.pr-42.yaml")
    done = _ebbtide(project, unpacked, "review", "pr-42", "--format", "json")
    preview = json.loads(done.stdout)["preview"]
    assert [cluster["name"] for cluster in preview["clusters"]] == ["my-cluster-pr-42"]
    (lifetime,) = [item for item in preview["resources"] if item["type"] == "ebbtide:stack:Lifetime"]
    assert lifetime["inputs"]["hours"] == 4
    assert [pool["nodes"]["maximum"] for pool in preview["pools"]] == [3, 10, 4]
    assert next(iter(_ANSWERS[cloud].values())) in done.stdout


@pytest.mark.parametrize("cloud", ["gke", "aks"])
def test_template_asks_for_this_version(cloud: str) -> None:
    """The template's requirements name the wheel that this repository builds, with the extras of its cloud
    and of the commands of its workflows."""
    text = (ROOT / "template" / cloud / "requirements.txt").read_text(encoding="utf-8")
    needed = {extra for command in ("destroy", "reap", "sleep", "wake") for extra in OF_COMMANDS[command]}
    (wheel,) = (line for line in text.splitlines() if not line.startswith("#"))
    name, _, extras = wheel.removesuffix("]").partition("[")
    assert name == f"./ebbtide-{ebbtide.__version__}-py3-none-any.whl"
    assert set(extras.split(",")) == needed - {"gke"} | {cloud}


def test_a_project_commits_neither_its_environment_nor_its_credentials(tmp_path: Path) -> None:
    """The first commit of a new project has the wheel, and nothing that its commands write."""
    project = _project(tmp_path, "gke")
    made = (".venv/lib/pulumi.py", "__pycache__/test.pyc", "kubeconfig.json", "profile.json")
    for name in (*made, "ebbtide-0.1.0-py3-none-any.whl"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    commit_all(project)
    committed = git(project, "ls-files").splitlines()
    assert not {*made} & {*committed}
    assert {"ebbtide-0.1.0-py3-none-any.whl", ".gitignore", "renovate.json"} <= {*committed}


@pytest.mark.parametrize("file", ["test_cluster.py", "requirements-dev.txt"])
def test_templates_have_the_same_tests(file: str) -> None:
    """The parts of both templates that do not depend on the cloud are equal."""
    texts = {(ROOT / "template" / cloud / file).read_text(encoding="utf-8") for cloud in ("gke", "aks")}
    assert len(texts) == 1


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="these sources are in no Git repository")
def test_installs_from_a_git_repository(tmp_path: Path) -> None:
    """Pip builds the package, with its components, from a clone of the last commit."""
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--no-compile"]
    ran(sys.executable, "-m", "pip", "install", *options, "--target", tmp_path, f"git+{ROOT.as_uri()}")
    assert (tmp_path / "ebbtide" / "components" / "gke" / "__init__.py").is_file()
    assert (tmp_path / "bin" / "ebbtide").is_file()


def test_extras_take_what_is_locked() -> None:
    """Every requirement of the wheel and its extras takes the version that the tests run with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    files = ("requirements.txt", "tests/requirements.txt")
    text = "".join((ROOT / file).read_text(encoding="utf-8") for file in files)
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, flags=re.MULTILINE))
    required = [Requirement(text) for texts in lists for text in texts]
    assert [str(item) for item in required if not item.specifier.contains(locked.get(item.name, ""))] == []
