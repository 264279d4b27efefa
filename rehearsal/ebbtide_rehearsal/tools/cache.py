"""The build cache: a directory per item, named by the hash of its build inputs."""

import hashlib
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager, suppress
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
_LOCKS: Final = "locks"
_DAY: Final = 86400.0


def directory() -> Path:
    """Return the cache directory: `$EBBTIDE_CACHE`, or a directory in the user's cache."""
    chosen = os.environ.get(_CACHE)
    return (Path(chosen).expanduser().absolute() if chosen else user_cache_path("ebbtide")) / "tools"


def pins(group: str) -> tuple[Path, Path]:
    """Return the go.mod and the go.sum of a group."""
    return MODULES / group / "go.mod", MODULES / group / "go.sum"


def inputs(group: str) -> tuple[Path, ...]:
    """Return the files of a group: go.mod, go.sum, and the sources of a program of our own."""
    return *pins(group), *sorted((MODULES / group).glob("*.go"))


def added(group: str) -> Path:
    """Return the directory of the files that are added to a copy of a group's module, so that they are
    compiled with what it does not export; a group without any has none."""
    return MODULES / group / "added"


def key(item: Item) -> str:
    """Hash an item's build inputs: go.mod, go.sum, sources, package, flags and platform, as 12 hexadecimal
    digits.

    Go's version is excluded: a newer Go would otherwise rebuild the same program for a quarter of an hour,
    and the cache would be unreadable without Go.
    """
    decisive = hashlib.sha256()
    sources = (*inputs(item.group), *sorted(added(item.group).rglob("*.go")))
    for text in (*(path.read_bytes() for path in sources), *map(str.encode, item.recipe)):
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
def building(
    root: Path, items: Iterable[Item], releases: Mapping[str, Release], on_step: OnStep
) -> Generator[list[Item]]:
    """Hold the build locks of the items that no other process builds, or of one after waiting for it.

    A lock is exclusive and ends with its process; programs of one archive share one. Leftovers of killed
    processes are removed first.

    Yields:
        the items.
    """
    locks = root / _LOCKS
    locks.mkdir(parents=True, exist_ok=True)
    groups: dict[Path, list[Item]] = {}
    for item in items:
        release = releases.get(item.name)
        name = release.digest.partition(":")[2] if release else location(root, item).name
        groups.setdefault(locks / name, []).append(item)
    with ExitStack() as held:
        own = {path: group for path, group in groups.items() if _lock(held, path)}
        if not own:
            path, group = next(iter(groups.items()))
            on_step(_waiting(path, group))
            _lock(held, path, blocking=True)
            own = {path: group}
        for path in own:
            _since(path).touch()
        of_own = [item for group in own.values() for item in group]
        downloads = [releases[item.name].key for item in of_own if item.name in releases]
        _remove_leftovers(root, [*downloads, *(location(root, item).name for item in of_own)])
        yield of_own


def _lock(held: ExitStack, path: Path, *, blocking: bool = False) -> bool:
    """Return whether a lock is held now, until the end of the context."""
    lock = FileLock(path)
    try:
        lock.acquire(blocking=blocking)
    except Timeout:
        return False
    held.callback(lock.release)
    return True


def _since(lock: Path) -> Path:
    """Return the file whose time is that of the lock's last acquisition: opening the lock changes its own."""
    return lock.with_name(f"{lock.name}.since")


def _waiting(lock: Path, items: Iterable[Item]) -> Waiting:
    since = _since(lock)
    seconds = time.time() - since.stat().st_mtime if since.exists() else 0.0
    named = list(items)
    return Waiting(
        ", ".join(item.name for item in named), max(0.0, seconds), sum(item.minutes for item in named)
    )


def _remove_leftovers(root: Path, places: Iterable[str]) -> None:
    """Remove unfinished builds of items whose locks are held, and those of any from more than a day ago."""
    own = tuple(f"{_UNFINISHED}{place}-" for place in places)
    for leftover in root.glob(f"{_UNFINISHED}*"):
        with suppress(FileNotFoundError):
            if leftover.name.startswith(own) or leftover.stat().st_mtime < time.time() - _DAY:
                shutil.rmtree(leftover, ignore_errors=True)


@contextmanager
def adding(root: Path, place: Path) -> Generator[Path]:
    """Yield an empty directory, which becomes `place` on success and is removed on failure."""
    with tempfile.TemporaryDirectory(prefix=f"{_UNFINISHED}{place.name}-", dir=root) as temporary:
        unfinished = Path(temporary) / "content"
        unfinished.mkdir()
        yield unfinished
        unfinished.rename(place)
