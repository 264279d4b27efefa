"""Released binaries, downloaded and verified, and the cache of tools.

Releases are pinned by the hashes that their projects publish: `releases.csv`. A program whose patches
change its behavior has no row and is built: the controllers of Trainer, JobSet and Katib. The release of the
Kubernetes provider is of the commit that is built (its tag v4.25.0 is f47bc2d6), whose patches only name
embedded files. Downloads are all at once, and resumed after an interruption. The cache has a directory per
item, named by the hash of its build inputs.
"""

import csv
import hashlib
import os
import platform
import shutil
import tarfile
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, as_completed, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from threading import Event, Thread
from typing import Final, ParamSpec, TypeVar
from urllib.parse import urlsplit

import requests
from filelock import FileLock, Timeout
from platformdirs import user_cache_path
from urllib3.exceptions import HTTPError

from ebbtide_rehearsal.tools.items import (
    Data,
    Finished,
    Item,
    NotDownloaded,
    OnStep,
    Started,
    Tool,
    ToolError,
    Waiting,
    Worked,
)

_P = ParamSpec("_P")
_T = TypeVar("_T")
MIRROR: Final = "EBBTIDE_RELEASES"
_OFF: Final = "off"
_ARCHITECTURES: Final = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_CACHE: Final = "EBBTIDE_CACHE"
_UNFINISHED: Final = ".building-"
_LOCKS: Final = "locks"
_DAY: Final = 86400.0
_ANSWER_SECONDS: Final = 3
"""Limit for the first answers of all addresses together: a machine that reaches only a Go proxy builds."""
_STALL_SECONDS: Final = 10
_LEAST: Final = 2**16
"""Bytes that a download receives in `_STALL_SECONDS`; it is slower than a build otherwise."""
_ATTEMPTS: Final = 3
_MOST: Final = 2**30
"""Bytes of an archive; the largest has about 2**27."""
_PIECE: Final = 2**16
_MEGABYTE: Final = 10**6
_PARTIAL: Final = "downloads"


