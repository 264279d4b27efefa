"""The wheel, built from a copy of the sources and unpacked where the repository is out of sight."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import ebbtide
from tests.repository import ROOT

_BUILD = "import setuptools.build_meta as backend, sys; print(backend.build_wheel(sys.argv[1]))"

_PREVIEW = """
import json, sys
from pathlib import Path
from ebbtide.recording.record import record
from ebbtide.preview.stack_files import read_stack
import ebbtide
files = read_stack(Path.cwd(), "dev")
answers = {"ebbtide:owner": "vision-team", "ebbtide:project": "acme-ml", "ebbtide:location": "us-central1-a"}
recording = record(files.program, project="my-cluster", stack="dev", config={**files.config, **answers})
print(json.dumps({
    "ebbtide": ebbtide.__file__,
    "path": sys.path,
    "resources": [[resource.type, resource.name] for resource in recording],
    "outputs": sorted(recording.outputs),
}))
"""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy: a build leaves files behind, and old ones find their way into the next wheel."""
    copy = tmp_path_factory.mktemp("sources")
    for name in ("ebbtide", "components", "stacks", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "__main__.py"):
        shutil.copy(ROOT / name, copy)
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-W", "ignore", "-c", _BUILD, str(target)]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(target.glob("*.whl"))


@pytest.fixture(scope="session")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel's contents and nothing else."""
    directory = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory)
    return directory


def _files(directory: Path) -> set[str]:
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}


def test_has_one_package_at_the_top(unpacked: Path) -> None:
    """Nothing but `ebbtide` is importable from it, so it hides nobody's own `components` or `stacks`."""
    tops = {path.name for path in unpacked.iterdir()}
    assert tops == {"ebbtide", f"ebbtide-{ebbtide.__version__}.dist-info"}


@pytest.mark.parametrize(("source", "name"), [("ebbtide", "ebbtide"), ("components", "ebbtide/components")])
def test_carries_every_file(unpacked: Path, source: str, name: str) -> None:
    """Every module and data file on disk is in the wheel, components under `ebbtide.components`."""
    on_disk = {file for file in _files(ROOT / source) if "__pycache__" not in file}
    carried = {
        file for file in _files(unpacked / name) if source != "ebbtide" or not file.startswith("components/")
    }
    assert carried == on_disk


def test_has_the_command_line(unpacked: Path) -> None:
    """The `ebbtide` command leads to a function that is there."""
    text = next(unpacked.glob("*.dist-info")).joinpath("entry_points.txt").read_text(encoding="utf-8")
    target = re.search(r"^ebbtide = ([\w.]+):(\w+)$", text, flags=re.MULTILINE)
    assert target is not None
    module = (unpacked / target[1].replace(".", "/")).with_suffix(".py")
    assert f"def {target[2]}(" in module.read_text(encoding="utf-8")


def test_needs_no_pulumi_by_itself(unpacked: Path) -> None:
    """A pipeline author installs no Pulumi: its packages come with the extras `gke` and `aks` alone."""
    metadata = next(unpacked.glob("*.dist-info")).joinpath("METADATA").read_text(encoding="utf-8")
    required = HeaderParser().parsestr(metadata).get_all("Requires-Dist", [])
    assert not [item for item in required if item.startswith("pulumi") and "extra ==" not in item]
    assert {"gke", "aks"} <= set(HeaderParser().parsestr(metadata).get_all("Provides-Extra", []))


def test_template_previews_on_the_wheel_alone(unpacked: Path, tmp_path: Path) -> None:
    """What `pulumi new` copies runs with the wheel where the repository is not on the path."""
    project = tmp_path / "my-cluster"
    shutil.copytree(ROOT / "template", project, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (project / "Pulumi.yaml", project / "README.md"):
        text = file.read_text(encoding="utf-8")
        file.write_text(
            text.replace("${PROJECT}", "my-cluster").replace("${DESCRIPTION}", "Ours."), encoding="utf-8"
        )
    done = subprocess.run(
        [sys.executable, "-P", "-c", _PREVIEW],
        cwd=project,
        env={"PYTHONPATH": str(unpacked), "PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert Path(shown["ebbtide"]).is_relative_to(unpacked)
    assert str(ROOT) not in shown["path"]
    assert ["gcp:container/nodePool:NodePool", "my-cluster-dev-t4-spot"] in shown["resources"]
    assert shown["outputs"] == ["clusterName", "kubeconfig", "placementProfile"]


def test_template_asks_for_this_version() -> None:
    """The template's requirements name the wheel that this repository builds."""
    text = (ROOT / "template" / "requirements.txt").read_text(encoding="utf-8")
    assert f"./ebbtide-{ebbtide.__version__}-py3-none-any.whl[gke]" in text.splitlines()


def test_extras_take_what_is_locked() -> None:
    """Every requirement of the wheel and its extras takes the version that the tests run with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    files = ("requirements.txt", "requirements-dev.txt")
    text = "".join((ROOT / file).read_text(encoding="utf-8") for file in files)
    locked = dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, flags=re.MULTILINE))
    required = [Requirement(text) for texts in lists for text in texts]
    assert [str(item) for item in required if not item.specifier.contains(locked.get(item.name, ""))] == []
