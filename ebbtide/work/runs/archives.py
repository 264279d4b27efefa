"""Files of a tar archive that someone else made, such as a pod's outputs or the layer of an image.

Each entry is checked here, on every Python: `tarfile` has no filters before 3.11.4, and its `data` filter can
be escaped before 3.11.13, 3.12.11 and 3.13.4 (CVE-2025-4517). Nothing is written through a link, over a file,
or into a Git repository's own directory, whose hooks and settings Git executes.
"""

import errno
import gzip
import os
import re
import secrets
import shutil
import stat
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final, Self

from ebbtide.text import printable

_FILES: Final = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.CONTTYPE)
_LINKS: Final = {tarfile.SYMTYPE: "a symbolic link", tarfile.LNKTYPE: "a hard link"}
_HEADERS: Final = (
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
)
"""Types of headers that describe other entries, which `tarfile` reads into memory."""
_LONGEST: Final = 1 << 20
"""Maximum size in bytes of such a header; a path has up to 4096 (limits.h, PATH_MAX)."""
_CHUNK: Final = 1 << 20
_DEEPEST: Final = 100
"""Maximum number of directories of a path: many programs walk through them recursively."""
_NAMED: Final = 100
"""Number of skipped entries that are named."""
_SHOWN: Final = 200
"""Maximum length of their names."""
_ITS_NAME: Final = {
    errno.EACCES,
    errno.EILSEQ,
    errno.EINVAL,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOTDIR,
    errno.EPERM,
}
"""Errors of a single entry; others, such as a full disk, concern all of them."""
_IGNORABLE: Final = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Characters that HFS+ ignores in names (git 2.52, utf8.c, `next_hfs_char`)."""


class ArchiveError(Exception):
    """An archive that is incomplete or malformed."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """The entries of an archive.

    Attributes:
        files: number of its files that exist now.
        size: their size in bytes.
        skipped: names of entries that were not written, with the reason; at most 100.
        skipped_count: number of all of them.
    """

    files: int
    size: int
    skipped: tuple[str, ...] = ()
    skipped_count: int = 0


class _Skipped(Exception):  # noqa: N818 - not an error
    """An entry is not written; the message follows its name."""


class _Header(tarfile.TarInfo):
    """A header of limited size: a hostile one would fill the memory.

    The method is the one that subclasses may override (CPython, Lib/tarfile.py); newer releases no longer
    call `frombuf`.
    """

    def _proc_member(self, archive: tarfile.TarFile) -> Self:
        if self.size < 0 or (self.type in _HEADERS and self.size > _LONGEST):
            raise tarfile.ReadError("invalid header")
        read: Callable[[tarfile.TarFile], Self] = getattr(super(), "_proc_member")  # noqa: B009 - not in the stubs
        return read(archive)


def extract(
    archive: IO[bytes] | gzip.GzipFile,
    directory: Path,
    *,
    overwrite: bool = False,
    links: bool = False,
    ignored: Callable[[str], bool] = lambda _: False,
) -> Extracted:
    """Write the files and directories of an uncompressed tar archive into a directory.

    Files get the permissions of new files, and stay executable. An existing file with the same content counts
    as written.

    Args:
        directory: the directory, which is created if necessary.
        overwrite: whether files of the directory are replaced.
        links: whether symbolic links are created, if they lead to something within the directory.
        ignored: whether an entry of a name is ignored.

    Raises:
        ArchiveError: the archive is incomplete or malformed; the entries before are written.
        OSError: nothing can be written, as on a full disk.
    """
    directory.mkdir(parents=True, exist_ok=True)
    extraction = _Extraction(directory, overwrite=overwrite, links=links)
    try:
        with tarfile.open(fileobj=archive, mode="r|", tarinfo=_Header) as reader:
            for member in reader:
                reader.members.clear()  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue] # it keeps all
                if not ignored(member.name):
                    extraction.add(member, reader)
    # `tarfile` reads the headers of an entry recursively, and some malformed fields raise ValueError.
    except (tarfile.TarError, ValueError, RecursionError, EOFError) as error:
        raise ArchiveError(str(error)) from None
    return extraction.end()


class _Extraction:
    """An extraction into a directory."""

    def __init__(self, root: Path, *, overwrite: bool, links: bool) -> None:
        self._root = Path(os.path.realpath(root))
        self._overwrite, self._links_allowed = overwrite, links
        self._written: set[Path] = set()
        self._links: dict[Path, tarfile.TarInfo] = {}
        self._files = self._size = self._skipped_count = 0
        self._skipped: list[str] = []

    def add(self, member: tarfile.TarInfo, reader: tarfile.TarFile) -> None:
        """Write an entry, or note why it is skipped."""
        try:
            self._add(self._root.joinpath(*_parts(member.name)), member, reader)
        except _Skipped as reason:
            self._skip(member, str(reason))
        except OSError as error:
            if error.errno not in _ITS_NAME:
                raise
            self._skip(member, f"cannot be written ({error.strerror})")

    def _add(self, target: Path, member: tarfile.TarInfo, reader: tarfile.TarFile) -> None:
        if member.isdir():
            self._make(target)
        elif target == self._root:
            raise _Skipped("has no name")
        elif member.type == tarfile.SYMTYPE and self._links_allowed:
            self._links[target] = member
        elif member.type not in _FILES or member.issparse():
            raise _Skipped(f"is {_LINKS.get(member.type, 'neither a file nor a directory')}")
        elif content := reader.extractfile(member):
            self._write(target, content, member)

    def end(self) -> Extracted:
        """Create the links, after all files: nothing is written through them. Return the result."""
        created: list[Path] = []
        for target, member in self._links.items():
            try:
                self._make(target.parent)
                target.symlink_to(member.linkname)
                created.append(target)
            except (_Skipped, OSError, ValueError):
                self._skip(member, "is a link that cannot be created")
        for target in created:
            if not self._is_inside(target):
                target.unlink()
                self._skip(self._links[target], "is a link that leads out of the directory")
        return Extracted(self._files, self._size, tuple(self._skipped), self._skipped_count)

    def _is_inside(self, link: Path) -> bool:
        """Check where a link leads by itself, and by way of other links."""
        target = link.readlink()
        paths = (os.path.normpath(link.parent / target), os.path.realpath(link))
        return not target.is_absolute() and all(Path(path).is_relative_to(self._root) for path in paths)

    def _skip(self, member: tarfile.TarInfo, reason: str) -> None:
        self._skipped_count += 1
        if len(self._skipped) < _NAMED:
            name = member.name.encode(errors="backslashreplace").decode()
            name = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
            self._skipped.append(f"{printable(name, one_line=True)} {reason}")

    def _make(self, directory: Path) -> None:
        """Create a directory and its parents, none of which may be a link."""
        current = self._root
        for part in directory.relative_to(self._root).parts:
            current /= part
            try:
                current.mkdir()
            except FileExistsError:
                if not stat.S_ISDIR(current.lstat().st_mode):
                    raise _Skipped(f"would be in {current}, which is not a directory") from None

    def _write(self, target: Path, content: IO[bytes], member: tarfile.TarInfo) -> None:
        if target in self._written:
            raise _Skipped("is in the archive twice")
        self._make(target.parent)
        if not self._exists(target, content, member.size):
            self._create(target, content, is_executable=bool(member.mode & stat.S_IXUSR))
        self._written.add(target)
        self._files, self._size = self._files + 1, self._size + member.size

    def _exists(self, target: Path, content: IO[bytes], size: int) -> bool:
        """Check whether a file exists with the same content; one with other content is replaced or kept."""
        try:
            status = target.lstat()
        except FileNotFoundError:
            return False
        if stat.S_ISDIR(status.st_mode):
            raise _Skipped("exists as a directory")
        if self._overwrite:
            return False
        if stat.S_ISREG(status.st_mode) and status.st_size == size and _is_content(content, target):
            return True
        raise _Skipped("exists with other content")

    @staticmethod
    def _create(target: Path, content: IO[bytes], *, is_executable: bool) -> None:
        """Write a file under another name, and rename it once it is complete."""
        partial = target.parent / f".ebbtide-{secrets.token_hex(4)}"
        mode = 0o777 if is_executable else 0o666  # minus the user's umask
        try:
            with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                shutil.copyfileobj(content, file)
            partial.replace(target)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def _parts(name: str) -> tuple[str, ...]:
    """Return the components of an entry's path in the directory."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise _Skipped("has a path that leads out of the directory")
    if len(path.parts) > _DEEPEST:
        raise _Skipped(f"is more than {_DEEPEST} directories deep")
    if any(map(_is_git, path.parts)):
        raise _Skipped("is part of a Git repository")
    return path.parts


def _is_git(part: str) -> bool:
    """Check for `.git` as any file system reads it (git 2.52, path.c, `is_ntfs_dotgit`; utf8.c,
    `is_hfs_dotgit`)."""
    name = _IGNORABLE.sub("", part).casefold().partition(":")[0].partition("\\")[0].rstrip(". ")
    return name in {".git", "git~1"}


def _is_content(content: IO[bytes], file: Path) -> bool:
    """Check whether a file has a content of the same length."""
    with file.open("rb") as existing:
        while chunk := content.read(_CHUNK):
            if chunk != existing.read(len(chunk)):
                return False
    return True
