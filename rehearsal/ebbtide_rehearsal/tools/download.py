"""Download of released binaries: all at once, resumed after an interruption, verified before use."""

import hashlib
import shutil
import tarfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, as_completed, wait
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from threading import Event
from typing import Final
from urllib.parse import urlsplit

import requests
from urllib3.exceptions import HTTPError

from ebbtide_rehearsal.tools import cache
from ebbtide_rehearsal.tools.background import in_background
from ebbtide_rehearsal.tools.releases import Release, address
from ebbtide_rehearsal.tools.steps import Finished, NotDownloaded, OnStep, Started, Worked

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


class _DownloadError(Exception):
    """A download failed; the message is the reason."""


@dataclass(frozen=True, slots=True)
class _Archive:
    """A file with one or more programs.

    Attributes:
        url: its address.
        digest: its algorithm and hash.
        releases: the programs.
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
        releases: the programs.
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
        place = cache.downloaded(root, release)
        with cache.adding(root, place.parent) as target:
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