def in_background(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
    """Call a function in a daemon thread: a name server that does not answer cannot be interrupted."""
    future: Future[_T] = Future()

    def call() -> None:
        try:
            future.set_result(function(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - raised by future.result()
            future.set_exception(error)

    Thread(target=call, daemon=True).start()
    return future


_TABLE: Final = Path(__file__).with_name("releases.csv")


@dataclass(frozen=True, slots=True)
class Release:
    """A released binary.

    Attributes:
        program: the tool's name.
        platform: operating system and architecture as Go names them: `linux-amd64`.
        url: the address of the binary or archive.
        digest: `sha256:` or `sha512:` and the hexadecimal hash of what the address serves.
        member: the program's path in the archive; empty if the address serves the program itself.
        source: where the hash was read.
    """

    program: str
    platform: str
    version: str
    url: str
    digest: str
    member: str
    source: str

    @property
    def key(self) -> str:
        """Return the name of its directory in the cache."""
        return f"{self.program}-{self.version}-{self.digest.partition(':')[2][:12]}"


@cache
def releases() -> tuple[Release, ...]:
    """Return all rows of the table."""
    with _TABLE.open(encoding="utf-8", newline="") as rows:
        return tuple(Release(**row) for row in csv.DictReader(rows))


def release_of(item: Item) -> Release | None:
    """Return the release of a tool for this machine; None if it must be built."""
    machine = platform.machine().lower()
    here = f"{platform.system().lower()}-{_ARCHITECTURES.get(machine, machine)}"
    return next((row for row in releases() if (row.program, row.platform) == (item.name, here)), None)


def downloadable(items: Iterable[Item]) -> dict[str, Release]:
    """Return the releases of tools by name, none if `$EBBTIDE_RELEASES` is `off`."""
    if os.environ.get(MIRROR) == _OFF:
        return {}
    return {item.name: release for item in items if (release := release_of(item))}


def address(url: str) -> str:
    """Return where a release is downloaded: its own address, or the host and path below `$EBBTIDE_RELEASES`.

    Raises:
        ToolError: the variable is not an address.
    """
    mirror = os.environ.get(MIRROR)
    if not mirror:
        return url
    if urlsplit(mirror).scheme not in {"http", "https"}:
        raise ToolError(
            f"{MIRROR} is {mirror!r}: write the http or https address of a mirror of released binaries, or "
            f"{_OFF} to build from Go modules."
        )
    return f"{mirror.rstrip('/')}/{url.partition('://')[2]}"


MODULES: Final = Path(__file__).parent / "modules"


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


class _DownloadError(Exception):
    """A download failed; the message is the reason."""


@dataclass(frozen=True, slots=True)
class _Archive:
    """A file with one or more programs.

    Attributes:
        digest: its algorithm and hash.
        partial: where it is downloaded to, and continued after an interruption.
    """

    url: str
    digest: str
    releases: tuple[Release, ...]
    partial: Path

    @property
    def name(self) -> str:
        return ", ".join(release.program for release in self.releases)


def download(root: Path, releases: Iterable[Release], on_step: OnStep, stopped: Event) -> frozenset[str]:
    """Download programs into the cache.

    Args:
        root: the cache; the caller holds the build locks.
        on_step: called with progress, and once for all addresses without an answer.
        stopped: ends downloads when set.

    Returns:
        The names of the programs that could not be downloaded.
    """
    archives = _archives(root, releases)
    answers = {archive: in_background(_request, archive) for archive in archives}
    wait(answers.values(), timeout=_ANSWER_SECONDS)
    answered = {
        archive: answer.result()
        for archive, answer in answers.items()
        if answer.done() and not answer.exception()
    }
    unanswered = [archive for archive in archives if archive not in answered]
    if unanswered:
        for archive in unanswered:
            answers[archive].add_done_callback(_close)
        on_step(NotDownloaded(_programs(unanswered), _no_answers(unanswered, answers)))
    received: dict[Future[None], _Archive] = {}
    for number, (archive, response) in enumerate(answered.items(), 1):
        on_step(Started(archive.name, number, len(answered), 0))
        received[in_background(_fetch, root, archive, response, on_step, stopped)] = archive
    failed = list(unanswered)
    for future in as_completed(received):
        archive, error = received[future], future.exception()
        if isinstance(error, _DownloadError):
            on_step(NotDownloaded(_programs([archive]), str(error)))
            failed.append(archive)
        elif error:
            raise error
    return frozenset(_programs(failed))


def _archives(root: Path, releases: Iterable[Release]) -> list[_Archive]:
    """Group programs by archive."""
    groups: dict[str, list[Release]] = {}
    for release in releases:
        groups.setdefault(release.digest, []).append(release)
    (root / _PARTIAL).mkdir(exist_ok=True)
    return [
        _Archive(address(group[0].url), digest, tuple(group), root / _PARTIAL / digest.partition(":")[2][:32])
        for digest, group in groups.items()
    ]


def _programs(archives: Sequence[_Archive]) -> tuple[str, ...]:
    return tuple(release.program for archive in archives for release in archive.releases)


def _close(answer: Future[requests.Response]) -> None:
    if not answer.exception():
        answer.result().close()


def _no_answers(archives: Iterable[_Archive], answers: Mapping[_Archive, Future[requests.Response]]) -> str:
    """Return why there are no answers, each host once."""
    reasons: dict[str, str] = {}
    for archive in archives:
        answer = answers[archive]
        reason = str(answer.exception()) if answer.done() else f"no answer within {_ANSWER_SECONDS} seconds"
        reasons.setdefault(urlsplit(archive.url).hostname or archive.url, reason)
    hosts: dict[str, list[str]] = {}
    for host, reason in reasons.items():
        hosts.setdefault(reason, []).append(host)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in hosts.items())


def _request(archive: _Archive) -> requests.Response:
    """Request the part of an archive that is missing."""
    offset = archive.partial.stat().st_size if archive.partial.exists() else 0
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={offset}-"} if offset else {})
    try:
        response = requests.get(
            archive.url, headers=headers, stream=True, timeout=(_ANSWER_SECONDS, _STALL_SECONDS)
        )
    except requests.Timeout as error:
        raise _DownloadError(f"no answer within {_ANSWER_SECONDS} seconds") from error
    except requests.RequestException as error:
        raise _DownloadError(f"not reachable ({type(error).__name__})") from error
    if response.status_code == requests.codes.requested_range_not_satisfiable and offset:
        response.close()
        archive.partial.unlink()
        return _request(archive)
    if not response.ok:
        response.close()
        raise _DownloadError(f"status {response.status_code}")
    return response


def _fetch(
    root: Path, archive: _Archive, response: requests.Response, on_step: OnStep, stopped: Event
) -> None:
    """Receive an archive, verify it, and add its programs to the cache."""
    start = time.monotonic()
    attempts = _ATTEMPTS
    while True:
        resumed = response.status_code == requests.codes.partial_content
        try:
            with response:
                _receive(archive, response, on_step, stopped)
        except (HTTPError, requests.RequestException, OSError, _DownloadError) as error:
            attempts -= 1
            if not attempts or stopped.is_set():
                raise _DownloadError(f"{archive.url} stopped: {_words(error)}") from error
            response = _request(archive)
            continue
        actual = _digest(archive)
        if actual == archive.digest:
            break
        archive.partial.unlink()
        if not resumed:
            raise _DownloadError(f"{archive.url} has {actual}, not {archive.digest}: the file was deleted")
        response = _request(archive)
    _extract(root, archive)
    archive.partial.unlink()
    on_step(Finished(archive.name, time.monotonic() - start))


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, _DownloadError) else type(error).__name__


def _receive(archive: _Archive, response: requests.Response, on_step: OnStep, stopped: Event) -> None:
    """Append a response to the partial file.

    Raises:
        _DownloadError: it is too slow or too large, or the run was stopped.
        HTTPError: the connection broke; also of `requests` and `OSError`.
    """
    resumed = response.status_code == requests.codes.partial_content
    with archive.partial.open("ab" if resumed else "wb") as file:
        size = window = file.tell()
        total = size + int(response.headers.get("Content-Length", 0))
        deadline = time.monotonic() + _STALL_SECONDS
        while piece := response.raw.read1(_PIECE):
            file.write(piece)
            size += len(piece)
            if stopped.is_set() or size > _MOST:
                raise _DownloadError("interrupted" if stopped.is_set() else f"more than {_MOST} bytes")
            if time.monotonic() > deadline:
                if size - window < _LEAST:
                    raise _DownloadError(f"fewer than {_LEAST} bytes in {_STALL_SECONDS} seconds")
                window, deadline = size, time.monotonic() + _STALL_SECONDS
            on_step(Worked(archive.name, f"{size // _MEGABYTE} of {total // _MEGABYTE} MB"))


def _digest(archive: _Archive) -> str:
    algorithm = archive.digest.partition(":")[0]
    with archive.partial.open("rb") as file:
        return f"{algorithm}:{hashlib.file_digest(file, algorithm).hexdigest()}"


def _extract(root: Path, archive: _Archive) -> None:
    """Add the programs of a verified archive to the cache."""
    for release in archive.releases:
        place = downloaded(root, release)
        with adding(root, place.parent) as target:
            program = target / release.program
            if release.member:
                _extract_member(archive, release, program)
            else:
                shutil.copyfile(archive.partial, program)
            program.chmod(0o755)


def _extract_member(archive: _Archive, release: Release, program: Path) -> None:
    with tarfile.open(archive.partial) as members:
        for member in members:
            if member.isfile() and PurePosixPath(member.name) == PurePosixPath(release.member):
                source = members.extractfile(member)
                assert source  # noqa: S101 - a file
                with source, program.open("wb") as file:
                    shutil.copyfileobj(source, file)
                return
    raise _DownloadError(f"{archive.url} has no {release.member}")
