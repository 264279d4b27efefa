"""Kubeflow Pipelines as released, installed with the rest."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ebbtide_rehearsal.scenarios.model import built_in
from tests.manifests import PIPELINES, PIPELINES_CLUSTER, RELEASED, path_of
from tests.repository import ROOT

_NAMES = (PIPELINES_CLUSTER, PIPELINES)

pytestmark = [
    pytest.mark.rehearsal,
    pytest.mark.long,
    pytest.mark.released(*_NAMES),
]


@pytest.fixture(scope="module")
def manifests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory as `--manifests` wants it."""
    directory = tmp_path_factory.mktemp("manifests")
    index = {RELEASED[name].address: str(path_of(name)) for name in _NAMES}
    (directory / "index.yaml").write_text(yaml.safe_dump(index))
    return directory


def _played(scenario: Path, manifests: Path) -> None:
    command = [sys.executable, "-m", "ebbtide", "rehearse", "--scenario", str(scenario)]
    done = subprocess.run(
        [*command, "--manifests", str(manifests)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_every_pool_goes_to_zero_with_all_add_ons(manifests: Path, tmp_path: Path) -> None:
    """The scenario of that name, with Kubeflow Pipelines added."""
    library = built_in()["scale-to-zero"]
    shutil.copytree(library.with_suffix(""), tmp_path / library.stem)
    played = yaml.safe_load(library.read_text())
    played["declaration"]["addons"]["pipelines"] = {}
    scenario = tmp_path / library.name
    scenario.write_text(yaml.safe_dump(played))
    _played(scenario, manifests)


@pytest.mark.parametrize("story", ["aks-spot"])
def test_it_comes_up_changes_nothing_and_goes(story: str, manifests: Path, tmp_path: Path) -> None:
    """Every object of it is accepted, a second up leaves all as it is, pools reach zero, nothing is left."""
    scenario = tmp_path / "scenario.yaml"
    stack = ROOT / "examples" / story / f"Pulumi.{story}.yaml"
    steps = [
        {"do": "up"},
        {"do": "up", "unchanged": True},
        {"do": "every-pool"},
        {"do": "expect", "within": 120, "that": {"jobs": {"succeeded": 1}}},
        {"do": "expect", "within": 120, "that": {"nodes": {"spotnodepool": 0}}},
        {"do": "up", "change": {"lifetime": {"hours": 1}}},
        {"do": "destroy"},
    ]
    scenario.write_text(yaml.safe_dump({"title": story, "stack": str(stack), "speed": 120, "steps": steps}))
    _played(scenario, manifests)
