"""The wheel of the rehearsal."""

import zipfile
from pathlib import Path

import ebbtide
from tests.repository import ROOT


def test_carries_every_file(rehearsal_wheel: Path) -> None:
    """Every module and data file of the package is in the wheel, and no tests."""
    with zipfile.ZipFile(rehearsal_wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "rehearsal" / "ebbtide_rehearsal"
    files = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert names == {path.relative_to(ROOT / "rehearsal").as_posix() for path in files}


def test_has_the_version_of_ebbtide(rehearsal_wheel: Path) -> None:
    """Both distributions are released together, under one version."""
    assert rehearsal_wheel.name == f"ebbtide_rehearsal-{ebbtide.__version__}-py3-none-any.whl"
