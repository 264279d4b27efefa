"""The wheels of the rehearsal and of the replay."""

import zipfile
from pathlib import Path

import ebbtide


def test_carries_every_file(own_distribution: Path, own_wheel: Path) -> None:
    """Every module and data file of the package is in the wheel, and no tests."""
    with zipfile.ZipFile(own_wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = (
        path for path in own_distribution.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    assert names == {path.relative_to(own_distribution.parent).as_posix() for path in files}


def test_has_the_version_of_ebbtide(own_distribution: Path, own_wheel: Path) -> None:
    """All distributions are released together, under one version."""
    assert own_wheel.name == f"{own_distribution.name}-{ebbtide.__version__}-py3-none-any.whl"
