"""The files of a folder of code, and their archive."""

import io
import os
import re
import secrets
import stat
import tarfile
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Final

from pathspec import GitIgnoreSpec, PathSpec

from ebbtide.text import printable
from ebbtide.work.errors import WorkloadError
from ebbtide.work.secrets import secret_in_file

LARGEST: Final = 200 * 10**6
"""Maximum size in bytes of the files of a folder; more is usually data or an environment."""

_NEVER: Final = {".git", "__pycache__"}
"""Directories that no program reads from its code."""
_BEGIN: Final = 1 << 20
"""Bytes of a file that are searched for a secret."""
_SHOWN: Final = 5
"""Number of large files in an error."""
_CHARACTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Characters of Kubernetes' generated names, which form no words (apimachinery, pkg/util/rand, 2026)."""
_SUFFIX: Final = 5
_LONGEST: Final = 40
"""Maximum length of the folder's part of a name: a Job's pods and indexes need the rest."""


@dataclass(frozen=True, slots=True, order=True)
class CodeFile:
    """A file of a folder.

    Attributes:
        path: its path in the folder, with `/`.
        size: its size in bytes; 0 for a symbolic link.
        is_executable: whether its owner may execute it.
        target: target of a symbolic link; empty for a file.
    """

    path: str
    size: int
    is_executable: bool = False
    target: str = ""


@dataclass(frozen=True, slots=True)
class Folder:
    """The files that a Job gets of a folder.

    Attributes:
        files: its files, by path.
        skipped: absolute symbolic links, and those that lead out of the folder, which the Job does not get.
    """

    root: Path
    files: tuple[CodeFile, ...]
    skipped: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Size of the files in bytes."""
        return sum(file.size for file in self.files)

    def archive(self, directory: str = "") -> bytes:
        """Return a tar archive that depends only on paths, contents and executable bits.

        Args:
            directory: directory of the files, for a layer of an image: every user can write in it and below,
                and it hides files of lower layers (OCI image specification 1.1, opaque whiteout).

        Raises:
            WorkloadError: a file cannot be read.
        """
        target = io.BytesIO()
        with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
            if directory:
                parents = {
                    parent for file in self.files for parent in PurePosixPath(directory, file.path).parents
                }
                for path in sorted(map(str, parents - {PurePosixPath()})):  # each after its parent
                    entry = tarfile.TarInfo(path)
                    entry.type, entry.mode = tarfile.DIRTYPE, 0o777
                    archive.addfile(entry)
                archive.addfile(tarfile.TarInfo(f"{directory}/.wh..wh..opq"))
            for file in self.files:
                entry = tarfile.TarInfo(str(PurePosixPath(directory, file.path)))
                entry.mode = 0o755 if file.is_executable else 0o644
                if file.target:
                    entry.type, entry.linkname = tarfile.SYMTYPE, file.target
                    archive.addfile(entry)
                    continue
                content = self._read(file)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        return target.getvalue()

    def _read(self, file: CodeFile) -> bytes:
        try:
            return (self.root / file.path).read_bytes()
        except OSError as error:
            raise WorkloadError(
                f"{file.path} of the code cannot be read ({error.strerror}): correct its permissions, or "
                "list it in .dockerignore."
            ) from None

    def largest(self) -> str:
        """Return the largest files with their sizes, for messages."""
        files = sorted(self.files, key=lambda file: (-file.size, file.path))[:_SHOWN]
        return ", ".join(f"{printable(file.path, one_line=True)} {size_text(file.size)}" for file in files)


def size_text(size: int) -> str:
    """Format a size in bytes in decimal units: `12 kB`, `1.5 MB`."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{max(1, round(size / 1000))} kB" if size else "0 kB"


def read_folder(root: Path) -> Folder:
    """Return the files of a folder, without those that `.dockerignore` or `.gitignore` exclude.

    Patterns of `.gitignore` also come from the folder's subdirectories, and from its parents up to the Git
    repository. `.git` and `__pycache__` are never included, and a file with secrets only if `.dockerignore`
    names it after `!`.

    Raises:
        WorkloadError: it is not a directory, it is empty, a directory or an ignore file cannot be read, a
            file holds secrets, or the files have more than 200 MB.
    """
    if not root.is_dir():
        raise WorkloadError(f"{root} is not a directory: write the folder of the code (--code DIR).")
    root = root.resolve()
    try:
        walk = _Walk(root)
        found = list(walk.files(root, _parents(root)))
        files = tuple(sorted(item for item in found if isinstance(item, CodeFile)))
        secrets = list(walk.secrets(file.path for file in files if not file.target))
    except OSError as error:
        raise WorkloadError(
            f"{error.filename} cannot be read ({error.strerror}): correct its permissions, or list it in "
            f"{root / '.dockerignore'}."
        ) from None
    skipped = tuple(sorted(item for item in found if isinstance(item, str)))
    folder = Folder(root, files, skipped)
    if not folder.files:
        raise WorkloadError(
            f"{root} has no files that are not ignored: write the folder of the code (--code DIR)."
        )
    if secrets:
        raise WorkloadError(
            f"The code in {root} has files that hold secrets, and everyone with access to the Job could read "
            f"them: {', '.join(secrets)}. List them in .dockerignore, and put what the command needs of them "
            "into a Secret (--secret-env, --secret-volume). To send one all the same, name it there with its "
            f"path, as in `!{secrets[0].rpartition(' (')[0]}`."
        )
    if folder.size > LARGEST:
        raise WorkloadError(
            f"The code in {root} has {size_text(folder.size)}, and at most {size_text(LARGEST)} are "
            f"supported. The largest files: {folder.largest()}. List data and outputs in .dockerignore, and "
            "keep them on a volume or in a bucket."
        )
    return folder


