"""Checkpoints that survive a kill at any moment, for training code. On a volume they need nothing but the
standard library, in a bucket that of its cloud.

A checkpoint is a directory with a marker beside it:

    000000000042-9f8a6c01b2d4/…      what the training code wrote
    000000000042-9f8a6c01b2d4.json   written last: each file's size and digest, and a digest of the marker

It is there when its marker is, and both are whole; everything else is passed over. Nothing is ever renamed,
replaced or locked, and no pointer says which is the latest: it is the one with the highest step, so that no
writer can move it back. Names are unique, so that no two writers ever write one file.

That is because a bucket mount has neither an atomic rename, nor hard links, nor locks, and lets the last
writer of a file win. A bucket's address offers no more. What is relied on, there and on a volume alike:

- A file that is closed without an error is in the bucket, whole, as one object, and a reader that opens it
  afterwards finds it. Cloud Storage FUSE: close-to-open consistency; since 3.0 a file is not even there
  before it is closed, and fsync adds nothing (GoogleCloudPlatform/gcsfuse, docs/semantics.md, 2026).
  Blobfuse: uploaded on close, and the close fails where the upload does (Azure/azure-storage-fuse wiki,
  Blobfuse Limitations, 2022-10 and 2025-12; `lazy-write` must stay off).
- On a volume, what was synced survives the node. Files are closed first and synced then, through a handle of
  their own, since Blobfuse answers fsync by dropping its local copy.
- A listing may be a minute old: both mounts cache. An old one makes a reader see an older checkpoint, which
  is why a mount's cache should be short where several nodes write; it never breaks one.
"""

import hashlib
import json
import logging
import os
import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebbtide.workloads.storage import CheckpointError, copy, digest, storage_of

_NAME = re.compile(r"(\d{12,})-[0-9a-f]{12}")
_log = logging.getLogger("ebbtide.checkpoints")


class NewerCheckpointError(CheckpointError):
    """Another writer is ahead. Nothing was saved: go on from `latest()`, or stop."""


@dataclass(frozen=True, slots=True, order=True)
class Checkpoint:
    """A complete checkpoint.

    Attributes:
        step: the step after which it was saved; 0 for the initial one.
        path: directory with its files. It is there until `keep` newer ones are; of a bucket it is a copy on
            this machine, until another checkpoint is read.
    """

    step: int
    path: Path


