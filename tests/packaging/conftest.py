"""The wheels: those of a release, in the directory `EBBTIDE_WHEELS`, or built from copies of the sources."""

import os
import shutil
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.repository import ROOT, ran

_BUILD = "import setuptools.build_meta as backend, sys; print(backend.build_wheel(sys.argv[1]))"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of Ebbtide."""
    if released := os.environ.get("EBBTIDE_WHEELS"):
        return next(Path(released).resolve().glob("ebbtide-*.whl"))
    copy = tmp_path_factory.mktemp("sources")
    for name in ("ebbtide", "components", "stacks", "template", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "__main__.py"):
        shutil.copy(ROOT / name, copy)
    return _built(copy)


@pytest.fixture(scope="session", params=["rehearsal/ebbtide_rehearsal", "kueue-replay/kueue_replay"])
def own_distribution(request: pytest.FixtureRequest) -> Path:
    """The directory of the package of a distribution beside Ebbtide."""
    return ROOT / str(request.param)


@pytest.fixture(scope="session")
def own_wheel(own_distribution: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of that distribution."""
    if released := os.environ.get("EBBTIDE_WHEELS"):
        return next(Path(released).resolve().glob(f"{own_distribution.name}-*.whl"))
    copy = tmp_path_factory.mktemp("sources") / own_distribution.parent.name
    shutil.copytree(own_distribution.parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return _built(copy)


def _built(copy: Path) -> Path:
    """Build a copy: a build leaves files behind, and old ones find their way into the next wheel."""
    target = copy / "dist"
    ran(sys.executable, "-W", "ignore", "-c", _BUILD, target, cwd=copy)
    return next(target.glob("*.whl"))


@pytest.fixture(scope="session")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel's contents and nothing else."""
    directory = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory)
    return directory


@pytest.fixture(scope="session")
def install(unpacked: Path) -> Callable[[Path, Requirement], None]:
    """Install the wheel, `ebbtide` with extras, or another distribution in a directory of packages: the wheel
    unpacked, and links to what it requires in the versions of this environment."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]

    def installed(site: Path, requirement: Requirement) -> None:
        if requirement.name == "ebbtide":
            shutil.copytree(unpacked, site, dirs_exist_ok=True)
            required = [
                *project["dependencies"],
                *(it for extra in requirement.extras for it in extras[extra]),
            ]
        else:
            required = [str(requirement)]
        for brought in _closure([Requirement(text) for text in required]):
            tops = {
                file.parts[0] for file in brought.files or [] if file.parts[0] not in ("..", "__pycache__")
            }
            for top in tops:
                if not (site / top).exists():
                    (site / top).symlink_to(Path(str(brought.locate_file(top))))

    return installed


def _closure(requirements: list[Requirement]) -> Iterator[Distribution]:
    """The distributions that are installed with these, in the versions of this environment."""
    names: list[str] = []
    for requirement in requirements:
        if requirement.name not in names:
            names.append(requirement.name)
            for text in distribution(requirement.name).requires or []:
                needed = Requirement(text)
                marker, asked = needed.marker, requirement.extras or {""}
                if marker is None or any(marker.evaluate({"extra": extra}) for extra in asked):
                    requirements.append(needed)  # read in turn
    return map(distribution, names)
