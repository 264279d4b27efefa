"""Storage of checkpoints: a directory, or a prefix in a bucket of Cloud Storage or Azure Blob Storage.

A bucket is used by its address, through fsspec, instead of a mount: this needs no CSI driver, volume claim or
sidecar, and can read buckets of other projects, such as that of a published model. It requires atomic uploads
and strongly consistent listings. Cloud Storage: strong consistency of uploads, deletions and listings
(cloud.google.com/storage/docs/consistency, 2026). Azure Blob Storage: the same
(learn.microsoft.com/azure/storage/blobs/concurrency-manage, 2026). A listing cached in this process is never
used.
"""

import atexit
import errno
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import unquote, urlsplit

_SCHEMES: Final = {"gs": "gcs", "gcs": "gcs", "abfs": "abfs", "abfss": "abfs", "az": "abfs"}
"""Schemes of addresses, with the extra that installs their library."""


class CheckpointError(Exception):
    """A checkpoint cannot be saved or read; the message contains the correction."""


def storage_of(root: str | Path) -> "Directory | Bucket":
    """Return the storage at a path or an address.

    Raises:
        CheckpointError: the scheme is unknown, or its library is not installed.
    """
    path = _local(root)
    return Directory(path) if path is not None else Bucket(str(root))


def copy(source: str | Path, directory: Path) -> None:
    """Copy a file, or the files of a directory, from a path or an address into a directory.

    Raises:
        FileNotFoundError: the source does not exist.
        CheckpointError: the source cannot be read.
    """
    path = _local(source)
    if path is None:
        _download(str(source), directory)
    elif path.is_dir():
        shutil.copytree(path, directory, dirs_exist_ok=True)
    else:
        shutil.copyfile(path, directory / path.name)


def write_once(address: str, content: bytes) -> bool:
    """Write an object of a bucket; return False if it exists.

    Raises:
        CheckpointError: the scheme is unknown, its library is not installed, or the bucket cannot be used.
    """
    files, path = _opened(address)
    try:
        if files.exists(path):
            return False
        files.pipe_file(path, content)
    except Exception as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise CheckpointError(
            f"{address} could not be used: {reason}. Check that you are logged in to the cloud, and may "
            "write there."
        ) from error
    return True


def digest(file: Path) -> str:
    """Return the SHA-256 digest of a file in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _local(source: str | Path) -> Path | None:
    """Return the local path of a path or a `file:` address; None for any other address."""
    if isinstance(source, Path) or "://" not in source:
        return Path(source)
    parts = urlsplit(source)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


class Directory:
    """Named files and directories of files in a directory, on a volume or a bucket mount; it is created if it
    does not exist."""

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(parents=True, exist_ok=True)

    def names(self) -> list[str]:
        """Return the names of all files and directories."""
        return [entry.name for entry in os.scandir(self._root)]

    def read(self, file: str) -> str:
        """Return the text of a file."""
        return (self._root / file).read_text(encoding="utf-8")

    def exists(self, file: str) -> bool:
        """Return whether the file exists."""
        return (self._root / file).exists()

    def size(self, directory: str, file: str) -> int:
        """Return the size of a directory's file in bytes."""
        return (self._root / directory / file).stat().st_size

    def fetch(self, directory: str) -> Path:
        """Return the directory itself."""
        return self._root / directory

    def stage(self, directory: str) -> Path:
        """Create a directory."""
        staged = self._root / directory
        staged.mkdir()
        return staged

    def publish(self, directory: str) -> None:
        """Sync the files, then the directories that contain them."""
        published = self._root / directory
        paths = list(published.rglob("*"))
        for path in paths:
            if path.is_file():
                _sync(path)
        for folder in (*(path for path in paths if path.is_dir()), published, self._root):
            _sync_directory(folder)

    def write(self, file: str, text: str) -> None:
        """Create a new file and sync it."""
        with (self._root / file).open("x", encoding="utf-8") as stream:
            stream.write(text)
        _sync(self._root / file)
        _sync_directory(self._root)

    def remove(self, file: str) -> None:
        """Remove a file if it exists."""
        (self._root / file).unlink(missing_ok=True)

    def remove_all(self, directory: str) -> None:
        """Remove a directory, as far as possible."""
        shutil.rmtree(self._root / directory, ignore_errors=True)


