"""The wheels: those of a release, in the directory `EBBTIDE_WHEELS`, or built from copies of the sources."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.repository import ROOT

_BUILD = "import setuptools.build_meta as backend, sys; print(backend.build_wheel(sys.argv[1]))"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of Ebbtide."""
    if released := os.environ.get("EBBTIDE_WHEELS"):
        return next(Path(released).resolve().glob("ebbtide-*.whl"))
    copy = tmp_path_factory.mktemp("sources")
    for name in ("ebbtide", "components", "stacks", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "__main__.py"):
        shutil.copy(ROOT / name, copy)
    return _built(copy)


@pytest.fixture(scope="session")
def rehearsal_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the rehearsal."""
    if released := os.environ.get("EBBTIDE_WHEELS"):
        return next(Path(released).resolve().glob("ebbtide_rehearsal-*.whl"))
    copy = tmp_path_factory.mktemp("sources") / "rehearsal"
    shutil.copytree(ROOT / "rehearsal", copy, ignore=shutil.ignore_patterns("__pycache__"))
    return _built(copy)


def _built(copy: Path) -> Path:
    """Build a copy: a build leaves files behind, and old ones find their way into the next wheel."""
    target = copy / "dist"
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
