"""The wheel of the rehearsal, built from a copy of its sources."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.packaging.conftest import BUILD
from tests.repository import ROOT


def test_carries_every_file(tmp_path: Path) -> None:
    """Every module and data file of the package is in the wheel, and no tests."""
    shutil.copytree(ROOT / "rehearsal", tmp_path / "rehearsal", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-W", "ignore", "-c", BUILD, str(tmp_path)]
    subprocess.run(command, cwd=tmp_path / "rehearsal", check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "rehearsal" / "ebbtide_rehearsal"
    files = (path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert names == {path.relative_to(ROOT / "rehearsal").as_posix() for path in files}