class Bucket:
    """The same as `Directory`, below a prefix in a bucket. Staged and fetched files are in a local temporary
    directory, the latter until others are fetched."""

    def __init__(self, address: str) -> None:
        self._address = address.rstrip("/")
        self._files, self._root = _opened(self._address)
        self._scratch = Path(tempfile.mkdtemp(dir=_scratch()))
        self._fetched = ""

    def names(self) -> list[str]:
        """Return the names of all objects and prefixes."""
        with self._answering():
            try:
                paths: list[str] = self._files.ls(self._root, detail=False)
            except FileNotFoundError:
                return []  # a prefix exists once an object does
            return [PurePosixPath(path).name for path in paths]

    def read(self, file: str) -> str:
        """Return the text of an object."""
        with self._answering():
            return str(self._files.cat_file(self._at(file)), encoding="utf-8")

    def exists(self, file: str) -> bool:
        """Return whether the object exists."""
        with self._answering():
            return bool(self._files.exists(self._at(file)))

    def size(self, directory: str, file: str) -> int:
        """Return the size of an object in bytes."""
        with self._answering():
            return int(self._files.info(self._at(directory, file))["size"])

    def fetch(self, directory: str) -> Path:
        """Download a prefix, unless it was the last download."""
        fetched = self._scratch / directory
        if directory != self._fetched:
            shutil.rmtree(fetched, ignore_errors=True)
            with self._answering():
                _download(f"{self._address}/{directory}", fetched)
            if self._fetched:
                shutil.rmtree(self._scratch / self._fetched, ignore_errors=True)
            self._fetched = directory
        return fetched

    def stage(self, directory: str) -> Path:
        """Create a local directory."""
        staged = self._scratch / directory
        staged.mkdir()
        return staged

    def publish(self, directory: str) -> None:
        """Upload a staged directory, and remove the local copy."""
        staged = self._scratch / directory
        with self._answering(writing=True):
            for path in sorted(staged.rglob("*")):
                if path.is_file():
                    name = path.relative_to(staged).as_posix()
                    self._files.put_file(str(path), self._at(directory, name))
        shutil.rmtree(staged, ignore_errors=True)

    def write(self, file: str, text: str) -> None:
        """Upload a new object."""
        with self._answering(writing=True):
            self._files.pipe_file(self._at(file), text.encode())

    def remove(self, file: str) -> None:
        """Remove an object if it exists."""
        with self._answering(), suppress(FileNotFoundError):
            self._files.rm_file(self._at(file))

    def remove_all(self, directory: str) -> None:
        """Remove a prefix and a staged directory, as far as possible."""
        shutil.rmtree(self._scratch / directory, ignore_errors=True)
        with suppress(FileNotFoundError, CheckpointError), self._answering():
            self._files.rm(self._at(directory), recursive=True)

    def _at(self, *names: str) -> str:
        return "/".join((self._root, *names))

    @contextmanager
    def _answering(self, *, writing: bool = False) -> Generator[None]:
        """Distinguish a bucket that rejects requests or does not respond from a missing object: an unreadable
        checkpoint is not a damaged one. While writing, only the bucket can be missing."""
        try:
            yield
        except CheckpointError:
            raise
        except Exception as error:
            if isinstance(error, FileNotFoundError) and not writing:
                raise
            raise CheckpointError(
                f"{self._address} could not be used: {error}. Check its name, and that the identity of the "
                "pod may read and write it."
            ) from error


@cache
def _scratch() -> str:
    """Create a temporary directory of this process."""
    directory = tempfile.mkdtemp(prefix="ebbtide-checkpoints-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


def _opened(address: str) -> tuple[Any, str]:
    """Return an fsspec file system, and the path in it.

    Raises:
        CheckpointError: the scheme is unknown, or its library is not installed.
    """
    scheme = urlsplit(address).scheme
    if scheme not in _SCHEMES:
        raise CheckpointError(
            f"{address} is not a supported storage for checkpoints: write a path, gs://bucket/directory, or "
            "abfss://container@account.dfs.core.windows.net/directory."
        )
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415 - only buckets need it

        # Two consecutive slashes would be a directory with an empty name.
        tidy = re.sub(r"(?<!:)/{2,}", "/", address)
        files, path = url_to_fs(tidy, use_listings_cache=False)
    except ImportError:
        from ebbtide.text import install_command  # noqa: PLC0415 - only errors need it

        raise CheckpointError(
            f"{address} needs a library that is not installed. Install it with: "
            f"{install_command(_SCHEMES[scheme])}."
        ) from None
    except ValueError as error:
        raise CheckpointError(f"{address} cannot be opened: {error}.") from error
    return files, path


def _download(address: str, directory: Path) -> None:
    """Copy an object, or all objects below a prefix, into a directory.

    Raises:
        FileNotFoundError: there is no such object.
        CheckpointError: an object's name points outside of the directory.
    """
    files, root = _opened(address)
    paths: list[str] = files.find(root)
    if not paths:
        raise FileNotFoundError(address)
    for path in paths:
        below = PurePosixPath(path).name if path == root else path.removeprefix(root).lstrip("/")
        if ".." in PurePosixPath(below).parts:
            raise CheckpointError(f"{path} is outside of {address}; rename the object.")
        target = directory / below
        target.parent.mkdir(parents=True, exist_ok=True)
        files.get_file(path, str(target))


def _sync(file: Path) -> None:
    with file.open("rb") as stream:
        os.fsync(stream.fileno())


def _sync_directory(directory: Path) -> None:
    """Sync new entries of a directory; mounts that do not support this do not need it."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(handle)
