"""The released manifests that tests read, and the deselection of those tests."""

import os
import sys
from pathlib import Path

import pytest

from components.addons.patches import has_pods
from ebbtide.declaration.catalog.versions import PINS
from ebbtide_rehearsal.tools.items import ToolError
from tests.manifests import (
    KATIB,
    KUBEFLOW,
    PIPELINES,
    PIPELINES_CLUSTER,
    RELEASED,
    after,
    path_of,
    reading_minimal,
    upstream,
)
from tests.repository import ROOT, ran

_TESTS = "tests/unit/components/addons/test_pipeline_retries.py"


@pytest.mark.parametrize("processes", ["-n0", "-n1"])
def test_missing_manifests_deselect_their_tests(processes: str, tmp_path: Path) -> None:
    """Tests of a missing manifest are deselected and counted, in one process and in several."""
    without = {"EBBTIDE_CACHE": str(tmp_path), "EBBTIDE_MANIFESTS": ""}
    command = (sys.executable, "-m", "pytest", "-q", processes, _TESTS, "-k", "upstreams or another")
    printed = ran(*command, env=os.environ | without).stdout
    assert "3 tests of released manifests" in printed
    assert "`make manifests` renders these" in printed
    assert "skipped" not in printed


@pytest.mark.released
@pytest.mark.parametrize("name", KUBEFLOW)
def test_minimal_objects_are_like_released_ones(name: str) -> None:
    """Each minimal object has the kind and name of a released one, and its pods' labels and containers."""
    with reading_minimal():
        minimal = after(upstream(name), ())
    released = after(upstream(name), ())
    assert minimal
    assert minimal.keys() <= released.keys()
    for key, item in minimal.items():
        if has_pods(item):
            pods, theirs = item["spec"]["template"], released[key]["spec"]["template"]
            assert pods["metadata"]["labels"].items() <= theirs["metadata"]["labels"].items()
            assert [own["name"] for own in pods["spec"]["containers"]] == [
                own["name"] for own in theirs["spec"]["containers"]
            ]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of manifests, and an empty cache."""
    monkeypatch.setenv("EBBTIDE_MANIFESTS", str(tmp_path / "named"))
    monkeypatch.setenv("EBBTIDE_CACHE", str(tmp_path / "cache"))
    for place in (tmp_path / "named", tmp_path / "cache" / "manifests"):
        place.mkdir(parents=True)
    return tmp_path


def test_a_named_directory_precedes_the_cache(directory: Path) -> None:
    """A manifest is read from `EBBTIDE_MANIFESTS`, and from the cache if it is not there."""
    assert path_of(KATIB) is None
    with pytest.raises(FileNotFoundError, match="`make manifests` renders it"):
        upstream(KATIB)
    for place in (directory / "cache" / "manifests", directory / "named"):
        (place / KATIB).touch()
        assert path_of(KATIB) == place / KATIB


def test_a_changed_manifest_is_refused(directory: Path) -> None:
    """A file with another SHA-256 is not read."""
    (directory / "named" / KATIB).write_text("kind: Secret\n", encoding="utf-8")
    with pytest.raises(ToolError, match="is not the released katib"):
        upstream(KATIB)


def test_the_module_is_the_release() -> None:
    """The Go module of Kubeflow Pipelines is of the commit that the release's tag names."""
    assert PINS["pipelines"].commit.startswith(PINS["pipelines-module"].version.rpartition("-")[2])
    assert all(len(item.sha256) == 64 for item in RELEASED.values())


def test_the_documented_index_has_the_addresses_of_the_program() -> None:
    """The index of `--manifests` on the page names the kustomizations that the component fetches."""
    text = (ROOT / "docs" / "rehearsing.md").read_text(encoding="utf-8")
    assert all(f"{RELEASED[name].address}: " in text for name in (PIPELINES_CLUSTER, PIPELINES))
