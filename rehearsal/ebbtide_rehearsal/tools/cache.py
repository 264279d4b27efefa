"""The build cache: a directory per item, named by the hash of its build inputs."""

import hashlib
import os
import platform
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from ebbtide_rehearsal.tools.items import Data, Item, Tool
from ebbtide_rehearsal.tools.releases import Release
from ebbtide_rehearsal.tools.steps import OnStep, Waiting

MODULES: Final = Path(__file__).parent / "modules"
_CACHE: Final = "EBBTIDE_CACHE"
_UNFINISHED: Final = ".building-"


def directory() -> Path:
    """Return the cache directory: `$EBBTIDE_CACHE`, or a directory in the user's cache."""
    chosen = os.environ.get(_CACHE)
    return (Path(chosen).expanduser().absolute() if chosen else user_cache_path("ebbtide")) / "tools"


def pins(group: str) -> tuple[Path, Path]:
    """Return the go.mod and the go.sum of a group."""
    return MODULES / group / "go.mod", MODULES / group / "go.sum"


def inputs(group: str) -> tuple[Path, ...]:
    """Return the files of a group: go.mod, go.sum, and the sources of a program of our own."""
    return (
        *pins(group),
        *(path for suffix in ("go", "s") for path in sorted((MODULES / group).glob(f"*.{suffix}"))),
    )


def key(item: Item) -> str:
    """Hash an item's build inputs: go.mod, go.sum, sources, package, flags and platform, as 12 hexadecimal
    digits.

    Go's version is excluded: a newer Go would otherwise rebuild the same program for a quarter of an hour,
    and the cache would be unreadable without Go.
    """
    decisive = hashlib.sha256()
    for text in (*(path.read_bytes() for path in inputs(item.group)), *map(str.encode, item.recipe)):
        decisive.update(hashlib.sha256(text).digest())
    if isinstance(item, Tool):
        decisive.update(f"{platform.system()} {platform.machine()}".encode())
    return decisive.hexdigest()[:12]


def location(root: Path, item: Item) -> Path:
    """Return an item's directory, which exists only if complete."""
    return root / f"{item.name}-{item.version}-{key(item)}"


def content(root: Path, item: Item) -> Path:
    """Return a built program's file or a data directory."""
    match item:
        case Tool():
            return location(root, item) / item.name
        case Data():
            return location(root, item)


def downloaded(root: Path, release: Release) -> Path:
    """Return a downloaded program's file."""
    return root / release.key / release.program


@contextmanager
def building(root: Path, on_step: OnStep) -> Generator[None]:
    """Hold the cache's build lock, which is exclusive and ends with the process.

    Leftovers of killed processes are removed first.
    """
    root.mkdir(parents=True, exist_ok=True)
    lock = FileLock(root / ".lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        on_step(Waiting())
        lock.acquire()
    try:
        for leftover in root.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        yield
    finally:
        lock.release()


@contextmanager
def adding(root: Path, place: Path) -> Generator[Path]:
    """Yield an empty directory, which becomes `place` on success and is removed on failure."""
    with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=root) as temporary:
        unfinished = Path(temporary) / "content"
        unfinished.mkdir()
        yield unfinished
        unfinished.rename(place)