class Checkpoints:
    """The checkpoints of one training run.

    One process saves, and any number may by mistake: a pod that was given up and lives on does no harm. What
    a killed save leaves goes when a later checkpoint is complete; before, it might be a save in progress.

    Args:
        root: directory of the run: on a volume or a bucket mount, made where it does not exist; or in a
            bucket, as `gs://bucket/run` or `abfss://container@account.dfs.core.windows.net/run`.
        keep: how many complete checkpoints stay. Three leave two to fall back on, and a reader the time to
            read.
    """

    def __init__(self, root: str | Path, *, keep: int = 3) -> None:
        if keep < 1:
            raise CheckpointError(f"keep is {keep}; at least the latest checkpoint stays: write 1 or more.")
        self.root = root
        self.keep = keep
        self._broken: set[str] = set()
        self._storage = storage_of(root)

    def latest(self) -> Checkpoint | None:
        """Return the newest complete checkpoint, with all bytes verified by their digests; None without one.
        Damaged ones are skipped and logged to `ebbtide.checkpoints`."""
        while True:
            for name in self._marked():
                fault = self._damage(name)
                if fault is None:
                    return Checkpoint(_step(name), self._storage.fetch(name))
                if not self._storage.exists(_marker(name)):
                    break  # it made way for newer ones since it was listed: look again
                self._broken.add(name)
                _log.warning("Checkpoint %s is passed over: %s.", name, fault)
            else:
                return None

    @contextmanager
    def saving(self, step: int) -> Generator[Path]:
        """Open a directory for a checkpoint; when the block ends, the checkpoint is complete.

        A kill at any moment leaves either this checkpoint or the one before. A block that raises leaves the
        one before. A step that is there already is not saved again.

        Args:
            step: the step after which this is saved, 0 or more; higher than any before.

        Raises:
            NewerCheckpointError: a later step is there already, from another writer.
            CheckpointError: the step is no whole number, or nothing was written.
            OSError: a file could not be written; the checkpoint before is untouched.
        """
        if step < 0 or isinstance(step, bool):
            raise CheckpointError(f"The step is {step}; it is a whole number, 0 or more.")
        name = f"{step:012d}-{os.urandom(6).hex()}"
        directory = self._storage.stage(name)
        try:
            yield directory
            self._publish(name, directory)
        except BaseException as error:
            self._storage.remove_all(name)
            if isinstance(error, FileNotFoundError):
                self._refuse_behind(step)  # cleared away under us by a writer that is ahead
            raise

    def seed(self, source: str | Path) -> Checkpoint:
        """Copy an initial checkpoint to where training finds it, unless there is any checkpoint already.

        It becomes step 0, which every step of training is ahead of: run again or too late, it overwrites
        nothing.

        Args:
            source: a file, or a directory with files: a path, or an address in a bucket.

        Returns:
            The latest checkpoint, which is the copy only where there was none.

        Raises:
            CheckpointError: there is nothing at `source`.
        """
        existing = self.latest()
        if existing is not None:
            return existing
        with suppress(NewerCheckpointError), self.saving(0) as directory:
            try:
                copy(source, directory)
            except FileNotFoundError:
                if not directory.exists():
                    raise  # cleared away by a writer that is ahead
                raise CheckpointError(f"There is no initial checkpoint at {source}.") from None
        existing = self.latest()
        if existing is None:
            raise CheckpointError(f"The copy of {source} in {self.root} cannot be read back.")
        return existing

    def _names(self, kind: str) -> list[str]:
        """Names of markers (`.json`) or directories (empty), the highest step first."""
        names = [
            entry.removesuffix(kind)
            for entry in self._storage.names()
            if entry.endswith(kind) and _NAME.fullmatch(entry.removesuffix(kind))
        ]
        return sorted(names, key=lambda name: (_step(name), name), reverse=True)

    def _marked(self) -> list[str]:
        return self._names(".json")

    def _damage(self, name: str, *, deep: bool = True) -> str | None:
        """Return the problem of a checkpoint; None for none. Sizes alone are checked, which is quick."""
        try:
            files = _unsealed(_step(name), self._storage.read(_marker(name)))
            for path, (size, saved) in files.items():
                if self._storage.size(name, path) != size:
                    return f"{path} has not the size that it was saved with"
                if deep and digest(self._storage.fetch(name) / path) != saved:
                    return f"{path} is not what was saved"
        except (OSError, ValueError, TypeError) as error:
            return f"it cannot be read ({error})"
        return None

    def _refuse_behind(self, step: int) -> None:
        for name in self._marked():
            if _step(name) <= step:
                return
            # In full: a damaged one must not keep training from going past it.
            if self._damage(name) is None:
                raise NewerCheckpointError(
                    f"Step {step} is not saved: step {_step(name)} is in {self.root} already. Another writer "
                    "is ahead of this one; go on from latest(), or stop."
                )

    def _publish(self, name: str, directory: Path) -> None:
        step = _step(name)
        self._refuse_behind(step)
        if any(_step(other) == step and self._damage(other) is None for other in self._marked()):
            self._storage.remove_all(name)
            return
        files = {
            file.relative_to(directory).as_posix(): [file.stat().st_size, digest(file)]
            for file in sorted(directory.rglob("*"))
            if file.is_file()
        }
        if not files:
            raise CheckpointError(f"Nothing was written into {directory}: there is nothing to save.")
        self._storage.publish(name)
        self._storage.write(_marker(name), _sealed(step, files))
        self._clear(name)

    def _clear(self, saved: str) -> None:
        """Remove what is older than the newest `keep`, and what is left of saves that ended early.

        Only what is behind the newest complete one goes: its writer, should it live, would be refused. The
        marker goes first, so that a half-removed checkpoint is none. The one that was just saved stays
        whatever is ahead of it: it was ahead of everything whole a moment ago.
        """
        whole = [
            name
            for name in self._marked()
            if name not in self._broken and self._damage(name, deep=False) is None
        ]
        keep = {saved, *whole[: self.keep]}
        newest = _step(whole[0]) if whole else 0
        for name in {*self._marked(), *self._names("")}:
            if name not in keep and _step(name) < newest:
                with suppress(OSError, CheckpointError):
                    self._storage.remove(_marker(name))
                    self._storage.remove_all(name)


def _step(name: str) -> int:
    return int(name.partition("-")[0])


def _marker(name: str) -> str:
    return f"{name}.json"


def _sealed(step: int, files: dict[str, Any]) -> str:
    """Return a marker's text: one text for one content, so that any changed byte is detected."""
    content = {"step": step, "files": files}
    seal = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps(content | {"seal": seal}, sort_keys=True)


def _unsealed(step: int, text: str) -> dict[str, tuple[int, str]]:
    """Parse a marker: the files that it lists, with size and digest.

    Raises:
        ValueError: it is not whole.
    """
    files: dict[str, Any] = dict(json.loads(text)).get("files", {})
    if text != _sealed(step, files):
        raise ValueError("the marker is not whole")
    return {path: (size, saved) for path, (size, saved) in files.items()}
