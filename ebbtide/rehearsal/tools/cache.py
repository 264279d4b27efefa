"""Where what was built stays: a directory an item, named by all that decides what comes of it."""

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

from ebbtide.rehearsal.tools.items import Data, Item, Tool
from ebbtide.rehearsal.tools.steps import Say, Waiting

MODULES: Final = Path(__file__).parent / "modules"
_CACHE: Final = "EBBTIDE_CACHE"
_UNFINISHED: Final = ".building-"


def directory() -> Path:
    """The cache of tools: below `$EBBTIDE_CACHE`, or else where this system keeps a user's caches."""
    chosen = os.environ.get(_CACHE)
    return (Path(chosen).expanduser().absolute() if chosen else user_cache_path("ebbtide")) / "tools"


def pins(group: str) -> tuple[Path, Path]:
    """The go.mod and the go.sum of a group."""
    return MODULES / group / "go.mod", MODULES / group / "go.sum"


def key(item: Item) -> str:
    """What decides what comes of an item: go.mod, go.sum, package and flags, and the platform, as 12
    hexadecimal digits.

    Go's own version does not: with a newer Go the same program would be built once more, for a quarter of an
    hour, and without Go the cache could not be read.
    """
    decisive = hashlib.sha256()
    for text in (*(path.read_bytes() for path in pins(item.group)), *map(str.encode, item.recipe)):
        decisive.update(hashlib.sha256(text).digest())
    if isinstance(item, Tool):
        decisive.update(f"{platform.system()} {platform.machine()}".encode())
    return decisive.hexdigest()[:12]


def place(root: Path, item: Item) -> Path:
    """The directory of an item, which is there only when all of it is."""
    return root / f"{item.name}-{item.version}-{key(item)}"


def content(root: Path, item: Item) -> Path:
    """A program's file; the directory of data."""
    match item:
        case Tool():
            return place(root, item) / item.name
        case Data():
            return place(root, item)


@contextmanager
def building(root: Path, say: Say) -> Generator[None]:
    """The right to build into a cache, which one process at a time has, and which ends with it.

    What a process left that was killed is removed first.
    """
    root.mkdir(parents=True, exist_ok=True)
    lock = FileLock(root / ".lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        say(Waiting())
        lock.acquire()
    try:
        for left in root.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        lock.release()


@contextmanager
def adding(root: Path, item: Item) -> Generator[Path]:
    """An empty directory, which becomes the item's when the block ends well, and else is gone."""
    with tempfile.TemporaryDirectory(prefix=_UNFINISHED, dir=root) as made:
        unfinished = Path(made) / "content"
        unfinished.mkdir()
        yield unfinished
        unfinished.rename(place(root, item))