@dataclass(frozen=True, slots=True)
class _Ignored:
    """Patterns of a `.gitignore`, relative to its directory."""

    base: Path
    spec: GitIgnoreSpec

    def match(self, path: Path, *, is_directory: bool) -> bool | None:
        """Return whether a pattern excludes or includes a path; None if no pattern matches."""
        relative = path.relative_to(self.base).as_posix()
        return self.spec.check_file(f"{relative}/" if is_directory else relative).include


class _Walk:
    """A walk through a folder that omits ignored directories."""

    def __init__(self, root: Path) -> None:
        self._root = root
        file = root / ".dockerignore"
        lines = _docker_patterns(_lines(file)) if file.is_file() else []
        self._docker = PathSpec.from_lines("gitignore", lines)
        self._named = {line.removeprefix("!/") for line in lines if line.startswith("!/")}
        # Docker includes files of an excluded directory again, Git does not.
        self._may_include_again = any(line.startswith("!") for line in lines)

    def files(self, directory: Path, ignored: Sequence[_Ignored]) -> Generator[CodeFile | str]:
        """Yield the files below a directory, and the paths of links that lead out of the folder."""
        own = directory / ".gitignore"
        if own.is_file():
            ignored = [*ignored, _Ignored(directory, GitIgnoreSpec.from_lines(_lines(own)))]
        with os.scandir(directory) as entries:
            for entry in entries:
                path, relative = Path(entry.path), Path(entry.path).relative_to(self._root).as_posix()
                is_directory = entry.is_dir(follow_symlinks=False)
                if is_directory and entry.name in _NEVER:
                    continue
                if _is_git_ignored(path, ignored, is_directory=is_directory):
                    continue
                excluded = self._docker.match_file(relative)
                if is_directory:
                    if not excluded or self._may_include_again:
                        yield from self.files(path, ignored)
                elif not excluded:
                    yield from self._file(entry, relative)

    def secrets(self, paths: Iterable[str]) -> Generator[str]:
        """Yield the files that hold secrets and are not named in `.dockerignore`, with what they hold."""
        for path in paths:
            if path not in self._named and (held := secret_in_file(path, lambda: self._begin(path))):  # noqa: B023 - called at once
                yield f"{printable(path, one_line=True)} ({held})"

    def _begin(self, path: str) -> str:
        with (self._root / path).open("rb") as file:
            return file.read(_BEGIN).decode(errors="replace")

    def _file(self, entry: os.DirEntry[str], relative: str) -> Generator[CodeFile | str]:
        if entry.is_symlink():
            target = Path(entry.path).readlink()
            # Not `Path.resolve`, which fails on a link to itself.
            is_inside = Path(os.path.realpath(entry.path)).is_relative_to(self._root)
            is_kept = is_inside and not target.is_absolute() and not _leaves(relative, target)
            yield CodeFile(relative, 0, target=str(target)) if is_kept else relative
            return
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISREG(status.st_mode):
            yield CodeFile(relative, status.st_size, bool(status.st_mode & stat.S_IXUSR))


def _leaves(link: str, target: Path) -> bool:
    """Check whether a link's target is by way of a directory above the folder: the pod has no such one."""
    depths = accumulate((-1 if part == ".." else 1 for part in target.parts), initial=link.count("/"))
    return min(depths) < 0


def _is_git_ignored(path: Path, ignored: Sequence[_Ignored], *, is_directory: bool) -> bool:
    """Check a path against the nearest `.gitignore` with a matching pattern (Git docs, gitignore, 2026)."""
    matches = (item.match(path, is_directory=is_directory) for item in reversed(ignored))
    return next((match for match in matches if match is not None), False)


def _parents(root: Path) -> list[_Ignored]:
    """Return the patterns of the parents' `.gitignore`, from the Git repository's root downwards."""
    above = [root, *root.parents]
    top = next((number for number, path in enumerate(above) if (path / ".git").exists()), 0)
    files = [path / ".gitignore" for path in reversed(above[1 : top + 1])]
    return [_Ignored(file.parent, GitIgnoreSpec.from_lines(_lines(file))) for file in files if file.is_file()]


def _docker_patterns(lines: Iterable[str]) -> list[str]:
    """Convert the patterns of a `.dockerignore`, which are relative to its directory, to those of Git (Docker
    docs, build context, .dockerignore files, 2026)."""
    patterns: list[str] = []
    for line in map(str.strip, lines):
        if not line or line.startswith("#"):
            continue
        excluded, text = ("", line) if not line.startswith("!") else ("!", line[1:].strip())
        cleaned = text.removeprefix("./").strip("/")
        if cleaned not in {"", "."}:
            patterns.append(f"{excluded}/{cleaned}")
    return patterns


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8", errors="replace").splitlines()


def name_of(folder: str) -> str:
    """Return a name for a run of a folder: the folder's name with a random suffix."""
    return suffixed(application(folder))


def suffixed(name: str) -> str:
    """Return a name with a random suffix."""
    return f"{name}-{''.join(secrets.choice(_CHARACTERS) for _ in range(_SUFFIX))}"


def application(folder: str) -> str:
    """Return a folder's name as a DNS label that begins with a letter."""
    name = re.sub(r"[^a-z0-9]+", "-", folder.lower()).strip("-")
    name = name if name[:1].isalpha() else f"run-{name}"
    return name[:_LONGEST].strip("-")
