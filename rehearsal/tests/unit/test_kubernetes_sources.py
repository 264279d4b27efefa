from pathlib import Path
from typing import Any

import pytest

from ebbtide_rehearsal.cloud.kubernetes.sources import INDEX, Sources, indexed
from ebbtide_rehearsal.cloud.provider import RefusedError

OCI = "oci://registry.example.com/charts/thing"


def _chart(place: Path, version: str) -> Path:
    place.mkdir(parents=True)
    (place / "Chart.yaml").write_text(f"name: thing\nversion: {version}\n")
    return place


def _sources(tmp_path: Path, **more: Any) -> Sources:
    missing = tmp_path / "no-such-program"
    return Sources(helm=missing, kubectl=missing, **more)


def test_a_chart_is_found_by_its_address_or_its_name(tmp_path: Path) -> None:
    """An address that is known comes before a directory of charts."""
    known, other = _chart(tmp_path / "known", "1.0.0"), _chart(tmp_path / "charts" / "thing", "2.0.0")
    assert _sources(tmp_path, charts={OCI: known}).chart(OCI, "1.0.0") == known
    beside = _sources(tmp_path, chart_directories=[tmp_path / "charts"])
    assert beside.chart(OCI, "v2.0.0") == other
    assert beside.chart("thing", "") == other
    assert beside.chart(str(known), "") == known


def test_a_chart_that_is_not_there_is_refused_with_the_way_to_give_it(tmp_path: Path) -> None:
    """So is one in another version."""
    with pytest.raises(RefusedError, match=r"There is no chart oci://\S+ 1\.0\.0 .* `--charts`"):
        _sources(tmp_path).chart(OCI, "1.0.0")
    known = _chart(tmp_path / "known", "1.0.0")
    with pytest.raises(RefusedError, match=r"asks for chart \S+ 3\.0\.0; .* is version 1\.0\.0"):
        _sources(tmp_path, charts={OCI: known}).chart(OCI, "3.0.0")


def test_a_kustomization_may_be_rendered_already(tmp_path: Path) -> None:
    """A directory of them has an index from addresses to files."""
    (tmp_path / "thing.yaml").write_text("kind: X\n")
    (tmp_path / INDEX).write_text("github.com/x/thing?ref=1: thing.yaml\n")
    sources = _sources(tmp_path, kustomizations=indexed(tmp_path))
    assert sources.kustomization("github.com/x/thing?ref=1") == "kind: X\n"


def test_one_that_cannot_be_rendered_is_refused_with_the_way_to_give_it(tmp_path: Path) -> None:
    """And with what kubectl said."""
    with pytest.raises(RefusedError, match=r"no-such-program.* takes git .*--manifests"):
        _sources(tmp_path).kustomization("github.com/x/other?ref=1")


@pytest.mark.parametrize("text", [None, "- a", "{"])
def test_a_directory_without_an_index_is_refused(tmp_path: Path, text: str | None) -> None:
    """One that cannot be read, too."""
    if text is not None:
        (tmp_path / INDEX).write_text(text)
    with pytest.raises(RefusedError, match=INDEX):
        indexed(tmp_path)
